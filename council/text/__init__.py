"""Texts, whoever wrote them: their characters, their language, fences around them, secrets in them."""
