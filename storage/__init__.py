"""Conversations as JSON files, the index, the run journal. SQL lives only here."""
