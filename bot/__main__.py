"""`python -m bot` is `council run`."""

from bot.cli import app

app(["run"])
