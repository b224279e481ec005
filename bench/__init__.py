"""Benchmarks: ratios within one run, against the ideal and the usual way; never part of the tests."""
