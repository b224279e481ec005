"""Reads a review in prose, once, when it arrives: what it says for and against each answer.

A missed remark costs a hint; one under the wrong answer misleads its author and everybody else. So only
this is read, and the rest left out:

- what is below a heading that names one answer (`### Response B`, `2. **Response B:**`), up to the next
  one, for or against it by the title above (`Weaknesses`), else by its plain words;
- elsewhere, a sentence that begins with an answer, and those that continue it (`However, it …`).

A sentence that may be about another answer, too, is left out.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import cast

from council.document.results import PointKind, PointSource, ReviewPoint, Severity
from council.reviews import plain_words as words
from council.reviews.ballot_text import by_letter
from council.reviews.reviewer_lines import (
    BOLD,
    START,
    ReviewLine,
    is_nothing,
    own_lines,
    says,
)
from council.text import clip, sentences

LONGEST_POINT = 600
"""The length of a point in characters; a longer one is cut between words."""


@dataclass(frozen=True, slots=True)
class ProseReading:
    """What a review says: its `points` in order, `None` if none is certain.

    `cleared` are the answers whose sections are praise alone, in every sentence.
    """

    points: list[ReviewPoint] | None
    cleared: tuple[str, ...]


def read_review(text: str, labels: Collection[str]) -> ProseReading:
    """Read what a review says about these answers."""
    known = by_letter(labels)
    sections = _sections(own_lines(text), known)
    last = next((section for section in reversed(sections) if section.letter), None)
    points = [
        point
        for section in sections
        if section.letter or any(map(_may_name, section.lines))
        for paragraph in _paragraphs(section, is_last=section is last)
        for point in (_below_heading if section.letter else _by_beginnings)(paragraph, known)
    ]
    return ProseReading(points or None, _cleared(sections, known))


def _cleared(sections: "Iterable[_Section]", known: Mapping[str, str]) -> tuple[str, ...]:
    praised: dict[str, list[bool]] = {}
    for section in sections:
        if section.letter:
            praise = praised.setdefault(section.letter, [])
            praise += [
                _is_praise(sentence, paragraph.part, section.letter, known)
                for paragraph in _paragraphs(section, is_last=False)
                for sentence in paragraph.sentences
                if not is_nothing(sentence)
            ]
    return tuple(known[letter] for letter, praise in praised.items() if praise and all(praise))


def _is_praise(sentence: str, part: PointKind | None, letter: str, known: Mapping[str, str]) -> bool:
    if _named(sentence, known) - {letter} or _means_others(sentence):
        return False
    return [point.kind for point in _judged(known[letter], sentence, part, "section")] == ["strength"]


# A script without spaces touches a letter without belonging to it.
_WORD = r"[0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff]"
_CAPITAL = re.compile(r"[A-Z](?![0-9A-Za-z_+#])")
"""What is in every sentence that names an answer."""
_LETTER = rf"(?<!{_WORD})(?<!['+#])(?-i:[A-Z])(?!{_WORD})(?![+#])"
_NOUN = (
    rf"(?<!{_WORD})(?:responses?|answers?|antwort(?:en)?|réponses?|respuestas?|respostas?|rispost[ae]"
    r"|回答|答案|回复|答复|응답|답변)"
)
_NAME = rf"{_NOUN}[\s:#-]*[(\[]?(?P<letter>{_LETTER})"
_NAMED = re.compile(rf"{_NAME}|(?P<bare>{_LETTER})", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"\n]{0,400}"|\u00ab[^\u00bb\n]{0,400}\u00bb')
_ARTICLE = re.compile(
    r"(?:^|(?<=[.!?:;]\s))A\s+(?!(?:is|has|was|wins|lacks|misses|gives|needs)\b)(?=[a-z])"
)
_OTHERS = re.compile(
    r"\b(?:others?(?! hand)|both|neither|former|latter|they (?:all|both)|in common"
    r"|the rest(?! of (?:it|the))"
    r"|(?:the )?(?:two|three|four) (?:answers|responses|others)"
    r"|(?:all|none|each|any|either|most|some) of (?:them|these|the (?:two|three|answers|responses))"
    r"|(?:all|most|these|those|every|each|no) (?:\w+ )?(?:answers?|responses?)|one (?:that|which)"
    r"|(?:first|second|third|last|previous|next|winning|best|weakest|better) (?:one|answer|response)"
    r"|(?:die|den|der) (?:anderen?|beiden)|les (?:autres|deux)|(?:l[ao]s )?otr[ao]s)\b"
    r"|其他|前者|后者|相比"
)
"""Words that mean other answers without naming them, in small letters."""

# Headings and titles
_STRENGTHS = (
    r"(?:key |main )?(?:strengths?|pros?|positives?|advantages?|merits?)|stärken?|vorteile?"
    r"|points forts|what (?:is|works)\b[^:.]{0,30}\b(?:right|good|well|useful|correct)[^:.]{0,15}"
    r"|优点|优势"
)
_WEAKNESSES = (
    r"(?:key |main )?(?:weakness(?:es)?|cons?|negatives?|issues?|problems?|flaws?|concerns?|criticisms?"
    r"|shortcomings?|gaps?|drawbacks?|limitations?|improvements?|suggestions?)"
    r"|(?:what is )?(?:wrong|missing|unclear)(?:,? (?:or |and )?(?:wrong|missing|unclear)){0,2}"
    r"|what (?:could|would|should)\b[^:.]{0,30}|areas? (?:for|of) improvement|schwächen?|nachteile?"
    r"|mängel|points faibles|缺点|不足"
)
_PART = re.compile(
    rf"(?:(?P<strength>{_STRENGTHS})|(?P<objection>{_WEAKNESSES})"
    r"|accuracy|correctness|completeness|clarity|depth|structure|style|security|cost|assessment)\s*"
    r"(?:\([^()]*\)\s*)?(?::|$)\s*",
    re.IGNORECASE,
)
_LEAD = (
    rf"(?:(?:(?P<strength>{_STRENGTHS})|(?P<objection>{_WEAKNESSES})|review|evaluation|assessment"
    r"|analysis|feedback|critique|accuracy|to the author|bewertung)\s*[:\u2013\u2014-]?\s*"
    r"(?:(?:of|for|on|von)\s+)?)?"
)
_HEADING = re.compile(
    rf"{_LEAD}(?:{_NAME}|[(\[\"]?(?P<bare>{_LETTER}))[)\]\"]?\s*(?:\([^()]*\)\s*)?"
    r"(?:(?:[:|]|[-\u2013\u2014](?=\s))\s*|[.,]?$)(?P<rest>.*)",
    re.IGNORECASE,
)
_NEXT_HEADING = re.compile(rf"(?<=[.!?])\s+(?={_NOUN}[\s#-]*{_LETTER}:)", re.IGNORECASE)

# Beginnings of sentences
_SUBJECT = re.compile(
    r"(?:(?:and|but|however|overall|finally|first|second|third|lastly|also|then|so|now|okay)\b,?\s+)*"
    r"(?:I found |(?:the|a|one|an)(?: \w+){1,3} (?:of|in|with|for) )?"
    rf"(?:{_NAME}|(?P<bare>{_LETTER})(?='s\b| [a-z]+s\b))",
    re.IGNORECASE,
)
_NEXT_CLAUSE = re.compile(
    r"(?:(?<!response)(?<!answer),|[,;]?\s+(?:but|while|whereas|because|although)|;|,\s+and)\s+"
    rf"(?={_NOUN}[\s#-]*{_LETTER})",
    re.IGNORECASE,
)
_COMPARES = re.compile(r"compared|in comparison|than\b", re.IGNORECASE)
_GRADED = re.compile(r"\[(?P<grade>high|medium|low)\]\s*")
_ANNOUNCES = re.compile(
    r"(?:(?:I (?:see|find|found|have|noticed?)|there (?:are|is|remain)|it has|here are)\s+)"
    r"(?:(?:only|just|still)\s+)?(?:an?|one|two|three|four|five|some|several|a few|the following)\s+"
    r"(?:\w+\s+)?(?:gaps?|issues?|problems?|concerns?|weakness(?:es)?|flaws?|objections?|errors?|mistakes?)"
    r"(?:\s+(?:here|with it|though|however))?[.:!]?",
    re.IGNORECASE,
)
"""A sentence that only says how many objections follow."""
_CONTINUES = re.compile(
    r"(?:however|but|still|yet|also|moreover|unfortunately|it|its|there|a minor|the main)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """The lines below a heading of one answer; without a letter they are below no such heading.

    `is_inline` says that the heading's own line has said something already.
    """

    letter: str = ""
    part: PointKind | None = None
    above: ReviewLine = START
    is_inline: bool = False
    lines: list[ReviewLine] = field(default_factory=list[ReviewLine])


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """Sentences that belong together, all for or all against an answer if a title says so."""

    letter: str
    part: PointKind | None
    sentences: list[str]


def _sections(lines: Iterable[ReviewLine], known: Mapping[str, str]) -> list[_Section]:
    # One line may hold several: Response A: fine. Response B: vague.
    pieces = [piece for line in lines for piece in _pieces(line)]
    headings = [_HEADING.match(line.text) for line in pieces]
    # One letter may be anything; several, each before a colon, name answers.
    bare = {found["bare"] for found in headings if found} & known.keys()
    letters = bare if len(bare) > 1 else set[str]()
    sections, outer = [_Section()], None
    for line, found in zip(pieces, headings, strict=True):
        if found and (found["letter"] or found["bare"] in letters):
            letter = found["letter"] or found["bare"]
            rest = "" if 0 < line.level < BOLD else found["rest"]
            part = _kind(found) or outer
            section = _Section(letter if letter in known else "", part, line, bool(rest))
            section.lines.append(replace(line, text=rest, level=0))
            sections.append(section)
        elif line.ends or _ends(line, sections[-1], known):
            sections.append(_Section())
            outer = _kind(_PART.match(line.text))
        else:
            sections[-1].lines.append(line)
    return sections


def _pieces(line: ReviewLine) -> list[ReviewLine]:
    said = _NEXT_HEADING.split(line.text) if ":" in line.text else ()
    return [replace(line, text=each) for each in said] if len(said) > 1 else [line]


def _ends(line: ReviewLine, section: _Section, known: Collection[str]) -> bool:
    """Return whether a section ends at a line: another title, or words that lead to other answers."""
    if not line.level:
        leads_on = section.letter and line.text.endswith(":")
        return bool(leads_on and _named(line.text, known) - {section.letter})
    is_part = section.letter and not section.is_inline and _PART.match(line.text)
    return not (is_part or section.above.level < line.level < BOLD)


def _kind(found: re.Match[str] | None) -> PointKind | None:
    if found is None:
        return None
    return "strength" if found["strength"] else "objection" if found["objection"] else None


def _paragraphs(section: _Section, *, is_last: bool) -> Iterator[_Paragraph]:
    """Yield what certainly belongs to a section; a conclusion may follow the last one."""
    part, said, is_empty = section.part, list[str](), True
    for before, line in pairwise([START, *section.lines]):
        begins = not (line.is_plain and before.text and before.is_plain)
        title = _PART.match(line.text)
        if said and (begins or title or not line.text):
            yield _Paragraph(section.letter, part, said)
            said = []
        if section.letter and not is_empty:
            goes_on = line.is_plain and section.above.bullet and not begins
            if section.is_inline and line.indent <= section.above.indent and not goes_on:
                return
            if is_last and begins and line.text and line.is_plain and not title:
                return
        if title or line.level:
            part = _kind(title)
        text = line.text[title.end() :] if title else "" if line.level else line.text
        cells = text.split(" | ") if not line.is_row or (section.is_inline and is_empty) else ()
        read = [each for cell in cells for each in sentences(cell)]
        said += read
        if any(map(is_nothing, read)):
            part = None  # what else is below is no critique
        is_empty = is_empty and not text
    if said:
        yield _Paragraph(section.letter, part, said)


def _below_heading(paragraph: _Paragraph, known: Mapping[str, str]) -> Iterator[ReviewPoint]:
    """Yield the sentences about the heading's answer, up to one that names another."""
    for sentence in paragraph.sentences:
        if _named(sentence, known) - {paragraph.letter}:
            return
        if not _means_others(sentence):
            yield from _judged(known[paragraph.letter], sentence, paragraph.part, "section")


