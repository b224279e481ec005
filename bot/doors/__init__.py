"""What programs ask by: tokens, the OpenAI-compatible endpoint, and MCP."""
