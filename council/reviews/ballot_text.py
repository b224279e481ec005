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
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby


def parse_ranking(text: str, labels: Collection[str]) -> list[str]:
    """Return the labels that a review ranks, best first; `[]` if its ballot can't be counted.

    Unknown and repeated labels are dropped. Fewer than two labels aren't a ranking.
    """
    return ranking_at(text, labels)[0]


def ranking_at(text: str, labels: Collection[str]) -> tuple[list[str], int]:
    """Return what `parse_ranking` does, and the line on which that ballot begins, from 0."""
    known = by_letter(labels)
    lines = _lines(unwrapped(text, ("markdown", "md")))
    end = max((at for at, line in enumerate(lines) if line.text), default=0)
    own: tuple[list[str], int] | None = None
    framed: tuple[list[str], int] | None = None
    for at, line in enumerate(lines):
        if line.ballot is None or line.foreign:
            continue
        tiers, last = _tiers(lines, at)
        if not tiers:
            tiers, last = _above(lines, at), at
        ranking = _ranking(tiers, known)
        if len(ranking) < 2:
            continue
        if not line.code:
            own = ranking, at
        elif last == end:
            framed = ranking, at
    if counted := own or framed:
        return counted
    alone = _ranking(_alone(lines), known)
    return (alone if len(alone) > 1 else []), 0


def opening_labels(text: str, labels: Collection[str]) -> list[str]:
    """Return the labels that the lines of a text begin with, if those are all labels, each once."""
    known = by_letter(labels)
    lines = [line.text for line in _lines(text) if line.text]
    letters = [_letter(entry) for entry in map(_ENTRY.match, lines) if entry]
    return [known[each] for each in letters] if sorted(letters) == sorted(known) else []


def unwrapped(text: str, languages: Collection[str]) -> str:
    """Return the content of a text that is one code block in one of these languages, else the text."""
    opening, _, body = text.strip().partition("\n")
    wrapped = opening.startswith("```") and body.endswith("\n```")
    if wrapped and opening.removeprefix("```").strip().lower() in languages:
        return body.removesuffix("```")
    return text


def names_ranking(text: str) -> bool:
    """Return whether a line of a text begins with the words FINAL RANKING."""
    return any(line.ballot is not None for line in _lines(text))


def without_ranking(text: str, *labels: Collection[str]) -> str:
    """Return a review without the ballots that close it, each read with any of these sets of labels."""
    while True:
        lines = text.splitlines(keepends=True)
        at = next((at for at in reversed(range(len(lines))) if _begins_ranking(lines[at])), None)
        if at is None:
            return text
        end = "".join(lines[at:])
        if _RANKING.fullmatch(plain(lines[at])):
            end = "".join(("FINAL RANKING:\n", *lines[at + 1 :]))
        if lines[at + 1 :] and not any(parse_ranking(end, known) for known in labels):
            return text
        text = "".join(lines[:at]).rstrip()


def _begins_ranking(line: str) -> bool:
    """Return whether a line is the header of a ballot, as a critic or a prompt would write it."""
    said = plain(line)
    return bool(_HEADER.match(said) or _RANKING.fullmatch(said))


def label_named(name: str, known: Mapping[str, str]) -> str | None:
    """Return the known label that a name means, `Response B` or only `b`."""
    entry = _ENTRY.fullmatch(plain(name))
    return known.get(_letter(entry)) if entry else None


def unquoted_lines(text: str) -> list[str]:
    """Return a review's lines without markup, and only a mark for those in code or a quotation."""
    lines = _lines(unwrapped(text, ("markdown", "md")))
    return [_QUOTED if line.block and line.text else line.text for line in lines]


class BallotLines:
    """The lines of a review, by the places of JSON objects in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = _lines(text)
        self._starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]

    def number(self, at: int) -> int:
        """Return the line of a place in the text, from 0."""
        return bisect_right(self._starts, at) - 1

    def quote(self, at: int) -> bool:
        """Return whether what begins at this place is quoted.

        That is so in quotation marks, and where a line or the words before it announce another's.
        """
        line = self.number(at)
        before = self._text[max(self._starts[line], at - MAX_LINE) : at]
        clause = _CLAUSE.split(plain(before))[-1].rstrip(" :")
        announced = [*self._lines[line].before, *([f"{clause}:"] if clause else [])]
        return before.endswith(_MARKS) or any(
            is_attributed(_OF_JSON.sub("", each)) for each in announced
        )


def is_attributed(before: str) -> bool:
    """Return whether a line says that what follows is somebody else's."""
    if not before.endswith(":"):
        return False
    if _ATTRIBUTES.search(before):
        return True
    count, is_own = _answers_named(before), bool(_OWN.search(before))
    if _ENDS_IN_ANSWER.search(before):
        return count < 2 or (count == 2 and not is_own)
    return 0 < count <= 2 and not is_own  # with more it compares them


