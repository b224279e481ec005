"""The closing part of the chairman's reply: notes for the team, below a mark that only it was given.

The mark counts only alone on its line, at its last occurrence, with an answer above it and a keyword
below, in a code block or not. Without it, a reply's last lines are notes only if they begin with three
of the four keywords; otherwise everything is answer. Nothing is guessed: a statement that names no
member is left out, and so is an open point that says only that there is none.
"""

import re
from collections.abc import Iterator, Mapping

from council.document.results import ChairNotes
from council.text.fence import StrippedStream, stripped

LONGEST = 4_000
"""Characters of a closing part; what is longer is answer."""
ENOUGH_KEYWORDS = 3
"""How many of the four tell notes without their mark from an answer."""
LONGEST_KEYWORD = 40
"""Characters of a line within which its keyword ends."""

_DECORATION = " \t\r[](){}<>*_=#`~:.|-"
_BULLET = r"(?:[-*+>#\u2022\u2013]|\d{1,2}[.)])"
_NOTE = re.compile(
    rf"(?:{_BULLET}[ \t]{{1,3}}){{,2}}[*_`]{{,3}}"
    r"(dissent|only|changed|ask)[*_`]{,3}[ \t]{,3}[:\uff1a][*_`]{,3}",
    re.IGNORECASE,
)
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*\w*[ \t]*(?:\n\s*|\Z)")
_HEADING = re.compile(r"\s*^[ \t*_#]*notes?[ \t*_:]*\Z", re.IGNORECASE | re.MULTILINE)
_STATEMENT = re.compile(rf"{_BULLET}[ \t]+")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_WORD = re.compile(r"[^\W_]+")
_LATIN = "0-9A-Za-z_\u00aa-\u024f\u1e00-\u1eff"
_QUESTION = re.compile("[?\uff1f\u061f\u037e\u055e]")
_NOTHING = re.compile(
    r"\W*(?:$|(?:there (?:is|are) )?(?:no|none|nothing|n/a|keine?|nichts|aucune?|rien|ning[uú]n[ao]?"
    r"|nada|niente|nessun[ao]?|nenhuma?|geen|niets|brak|ingen|inget|yok|нет)(?:\W|$)"
    r"|(?:特に)?[な無]し|没有|沒有|[无無]\W*$|없|ไม่มี|אין)",
    re.IGNORECASE,
)


def read_notes(
    mark: str | None, reply: str, labels: Mapping[str, str], truncated: bool
) -> tuple[str, ChairNotes | None]:
    """Return the answer in a chairman's reply, and the notes below it.

    `labels` map the responses it read to their authors. Of a `truncated` reply's notes the last line
    is left out.
    """
    if mark is None:
        return reply, None
    answer, closing = _parts(mark, reply)
    if not closing:
        answer, closing = _unmarked_parts(reply)
    if truncated and closing:
        closing = closing.rpartition("\n")[0]
    elif truncated and _may_be_mark(mark, last := answer.rpartition("\n")[2]):
        answer = answer.removesuffix(last).rstrip()
    return stripped(mark, answer), _notes(stripped(mark, closing), labels)


def has_no_answer(mark: str | None, reply: str) -> bool:
    if mark is None:
        return False
    return _NOTE.match(stripped(mark, reply).lstrip()) is not None


class AnswerStream:
    """A chairman's answer as it streams, without the run's boundary and without the notes.

    What may become the mark's line is held back with the blank lines above it, and so is what follows
    the mark. It is shown if it turns out to be answer.
    """

    def __init__(self, boundary: str, mark: str | None) -> None:
        self._unfencing = StrippedStream(boundary)
        self._unmarking = StrippedStream(mark) if mark else None
        self._mark = mark or ""
        self._held = ""
        self._has_shown = False

    def feed(self, piece: str) -> str:
        return self._next(self._unfencing.feed(piece))

    def rest(self) -> str:
        """Return what was held back, at the reply's end, as far as it is answer."""
        shown = self._next(self._unfencing.rest())
        if self._unmarking is None:
            return shown
        held, self._held = self._held, ""
        answer, _ = _parts(self._mark, held, below=self._has_shown)
        return shown + self._unmarking.feed(answer) + self._unmarking.rest()

    def restart(self) -> None:
        self._held, self._has_shown = "", False
        self._unfencing.restart()
        if self._unmarking:
            self._unmarking.restart()

    def _next(self, text: str) -> str:
        if self._unmarking is None:
            return text
        if self._has_shown and not self._held and "\n" not in text:
            return self._unmarking.feed(text)
        text = self._held + text
        ready = _ready(self._mark, text, below=self._has_shown)
        self._held = text[ready:]
        self._has_shown |= ready > 0
        return self._unmarking.feed(text[:ready])


def _parts(mark: str, text: str, *, below: bool = False) -> tuple[str, str]:
    """Split a text into answer and closing part; what is `below` more of the answer begins in a line."""
    end = len(text)
    for line in reversed([*_lines(mark, text, below=below)]):
        if not text[line.end() : end].strip():  # a mark may also end the closing part
            end = line.start()
            continue
        is_answer = len(text) - line.end() > LONGEST or not _NOTE.match(_unfenced(text[line.end() :]))
        if is_answer or not (below or text[: line.start()].strip()):
            break
        return text[: line.start()].rstrip(), text[line.end() : end]
    return text, ""


