"""Conversations as JSON files, the index, the run journal. SQL is only here."""
