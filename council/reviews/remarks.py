"""Finds which answer each sentence of a review in prose is about.

A sentence that isn't certainly about one answer is dropped: a missed remark costs a hint, one that is
credited to the wrong answer misleads its author and everybody else.

- The lines below a heading that names one answer (`### Response B`, `2. **Response B:**`) are about that
  answer, up to the next heading that isn't one of its parts (`Weaknesses`).
- A paragraph that begins with an answer and names no other is about that one.
- Elsewhere a sentence is about the answer it names; one that names two is cut into clauses, each
  about the answer it begins with. A sentence that continues (`However, it ...`) is about the answer of
  the sentence before.
- Quotations, code, the ballot and the scores are skipped.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from council.document.results import Severity
from council.reviews.answer_mentions import (
    IS_ENGLISH,
    MENTION,
    Heading,
    headings,
    is_good,
    is_part,
    letters,
    means_others,
    named,
    part_of,
)
from council.reviews.ballot_text import by_letter
from council.reviews.reviewer_lines import Line, is_nothing, own_lines, says, sentences
from council.reviews.severity import severity


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about one answer, or a clause of one.

    `part` is the title it is under, as written (`Weaknesses`). `is_alone` says that its sentence is
    about no other answer, `is_given` that the reviewer itself gave the severity.
    """

    label: str
    text: str
    part: str = ""
    line: int = 0
    is_alone: bool = True
    severity: Severity | None = None
    is_given: bool = False


def remarks(text: str, labels: Collection[str]) -> Iterator[Remark]:
    """Return the remarks of a review in prose about these answers, in its order."""
    lines = own_lines(text)
    divider = _Divider(lines, by_letter(labels))
    return (remark for at in range(len(lines)) for remark in divider.read(at))


# Which answer a sentence is about ----------------------------------------------------------------

_SUBJECT_LETTER = re.compile(
    r"(?P<letter>[A-Z])(?:'s\b| +(?:(?:also|simply|still|never|barely) +)?(?:lacks|misses|omits"
    r"|ignores|overlooks|is|isn't|has|should|could|would|needs|fails|forgets|gives|doesn't|does|says"
    r"|assumes|covers|only|too|was|gets|leaves|makes|provides|offers|skips|repeats|contains|answers"
    r"|explains|confuses|recommends|suggests)\b)"
)
_TURNS = r"while|whereas|but|although|though|yet|however|unlike|compared (?:to|with)|than|in contrast"
_BOUNDARY = re.compile(
    rf"\s*(?:[;\u2014]|,?\s+-\s+)\s*|,?\s+(?=(?:{_TURNS})\b)|,\s+(?=and\s)"
    r"|\s+(?=and\s+(?:response|answer)\b)|\s+(?=because\b)",
    re.IGNORECASE,
)
_TURN = re.compile(rf"\b(?:{_TURNS})\b", re.IGNORECASE)
_SET_BESIDE = re.compile(r"(?:while|whereas|although|though|unlike|compared)\b", re.IGNORECASE)
_IN_FRONT = re.compile(rf"{_BOUNDARY.pattern}|,\s+(?=(?:response|answer)\b)", re.IGNORECASE)
_AND = re.compile(r"and\b", re.IGNORECASE)
_JOINT = re.compile(
    r"^(?:(?:while|whereas|but|although|though|yet|however|and|because|in contrast"
    r"|on the other hand|by contrast"
    r"|similarly|likewise|finally|overall|first|second|third|lastly|also|then|so|still|meanwhile|both)\b"
    r"[,:]?\s*)+",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"^(?:unlike|than|compared (?:to|with)|like|as (?:in|with)|similar to)\b", re.IGNORECASE
)
_COMPARED = re.compile(
    r"\b(?:than|unlike|like|compared (?:to|with)|versus|vs\.?|over|from|as|as in|by|to|that|beats"
    r"|copies|repeats|says"
    r"|claims|echoes|matches|behind|below|above|after|before)\s+(?:the\s+)?(?:\w+\s+of\s+)?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^(?:however|but|still|yet|nevertheless|nonetheless|that said|also|moreover|furthermore"
    r"|additionally"
    r"|in addition|unfortunately|it|its|there|they|this (?:answer|response)|a (?:minor|major"
    r"|serious|small)"
    r"|the (?:answer|response|author|main|biggest|only|code|reasoning|example|tone|conclusion"
    r"|structure|weakness"
    r"|problem))\b",
    re.IGNORECASE,
)
_RUNS_ON = re.compile(
    r"^(?:it|its|they|also|lacks|misses|omits|ignores|fails|does|is|has|needs|should|could)\b",
    re.IGNORECASE,
)
_ONE_OF_TWO = re.compile(r"\b(?:former|latter|other one|first one|second one)\b", re.IGNORECASE)
_QUOTATION = re.compile(r'"[^"\n]{0,400}"|\u00ab[^\u00bb\n]{0,400}\u00bb')

