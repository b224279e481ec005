"""What people ask of the bot: questions and follow-ups, votes, settings, help."""
