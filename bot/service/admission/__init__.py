"""Who may ask, how much and when: access, permissions, limits, budgets, the queue."""
