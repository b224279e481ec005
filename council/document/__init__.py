"""What is stored for an answer: results, conversation, rounds, changes."""
