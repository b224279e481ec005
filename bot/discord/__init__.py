"""The Discord adapter: listens, acknowledges, posts and edits."""
