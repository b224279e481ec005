"""The council: answers, reviews, corrections, synthesis. No platform, no database."""
