"""Reading a ranking out of a review's text: the list below `FINAL RANKING:`, and whose words it is.

A ballot is asked for, not guessed. What isn't certain isn't counted, and is asked for once more.

- A ballot begins with a line that starts with `FINAL RANKING`; within a sentence, in quotation marks, in
  a `>` quotation, or after a line that ends in a colon and names an answer, the words are quoted.
- It is one line (`A > B > C`; `A, B and C`) or a list, a line an answer. Numbers decide the order where
  there are any; what is between numbered lines is a remark.
- A tie, an order from worst to best, scores, or more unknown labels than known ones are no ranking.
- The last ballot with two or more answers counts. One in a code block counts only where it ends the text
  and there is no other: then the block frames the ballot and quotes nothing.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

MAX_LINE = 1_000
"""Characters of a line that are looked at; a whole council fits in half as many."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_QUOTED = "(quoted)"
_HEADER = re.compile(
    r"""[^\w"']* (?:(?P<rank>\d{1,2})[.):]\s*)?(?:here(?:'s|\ is)\ +)?
        (?:(?:my|the|new|revised|corrected|updated)\ +){0,3}
        final[\s\-]+rankings?(?![a-z\d])(?!\s*["'])""",
    re.VERBOSE | re.IGNORECASE,
)
_TITLE = re.compile(r"[^\w\"']*rankings?\W*", re.IGNORECASE)
_ORDER_NAMED = re.compile(
    r"""[^\w(]*(?:
        \((?:[^()]*\b(?:best|rank|revised|corrected|updated|new)[^()]*|[^()a-z\d]*)\)  # (best to worst)
        |of\ +(?:all\ +)?(?:the\ +)?(?:responses|answers)\b
        |(?:from\ +)?best\ +(?:to\ +worst|first)\b
        )[^\w(]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORST_FIRST = re.compile(r"worst\s*(?:to\b|first\b|[-=]*>)", re.IGNORECASE)
_LEADS_IN = re.compile(r"\b(?:best|rank\w*|place|position)\b|^[^a-z]*$", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?]\s+")
_MARKS = ('"', "'", "\u201c", "\u201e", "\u00ab", "\u2018")
_TOUCHES = r"[^\W\u0e00-\u0e7f\u3040-\u9fff\uac00-\ud7af]|[&/+#]"  # scripts without spaces don't
_LETTER = re.compile(rf"(?<!['.-])(?<!{_TOUCHES})[A-HJ-Z\u0410\u0412\u0421](?!{_TOUCHES})")
"""An answer's letter, of which three may be Cyrillic; I is mostly a word."""
_OWN = re.compile(r"\bmy\b|\bI(?:'d| +would)? +rank\b", re.IGNORECASE)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("*`[]\\$\ufe0f"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a", '"'),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("→➔➜≻", ">"),
        "🥇": "1. ",
        "🥈": "2. ",
        "🥉": "3. ",
        "\u20e3": ". ",
        "_": " ",
        "、": ",",
        "。": ".",
    }
)
"""Removes markup and makes typographic signs plain."""

