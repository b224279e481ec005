"""What is derived from the documents to be found quickly, and how past answers are read from it."""
