"""`council eval`: questions through the arms, and what came of it."""
