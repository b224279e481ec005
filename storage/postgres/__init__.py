"""The store for more than one machine: journal, index and documents in PostgreSQL."""
