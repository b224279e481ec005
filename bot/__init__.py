"""The people's side: commands, card, thread, terminal, operations."""
