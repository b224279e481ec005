"""From a question to a run: commands, limits, the queue, and what keeps the card in step."""
