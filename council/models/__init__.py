"""Talking to models: one HTTP client, replies, retries, prices, the built-in model."""
