"""What is written down while runs are carried out: their calls, their posts, their cost."""
