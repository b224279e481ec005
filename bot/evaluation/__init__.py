"""Evaluations on Inspect (`inspect-ai`): its data sets, scorers and logs, with the council's arms."""
