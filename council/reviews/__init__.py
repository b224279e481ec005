"""Reading reviews: ballots, scores, critiques, and the ranking they make."""
