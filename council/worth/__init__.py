"""What a council was worth: the judge, depth, and how sure a figure is."""
