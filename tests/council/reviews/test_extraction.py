"""The points about each answer, picked out of whole reviews as the refinement contract has it."""

from council.document.results import CritiqueItem, Stage2Result, format_critiques_for_refinement
from council.reviews.extraction import extract_critiques_from_rankings
from tests.council.reviews.points import against, praise
from tests.pairs import rows

LABELS = {"Response A": "a/one", "Response B": "b/two", "Response C": "c/three"}


def said(review: str, by: str = "c/three") -> list[tuple[str, str, str]]:
    """Return the points of one review: the answer's letter, the severity, the text."""
    found = extract_critiques_from_rankings([{"model": by, "ranking": review}], LABELS)
    assert [*found] == [*LABELS]
    return [
        (label[-1], item.severity, item.critique_text)
        for label, items in found.items()
        for item in items
    ]


def test_a_point_goes_to_the_answer_it_is_about_and_not_to_its_critic() -> None:
    """Each with its source and severity; what a model says about its own answer is left out."""
    text = "Response A is wrong about the year. Response B has a minor typo. Response C lacks sources."
    assert said(text) == [
        ("A", "high", "Response A is wrong about the year."),
        ("B", "low", "Response B has a minor typo."),
    ]


def test_similar_points_are_merged() -> None:
    """The longest text and the gravest severity are kept, with all reviewers."""
    reviews = [
        {"model": "b/two", "ranking": "Response A lacks any test of the rollback."},
        {"model": "c/three", "ranking": "Response A seriously lacks any test of the rollback path."},
    ]
    [item] = extract_critiques_from_rankings(reviews, LABELS)["Response A"]
    assert item == CritiqueItem(
        source_model="c/three",
        target_response="Response A",
        critique_text="Response A seriously lacks any test of the rollback path.",
        severity="high",
        also_from=["b/two"],
    )


@rows(
    ("short", "long", "same"),
    [
        ("is wrong.", "is wrong about the default port, and the backup command deletes data.", False),
        ("ignores backups.", "ignores backups, and its default port is wrong.", False),
        ("ignores backups.", "ignores the backups.", True),
        ("lacks tests.", "lacks tests", True),
        ("has the wrong default port.", "has a wrong default port, and deletes data.", True),
        ("has the wrong default user.", "has a wrong default port, and deletes data.", False),
    ],
)
def test_a_word_or_two_in_common_make_no_similar_points(short: str, long: str, same: bool) -> None:
    """No reviewer is credited with another's point."""
    reviews = [
        {"model": "b/two", "ranking": f"Response A {short}"},
        {"model": "c/three", "ranking": f"Response A {long}"},
    ]
    items = extract_critiques_from_rankings(reviews, LABELS)["Response A"]
    assert len(items) == (1 if same else 2)
    assert any(item.also_from for item in items) == same


def test_grave_points_come_first_then_those_that_more_reviewers_make() -> None:
    """The number is limited."""
    reviews = [
        Stage2Result(
            model="b/two",
            ranking="",
            parsed_ranking=[],
            points=[
                against(label="Response A", text="Too long by half.", severity="low"),
                against(label="Response A", text="No word about cost."),
                against(label="Response A", text="Ignores backups."),
                praise(label="Response A", text="Quick to read."),
                against(label="Response D", text="Nobody's.", severity="high"),
                against(label="Response A", text="Leaks the key.", severity="high"),
            ],
        ),
        Stage2Result(model="c/three", ranking="Response A ignores backups.", parsed_ranking=[]),
    ]
    found = extract_critiques_from_rankings(reviews, LABELS, 3)["Response A"]
    assert [item.critique_text for item in found] == [
        "Leaks the key.",
        "Response A ignores backups.",
        "No word about cost.",
    ]


def test_stored_points_go_before_the_text() -> None:
    """A ballot's own, as new or as older documents have them; a review in prose is read by its sentences."""
    stored: dict[str, object] = {
        "model": "b/two",
        "parsed_ranking": [],
        "ranking": "Response A lacks tests.",
    }
    critiques = [
        {"label": "Response A", "text": "Leaks the key.", "severity": "high"},
        {"label": "Response D", "text": "Nobody's.", "severity": "low"},
    ]
    section = {"label": "Response A", "kind": "objection", "text": "It lacks.", "source": "section"}
    for more, points in (
        ({"critiques": critiques}, ["Leaks the key."]),
        ({"points": [section]}, ["Response A lacks tests."]),
        ({"critiques": "none"}, ["Response A lacks tests."]),
    ):
        found = extract_critiques_from_rankings([{**stored, **more}], LABELS)
        assert [item.critique_text for item in found["Response A"]] == points


@rows(
    ("review", "points"),
    [
        ("Response A contains no errors. Response B is clear and complete.", []),
        ("Response A lacks examples. Response B is good.", [("A", "medium", "Response A lacks examples.")]),
        ("Response A should be more detailed.", [("A", "medium", "Response A should be more detailed.")]),
        ("Response A is clear. However, it is wrong about the year.", [("A", "high", "However, it is wrong about the year.")]),
        ("### Response A\n- **It lacks tests.**\n- [low] The year.\n\n### Response B\nClear.", [("A", "medium", "It lacks tests."), ("A", "low", "The year.")]),
        ("Response A is worse than Response B. Both lack tests.", []),
        ("Response A is fine.\nIgnores the cost.", []),
        ("FINAL RANKING:\n1. Response A is wrong", []),
    ],
)  # fmt: skip
def test_plain_text_is_read_by_sentences(review: str, points: list[tuple[str, str, str]]) -> None:
    """One that objects to a single answer; what may be about another one is left out."""
    assert said(review) == points


def test_points_are_written_as_a_list() -> None:
    """With the severity before and the reviewers after; no points give an empty text."""
    item = CritiqueItem(
        source_model="a/one", target_response="Response B", critique_text="Vague.", also_from=["c/three"]
    )
    assert format_critiques_for_refinement([item, item.dump()]) == (
        "1. [medium] Vague. (a/one, c/three)\n2. [medium] Vague. (a/one, c/three)"
    )
    assert format_critiques_for_refinement([]) == ""
