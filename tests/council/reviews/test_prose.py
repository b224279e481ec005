"""Points are read in prose: most critique, nothing else, and nothing under the wrong answer."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.document.results import ReviewPoint
from council.reviews.ballots import read_ballot
from council.reviews.prose import read_review
from tests.council.reviews import ballots, divided, reviews
from tests.council.reviews.ballots import LABELS
from tests.council.reviews.reviews import CASES, JSON_CASES
from tests.fragments import made_of

GRADES = {"h": "high", "m": "medium", "l": "low"}
Labelled = dict[str, list[str]]
ALL_CASES = [
    *((name, text) for name, text, _ in divided.CASES),
    *((name, text) for name, text, _ in reviews.CASES),
    *((name, text) for name, text, _ in ballots.CASES),
]


def objections(text: str) -> list[ReviewPoint]:
    """Return what a review holds against the answers."""
    return [point for point in read_review(text, LABELS).points or () if point.kind == "objection"]


def belongs(point: ReviewPoint, labelled: Labelled) -> str | None:
    """Return the labelled point that this is, under its own answer."""
    words = labelled.get(point.label[-1], [])
    return next((each for each in words if each[2:].lower() in point.text.lower()), None)


@pytest.mark.parametrize(("text", "labelled"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_no_point_is_credited_to_the_wrong_answer(text: str, labelled: Labelled) -> None:
    """A point belongs to the answer that a careful reader would name, or it isn't read."""
    for point in objections(text):
        others = {letter: words for letter, words in labelled.items() if letter != point.label[-1]}
        meant = [each for words in others.values() for each in words if each[2:] in point.text]
        assert belongs(point, labelled) or not meant, point
        assert point.label[-1] in labelled, point
    for point in read_review(text, LABELS).points or ():
        assert point.kind == "objection" or not belongs(point, labelled), point


