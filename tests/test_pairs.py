"""What is tried in every run, and what only in `make soak`."""

from tests.pairs import pairs


def test_every_value_is_tried_in_every_run() -> None:
    """And every pair in one of them."""
    made = pairs("abc", [1, 2, 3, 4, 5])
    always = [each.values for each in made if not each.marks]
    assert {value for values in always for value in values} == {*"abc", 1, 2, 3, 4, 5}
    assert len(always) == 5
    assert {each.values for each in made} == {(one, other) for one in "abc" for other in range(1, 6)}
