"""Critiques are handed over whole, and shortened only where there is no room; or point by point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.document.results import CritiqueItem, Stage2Result, format_critiques_for_refinement
from council.reviews.critiques import extract_critiques_from_rankings, points_of, shorten
from tests.council.reviews.points import against, praise

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


@pytest.mark.parametrize(
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


def test_an_older_document_is_read_for_points() -> None:
    """Its JSON ballots have objections as data and strengths in the text; its prose has all in the text."""
    stored: dict[str, object] = {"model": "b/two", "parsed_ranking": []}
    rendered = "Response A\nStrengths: Clear.\nWeaknesses:\n> [high] Leaks the key.\n> [low] Two typos."
    critiques = [
        {"label": "Response A", "text": "Leaks the key.", "severity": "high"},
        {"label": "Response A", "text": "Two typos.", "severity": "low"},
        {"label": "Response D", "text": "Nobody's.", "severity": "low"},
    ]
    older = Stage2Result.model_validate({**stored, "ranking": rendered, "critiques": critiques})
    assert [
        (each.kind, each.text, each.severity, each.source) for each in points_of(older, LABELS) or ()
    ] == [
        ("strength", "Clear.", None, "section"),
        ("objection", "Leaks the key.", "high", "structured"),
        ("objection", "Two typos.", "low", "structured"),
    ]
    prose = Stage2Result.model_validate({**stored, "ranking": "Response A lacks tests."})
    assert [(each.kind, each.text, each.source) for each in points_of(prose, LABELS) or ()] == [
        ("objection", "Response A lacks tests.", "sentence")
    ]
    strange = Stage2Result.model_validate({**stored, "ranking": "Fine.", "critiques": "none"})
    assert points_of(strange, LABELS) is None


def test_points_are_written_as_a_list() -> None:
    """With the severity before and the reviewers after; no points give an empty text."""
    item = CritiqueItem(
        source_model="a/one", target_response="Response B", critique_text="Vague.", also_from=["c/three"]
    )
    assert format_critiques_for_refinement([item, item.dump()]) == (
        "1. [medium] Vague. (a/one, c/three)\n2. [medium] Vague. (a/one, c/three)"
    )
    assert format_critiques_for_refinement([]) == ""


def test_texts_that_fit_stay_as_they_are() -> None:
    """Nothing is touched below the limit."""
    assert shorten(["One.", "Two."], 2) == ["One.", "Two."]


def test_the_longest_is_cut_first_at_a_sentence_end() -> None:
    """The short one stays whole; the cut is visible and says how much is missing."""
    long = "First sentence. Second sentence. Third sentence that is longer."
    short = "Brief."
    cut, kept = shorten([long, short], 10)
    assert kept == short
    assert cut == "First sentence. Second sentence.\n[shortened: 32 of 63 characters]"


def test_a_text_without_sentences_is_cut_anywhere() -> None:
    """There is no better place."""
    [cut] = shorten(["x" * 100], 10)
    assert cut == "x" * 40 + "\n[shortened: 40 of 100 characters]"


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(min_value=1, max_value=200))
def test_what_is_kept_fits_and_is_a_beginning(texts: list[str], max_tokens: int) -> None:
    """Each text comes back whole or as its own beginning, and together they fit."""
    short = shorten(texts, max_tokens)
    kept = [
        text.rpartition("\n[shortened:")[0] if text != whole else text
        for text, whole in zip(short, texts, strict=True)
    ]
    assert sum(map(len, kept)) <= max(4 * max_tokens, sum(map(len, texts)) if short == texts else 0)
    assert all(whole.startswith(text) for text, whole in zip(kept, texts, strict=True))
