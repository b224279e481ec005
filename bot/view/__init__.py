"""What people see of a run: events fold into a view, a view becomes messages."""
