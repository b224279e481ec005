"""Reading a ranking out of a review's text, line by line, as a careful human would.

A ballot that can't be read for certain isn't counted: no answer is ever ranked by a guess.

- A ballot begins with a line that starts with `FINAL RANKING`; within a sentence, in quotation
  marks, in a `>` quotation, or after "Response C contains:", in any language, the words are quoted.
- It continues as one line (`A > B > C`; `A, B, C`; `1. A 2. B`) or as a list, a line an answer.
  Numbers decide the order where there are any; remarks between numbered lines are skipped. A numbered
  line ranks the label it begins with, whatever else it names.
- Numbers after the labels are places if they are 1, 2 and 3, but 3, 2, 1 may be points and isn't
  counted. Other numbers are scores: they count where each is at most the one above it.
- A header without a list belongs to the numbered list right above it, if that contains only labels. Such
  a list needs no header if it is the whole reply, in a code block or not. Another title, `My order:`,
  is no header.
- An order from worst to best isn't turned round. Letters without a sign between them (`CAB`) aren't
  read, nor is JSON here. Where a review has both, `ballots` says which counts.
- A list with more unknown labels than known ones is no ballot: it is the whole alphabet.
- Of two answers, the one numbered 1 alone ranks both.
- The last ballot with two or more answers counts. One inside a code block counts only where it
  ends the text and there is no other: then the block frames the ballot and quotes nothing.
- A tie (`B = C`) gives no order, so the ballot ends above it, as if it were cut short.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from council.reviews.ballot_entries import (
    Tier,
    named_letter,
    opening_letter,
    tiers_above,
    tiers_alone,
    tiers_below,
)
from council.reviews.ballot_lines import (
    begins_ranking,
    is_ranking_title,
    plain,
    read_lines,
    unwrapped,
)

_TIED = re.compile(r"\W*tied?\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\W*(\d{1,3}(?:\.\d+)?)(?:st|nd|rd|th)?(?: *(?:/ *\d+|place|points?|pts))?\W*", re.IGNORECASE
)


def parse_ranking(text: str, labels: Collection[str]) -> list[str]:
    """Return the labels that a review ranks, best first; `[]` if its ballot can't be counted.

    Unknown and repeated labels are dropped. Fewer than two labels aren't a ranking.
    """
    return ranking_at(text, labels)[0]


def ranking_at(text: str, labels: Collection[str]) -> tuple[list[str], int]:
    """Return what `parse_ranking` does, and the line on which that ballot begins, from 0."""
    known = by_letter(labels)
    lines = read_lines(unwrapped(text, ("markdown", "md")))
    end = max((at for at, line in enumerate(lines) if line.text), default=0)
    own: tuple[list[str], int] | None = None
    framed: tuple[list[str], int] | None = None
    for at, line in enumerate(lines):
        if line.ballot is None or line.foreign:
            continue
        tiers, last = tiers_below(lines, at)
        if not tiers:
            tiers, last = tiers_above(lines, at), at
        ranking = _ranking(tiers, known)
        if len(ranking) < 2:
            continue
        if not line.code:
            own = ranking, at
        elif last == end:
            framed = ranking, at
    if counted := own or framed:
        return counted
    alone = _ranking(tiers_alone(lines), known)
    return (alone if len(alone) > 1 else []), 0


def opening_labels(text: str, labels: Collection[str]) -> list[str]:
    """Return the labels that the lines of a text begin with, if those are all labels, each once."""
    known = by_letter(labels)
    opening = (opening_letter(line.text) for line in read_lines(text) if line.text)
    letters = [letter for letter in opening if letter]
    return [known[each] for each in letters] if sorted(letters) == sorted(known) else []


def names_ranking(text: str) -> bool:
    """Return whether a line of a text begins with the words FINAL RANKING."""
    return any(line.ballot is not None for line in read_lines(text))


def without_ranking(text: str, *labels: Collection[str]) -> str:
    """Return a review without the ballots that close it, each read with any of these sets of labels."""
    while True:
        lines = text.splitlines(keepends=True)
        at = next((at for at in reversed(range(len(lines))) if begins_ranking(lines[at])), None)
        if at is None:
            return text
        end = "".join(lines[at:])
        if is_ranking_title(lines[at]):
            end = "".join(("FINAL RANKING:\n", *lines[at + 1 :]))
        if lines[at + 1 :] and not any(parse_ranking(end, known) for known in labels):
            return text
        text = "".join(lines[:at]).rstrip()


def label_named(name: str, known: Mapping[str, str]) -> str | None:
    """Return the known label that a name means, `Response B` or only `b`."""
    return known.get(named_letter(plain(name)) or "")


def by_letter(labels: Collection[str]) -> dict[str, str]:
    """Return labels by their letters."""
    return {label.split()[-1].upper(): label for label in labels}


def _ranking(tiers: Sequence[Tier], known: Mapping[str, str]) -> list[str]:
    """Return the known labels in order, down to the first tie."""
    named = {letter for tier in tiers for letter in tier.letters}
    if len(named - known.keys()) > len(named & known.keys()):
        return []
    ranking: list[str] = []
    for place in _places(tiers):
        letters = dict.fromkeys(letter for tier in place for letter in tier.letters)
        fresh = [known[each] for each in letters if each in known and known[each] not in ranking]
        tied = any(_TIED.match(tier.note) for tier in place)
        if len(fresh) > 1 or (fresh and tied):
            break
        ranking += fresh
    if len(known) == 2 and len(ranking) == len(tiers) == 1 and tiers[0].rank == 1:
        ranking += [label for label in known.values() if label not in ranking]
    return ranking


def _places(tiers: Sequence[Tier]) -> list[list[Tier]]:
    """Return tiers in the order of their numbers, equal ones together; none if those are no ranks."""
    as_written = [[tier] for tier in tiers]
    ranks = [tier.rank for tier in tiers if tier.rank is not None]
    if ranks:
        if len(set(ranks)) == 1:  # Markdown numbers a list of ones by itself
            return as_written
        if ranks == sorted(ranks):
            return [[*place] for _, place in groupby(tiers, key=lambda tier: tier.rank)]
        return _by_number(as_written, ranks)
    notes = [_NUMBER.fullmatch(tier.note) for tier in tiers]
    numbers = [float(note[1]) for note in notes if note]
    if len(numbers) < len(tiers):
        return as_written
    if numbers == [*range(len(tiers), 0, -1)]:  # as well points as ranks
        return []
    if numbers == sorted(numbers, reverse=True):  # scores
        return as_written
    return _by_number(as_written, numbers)


def _by_number(places: list[list[Tier]], numbers: Sequence[float]) -> list[list[Tier]]:
    if sorted(numbers) != [*range(1, len(places) + 1)]:
        return []
    return [place for _, place in sorted(zip(numbers, places, strict=True), key=lambda pair: pair[0])]