def _answers_named(line: str) -> int:
    """Return how many answers a line names, in any language."""
    letters: set[str] = set()
    for found in _LETTER.finditer(line):
        ahead = line[: found.start()].rstrip()
        begins = not any(map(str.isalnum, ahead)) or ahead[-1] in ".!?:;"
        # A sentence may begin with a word of one vowel: E ora. C. is a heading's number.
        if not begins or (found[0] in "BCDFGHJKLMNPQRSTVWXZ" and line[found.end()] not in ".)"):
            letters.add(found[0])
    return len(letters)


def by_letter(labels: Collection[str]) -> dict[str, str]:
    """Return labels by their letters."""
    return {label.split()[-1].upper(): label for label in labels}


# The lines of a text ---------------------------------------------------------------------------

MAX_LINE = 1_000
"""Characters of a line that are looked at; a whole council fits in half as many."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_QUOTED = "(quoted)"

LEAD_IN = (
    r"(?:(?P<rank>\d{1,2})[.):]\s*)?(?:here(?:'s|\ is)\ +)?"
    r"(?:(?:my|the|new|revised|corrected|updated)\ +){0,3}"
)
"""What may precede the words on their line: 4. FINAL RANKING; Here is my revised one."""

_HEADER = re.compile(
    rf"""[^\w"']* {LEAD_IN} final[\s\-]+rankings?(?![a-z\d])(?!\s*["'])""",
    re.VERBOSE | re.IGNORECASE,
)
_RANKING = re.compile(r"[^\w\"']*rankings?\W*", re.IGNORECASE)
_ORDER_NAMED = re.compile(
    r"""[^\w(]*(?:
        \((?:[^()]*\b(?:best|rank|revised|corrected|updated|new)[^()]*|[^()a-z\d]*)\)  # (best to worst)
        |of\ +(?:all\ +)?(?:the\ +)?(?:responses|answers)\b
        |(?:from\ +)?best\ +to\ +worst\b
        |(?:from\ +)?best\ +first\b
        )[^\w(]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORST_FIRST = re.compile(r"worst\s*(?:to\b|first\b|[-=]*>)", re.IGNORECASE)
_LEADS_IN = re.compile(r"\b(?:best|rank\w*|place|position)\b|^[^a-z]*$", re.IGNORECASE)
_ATTRIBUTES = re.compile(
    r"""\b(?:says?|said|saying|states?|contain(?:s|ing)?|includ(?:es?|ing)|inject\w*|append\w*|
        insert\w*|embed\w*|quot\w+|wr(?:ites|ote)|tries|tried|attempts?|ends\ with
        )\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS_IN_ANSWER = re.compile(r"\b(?:response|answer) [a-z]:$", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?]\s+")
_OF_JSON = re.compile(
    r"\b(?:json|objects?|ballots?|blocks?|output)(?:\ (?:that|which|below))?\ (?:contain|includ)\w*",
    re.IGNORECASE,
)
"""The JSON object containing my reviews: it says nothing about an answer."""
_MARKS = ('"', "'", "\u201c", "\u201e", "\u00ab", "\u2018")
_TOUCHES = r"[^\W\u0e00-\u0e7f\u3040-\u9fff\uac00-\ud7af]|[&/+#]"  # scripts without spaces don't
_LETTER = re.compile(rf"(?<!['.-])(?<!{_TOUCHES})[A-HJ-Z\u0410\u0412\u0421](?!{_TOUCHES})")
"""An answer's letter, of which three may be Cyrillic; I is mostly a word."""
_OWN = re.compile(r"\bmy\b|\bI(?:'d| +would)? +rank\b", re.IGNORECASE)

_MEDALS = str.maketrans({"🥇": "1. ", "🥈": "2. ", "🥉": "3. ", "\ufe0f": None, "\u20e3": ". "})
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("*`[]\\$"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a", '"'),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("→➔➜≻", ">"),
        "_": " ",
        "≥": ">=",
        "≈": "=",
        "、": ",",
        "。": ".",
    }
)
"""Removes markup and makes typographic signs plain."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without its markup, blank where it says nothing.

    `block` numbers the code block it is in, 0 outside. `ballot` is what follows the words
    FINAL RANKING, `None` where the line doesn't start with them, and `rank` the number before them;
    `foreign` says that the words are quoted, `code` that they are in code. `before` are the line
    above, and that above the code block: they may announce somebody else's words.
    """

    text: str
    block: int
    ballot: str | None = None
    rank: int | None = None
    foreign: bool = False
    code: bool = False
    before: tuple[str, str] = ("", "")


