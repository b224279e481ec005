"""Messages as text: parsed as Markdown, written in a platform's dialect, then split."""
