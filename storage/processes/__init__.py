"""What processes agree on: locks, whose turn it is, and runs as jobs."""