_BLANK = _Line("", 0)


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    fence, blocks = "", 0
    announced = before = ""
    for raw in text.splitlines():
        mark = _FENCE.match(raw[:MAX_LINE])
        if mark and not fence:
            fence, blocks, announced = mark[1], blocks + 1, before
            lines.append(_Line("", 0, before=(before, "")))
            continue
        if mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
            lines.append(_BLANK)
            continue
        line = _line(raw, blocks if fence else 0, (before, announced if fence else ""))
        if line.ballot != "" and not mark:  # neither a header alone nor a fence ends an announcement
            before = line.text or before
        lines.append(line)
    return lines


def _line(raw: str, block: int, before: tuple[str, str]) -> _Line:
    start = raw.lstrip()
    if not start:
        return _BLANK
    if start.startswith(">"):
        return _Line(_QUOTED, block)
    text = plain(raw)
    rank, ballot = _after_header(text)
    if ballot is None:
        return _Line(text, block, before=before)
    foreign = any(map(is_attributed, before))
    inline_code = start.startswith("`") and bool(ballot)
    indented_code = raw.startswith(("    ", "\t"))
    code = bool(block) or inline_code or indented_code
    return _Line(text, block, ballot, rank, foreign, code, before)


def plain(raw: str) -> str:
    """Return a line without markup and with plain signs; empty if it has no letter and no digit."""
    text = raw[:MAX_LINE]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_MEDALS))
    text = text.translate(_SIGNS)
    return text.strip() if any(map(str.isalnum, text)) else ""


def _after_header(text: str) -> tuple[int | None, str | None]:
    header = _HEADER.match(text)
    if header is None or _WORST_FIRST.search(text):
        return None, None
    rest = text[header.end() :]
    while named := _ORDER_NAMED.match(rest):
        rest = rest[named.end() :]
    rank = int(header["rank"]) if header["rank"] else None
    return rank, rest.lstrip(" \t:.=-|#~") if any(map(str.isalnum, rest)) else ""


# The entries of a ballot -----------------------------------------------------------------------

