"""Messages as text: Markdown parsed, written in a dialect, and split last."""