def _unmarked_parts(text: str) -> tuple[str, str]:
    """Split a text whose last lines are notes without their mark; until its end, nobody knows which."""
    lines = text.splitlines(keepends=True)
    begin, size, keywords = len(lines), 0, set[str]()
    for at in reversed(range(len(lines))):
        note = _NOTE.match(lines[at].strip())
        size += len(lines[at])
        # Blank and indented lines and bullets continue a note after a blank line.
        is_inner = not lines[at].strip() or lines[at][:1].isspace() or _STATEMENT.match(lines[at])
        is_paragraph = not (note or at == 0 or lines[at - 1].strip() or is_inner)
        if size > LONGEST or is_paragraph:
            break
        if note:
            begin = at
            keywords.add(note[1].lower())
        elif len(keywords) >= ENOUGH_KEYWORDS and lines[at].strip():
            break
    answer = _HEADING.sub("", "".join(lines[:begin]).rstrip())
    if len(keywords) < ENOUGH_KEYWORDS or not answer:
        return text, ""
    return answer, "".join(lines[begin:])


def _ready(mark: str, text: str, *, below: bool) -> int:
    """Return how much of a text is answer, whatever follows."""
    for line in _lines(mark, text, below=below):
        closing = text[line.end() : line.end() + LONGEST + 1]
        below_it, newline, _ = _unfenced(closing).partition("\n")
        is_begun = not newline and len(below_it) < LONGEST_KEYWORD
        may_be_notes = is_begun or bool(_NOTE.match(below_it)) or _may_be_mark(mark, below_it)
        if len(closing) <= LONGEST and may_be_notes:
            return len(text[: line.start()].rstrip())
    before, newline, last = text.rpartition("\n")
    is_line = newline or not below
    return len(before.rstrip() if is_line and _may_be_mark(mark, last) else text.rstrip())


def _lines(mark: str, text: str, *, below: bool) -> Iterator[re.Match[str]]:
    """Find the lines that contain only the mark."""
    if mark.lower() not in text.lower():  # a pattern for each run costs more than looking
        return iter(())
    begin, around = "(?<=\\n)" if below else "^", f"[{re.escape(_DECORATION)}]*"
    return re.finditer(rf"{begin}{around}{re.escape(mark)}{around}$", text, re.IGNORECASE | re.MULTILINE)


def _unfenced(closing: str) -> str:
    """Return a closing part without the code block that begins around it."""
    begun = closing.lstrip()
    fence = _FENCE.match(begun)
    return begun[fence.end() :] if fence else begun


def _may_be_mark(mark: str, line: str) -> bool:
    rest = line.lstrip(_DECORATION).lower()
    begun, after = rest[: len(mark)], rest[len(mark) :]
    return mark.lower().startswith(begun) and not after.strip(_DECORATION)


def _notes(closing: str, labels: Mapping[str, str]) -> ChairNotes | None:
    found: dict[str, list[str]] = {}
    statements: list[str] = []
    is_new = True
    for line in map(str.strip, closing.splitlines()):
        if _FENCE.fullmatch(line):
            continue
        if note := _NOTE.match(line):
            statements = found.setdefault(note[1].lower(), [])
            statements.append(line[note.end() :])
        elif (bullet := _STATEMENT.match(line)) or is_new:
            statements.append(line[bullet.end() if bullet else 0 :])
        else:
            statements[-1] += f" {line}"
        is_new = not line
    kept = {name: _kept(name, texts, labels) for name, texts in found.items()}
    return ChairNotes.model_validate(kept) if any(kept.values()) else None


def _kept(keyword: str, statements: list[str], labels: Mapping[str, str]) -> str | None:
    kept: list[str] = []
    for statement in statements:
        text = _BOLD.sub(r"\1", statement).strip().removesuffix("**")
        for label, member in labels.items():
            if not _names(text, member):
                text = re.sub(rf"(?a:\b{re.escape(label)}\b)", lambda _, member=member: member, text)
        is_open = _QUESTION.search(text) or not _NOTHING.match(text)
        if is_open if keyword == "ask" else any(_names(text, member) for member in labels.values()):
            kept.append(text)
    return "\n".join(kept) or None


def _names(text: str, member: str) -> bool:
    """Return whether a text names a member: its model with or without the maker, or its persona."""
    model = member.rpartition("/")[2]
    return named(text, member, model, model.partition(":")[0], member.partition("#")[2])


def named(text: str, *names: str) -> bool:
    """Return whether a text has one of these names; they end at a space or where the script changes."""
    spelt = filter(None, (r"[\W_]{,3}".join(map(re.escape, _WORD.findall(name))) for name in names))
    said = text.replace("'", "").replace("\u2019", "")
    name = rf"(?<![{_LATIN}-])(?:{'|'.join(spelt)})(?![{_LATIN}-]|\.\d)"
    return re.search(name, said, re.IGNORECASE) is not None
