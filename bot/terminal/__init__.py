"""The terminal adapter: the same messages, drawn for one person."""
