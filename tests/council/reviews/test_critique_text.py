"""Critique is found in reviews: most of it, little else, and never under the wrong answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.document.results import ReviewPoint
from council.reviews.ballots import read_ballot
from council.reviews.critique_text import read_points
from tests.council.reviews.ballots import LABELS
from tests.council.reviews.reviews import CASES, JSON_CASES
from tests.fragments import made_of

GRADES = {"h": "high", "m": "medium", "l": "low"}
Labelled = dict[str, list[str]]


def belongs(point: ReviewPoint, labelled: Labelled) -> str | None:
    """Return the labelled point that this is, under its own answer."""
    words = labelled.get(point.label[-1], [])
    return next((each for each in words if each[2:].lower() in point.text.lower()), None)


@pytest.mark.parametrize(("text", "labelled"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_no_point_is_credited_to_the_wrong_answer(text: str, labelled: Labelled) -> None:
    """A point belongs to the answer that a careful reader would name, or it isn't read."""
    for point in read_points(text, LABELS):
        others = {letter: words for letter, words in labelled.items() if letter != point.label[-1]}
        meant = [each for words in others.values() for each in words if each[2:] in point.text]
        assert belongs(point, labelled) or not meant, point
        assert point.label[-1] in labelled, point


def test_most_critique_is_read_and_little_else() -> None:
    """Precision and recall over the labelled reviews; shown with `pytest -s`."""
    read = right = graded = wanted = found = 0
    for _, text, labelled in CASES:
        points = read_points(text, LABELS)
        known = {(letter, each) for letter, words in labelled.items() for each in words}
        hits = [(point, each) for point in points if (each := belongs(point, labelled))]
        read += len(points)
        right += len(hits)
        graded += sum(point.severity == GRADES[each[0]] for point, each in hits)
        wanted += len(known)
        found += len({(point.label[-1], each) for point, each in hits})
    print(  # noqa: T201 - the figures are for people
        f"\n{len(CASES)} reviews, {wanted} points: precision {right / read:.2f}, recall {found / wanted:.2f}, "
        f"severity as labelled {graded / right:.2f}"
    )
    assert len(CASES) >= 40
    assert right / read >= 0.95
    assert found / wanted >= 0.85
    assert graded / right >= 0.85


@pytest.mark.parametrize(("language", "points"), JSON_CASES)
def test_a_json_ballot_says_it_in_any_language(
    language: str, points: dict[str, list[tuple[str, str]]]
) -> None:
    """Every point, as its author graded it, and nothing else."""
    reviews = [
        {
            "label": f"Response {letter}",
            "strengths": language,
            "critiques": [{"severity": grade, "text": text} for grade, text in said],
        }
        for letter, said in points.items()
    ]
    ballot = read_ballot(json.dumps({"reviews": reviews, "ranking": [*LABELS]}), LABELS)
    assert ballot.critiques is not None
    assert [(each.label[-1], each.severity, each.text) for each in ballot.critiques] == [
        (letter, grade, text) for letter, said in points.items() for grade, text in said
    ]


FRAGMENTS = [
    *LABELS,
    "A",
    "B's",
    "lacks",
    "is wrong",
    ". ",
    "\n",
    "\n\n",
    "### ",
    "- ",
    "**",
    ": ",
    "while",
    "than",
    '"',
    "> ",
    "```",
    *("{", "\x00", "\u2028", "\u6f22", "e\u0301"),
]


@given(st.text() | made_of([f"{each} " for each in FRAGMENTS], 30))
def test_any_text_is_read(text: str) -> None:
    """Only known labels come out, and no point without words."""
    for point in read_points(text, LABELS):
        assert point.label in LABELS
        assert point.text.strip()
