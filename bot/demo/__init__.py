"""The example council: one run written by hand, played back instead of models' replies."""
