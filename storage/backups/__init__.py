"""One file with everything in the data folder: made, checked and put back."""
