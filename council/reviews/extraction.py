"""Points about each answer, as the refinement contract picks them out of whole reviews.

Ballots in JSON carry their points. Of other text, this contract alone reads sentences: one that names
a single answer, or is below its heading, and says in plain English words that something is wrong,
missing or unclear. A missed remark costs a hint; one under the wrong answer misleads its author, so what
may be about another answer, too, is left out.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from council.document.results import GRADES, CritiqueItem, ReviewPoint, Severity, Stage2Result
from council.reviews.ballot_text import begins_ranking, by_letter, read_lines
from council.reviews.ballots import with_points
from council.text import sentences

SAME_ABOVE = 0.7
"""The share of common words from which two points count as the same."""
ENOUGH_SHARED = 3
"""Common words from which a point may be part of a longer one; fewer must be most of both."""
MAX_CRITIQUES = 5
MOST_POINTS = 50
"""How many points of a review against one answer are compared with those of other reviews."""
LONGEST_REVIEW, LONGEST_LINE, LONGEST_POINT = 200_000, 2_000, 600
"""How many characters are read."""

_WORD = re.compile(r"[^\W_]+(?:'\w+)?")
_EMPTY = """
    a an and are as at be but for from has have in is it its of on or so some that the this to was
    with also however answer answers response responses had it's were will would can could
    should they them their there then than you your says said only which what when where who does
    into more most any all one
