"""The entries of a ballot: which answers its lines name, with which number and sign between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from council.reviews.ballot_lines import WORST_FIRST, TextLine

_LEADS_IN = re.compile(r"\b(?:best|rank\w*|place|position)\b|^[^a-z]*$", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Tier:
    """The answers that share a place on a ballot, with its number and the remark on them."""

    letters: tuple[str, ...]
    rank: int | None
    note: str


def tiers_below(lines: Sequence[TextLine], start: int) -> tuple[list[Tier], int]:
    """Return the tiers of the ballot that begins at a line, and the line that it ends on."""
    tiers: list[Tier] = []
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


def tiers_above(lines: Sequence[TextLine], end: int) -> list[Tier]:
    """Return the numbered list of labels that ends right above a line."""
    at = end - 1
    while at >= 0 and not lines[at].text:
        at -= 1
    tiers: list[Tier] = []
    while at >= 0 and lines[at].ballot is None and not lines[at].block:
        row = _row(lines[at].text)
        if len(row) != 1 or row[0].rank is None or row[0].note.strip(" .,;"):
            break
        tiers.insert(0, row[0])
        at -= 1
    return tiers if [tier.rank for tier in tiers] == [*range(1, len(tiers) + 1)] else []


def tiers_alone(lines: Sequence[TextLine]) -> list[Tier]:
    """Return the tiers of a text that is only a numbered list of labels."""
    said = [line for line in lines if line.text]
    if len({line.block for line in said}) == 1:  # one code block around the list quotes nothing
        said = [replace(line, block=0) for line in said]
    tiers = tiers_above(said, len(said))
    return tiers if len(tiers) == len(said) else []


def _body(lines: Sequence[TextLine], start: int) -> Iterator[tuple[int, str]]:
    yield start, lines[start].ballot or ""
    for at in range(start + 1, len(lines)):
        if lines[at].ballot is not None:
            return
        yield at, lines[at].text


def _leads_in(text: str) -> bool:
    """Return whether a line can come between header and list: `(best to worst)`, `| Rank | Answer |`."""
    framed = text.endswith(":") or text[:1] + text[-1:] in ("()", "||")
    return framed and bool(_LEADS_IN.search(text)) and not WORST_FIRST.search(text)


def _closes_quotation(text: str) -> bool:
    return text.rstrip(" .,;:)").endswith('"') and text.count('"') % 2 == 1


def _continues(last: Tier, row: Sequence[Tier], *, gap: bool) -> bool:
    """Return whether a row continues the list above instead of beginning another."""
    if last.rank is not None:
        return not gap or row[0].rank == last.rank + 1
    return len(row) == 1 and row[0].rank is None and not (gap and row[0].note)


def _row(text: str) -> list[Tier]:
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
) -> list[Tier]:
    """Return a line's entries as tiers: beside a `>`, or under one number, commas join equals."""
    listed = "above" not in joints and not item
    tiers: list[Tier] = []
    for at, (entry, joint) in enumerate(zip(entries, joints, strict=True)):
        final = at == len(entries) - 1
        note = (entry["note"] or "") + (rest if final else "")
        rank = int(entry["rank"]) if entry["rank"] else None
        enumerated = joint == "comma" or (joint == "and" and final and joints[1] == "comma")
        if not tiers or joint == "above" or rank or (listed and enumerated):
            tiers.append(Tier((_letter(entry),), rank, note))
        else:
            above = tiers.pop()
            tiers.append(Tier((*above.letters, _letter(entry)), above.rank, above.note + note))
    if any(tier.rank is None for tier in tiers):
        return [Tier(tier.letters, None, tier.note) for tier in tiers]
    return tiers


def _letter(entry: re.Match[str]) -> str:
    return (entry["spelled"] or entry["bare"]).upper()


def opening_letter(text: str) -> str | None:
    """Return the letter of the answer that a line begins with."""
    entry = _ENTRY.match(text)
    return _letter(entry) if entry else None


def named_letter(text: str) -> str | None:
    """Return the letter of the answer whose name is the whole text."""
    entry = _ENTRY.fullmatch(text)
    return _letter(entry) if entry else None
