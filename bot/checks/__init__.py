"""What can be wrong with an installation: each check examines one thing and says how to fix it."""