_PLAIN_HEADING = 7
"""The level of a heading that isn't one in Markdown."""


class _Divider:
    """Reads line after line and remembers which answer the text is about."""

    def __init__(self, lines: Sequence[Line], known: Mapping[str, str]) -> None:
        self._lines, self._known = lines, known
        self._headings = headings(lines, known)
        self._last_heading = max(self._headings, default=-1)
        self._at = 0
        self._under = ""  # the letter that a heading named
        self._heading = Line("")
        self._is_inline = False  # the heading's own line has content, too
        self._level = 0
        self._part = self._outer_part = ""  # the titles above the lines, within a section and around it
        self._last = ""  # the letter that the last sentence of this paragraph was about
        self._only = ""  # the letter that this paragraph alone names
        self._strayed = False  # another answer was named in this paragraph
        self._lost = False  # and the sentence was about that one
        self._is_columns = False  # a table with a column for each answer

    def read(self, at: int) -> Iterator[Remark]:
        """Return the remarks of one line."""
        line, self._at = self._lines[at], at
        before = self._lines[at - 1] if at else Line("")
        if line.ends:
            self._leave()
        if not line.text:
            self._last = self._only = ""
            self._strayed = self._lost = False
            return
        if not before.text or not line.is_plain or not before.is_plain:
            self._only = self._names_only(at)
            self._strayed = self._lost = False
        if line.bullet and before.bullet:
            self._last = ""
        if line.is_row and (self._heads_columns(at) or self._is_columns):
            return
        text = self._after_heading(line)
        if part := part_of(replace(line, text=text)):
            self._part = part[0].strip(" :")
            text = text[part.end() :]
        for cell in text.split("|") if line.is_row else (text,):
            for sentence in sentences(cell):
                if is_nothing(sentence):
                    self._part = ""  # what else the line says is no critique
                yield from self._sentence(sentence)
        if line.is_row and at in self._headings:
            self._leave()

    def _heads_columns(self, at: int) -> bool:
        """Return whether a line is a table's first row; note whether each column is about an answer."""
        if at and self._lines[at - 1].is_row:
            return False
        self._is_columns = len(named(self._lines[at].text, self._known) & self._known.keys()) > 1
        below = self._lines[at + 1].text if at + 1 < len(self._lines) else ""
        return bool(below) and not below.strip("-: |")

    def _names_only(self, at: int) -> str:
        """Return the letter of the one answer that the paragraph beginning here names."""
        line, texts = self._lines[at], [self._lines[at].text]
        for following in self._lines[at + 1 :] if not (line.is_row or line.level) else ():
            if not (following.text and following.is_plain):
                break
            texts.append(following.text)
        found = named("\n".join(texts), self._known)
        return found.pop() if len(found) == 1 else ""

    def _leave(self) -> None:
        self._under = self._last = self._only = self._part = ""
        self._level = 0

    def _after_heading(self, line: Line) -> str:
        """Note where a section begins or ends; return what else the line says."""
        if heading := self._headings.get(self._at):
            self._enter(line, heading)
            return heading.rest
        is_title = bool(line.level or line.is_title)
        if is_title and not self._is_within(line):
            self._leave()
            self._outer_part = line.text.strip(" :") if part_of(line) else ""
        elif is_title:
            self._part = ""
        elif self._under and self._closes(line):
            self._leave()
        return "" if is_title and not part_of(line) else line.text

    def _enter(self, line: Line, heading: Heading) -> None:
        self._under, self._heading = heading.letter if heading.letter in self._known else "", line
        self._is_inline = bool(heading.rest)
        self._level, self._last = line.level or _PLAIN_HEADING, ""
        self._part = heading.part or (self._outer_part if line.bullet else "")

    def _is_within(self, title: Line) -> bool:
        """Return whether a title is that of a section's part."""
        if not self._under:
            return False
        if title.level:
            return self._level < title.level
        return is_part(title.text) or (
            title.indent > self._heading.indent and bool(self._heading.bullet)
        )

    def _closes(self, line: Line) -> bool:
        """Return whether a line may not belong to the section above it."""
        if line.bullet and line.bullet == self._heading.bullet and self._is_inline:
            return line.indent <= self._heading.indent
        # Nothing but the end of the review ends the last section: a conclusion may follow.
        is_last = self._at > self._last_heading
        begins = line.is_plain and not self._lines[self._at - 1].text
        follows = self._at - 2 <= self._last_heading and not self._is_inline
        return (
            is_last
            and begins
            and not follows
            and line.indent <= self._heading.indent
            and not part_of(line)
            and not _GOES_ON.match(line.text)
        )

    def _sentence(self, sentence: str) -> Iterator[Remark]:
        # Words in quotation marks are somebody else's; their length is kept, and so are positions.
        shown = _unquoted(sentence)
        mentions = [*MENTION.finditer(shown)]
        if _ONE_OF_TWO.search(shown):
            self._last = ""
            return
        if not mentions:
            yield from self._nameless(sentence, shown)
            return
        meant = {letter for mention in mentions for letter in letters(mention[0])}
        if len(meant) == 1:
            yield from self._single(sentence, shown, mentions[0], meant.pop())
        else:
            self._last, self._strayed = "", True
            if not self._under:
                yield from self._clauses(sentence, shown)

    def _nameless(self, sentence: str, shown: str) -> Iterator[Remark]:
        bare_letter = _SUBJECT_LETTER.match(_JOINT.sub("", shown))
        if bare_letter and (letter := bare_letter["letter"]) in self._known:
            if self._under and self._under != letter:
                self._lost = True
            elif named(shown, self._known) == {letter}:
                self._last = letter
                yield from self._remark(letter, sentence)
            else:
                yield from self._clauses(sentence, shown)
        elif self._lost:
            return
        elif self._under:
            yield from self._remark(self._under, sentence)
        elif self._last and (self._last == self._only or _GOES_ON.match(shown)):
            yield from self._remark(self._last, sentence)
        else:
            self._last = ""

    def _single(
        self, sentence: str, shown: str, mention: re.Match[str], letter: str
    ) -> Iterator[Remark]:
        """Return a sentence that names one answer as a remark on the answer it is certainly about."""
        before = shown[: mention.start()]
        ahead = _JOINT.sub("", before)
        compared = bool(_COMPARED.search(before) or _TURN.search(ahead))
        if self._under and not before and shown[mention.end() :].startswith(":"):
            self._under = letter  # one line may hold several: Response A: fine. Response B: vague.
            sentence = sentence[mention.end() + 1 :].lstrip()
        if self._under and self._under != letter:
            # Under another answer's heading, it may only compare: then it is about the heading's.
            self._strayed = True
            if before and (compared or _GOES_ON.match(shown)):
                yield from self._remark(self._under, sentence)
            else:
                self._lost = True
            return
        self._lost = False
        if compared or (ahead and not IS_ENGLISH.search(shown)):
            about = self._last if _GOES_ON.match(shown) else self._under
            self._strayed |= about != letter
            if about:
                yield from self._remark(about, sentence)
            return
        self._last = letter
        self._strayed = False
        yield from self._remark(letter, sentence, is_alone=not ahead or self._only == letter)

    def _clauses(self, sentence: str, shown: str) -> Iterator[Remark]:
        """Return the clauses of a sentence that names several answers, each for its first one."""
        subjects: list[str] = []
        for start, end in _spans(shown, _IN_FRONT if _SET_BESIDE.match(shown) else _BOUNDARY):
            clause, said = shown[start:end], sentence[start:end]
            joint = _JOINT.match(clause)
            core = clause[joint.end() :] if joint else clause
            mentions = [*MENTION.finditer(core)]
            bare_letter = _SUBJECT_LETTER.match(core)
            if _BESIDE.match(core):
                subjects = []
                continue
            if not mentions and not bare_letter:
                goes_on = joint and _RUNS_ON.match(core)
                if not goes_on or len(subjects) != 1:
                    subjects = []
            elif mentions and mentions[0].start() == 0 and len(mentions) == 1:
                subjects = letters(mentions[0][0])
            elif bare_letter and not mentions:
                subjects = [bare_letter["letter"]]
            else:
                subjects = []
            for letter in subjects:
                text = (joint and said[joint.end() :]) or said
                yield from self._remark(letter, text, is_alone=False)

    def _remark(self, letter: str, text: str, *, is_alone: bool = True) -> Iterator[Remark]:
        label = self._known.get(letter)
        if label is None or not says(text):
            return
        others = means_others(text, letter, self._known)
        is_alone = is_alone and not self._strayed and not others
        self._strayed |= others
        text = text.strip(" ,;")
        grade = None if is_good(self._part) else severity(_unquoted(text))
        yield Remark(label, text, self._part, self._at, is_alone, grade)


def _unquoted(sentence: str) -> str:
    return _QUOTATION.sub(lambda found: '"' + "x" * (len(found[0]) - 2) + '"', sentence)


def _spans(shown: str, boundaries: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = 0
    for boundary in boundaries.finditer(shown):
        if MENTION.fullmatch(shown, start, boundary.start()) and _AND.match(shown, boundary.end()):
            continue  # Response A and Response B share what follows
        if boundary.start() > start:
            yield start, boundary.start()
        start = boundary.end()
    yield start, len(shown)
