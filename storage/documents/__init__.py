"""Conversations as documents: between bytes and models, what is done to one, and where they are kept."""
