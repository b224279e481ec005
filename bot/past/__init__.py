"""Past answers: finding them in a scope, and showing them in pages."""
