"""Hands peer critiques over: whole reviews, or their points, each under its answer."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from council.document.results import GRADES, CritiqueItem, ReviewPoint, Stage2Result
from council.reviews.prose import LONGEST_POINT, read_review
from council.text import sentence_ends
from council.usage import CHARACTERS_PER_TOKEN

SAME_ABOVE = 0.7
"""The share of common words from which two points count as the same."""

ENOUGH_SHARED = 3
"""Common words from which a point may be part of a longer one; fewer must be most of both."""

MAX_CRITIQUES = 5

MOST_POINTS = 50
"""How many points of a review against one answer are compared with those of other reviews."""

_WORD = re.compile(r"[^\W_]+(?:'\w+)?")
_EMPTY = """
    a an and are as at be but for from has have in is it its of on or so some that the this to was
    with also however answer answers response responses had it's were will would can could
    should they them their there then than you your says said only which what when where who does
    into more most any all one
"""
EMPTY_WORDS = frozenset(_EMPTY.split())
"""English words that tell nothing of what a sentence is about."""


def extract_critiques_from_rankings(
    stage2_results: Iterable[Stage2Result | Mapping[str, object]],
    label_to_model: Mapping[str, str],
    max_critiques: int = MAX_CRITIQUES,
) -> dict[str, list[CritiqueItem]]:
    """Return the points that the reviews make about each answer: label -> points, the gravest first.

    Reviews are results or dicts with `model` and `ranking`; `points_of` says where points are from.
    An objection that its author didn't grade is a `medium` one. Points that share over 70 % of the
    shorter one's words, at least three, or over 70 % of the longer one's are merged into one, which is
    graver the more reviewers make it. A model's points about its own answer are left out. Every label
    has an entry.
    """
    found: dict[str, list[CritiqueItem]] = {label: [] for label in label_to_model}
    for result in stage2_results:
        review = _as_review(result)
        made: Counter[str] = Counter()
        for point in points_of(review, label_to_model) or ():
            if point.kind != "objection":
                continue
            made[point.label] += 1
            if label_to_model[point.label] != review.model and made[point.label] <= MOST_POINTS:
                found[point.label].append(
                    CritiqueItem(
                        source_model=review.model,
                        target_response=point.label,
                        critique_text=point.text,
                        severity=point.severity or "medium",
                    )
                )
    return {label: _merged(items)[:max_critiques] for label, items in found.items()}


def points_of(review: Stage2Result, labels: Collection[str]) -> list[ReviewPoint] | None:
    """Return a review's points about these answers: as they are stored, else as its text is read."""
    if review.points is not None:
        return [point for point in review.points if point.label in labels]
    return divided(review, labels).points


def divided(review: Stage2Result, labels: Collection[str]) -> Stage2Result:
    """Return a review with its points; that of an older document is read here.

    Older documents have the objections of a JSON ballot as `critiques`, and all else in the text alone.
    """
    if review.points is not None:
        return review
    reading = read_review(review.ranking, labels)
    points = reading.points
    if review.critiques is not None:
        strengths = [point for point in points or () if point.kind == "strength"]
        objections = [
            ReviewPoint(kind="objection", source="structured", **dict(each)) for each in review.critiques
        ]
        points = [*strengths, *(point for point in objections if point.label in labels)]
    return review.model_copy(update={"points": points, "cleared": [*reading.cleared]})


def _as_review(result: Stage2Result | Mapping[str, object]) -> Stage2Result:
    if isinstance(result, Stage2Result):
        return result
    return Stage2Result.model_validate({"parsed_ranking": cast("list[str]", []), **result})


def _merged(items: Iterable[CritiqueItem]) -> list[CritiqueItem]:
    groups: list[tuple[frozenset[str], list[CritiqueItem]]] = []
    for item in items:
        words = frozenset(_words(item.critique_text[:LONGEST_POINT]))
        same = next((group for said, group in groups if _say_the_same(said, words)), None)
        if same is None:
            groups.append((words, [item]))
        else:
            same.append(item)
    merged = [_one_of(group) for _, group in groups]
    # Sorting is stable: of equal points the one that was read first stays first.
    return sorted(merged, key=lambda item: (GRADES.index(item.severity), -len(item.also_from)))


def _one_of(group: Sequence[CritiqueItem]) -> CritiqueItem:
    """Return several points as one: the longest text, the gravest severity, all its reviewers."""
    fullest = max(group, key=lambda item: len(item.critique_text))
    others = dict.fromkeys(item.source_model for item in group)
    others.pop(fullest.source_model)
    gravest = min((item.severity for item in group), key=GRADES.index)
    return fullest.model_copy(update={"severity": gravest, "also_from": [*others]})


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    words = (min if shared >= ENOUGH_SHARED else max)(len(one), len(other))
    return bool(words) and shared / words > SAME_ABOVE


def _words(text: str) -> Iterator[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    # Languages without spaces are compared by characters.
    if len(words) < 3 and len(text) > 12 and not text.isascii():
        words = [*text]
    return (word for word in words if word not in EMPTY_WORDS and (len(word) > 1 or not word.isascii()))


def shorten(texts: Sequence[str], max_tokens: int) -> list[str]:
    """Return texts that fit into `max_tokens` together; the longest are cut first.

    Texts are cut at a sentence end where there is one, with a visible mark.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if sum(map(len, texts)) <= room:
        return [*texts]
    limit = _common_limit(sorted(map(len, texts)), room)
    return [text if len(text) <= limit else _cut(text, limit) for text in texts]


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """Return the length above which texts are cut so that all of them fit; shortest first."""
    for count, length in zip(range(len(lengths), 0, -1), lengths, strict=True):
        if length * count > room:
            return room // count
        room -= length
    return room


def _cut(text: str, limit: int) -> str:
    ends = [text.rfind("\n", 0, limit), *sentence_ends(text, limit)]
    kept = text[: max(ends) if max(ends) > 0 else limit].rstrip()
    return f"{kept}\n[shortened: {len(kept):,} of {len(text):,} characters]"
