"""One Slack app in several workspaces: each installs it by OAuth, all over one HTTP server."""