_ENTRY = re.compile(
    r"""[^\w"']*                                                   # bullets, brackets, emoji
        (?:(?:rank\ *|place\ *|no\.?\ *)?
           (?:(?P<rank>\d{1,3})(?:st|nd|rd|th)?(?:\ +(?:place|choice))?[^\w"']+
             |(?:[a-z]|[ivx]+)[.)]\s*(?=\W*(?:response|answer))))?  # a. Response B
        (?P<quote>["'])?\(?
        (?:(?:response|answer)[\s\-:\#]*(?P<spelled>[a-z])(?![a-z\d])
          |(?P<bare>[a-z])(?![\w'])
             # A letter that a sentence continues from is a word: 1. A good answer
             (?!\ +(?!(?:and|then|followed|tied?|is|are|was|were|has|with|because|since)\b)[^\W\d]))
        \)?(?(quote)["'])
        (?P<note>\ *\((?!\d+\))[^()]*\))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_JOINT = re.compile(
    r"""\s*(?:
        (?P<tie>>=|=(?!>)=*|~|&|/|\+|tie[sd]?\ +with\b)
        |(?P<above>=>|-*>+|[,;]?\ *then\b|[,;]?\ *followed\ +by\b)
        |(?P<comma>[,;](?:\s*and\b)?)
        |(?P<and>and\b)
        )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = re.compile(r"\s*(?:$|[.;:!(|#]|-(?!>)|-*>+\s*\w*$|(?:because|since|with)\b)", re.IGNORECASE)
_TIED = re.compile(r"\W*tied?\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\W*(\d{1,3}(?:\.\d+)?)(?:st|nd|rd|th)?(?: *(?:/ *\d+|place|points?|pts))?\W*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Tier:
    """The answers that share a place on a ballot, with its number and the remark on them."""

    letters: tuple[str, ...]
    rank: int | None
    note: str


def _tiers(lines: Sequence[_Line], start: int) -> tuple[list[_Tier], int]:
    """Return the tiers of the ballot that begins at a line, and the line that it ends on."""
    tiers: list[_Tier] = []
    end, block, gap = start, lines[start].block, False
    for at, text in _body(lines, start):
        if not text:
            gap = True
            continue
        if lines[at].block != block and (tiers or block):
            break
        row = _row(text)
        if at == start and len(row) == 1 and row[0].rank is None:
            row = [replace(row[0], rank=lines[start].rank)]  # 1. FINAL RANKING: Response C
        if _closes_quotation(text):
            return [], end
        if tiers and tiers[0].rank is not None and (not row or row[0].rank is None):
            gap = True  # a remark on the entry above
        elif not row and not tiers and _leads_in(text):
            continue
        elif row and (not tiers or _continues(tiers[-1], row, gap=gap)):
            tiers += row
            end, block, gap = at, lines[at].block, False
        else:
            break
        if tiers[0].rank is None and len(row) > 1:
            break
    return tiers, end


def _above(lines: Sequence[_Line], end: int) -> list[_Tier]:
    """Return the numbered list of labels that ends right above a line."""
    at = end - 1
    while at >= 0 and not lines[at].text:
        at -= 1
    tiers: list[_Tier] = []
    while at >= 0 and lines[at].ballot is None and not lines[at].block:
        row = _row(lines[at].text)
        if len(row) != 1 or row[0].rank is None or row[0].note.strip(" .,;"):
            break
        tiers.insert(0, row[0])
        at -= 1
    return tiers if [tier.rank for tier in tiers] == [*range(1, len(tiers) + 1)] else []


def _alone(lines: Sequence[_Line]) -> list[_Tier]:
    """Return the tiers of a text that is only a numbered list of labels."""
    said = [line for line in lines if line.text]
    if len({line.block for line in said}) == 1:  # one code block around the list quotes nothing
        said = [replace(line, block=0) for line in said]
    tiers = _above(said, len(said))
    return tiers if len(tiers) == len(said) else []


def _body(lines: Sequence[_Line], start: int) -> Iterator[tuple[int, str]]:
    yield start, lines[start].ballot or ""
    for at in range(start + 1, len(lines)):
        if lines[at].ballot is not None:
            return
        yield at, lines[at].text


def _leads_in(text: str) -> bool:
    """Return whether a line can come between header and list: `(best to worst)`, `| Rank | Answer |`."""
    framed = text.endswith(":") or text[:1] + text[-1:] in ("()", "||")
    return framed and bool(_LEADS_IN.search(text)) and not _WORST_FIRST.search(text)


def _closes_quotation(text: str) -> bool:
    return text.rstrip(" .,;:)").endswith('"') and text.count('"') % 2 == 1


def _continues(last: _Tier, row: Sequence[_Tier], *, gap: bool) -> bool:
    """Return whether a row continues the list above instead of beginning another."""
    if last.rank is not None:
        return not gap or row[0].rank == last.rank + 1
    return len(row) == 1 and row[0].rank is None and not (gap and row[0].note)


def _row(text: str) -> list[_Tier]:
    """Return the tiers that a line names; none where it is something else."""
    entry = _ENTRY.match(text)
    if entry is None:
        return []
    entries, joints = [entry], [""]
    while True:
        joint = _JOINT.match(text, entry.end())
        follower = _ENTRY.match(text, (joint or entry).end())
        if follower is None or not (joint or (entry["rank"] and follower["rank"])):
            break
        entry = follower
        entries.append(entry)
        joints.append((joint and joint.lastgroup) or "comma")
    rest = text[entry.end() :]
    item = entries[0]["rank"] is not None and not any(each["rank"] for each in entries[1:])
    tiers = _joined(entries, joints, rest, item=item)
    complete = _ENDS.match(rest) or ("above" in joints and rest.startswith(","))
    return tiers if complete or (item and len(tiers) == 1) else []


def _joined(
    entries: Sequence[re.Match[str]], joints: Sequence[str], rest: str, *, item: bool
) -> list[_Tier]:
    """Return a line's entries as tiers: beside a `>`, or under one number, commas join equals."""
    listed = "above" not in joints and not item
    tiers: list[_Tier] = []
    for at, (entry, joint) in enumerate(zip(entries, joints, strict=True)):
        final = at == len(entries) - 1
        note = (entry["note"] or "") + (rest if final else "")
        rank = int(entry["rank"]) if entry["rank"] else None
        enumerated = joint == "comma" or (joint == "and" and final and joints[1] == "comma")
        if not tiers or joint == "above" or rank or (listed and enumerated):
            tiers.append(_Tier((_letter(entry),), rank, note))
        else:
            above = tiers.pop()
            tiers.append(_Tier((*above.letters, _letter(entry)), above.rank, above.note + note))
    if any(tier.rank is None for tier in tiers):
        return [_Tier(tier.letters, None, tier.note) for tier in tiers]
    return tiers


def _letter(entry: re.Match[str]) -> str:
    return (entry["spelled"] or entry["bare"]).upper()


# The order of a ballot -------------------------------------------------------------------------


def _ranking(tiers: Sequence[_Tier], known: Mapping[str, str]) -> list[str]:
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


def _places(tiers: Sequence[_Tier]) -> list[list[_Tier]]:
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


def _by_number(places: list[list[_Tier]], numbers: Sequence[float]) -> list[list[_Tier]]:
    if sorted(numbers) != [*range(1, len(places) + 1)]:
        return []
    return [place for _, place in sorted(zip(numbers, places, strict=True), key=lambda pair: pair[0])]
