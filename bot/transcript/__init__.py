"""A whole conversation as one file: HTML to read, Markdown to edit."""
