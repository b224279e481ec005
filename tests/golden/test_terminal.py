"""Golden runs in the terminal."""

from tests.golden.edges import golden

test_what_leaves_is_as_recorded = golden(r"terminal\*?", "terminal", "terminal")