_NAME = (
    r"""["'(]*(?:(?:response|answer)[\s\-:\#]*([a-z])(?![a-z\d])|([a-z])(?=\s*(?:$|[^\w\s'])))["')]*"""
)
_LABEL = re.compile(rf"[^\w\"']*{_NAME}[^\w\"']*", re.IGNORECASE)
_ROW = re.compile(
    rf"""[^\w"']*                                                    # bullets, brackets, emoji
        (?:(?:rank\ *|place\ *|no\.?\ *)?
           (?:(\d{{1,3}})(?:st|nd|rd|th)?(?:\ +(?:place|choice))?[^\w"']+
             |(?:[a-z]|[ivx]+)[.)]\s*(?=\W*(?:response|answer))))?   # a. Response B
        {_NAME}""",
    re.VERBOSE | re.IGNORECASE,
)
_JOINT = re.compile(
    rf"\s*(=>|-*>+|[,;](?:\s*(?:and|then|followed\ by)\b)?|and\b)[^\w\"']*{_NAME}", re.IGNORECASE
)
_TIED = re.compile(
    r"\s*(?:[=~&/+\u2248\u2265]|\W*tied?\b|(?:,|and\b)\s*(?:(?:response|answer)\s+)?(?-i:[A-Z])\b(?!'))",
    re.IGNORECASE,
)
_ENDS = re.compile(r"\s*(?:$|[.;:!(|#]|,(?:\s|$)|-(?!>)|(?:because|since|with)\b)", re.IGNORECASE)
_SCORED = re.compile(r"\W*\d")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line without its markup, blank where it says nothing.

    `block` numbers the code block it is in, 0 outside. `ballot` is what follows the words FINAL RANKING,
    `None` where the line doesn't start with them; `code` says that they are in code. `before` are the
    line above, and that above the code block: they may announce somebody else's words.
    """

    text: str
    block: int = 0
    ballot: str | None = None
    code: bool = False
    before: tuple[str, str] = ("", "")


def parse_ranking(text: str, labels: Collection[str]) -> list[str]:
    """Return the labels that a review ranks, best first; `[]` if its ballot can't be counted.

    Unknown and repeated labels are dropped. Fewer than two labels aren't a ranking.
    """
    return ranking_at(text, labels)[0]


def ranking_at(text: str, labels: Collection[str]) -> tuple[list[str], int]:
    """Return what `parse_ranking` does, and the line on which that ballot begins, from 0."""
    lines = read_lines(unwrapped(text, ("markdown", "md")))
    end = max((at for at, line in enumerate(lines) if line.text), default=0)
    own = framed = list[str](), -1
    for at, line in enumerate(lines):
        if line.ballot is None or any(map(is_attributed, line.before)):
            continue
        ranking, last = _ranking(lines, at, by_letter(labels))
        if len(ranking) < 2:
            continue
        if not line.code:
            own = ranking, at
        elif last == end:
            framed = ranking, at
    return own if own[0] else framed


def listed_ranking(text: str, labels: Collection[str]) -> list[str]:
    lines = [TextLine("", ballot=""), *(line for line in read_lines(text) if line.text)]
    listed = parse_ranking(text, labels) or _ranking(lines, 0, by_letter(labels))[0]
    return listed if len(listed) > 1 else []


def begins_ranking(line: str) -> bool:
    """Return whether a line is the header of a ballot, as a critic or a prompt would write it."""
    return bool(_HEADER.match(plain(line)) or _TITLE.fullmatch(plain(line)))


def without_ranking(text: str) -> str:
    """Return a review without its ballots, counted or not."""
    lines, read = text.splitlines(keepends=True), read_lines(text)
    for at in reversed(range(len(lines))):
        if begins_ranking(lines[at]):
            read[at] = replace(read[at], ballot=read[at].ballot or "")
            letters, end = _letters(read, at)
            if not letters and all(_ROW.match(line.text) for line in read[at + 1 :] if line.text):
                end = len(lines)
            elif not letters:
                continue
            del lines[at : end + 1], read[at : end + 1]
    return text if len(lines) == len(text.splitlines()) else "".join(lines).rstrip()


def label_named(name: str, known: Mapping[str, str]) -> str | None:
    """Return the known label that a name means, `Response B` or only `b`."""
    found = _LABEL.fullmatch(plain(name))
    return known.get((found[1] or found[2]).upper()) if found else None


def by_letter(labels: Collection[str]) -> dict[str, str]:
    """Return labels by their letters."""
    return {label.split()[-1].upper(): label for label in labels}


# Lines -------------------------------------------------------------------------------------------


def read_lines(text: str) -> list[TextLine]:
    """Return the lines of a text, each with its code block and what was said before it."""
    lines: list[TextLine] = []
    fence, blocks = "", 0
    announced = before = ""
    for raw in text.splitlines():
        mark = _FENCE.match(raw[:MAX_LINE])
        if mark and not fence:
            fence, blocks, announced = mark[1], blocks + 1, before
            lines.append(TextLine("", before=(before, "")))
            continue
        if mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
            lines.append(TextLine(""))
            continue
        line = _line(raw, blocks if fence else 0, (before, announced if fence else ""))
        if line.ballot != "" and not mark:  # neither a header alone nor a fence ends an announcement
            before = line.text or before
        lines.append(line)
    return lines


def _line(raw: str, block: int, before: tuple[str, str]) -> TextLine:
    start = raw.lstrip()
    if start.startswith(">"):
        return TextLine(_QUOTED, block)
    text = plain(raw)
    ballot = _after_header(text)
    is_code = bool(block) or raw.startswith(("    ", "\t")) or (start.startswith("`") and bool(ballot))
    return TextLine(text, block, ballot, is_code, before)


def plain(raw: str) -> str:
    """Return a line without markup and with plain signs; empty if it has no letter and no digit."""
    text = unicodedata.normalize("NFKC", raw[:MAX_LINE].translate(_SIGNS)).translate(_SIGNS)
    return text.strip() if any(map(str.isalnum, text)) else ""


def _after_header(text: str) -> str | None:
    header = _HEADER.match(text)
    if header is None or _WORST_FIRST.search(text):
        return None
    rest = text[header.end() :]
    while named := _ORDER_NAMED.match(rest):
        rest = rest[named.end() :]
    return rest.lstrip(" \t:.=-|#~") if any(map(str.isalnum, rest)) else ""


def unwrapped(text: str, languages: Collection[str]) -> str:
    """Return the content of a text that is one code block in one of these languages, else the text."""
    opening, _, body = text.strip().partition("\n")
    wrapped = opening.startswith("```") and body.endswith("\n```")
    if wrapped and opening.removeprefix("```").strip().lower() in languages:
        return body.removesuffix("```")
    return text


def is_quoted(text: str, at: int, lines: Sequence[TextLine]) -> bool:
    """Return whether what begins at a place in a text is quoted; `lines` are the text's.

    That is so in quotation marks, and where a line or the words before it announce another's.
    """
    *above, last = f"{text[:at]}.".splitlines()
    before = last[:-1][-MAX_LINE:]
    clause = _CLAUSE.split(plain(before))[-1].rstrip(" :")
    announced = [*lines[len(above)].before, *([f"{clause}:"] if clause else [])]
    return before.endswith(_MARKS) or any(map(is_attributed, announced))


def is_attributed(before: str) -> bool:
    """Return whether a line says that what follows is somebody else's: it names an answer, or two.

    With more it compares them, and with *my* it announces the reviewer's own.
    """
    return before.endswith(":") and 0 < len(answers_named(before)) <= 2 and not _OWN.search(before)


def answers_named(line: str) -> set[str]:
    """Return the letters of the answers that a line names, in any language."""
    letters: set[str] = set()
    for found in _LETTER.finditer(line):
        ahead = line[: found.start()].rstrip()
        begins = not any(map(str.isalnum, ahead)) or ahead[-1] in ".!?:;"
        # A sentence may begin with a word of one vowel: E ora. C. is a heading's number.
        if not begins or (found[0] in "BCDFGHJKLMNPQRSTVWXZ" and line[found.end() :][:1] not in ".)"):
            letters.add(found[0])
    return letters


# Lists -------------------------------------------------------------------------------------------


def _ranking(lines: Sequence[TextLine], start: int, known: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the ranking of the ballot that begins at a line, and the line that it ends on."""
    letters, end = _letters(lines, start)
    ranked = [*dict.fromkeys(letters)]
    is_vote = 2 * sum(letter in known for letter in ranked) >= len(ranked)
    return [known[letter] for letter in ranked if letter in known] if is_vote else [], end