def test_most_critique_is_read_and_nothing_else() -> None:
    """Precision and recall over the labelled reviews; shown with `pytest -s`."""
    read = right = graded = wanted = found = 0
    for _, text, labelled in CASES:
        points = objections(text)
        known = {(letter, each) for letter, words in labelled.items() for each in words}
        hits = [(point, each) for point in points if (each := belongs(point, labelled))]
        read += len(points)
        right += len(hits)
        graded += sum((point.severity or "medium") == GRADES[each[0]] for point, each in hits)
        wanted += len(known)
        found += len({(point.label[-1], each) for point, each in hits})
    print(  # noqa: T201 - the figures are for people
        f"\n{len(CASES)} reviews, {wanted} points: precision {right / read:.2f}, recall {found / wanted:.2f}, "
        f"severity as labelled {graded / right:.2f}"
    )
    assert len(CASES) >= 40
    assert right == read
    assert found / wanted >= 0.8
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
    found = [each for each in ballot.points or () if each.kind == "objection"]
    assert [(each.label[-1], each.severity, each.text) for each in found] == [
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
    for point in read_review(text, LABELS).points or ():
        assert point.label in LABELS
        assert point.text.strip()


def words(text: str) -> str:
    """Return a text's letters and digits, which markup and layout don't change."""
    return "".join(re.findall(r"[^\W_]+", text)).lower()


@pytest.mark.parametrize(
    ("text", "said"), [pytest.param(*case, id=name) for name, *case in divided.CASES]
)
def test_no_sentence_is_under_the_wrong_answer(text: str, said: dict[str, str]) -> None:
    """A careful reader takes every point to be about that answer alone."""
    for point in read_review(text, LABELS).points or ():
        assert words(point.text) in words(said.get(point.label[-1], "")), point


def test_much_of_what_is_said_is_a_point() -> None:
    """Recall by characters over the marked reviews, shown with `pytest -s`.

    The marks hold all that is said about one answer; what neither praises nor objects in plain English words,
    or below a title in any language, is no point.
    """
    right = marked = 0
    for _, text, said in divided.CASES:
        marked += sum(len(words(each)) for each in said.values())
        right += sum(len(words(point.text)) for point in read_review(text, LABELS).points or ())
    print(  # noqa: T201 - the figures are for people
        f"\n{len(divided.CASES)} reviews, {marked} characters about one answer: recall {right / marked:.2f}"
    )
    assert len(divided.CASES) >= 30
    assert right / marked >= 0.55


def test_no_point_names_another_answer() -> None:
    """Nor does any contain the ballot."""
    for name, text in ALL_CASES:
        for point in read_review(text, LABELS).points or ():
            for other in (*LABELS, "final ranking"):
                assert other == point.label or other.lower() not in unquoted(point.text), (name, point)


def unquoted(text: str) -> str:
    """Return a text in lower case without what it quotes."""
    return re.sub(r'"[^"]*"', "", text).lower()


def read(text: str) -> list[tuple[str, str, str | None, str]]:
    """Return the points about Response A: kind, text, severity, source."""
    return [
        (point.kind, point.text, point.severity, point.source)
        for point in read_review(text, LABELS).points or ()
        if point.label == "Response A"
    ]


def test_a_review_that_only_compares_has_no_points() -> None:
    """Nothing is guessed."""
    assert (
        read_review("Response A is better than Response B. Response C beats both.", LABELS).points
        is None
    )
    assert read_review("The first is fine, the second has a bug.", LABELS).points is None
    assert read_review("", LABELS).points is None


def test_a_title_says_which_kind_its_points_are() -> None:
    """In any language that it names; without one, plain words say it, and what they don't is left out."""
    assert read(
        "## Response A\n**Pros:**\n- *fast*\n- uses `COUNT(*)` on my_table\n**Cons:** no tests"
    ) == [
        ("strength", "fast", None, "section"),
        ("strength", "uses COUNT(*) on my_table", None, "section"),
        ("objection", "no tests", None, "section"),
    ]
    assert read("### Antwort A\n**Schwächen:**\n- Die Ausnahme fehlt.") == [
        ("objection", "Die Ausnahme fehlt.", None, "section")
    ]
    assert read("### Antwort A\nDas Beispiel ist gut gewählt. Die Ausnahme fehlt.") == []
    assert read("Response A is clear. It describes Kafka. However, it is wrong about the year.") == [
        ("strength", "Response A is clear.", None, "sentence"),
        ("objection", "However, it is wrong about the year.", "high", "sentence"),
    ]


def test_severity_is_what_the_reviewer_gave() -> None:
    """As a mark or in plain words of the prompt's; other objections have none."""
    marked = "### Response A\n**Weaknesses:**\n- [low] The year.\n- [high] Leaks the key.\n- no tests"
    assert [(text, grade) for _, text, grade, _ in read(marked)] == [
        ("The year.", "low"),
        ("Leaks the key.", "high"),
        ("no tests", None),
    ]
    said = "Response A is wrong about the year. It has a typo. It lacks tests."
    assert [grade for _, _, grade, _ in read(said)] == ["high", "low", None]
    assert [grade for _, _, grade, _ in read("Response A is simply a repetition of it.")] == [None]


def test_a_heading_that_only_says_review_is_no_part() -> None:
    """A part names a kind of remarks; *Review* doesn't."""
    text = "**Review of Response A**\nIt is wrong.\n\n**Weaknesses of Response B**\n- the year"
    assert [(each.label, each.kind, each.text) for each in read_review(text, LABELS).points or ()] == [
        ("Response A", "objection", "It is wrong."),
        ("Response B", "objection", "the year"),
    ]


def test_a_sentence_that_only_announces_objections_is_none() -> None:
    """What follows it is; it would be shown behind its own points, as less grave than they are."""
    said = "### Response A\nI see two gaps. It is wrong about the year. There are three issues:"
    assert [text for _, text, _, _ in read(said)] == ["It is wrong about the year."]
    assert read("### Response A\nThere is a problem with the year, which is wrong.") != []
