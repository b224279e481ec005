"""How a run reaches its channel: the card, the thread, and what waits to be sent."""
