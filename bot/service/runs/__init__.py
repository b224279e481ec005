"""Runs: recorded, prepared, carried out, ended, and observed all the while."""
