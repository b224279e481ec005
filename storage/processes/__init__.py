"""What processes agree on: locks, and whose turn it is."""
