"""What `council doctor` says, one file for each part of an installation."""
