"""What the models are sent: every prompt, and how much of what came before it repeats."""
