"""What people read when they ask, vote, configure or delete: replies, refusals, failures."""
