"""Pictures of what people see, from recorded messages."""