def _letters(lines: Sequence[TextLine], start: int) -> tuple[list[str], int]:
    """Return the letters of a ballot in its order; none where that isn't certain."""
    if first := lines[start].ballot:
        return _chain(first), start
    rows: list[tuple[int | None, str]] = []
    end, block, gap = start, lines[start].block, False
    for at in range(start + 1, len(lines)):
        text = lines[at].text
        if lines[at].ballot is not None or (text and lines[at].block != block and (rows or block)):
            break
        row = _row(text)
        if not text:
            gap = True
        elif not rows and row is None:
            if chain := _chain(text):
                return chain, at
            # (best to worst), | Rank | Answer |
            is_framed = text.endswith(":") or text[:1] + text[-1:] in ("()", "||")
            if not (is_framed and _LEADS_IN.search(text)) or _WORST_FIRST.search(text):
                break
        elif _is_uncertain(text, row):
            return [], at
        elif rows and rows[0][0] is not None and (row is None or row[0] is None):
            gap = True  # a remark on the entry above
        elif row and (not rows or _continues(rows[-1][0], row[0], text, gap=gap)):
            rows.append(row)
            end, block, gap = at, lines[at].block, False
        else:
            break
    return _in_order(rows), end


def _row(text: str) -> tuple[int | None, str] | None:
    """Return the number and the letter of a line that ranks one answer."""
    row = _ROW.match(text)
    if row is None or not (row[1] or _ENDS.match(text, row.end())) or _JOINT.match(text, row.end()):
        return None
    return int(row[1]) if row[1] else None, (row[2] or row[3]).upper()


def _is_uncertain(text: str, row: tuple[int | None, str] | None) -> bool:
    """Return whether a line ties answers, scores one, or ends somebody's quotation."""
    if text.rstrip(" .,;:)").endswith('"') and text.count('"') % 2:
        return True
    found = _ROW.match(text)
    if found is None:
        return False
    is_scored = row is not None and row[0] is None and _SCORED.match(text, found.end())
    return bool(is_scored or ((found[1] or row) and _TIED.match(text, found.end())))


def _continues(last: int | None, number: int | None, text: str, *, gap: bool) -> bool:
    """Return whether a row continues the list above instead of beginning another."""
    if last is not None or number is not None:
        return last is not None and number is not None and (not gap or number == last + 1)
    return not gap or bool(_LABEL.fullmatch(text))


def _chain(text: str) -> list[str]:
    """Return the letters of one line: `A > B > C`, or listed; a comma beside a `>` joins equals."""
    found = _ROW.match(text)
    if found is None or found[1] or _WORST_FIRST.search(text):
        return []
    letters, signs = [(found[2] or found[3]).upper()], list[str]()
    while following := _JOINT.match(text, found.end()):
        found = following
        signs.append(found[1])
        letters.append((found[2] or found[3]).upper())
    above = [">" in sign for sign in signs]
    listed = all(sign[0] in ",;" for sign in signs[:-1]) and signs[:1] != ["and"]
    is_certain = all(above) or (listed and not any(above))
    return letters if is_certain and _ENDS.match(text, found.end()) else []


def _in_order(rows: Sequence[tuple[int | None, str]]) -> list[str]:
    """Return letters in the order of their numbers; none if those are no places."""
    letters = [letter for _, letter in rows]
    numbers = [number for number, _ in rows if number is not None]
    if len({*numbers}) <= 1 or numbers == sorted(
        {*numbers}
    ):  # Markdown numbers a list of ones by itself
        return letters
    if sorted(numbers) != [*range(1, len(rows) + 1)]:
        return []
    return [letter for _, letter in sorted(zip(numbers, letters, strict=True))]
