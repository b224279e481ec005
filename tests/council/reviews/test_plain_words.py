"""What a reviewer's sentence says by its words alone, where no title says it."""

import pytest

from council.document.results import PointKind, Severity
from council.reviews.prose import read_review


def read(sentence: str) -> tuple[PointKind, Severity | None] | None:
    """Return what is read of a sentence below an answer's heading: its kind and how grave it is."""
    points = read_review(f"### Response A\n\n{sentence}", ["Response A", "Response B"]).points
    if points is None:
        return None
    [point] = points
    return point.kind, point.severity


@pytest.mark.parametrize(
    ("sentence", "severity"),
    [
        ("The dose is wrong.", "high"),
        ("Running this is dangerous.", "high"),
        ("The source is hallucinated.", "high"),
        ("The script won't compile.", "high"),
        ("There is a fatal slip in step two.", "high"),
        ("It is not correct about the crash.", "high"),
        ("It is incorrect about the bug.", "high"),
        ("It never thinks of a crash.", "high"),
        ("A minor point: it opens with a greeting.", "low"),
        ("It is repetitive.", "low"),
        ("It lacks a date.", None),
        ("It neglects taxes.", None),
        ("It stops short of a plan.", None),
        ("I could not follow it.", None),
        ("It is not convincing.", None),
        ("There is no mention of taxes.", None),
        ("It answers without citing anybody.", None),
        ("The second step is unclear.", None),
        ("The layout is confusing.", None),
        ("It exaggerates the savings.", None),
        ("The text is difficult to follow.", None),
        ("Its main problem is length.", None),
        ("The plan is impractical.", None),
        ("The claim is unsupported.", None),
    ],
)
def test_a_sentence_of_blame_objects(sentence: str, severity: Severity | None) -> None:
    """What is wrong or harmful is grave, the form is minor; of the rest, the grade is left open."""
    assert read(sentence) == ("objection", severity)


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("A clear answer.", "strength"),
        ("A strong answer.", "strength"),
        ("A detailed answer.", "strength"),
        ("Correct about the crash, and correct that the key is unique.", "strength"),
        ("Good: It thinks of a crash.", "strength"),
        ("It is good in no way.", None),
        ("It is good rather than great.", None),
        ("It was written on Monday.", None),
    ],
)
def test_praise_counts_where_nothing_qualifies_it(sentence: str, kind: PointKind | None) -> None:
    """A sentence that its words don't settle says nothing."""
    assert read(sentence) == (kind and (kind, None))


@pytest.mark.parametrize(
    "sentence",
    [
        "I found no errors.",
        "It has no errors or gaps.",
        "It misses nothing.",
        "It doesn't show errors.",
        "It doesn't show errors or gaps.",
        "It reads well without errors.",
        "There is no steering.",
    ],
)
def test_a_fault_that_is_denied_is_none(sentence: str) -> None:
    """That alone is no praise."""
    assert read(sentence) is None
