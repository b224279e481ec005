"""Divides a review by the answers it is about.

A section has only whole sentences that are about no other answer, so nothing is shown under the wrong
one. The points that are handed to members (`council.reviews.critique_text`) come from the same remarks.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

from council.document.results import Severity
from council.reviews.answer_mentions import IS_ENGLISH, is_bad, means_others
from council.reviews.ballot_text import by_letter
from council.reviews.remarks import Remark, remarks
from council.reviews.reviewer_lines import bare, says, sentences
from council.reviews.severity import GRADES, severity
from council.text.characters import clip

SUMMARY = 280
"""The length of a summary in characters: about two lines."""

MOST_REMARKS = 50
"""How many remarks of a section a summary chooses from."""


@dataclass(frozen=True, slots=True)
class Section:
    """What a review says about one answer alone: whole sentences, in its order."""

    remarks: tuple[Remark, ...]

    @property
    def severity(self) -> Severity | None:
        """The gravest one known, given by the reviewer or shown by its English words."""
        known = {remark.severity for remark in self.remarks}
        return next((grade for grade in GRADES if grade in known), None)

    @property
    def text(self) -> str:
        """The section as plain text in one paragraph."""
        return _written(self.remarks)

    def summary(self, limit: int = SUMMARY) -> str:
        """Return the gravest sentences that fit, as plain text; an ellipsis replaces the rest."""
        by_weight = sorted(self.remarks[:MOST_REMARKS], key=_weight)
        chosen: list[Remark] = []
        for remark in by_weight:
            kept = [each for each in self.remarks if each in chosen or each is remark]
            if len(_written(kept)) <= limit - 2:
                chosen = kept
        if not chosen:
            return clip(_written(by_weight[:1]), limit - 2)
        return _written(chosen) if len(chosen) == len(self.remarks) else f"{_written(chosen)} \u2026"


def divide(text: str, labels: Collection[str]) -> dict[str, Section]:
    """Return what a review says about each answer: label -> section.

    The text is a stored review (`Stage2Result.ranking`), `labels` are all answers of its round. A label
    about which nothing is certain has no section.
    """
    found = _entries(text, labels)
    if found is None:
        found = [*remarks(text, labels)]
    guessed = any(remark.severity and not remark.is_given for remark in found)
    if guessed and not _is_english(text):
        found = [remark if remark.is_given else replace(remark, severity=None) for remark in found]
    alone = sorted((remark for remark in found if remark.is_alone), key=lambda each: each.label)
    return {label: Section(tuple(said)) for label, said in groupby(alone, key=lambda each: each.label)}


_ENTRY = re.compile(r"(?:(?P<part>Strengths|Weaknesses):(?: |$)|> )(?P<said>.*)")
_GRADED = re.compile(r"\[(?P<grade>high|medium|low)\] ")


def _entries(text: str, labels: Collection[str]) -> list[Remark] | None:
    """Return the entries of a JSON ballot as `council.reviews.ballots` writes it, else `None`."""
    known, found, part = by_letter(labels), list[Remark](), ""
    for at, entry in enumerate(text.split("\n\n")):
        label, *lines = entry.split("\n")
        if label in ("SCORES:", "FINAL RANKING:"):
            break
        read = [_ENTRY.fullmatch(line) for line in lines]
        if label not in labels or not all(read):
            return None
        for line in filter(None, read):
            part = line["part"] or part
            graded = _GRADED.match(line["said"])
            given = cast("Severity", graded["grade"]) if graded else None
            for each in sentences(bare(line["said"][graded.end() if graded else 0 :])):
                if says(each):
                    is_alone = not means_others(each, label[-1], known)
                    grade = given or (severity(each) if part == "Weaknesses" else None)
                    found.append(Remark(label, each, part, at, is_alone, grade, is_given=bool(given)))
    return found


def _is_english(text: str) -> bool:
    return len(_FOREIGN.findall(text)) <= len(IS_ENGLISH.findall(text))


_FOREIGN = re.compile(
    r"\b(?:der|die|das|und|ist|nicht|ein|eine|les?|la|est|une|pas|el|los|una|que|il|che|non|het|een"
    r"|niet|jest|nie|och|\u00e4r|\w*[^\W\x00-\x7f]\w*)\b",
    re.IGNORECASE,
)


def _weight(remark: Remark) -> tuple[int, bool]:
    grade = GRADES.index(remark.severity) if remark.severity else len(GRADES)
    return grade, not is_bad(remark.part)


def _written(said: Sequence[Remark]) -> str:
    """Return remarks as one paragraph, each under its part."""
    text, before = "", None
    for remark in said:
        opens = remark.part if before is None or before.part != remark.part else ""
        if before is not None:
            text += ("" if text.endswith(_TERMINAL) else "." if opens or not remark.part else ";") + " "
        text += f"{opens}: {remark.text}" if opens else remark.text
        before = remark
    return text


_TERMINAL = tuple(".!?;:\u2026\u3002\uff01\uff1f\uff1b")
