"""`council init`: a council of one's own, by questions at the terminal."""
