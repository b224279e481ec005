"""Reading critique out of a review's text: what it holds against which answer.

Where it isn't certain whom a sentence means, nobody is credited with it: a missed point costs a
hint, a point held against the wrong answer misleads its author.

- A heading that names one answer (`### Response B`, `2. **Response B:**`) says whom the lines below
  it mean; another heading ends that, except those of its parts (`Weaknesses`).
- Elsewhere a sentence means the answer it names; one that names two is cut into clauses, each of
  which means the answer it begins with. A sentence that goes on (`However, it ...`) means the answer
  of the sentence before.
- Quotations, code and the ballot say nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from council.document.results import ReviewPoint
from council.reviews.ballot_text import LEAD_IN, by_letter, unwrapped
from council.reviews.severity import praises, severity

LONGEST_REVIEW = 200_000
"""Characters of a review that points are looked for in."""

LONGEST_LINE = 2_000
"""Characters of a line that are looked at."""

LONGEST_POINT = 600
"""Characters of a point; what is longer is cut at a word."""


def read_points(text: str, labels: Collection[str]) -> list[ReviewPoint]:
    """Return the critique points in a review, in its order; only of these labels."""
    known = by_letter(labels)
    reader = _Reader(known)
    return [point for line in _own_lines(text) for point in reader.read(line)]


def points_in_remark(label: str, remark: str) -> list[ReviewPoint]:
    """Return the points of a remark that is known to be critique of one answer, in any language."""
    lines = (line[:LONGEST_LINE] for line in remark[:LONGEST_REVIEW].splitlines())
    return [
        ReviewPoint(label=label, text=_clipped(each), severity=severity(each) or "medium")
        for line in lines
        for each in _sentences(_bare(line))
        if _says(each)
    ]


# The lines of a review -------------------------------------------------------------------------

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_BALLOT = re.compile(rf"\W*{LEAD_IN}final[\s_-]+rankings?\b", re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*(?:[-*+|#\[(]+\s*)*(?:\d{1,3}(?:st|nd|rd|th)?\b|(?:response|answer)\s+[a-z]\b"
    r"|[a-z]\b\s*(?:[>,=.]|$))",
    re.IGNORECASE,
)


def _own_lines(text: str) -> Iterator[str]:
    """Return the lines in which the reviewer itself speaks."""
    fence, ballot = "", False
    for raw in unwrapped(text, ("", "markdown", "md"))[:LONGEST_REVIEW].splitlines():
        line = raw[:LONGEST_LINE]
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence or line.lstrip().startswith(">"):
            continue
        if _BALLOT.match(line):
            ballot = True
            continue
        if ballot and (not line.strip() or _ENTRY.match(line)):
            continue
        ballot = False
        yield line


_MARKUP = re.compile(r"[*_`~\\]+")
_SIGNS = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_BULLET = re.compile(r"\s*(?:[-*+\u2022\u2013\u2014]\s+|\(?\d{1,2}[.)]\s+|[a-z]\)\s+)")
_QUOTATION = re.compile(r'"[^"\n]{0,400}"|\u00ab[^\u00bb\n]{0,400}\u00bb')


def _bare(line: str) -> str:
    """Return a line without bullet and markup."""
    text = line.translate(_SIGNS)
    if bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    return " ".join(_MARKUP.sub("", text).lstrip("#| ").split()).rstrip("|# ")


_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|resp)\.$", re.IGNORECASE)
_ABBREVIATED = len("approx.")
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|(?<=[\u3002\uff01\uff1f])")


def _sentences(text: str) -> list[str]:
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        begun = max(start, end.start() - _ABBREVIATED)
        if not _ABBREVIATION.search(text, begun, end.start()):
            sentences.append(text[start : end.start()].strip())
            start = end.end()
    return [each for each in (*sentences, text[start:].strip()) if each]


def _says(sentence: str) -> bool:
    words = sentence.strip(" .:-").lower()
    return sum(map(str.isalnum, words)) > 2 and words not in _NOTHING


_NOTHING = {"none", "none found", "nothing", "no weaknesses", "n/a", "nothing significant", "none noted"}


def _clipped(text: str) -> str:
    if len(text) <= LONGEST_POINT:
        return text
    cut = text[:LONGEST_POINT]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}\u2026"


# Whom a sentence means -------------------------------------------------------------------------

_NOUN = r"(?:responses?|answers?|replies|reply|candidates?|submissions?)"
_LABELS = re.compile(
    rf"\b{_NOUN}[\s:#-]*\(?((?-i:[A-Z]))\b(?:\)?(?:\s*,\s*(?:and\s+)?|\s*(?:and|&|/|or"
    rf"|\+)\s*)(?:{_NOUN}\s+)?(?-i:[A-Z])\b(?!'))*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"\b[A-Z]\b")
_SUBJECT_LETTER = re.compile(
    r"(?P<letter>[A-Z])(?:'s\b| +(?:(?:also|simply|still|never|barely) +)?(?:lacks|misses|omits"
    r"|ignores|overlooks"
    r"|is|isn't|has|should|could|would|needs|fails|forgets|gives|doesn't|does|says|assumes"
    r"|covers|only|too|was|gets"
    r"|leaves|makes|provides|offers|skips|repeats|contains|answers|explains|confuses|recommends"
    r"|suggests)\b)"
)
_TURNS = r"while|whereas|but|although|though|yet|however|unlike|compared (?:to|with)|than|in contrast"
_BOUNDARY = re.compile(
    rf"\s*(?:[;\u2014]|,?\s+-\s+)\s*|,?\s+(?=(?:{_TURNS})\b)|,\s+(?=and\s)"
    r"|\s+(?=and\s+(?:response|answer)\b)|\s+(?=because\b)",
    re.IGNORECASE,
)
_SET_BESIDE = re.compile(r"(?:while|whereas|although|though|unlike|compared)\b", re.IGNORECASE)
_IN_FRONT = re.compile(rf"{_BOUNDARY.pattern}|,\s+(?={_NOUN}\b)", re.IGNORECASE)
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
    r"\b(?:than|unlike|like|compared (?:to|with)|versus|vs\.?|over|from|as|by|to|that|beats"
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
_PART = re.compile(
    r"^(?:(?P<good>strengths?|pros?|positives?|good|right|advantages?"
    r"|what (?:is|was|works|it does)\b[^:]*(?:right|well|good|useful))"
    r"|(?P<bad>weakness(?:es)?|cons?|negatives?|issues?|problems?|flaws?|concerns?|critiques?"
    r"|criticisms?"
    r"|shortcomings?|gaps?|missing|errors?|drawbacks?|limitations?|wrong|unclear|improvements?"
    r"|suggestions?"
    r"|what (?:is|was|could|would|to)\b[^:]*|areas? (?:for|of)\b[^:]*|(?:how )?to improve"
    r"|could be better))"
    r"\s*(?::|$)\s*",
    re.IGNORECASE,
)
_HEADING_REST = re.compile(r"^\s*[):.\-\u2013\u2014|]*\s*")


class _Reader:
    """Reads line after line and remembers whom the text is about."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._under: str | None = None  # the label that a heading named
        self._level = 0
        self._part = ""  # good, bad
        self._last: str | None = None  # whom the last sentence of this paragraph meant

    def read(self, raw: str) -> list[ReviewPoint]:
        text = _bare(raw)
        if not text:
            self._last = None
            return []
        text = self._after_heading(raw, text)
        points: list[ReviewPoint] = []
        part = _PART.match(text)
        if part:
            self._part = "good" if part["good"] else "bad"
            text = text[part.end() :]
        for sentence in _sentences(text):
            points += self._sentence(sentence)
        return points

    def _after_heading(self, raw: str, text: str) -> str:
        """Note a heading, and give what its line says besides."""
        start = raw.lstrip()
        level = len(start) - len(start.lstrip("#"))
        named = _LABELS.match(text)
        rest = text[named.end() :] if named else text
        emphasized = bool(re.match(r"(?:[-+\u2022]\s+|\*\s+|\d{1,2}[.)]\s+)?(?:\*\*|__)", start))
        alone = not rest.strip(" :.-()")
        labelled = bool(named) and (
            alone or bool(re.match(r"\s*\)?\s*(?::|[-\u2013\u2014|]\s)", rest)) or level > 0
        )
        if named and labelled:
            letters = self._letters(named[0])
            self._under = letters[0] if len(letters) == 1 else None
            self._level, self._part, self._last = level or 7, "", None
            return (
                "" if level and not alone and ":" not in rest else _HEADING_REST.sub("", rest, count=1)
            )
        if _PART.match(text):
            return text
        title = level > 0 or (
            emphasized
            and _MARKUP.sub("", start).rstrip(" :") == text.rstrip(" :")
            and self._is_title(start)
        )
        if title:
            if level == 0 or level <= self._level or self._level == 7:
                self._under, self._last = None, None
            self._part = ""
            return ""
        return text

    @staticmethod
    def _is_title(start: str) -> bool:
        """Tell a line that is emphasized as a whole."""
        return bool(
            re.fullmatch(r"(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*|(?:\*\*|__)[^*_]+:(?:\*\*|__)\s*", start)
        )

    def _letters(self, text: str) -> list[str]:
        """Return the known labels that a mention names; an unknown one makes it nobody's."""
        noun = re.compile(_NOUN, re.IGNORECASE)
        letters = _LETTER.findall(noun.sub(" ", text))
        labels = [self._known.get(letter, "") for letter in letters]
        return [*dict.fromkeys(labels)]

    def _sentence(self, sentence: str) -> list[ReviewPoint]:
        # What is in quotation marks is somebody else's; its length is kept, and so are places.
        shown = _unquoted(sentence)
        mentions = [*_LABELS.finditer(shown)]
        if _ONE_OF_TWO.search(shown):
            self._last = None
            return []
        if not mentions:
            return self._nameless(sentence, shown)
        named = {label for mention in mentions for label in self._letters(mention[0])}
        if len(named) == 1:
            [label] = named
            return self._single(sentence, shown, mentions[0], label)
        self._last = None
        return self._clauses(sentence, shown)

    def _nameless(self, sentence: str, shown: str) -> list[ReviewPoint]:
        bare = _SUBJECT_LETTER.match(_JOINT.sub("", shown))
        if bare and bare["letter"] in self._known:
            if self._under and self._under != self._known[bare["letter"]]:
                return []
            if len(set(_LETTER.findall(shown)) & self._known.keys()) == 1:
                self._last = self._known[bare["letter"]]
                return self._point(self._last, sentence)
            return self._clauses(sentence, shown)
        if self._under:
            return self._point(self._under, sentence)
        if self._last and _GOES_ON.match(shown):
            return self._point(self._last, sentence)
        self._last = None
        return []

    def _single(
        self, sentence: str, shown: str, mention: re.Match[str], label: str
    ) -> list[ReviewPoint]:
        """Credit a sentence that names one answer, if that is the one it is about."""
        before = shown[: mention.start()]
        compared = bool(_COMPARED.search(before) or _BESIDE.match(_JOINT.sub("", before)))
        if self._under and label and not before and shown[mention.end() :].startswith(":"):
            self._under = label  # one line may hold several: Response A: fine. Response B: vague.
        if self._under and self._under != label:
            # Under another answer's heading: about that one, if it begins as a remark on it would.
            ours = compared or _GOES_ON.match(shown)
            return self._point(self._under, sentence) if ours and mention.start() else []
        if compared:
            about = self._last if _GOES_ON.match(shown) else None
            return self._point(about, sentence) if about else []
        self._last = label or None
        return self._point(label, sentence)

    def _clauses(self, sentence: str, shown: str) -> list[ReviewPoint]:
        """Credit the clauses of a sentence that names several answers, each to whom it begins with."""
        points: list[ReviewPoint] = []
        subjects: list[str] = []
        for start, end in _spans(shown, _IN_FRONT if _SET_BESIDE.match(shown) else _BOUNDARY):
            clause, said = shown[start:end], sentence[start:end]
            joint = _JOINT.match(clause)
            core = clause[joint.end() :] if joint else clause
            mentions = [*_LABELS.finditer(core)]
            bare = _SUBJECT_LETTER.match(core)
            if _BESIDE.match(core):
                subjects = []
                continue
            if not mentions and not bare:
                goes_on = joint and _RUNS_ON.match(core)
                if not goes_on or len(subjects) != 1:
                    subjects = []
            elif mentions and mentions[0].start() == 0 and len(mentions) == 1:
                subjects = self._letters(mentions[0][0])
            elif bare and not mentions and bare["letter"] in self._known:
                subjects = [self._known[bare["letter"]]]
            else:
                subjects = []
            for label in subjects:
                points += self._point(label, (joint and said[joint.end() :]) or said)
        return points

    def _point(self, label: str, text: str) -> list[ReviewPoint]:
        grade = severity(_unquoted(text))
        if grade is None and self._part == "bad" and _says(text) and not praises(text):
            grade = "medium"
        if not label or grade is None or not _says(text):
            return []
        return [ReviewPoint(label=label, text=_clipped(text.strip(" ,;")), severity=grade)]


def _unquoted(sentence: str) -> str:
    return _QUOTATION.sub(lambda found: '"' + "x" * (len(found[0]) - 2) + '"', sentence)


def _spans(shown: str, boundaries: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = 0
    for boundary in boundaries.finditer(shown):
        if _LABELS.fullmatch(shown, start, boundary.start()) and _AND.match(shown, boundary.end()):
            continue  # Response A and Response B share what follows
        if boundary.start() > start:
            yield start, boundary.start()
        start = boundary.end()
    yield start, len(shown)
