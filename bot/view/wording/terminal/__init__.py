"""What whoever runs the program reads in a terminal, except `council doctor`."""
