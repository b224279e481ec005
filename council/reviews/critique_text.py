"""Reading critique out of a review's text: what it holds against which answer."""

from collections.abc import Collection

from council.characters import clip
from council.document.results import ReviewPoint
from council.reviews.mentions import is_bad
from council.reviews.own_lines import LONGEST_LINE, LONGEST_REVIEW, bare, says, sentences
from council.reviews.remarks import Remark, remarks
from council.reviews.severity import praises, severity

LONGEST_POINT = 600
"""Characters of a point; what is longer is cut at a word."""


def read_points(text: str, labels: Collection[str]) -> list[ReviewPoint]:
    """Return the critique points in a review, in its order; only of these labels."""
    return [
        ReviewPoint(label=remark.label, text=clip(remark.text, LONGEST_POINT), severity=grade)
        for remark in remarks(text, labels)
        if (grade := remark.severity or ("medium" if _is_held_against(remark) else None))
    ]


def points_in_remark(label: str, remark: str) -> list[ReviewPoint]:
    """Return the points of a remark that is known to be critique of one answer, in any language."""
    lines = (line[:LONGEST_LINE] for line in remark[:LONGEST_REVIEW].splitlines())
    return [
        ReviewPoint(label=label, text=clip(each, LONGEST_POINT), severity=severity(each) or "medium")
        for line in lines
        for each in sentences(bare(line))
        if says(each)
    ]


def _is_held_against(remark: Remark) -> bool:
    return is_bad(remark.part) and not praises(remark.text)