def _by_beginnings(paragraph: _Paragraph, known: Mapping[str, str]) -> Iterator[ReviewPoint]:
    """Yield the sentences that begin with one answer, and those that continue them."""
    names = [_named(sentence, known) for sentence in paragraph.sentences]
    only, about = set[str]().union(*names), ""
    if not only:
        return
    for sentence, named in _clauses(paragraph.sentences, names, known):
        begins = _SUBJECT.match(sentence)
        if named:
            about = (begins["letter"] or begins["bare"]) if begins else ""
        elif not _CONTINUES.match(sentence) and only != {about}:
            about = ""
        if about in known and named <= {about} and not _means_others(sentence):
            yield from _judged(known[about], sentence, paragraph.part, "sentence")
        else:
            about = ""


def _clauses(
    sentences: Sequence[str], names: Sequence[set[str]], known: Collection[str]
) -> Iterator[tuple[str, set[str]]]:
    """Divide sentences where a clause begins with an answer, unless they compare; say who is named."""
    for sentence, named in zip(sentences, names, strict=True):
        clauses: list[str] = [sentence] if _COMPARES.match(sentence) else _NEXT_CLAUSE.split(sentence)
        if len(clauses) == 1:
            yield sentence, named
        else:
            yield from ((clause, _named(clause, known)) for clause in clauses)