"""
EMPTY_WORDS = frozenset(_EMPTY.split())
"""English words that tell nothing of what a sentence is about."""
_LABEL = re.compile(r"\b(?:response|answer)\s+([a-z])\b", re.IGNORECASE)
_HEADING = re.compile(
    r"[\W\d]*(?:review of )?(?:response|answer)\s+[a-z]\W*?(?::|\s[-\u2013\u2014]\s|$)", re.IGNORECASE
)
_OTHERS = re.compile(
    r"\b(?:others?|both|neither|former|latter|than|unlike|(?:first|second|third|last) (?:one|answer))\b"
)
_CONTINUES = re.compile(r"(?:however|but|still|yet|also|moreover|unfortunately|its?)\b", re.IGNORECASE)
_MARKUP = re.compile(r"\*\*|__|^[\s#>*+\u2022-]+|^\s*\d{1,2}[.)]\s+")
_GRADED = re.compile(r"\[(high|medium|low)\]\s*")


@cache  # at the first review: compiling takes a tenth of what is imported at a start
def _any_of(phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{phrases})(?!\w)")


_GRAVE = (
    r"wrong(?:ly)?|incorrect(?:ly)?|inaccura\w+|false(?:ly)?|untrue|mistake[ns]?|errors?|dangerous\w*"
    r"|unsafe|insecure|vulnerab\w+|harmful|mislead\w*|illegal|data loss|fabricat\w+|hallucinat\w+"
    r"|invent(?:s|ed)|contradict\w*|broken|breaks|crash\w*|bugs?|fatal(?:ly)?|serious(?:ly)?|severe(?:ly)?"
    r"|major|off[ -]topic"
)
_LACKING = (
    r"lack(?:s|ed|ing)?|miss(?:es|ed|ing)|omi(?:ts?|tted|ssions?)|ignor(?:es|ed|ing)|overlook\w*"
    r"|neglect\w*|forg[eo]t\w*|skips?|falls short|(?:does|did|do)(?: not|n't) \w+|never \w+|hardly"
    r"|barely|fail(?:s|ed) to|not (?:enough|clear|useful|convincing|specific|detailed|complete)"
    r"|no (?:mention|examples?|sources?|evidence|citations?|tests?|numbers?|word|detail|explanation)"
    r"|should|could|would (?:benefit|be better)|needs?|unclear|vague\w*|ambiguous|incomplete"
    r"|insufficient\w*|superficial|shallow|limited|confus(?:ing|ed)|weak\w*|outdated|exaggerat\w+"
    r"|over-?simpl\w+|too \w+|worse|poor(?:ly)?|problem\w*|issues?|flaw\w*|gaps?|shortcomings?"
    r"|drawbacks?|questionable|generic|risky|un(?:supported|substantiated|proven|tested|justified|explained|necessary)"
)
_MINOR = (
    r"minor|slight(?:ly)?|nit(?:pick\w*)?|typos?|spelling|cosmetic|word(?:y|iness)|verbos\w+|repetitive"
    r"|redundan\w+|long-?winded|a (?:bit|little|touch)|somewhat|formatting|phrasing|wording"
)
_CLEARED = (
    r"(?:no|not|nothing|never|without|free of|(?:avoid|fix|identif|explain|warn|catch|mention|cover)\w*)"
    r" (?:\w+ ){0,2}?(?:errors?|mistakes?|issues?|problems?|flaws?|gaps?|bugs?|weakness\w*|wrong|missing"
    r"|unclear|mislead\w+|dangerous|inaccura\w+)|leaves nothing out"
)
"""Words of critique that say there is nothing to criticize."""


def extract_critiques_from_rankings(
    stage2_results: Iterable[Stage2Result | Mapping[str, object]],
    label_to_model: Mapping[str, str],
    max_critiques: int = MAX_CRITIQUES,
) -> dict[str, list[CritiqueItem]]:
    """Return the points that the reviews make about each answer: label -> points, the gravest first.

    Reviews are results or dicts with `model` and `ranking`. An objection that its author didn't grade is
    a `medium` one. Points that share over 70 % of the shorter one's words, at least three, or over 70 %
    of the longer one's are merged into one, which is graver the more reviewers make it. A model's points
    about its own answer are left out. Every label has an entry.
    """
    found: dict[str, list[CritiqueItem]] = {label: [] for label in label_to_model}
    for result in stage2_results:
        review = Stage2Result.model_validate({"parsed_ranking": [], **dict(result)})
        made: Counter[str] = Counter()
        for label, text, severity in _points(review, label_to_model):
            made[label] += 1
            if label_to_model[label] != review.model and made[label] <= MOST_POINTS:
                item = {"source_model": review.model, "target_response": label, "critique_text": text}
                found[label].append(
                    CritiqueItem.model_validate({**item, "severity": severity or "medium"})
                )
    return {label: _merged(items)[:max_critiques] for label, items in found.items()}


def _points(review: Stage2Result, labels: Collection[str]) -> Iterator[tuple[str, str, Severity | None]]:
    points: Sequence[ReviewPoint] = with_points(review, labels).points or ()
    if points and all(point.source == "structured" for point in points):
        objections = (each for each in points if each.kind == "objection" and each.label in labels)
        return ((each.label, each.text, each.severity) for each in objections)
    return _in_sentences(review.ranking, by_letter(labels))


def _in_sentences(text: str, known: Mapping[str, str]) -> Iterator[tuple[str, str, Severity | None]]:
    below = about = ""
    text = text[:LONGEST_REVIEW]
    for line, read in zip(text.splitlines(), read_lines(text), strict=True):
        said = _MARKUP.sub("", _MARKUP.sub("", line[:LONGEST_LINE])).strip()
        if read.block or line.lstrip().startswith(">"):
            continue
        if begins_ranking(line):
            return
        if heading := _HEADING.match(said):
            below = _LABEL.findall(heading[0])[0].upper()
            said = said[heading.end() :]
        for sentence in sentences(said):
            named = {letter.upper() for letter in _LABEL.findall(sentence)}
            if named:
                about = named.pop() if len(named) == 1 else ""
            elif below or not _CONTINUES.match(sentence):
                about = below
            graded = _GRADED.match(sentence)
            words = _any_of(_CLEARED).sub(" ", sentence.lower())
            lacking, grave, minor = (_any_of(each).search(words) for each in (_LACKING, _GRAVE, _MINOR))
            if about in known and not _OTHERS.search(words) and (graded or lacking or grave or minor):
                grade = "low" if minor else "high" if grave else None
                text = sentence[graded.end() if graded else 0 :][:LONGEST_POINT]
                yield known[about], text, cast("Severity", graded[1]) if graded else grade


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
