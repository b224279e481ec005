"""The Slack adapter: listens, acknowledges, posts and edits."""