def _judged(label: str, sentence: str, part: PointKind | None, source: PointSource) -> list[ReviewPoint]:
    """Return the point that a sentence makes, if it certainly makes one.

    Below a title it is what the title says, unless it says that there is nothing to object to.
    """
    graded = _GRADED.match(sentence)
    text = clip(sentence[graded.end() if graded else 0 :].strip(" ,;"), LONGEST_POINT)
    own = _unquoted(text).lower()
    said = words.CLEARED().sub(" ", own)
    is_grave, is_minor = words.GRAVE().search(said), words.MINOR().search(said)
    kind: PointKind | None = None
    if is_grave or is_minor or words.LACKING().search(said):
        kind = "objection"
    elif words.GOOD().search(said) and not words.QUALIFIED().search(said):
        kind = "strength"
    if part == "objection" and (said != own or kind == "strength"):
        return []
    kind = part or kind
    if not kind or not says(text) or _ANNOUNCES.fullmatch(text):
        return []
    grade: Severity | None = "low" if is_minor else "high" if is_grave else None
    severity = cast("Severity", graded["grade"]) if graded else grade
    severity = severity if kind == "objection" else None
    return [ReviewPoint(label=label, kind=kind, text=text, severity=severity, source=source)]


def _means_others(sentence: str) -> bool:
    return bool(_OTHERS.search(sentence.lower()))


def _may_name(line: ReviewLine) -> bool:
    return bool(_CAPITAL.search(line.text))


def _named(text: str, known: Collection[str]) -> set[str]:
    """Return the letters of all answers that a text may name, and of unknown ones after a noun."""
    if not _CAPITAL.search(text):
        return set()
    own = _unquoted(text)
    named = [*_NAMED.finditer(_ARTICLE.sub("", own) if "A" in own else own)]
    bare = {found["bare"] for found in named} & {*known} - {"I"}
    return {found["letter"] for found in named if found["letter"]} | bare


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text) if '"' in text or "\u00ab" in text else text
