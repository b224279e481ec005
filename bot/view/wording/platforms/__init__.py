"""What is said on one platform only."""
