"""Reads the critique in a review's text: which points it makes against which answer."""

from collections.abc import Collection

from council.document.results import ReviewPoint
from council.reviews.answer_mentions import is_bad
from council.reviews.remarks import Remark, remarks
from council.reviews.reviewer_lines import LONGEST_LINE, LONGEST_REVIEW, bare, says, sentences
from council.reviews.severity import praises, severity
from council.text.characters import clip

LONGEST_POINT = 600
"""The length of a point in characters; a longer one is cut between words."""


def read_points(text: str, labels: Collection[str]) -> list[ReviewPoint]:
    """Return the points of critique in a review, in its order, about these labels."""
    return [
        ReviewPoint(label=remark.label, text=clip(remark.text, LONGEST_POINT), severity=grade)
        for remark in remarks(text, labels)
        if (grade := remark.severity or ("medium" if _is_held_against(remark) else None))
    ]


def points_in_remark(label: str, remark: str) -> list[ReviewPoint]:
    """Return the points of a remark that criticizes one answer, in any language."""
    lines = (line[:LONGEST_LINE] for line in remark[:LONGEST_REVIEW].splitlines())
    return [
        ReviewPoint(label=label, text=clip(each, LONGEST_POINT), severity=severity(each) or "medium")
        for line in lines
        for each in sentences(bare(line))
        if says(each)
    ]


def _is_held_against(remark: Remark) -> bool:
    return is_bad(remark.part) and not praises(remark.text)
