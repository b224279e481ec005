"""Scores in reviews: as JSON or in the rows that are asked for, and nothing that isn't the reviewer's own."""

from hypothesis import given
from hypothesis import strategies as st

from council.reviews.ballots import read_scores, scores_of, scores_text
from tests.pairs import data, rows

LABELS = ("Response A", "Response B")
CRITERIA = ("Cost", "Time to market")
BOTH = {
    "Response A": {"Cost": 7, "Time to market": 4},
    "Response B": {"Cost": 9, "Time to market": 10},
}
ROWS = "Response A: Cost 7, Time to market 4\nResponse B: Cost 9, Time to market 10"
RANKING = "FINAL RANKING:\n1. Response B\n2. Response A"


@rows(
    "text",
    data(__file__, "scores_are_read"),
)
def test_scores_are_read(text: str) -> None:
    """In the rows that are asked for; the last block, and an answer's first score in it."""
    assert read_scores(text, LABELS, CRITERIA) == BOTH


@rows(
    "text",
    data(__file__, "nothing_is_guessed"),
)
def test_nothing_is_guessed(text: str) -> None:
    """Prose, quotations, code, unknown names and numbers out of range give no score."""
    assert read_scores(text, LABELS, CRITERIA) == {}


def test_an_unreadable_line_does_not_affect_the_others() -> None:
    """The scores on the other lines count; without criteria, none."""
    text = "SCORES:\nResponse A: Cost 7, Time to market good\nResponse B: Cost 12, Time to market 10"
    assert read_scores(text, LABELS, CRITERIA) == {
        "Response A": {"Cost": 7},
        "Response B": {"Time to market": 10},
    }
    assert read_scores(f"SCORES:\n{ROWS}", LABELS, ()) == {}


@rows(
    ("given", "read"),
    [
        ({"Cost": 7, "Time to market": 4}, {"Cost": 7, "Time to market": 4}),
        ({"cost": 7, "time_to_market": 4}, {"Cost": 7, "Time to market": 4}),
        ({"Cost": 0, "Time to market": 11}, {}),
        ({"Cost": "7", "Time to market": True}, {}),
        ({"Cost": 7, "Beauty": 9}, {"Cost": 7}),
        ([7, 4], {}),
        (None, {}),
    ],
)
def test_json_scores_are_whole_numbers_of_known_criteria(given: object, read: dict[str, int]) -> None:
    """A name may be written in another way, a number not."""
    assert scores_of(given, CRITERIA) == read


@given(st.text(), st.sampled_from(["", "SCORES:\n", "SCORES:\nResponse A: "]))
def test_any_text_can_be_read(text: str, before: str) -> None:
    """Only known labels and criteria come out, and only whole numbers from 1 to 10."""
    for label, scores in read_scores(before + text, LABELS, CRITERIA).items():
        assert label in LABELS
        assert scores.keys() <= {*CRITERIA}
        assert all(1 <= score <= 10 for score in scores.values())


MANY_LABELS = tuple(f"Response {letter}" for letter in "ABCDEF")
MANY_CRITERIA = (*CRITERIA, "R&D", "Cost of change", "5 years' support", "Ops.")


@given(
    st.dictionaries(
        st.sampled_from(MANY_LABELS),
        st.dictionaries(st.sampled_from(MANY_CRITERIA), st.integers(1, 10), min_size=1),
        min_size=1,
    )
)
def test_written_scores_are_read_back(scores: dict[str, dict[str, int]]) -> None:
    """The form that reviewers are asked for; one criterion's name may begin with another's."""
    text = "\n".join(scores_text(scores))
    assert read_scores(text, MANY_LABELS, MANY_CRITERIA) == scores
