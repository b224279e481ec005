"""Everything about models: the HTTP client, replies, retries, prices, the built-in model."""
