"""A reviewer's ballot: asked for as JSON where an endpoint can, read out of text everywhere.

It ranks answers, scores them where there are criteria, and says what it holds against which. JSON has
points; a review in prose stays prose, and what is below an answer's heading is one point.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, permutations
from typing import cast

from council.calls import object_schema
from council.document.results import ReviewPoint, Stage2Result
from council.reviews import ballot_text
from council.reviews.ballot_json import JsonBallot, Review, all_json_ballots, read_json_ballots
from council.reviews.ballot_text import answers_named, by_letter, plain, read_lines, unwrapped
from council.text import set_apart
from council.text.json_objects import JsonObject, Span, out_of_string

HEADER, SCORES = "FINAL RANKING:", "SCORES:"
WORST, BEST = 1, 10
TERSE_REMARK = 60  # characters
MOST_READ = 20
"""Ballots in JSON that a reply is read for, the last ones."""
ENOUGH_QUOTED = 3
"""Words from which a quotation proves something; a number proves it alone."""

Scored = Mapping[str, Mapping[str, int]]
"""Scores by label and criterion."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """A review's text and the labels it ranks, best first; without labels it isn't counted.

    `scores`: label -> criterion -> 1 to 10, where given. `points` are what it says for and against the
    answers, `None` where its prose has no section with a fault; `cleared` the answers whose sections
    have strengths alone.
    """

    text: str
    ranking: tuple[str, ...]
    scores: Scored = field(default_factory=dict[str, dict[str, int]])
    points: Sequence[ReviewPoint] | None = None
    cleared: Sequence[str] = ()


def ballot_schema(
    labels: Sequence[str], criteria: Sequence[str] = (), *, is_demonstration: bool = False
) -> JsonObject:
    """Return the JSON schema of a ballot over these answers, within OpenAI's strict subset.

    The subset has no `uniqueItems`, so repeated labels are dropped on reading. Each label has its
    critiques, each with its severity and the words of the answer that it is about, or null. The server
    of a demonstration turns the schema into a grammar: remarks have a maximum length and quote nothing,
    the answers are reviewed in their order, and the ranking is one of all permutations.
    """
    label: JsonObject = {"type": "string", "enum": [*labels]}
    remark: JsonObject = {"type": "string"}
    # Several servers refuse bounds of lists; what is missing or twice is seen on reading.
    exactly: JsonObject = {"minItems": len(labels), "maxItems": len(labels)} if is_demonstration else {}
    ranking: JsonObject = {"type": "array", "items": label, **exactly}
    if is_demonstration:
        remark |= {"maxLength": TERSE_REMARK}
        ranking = {"enum": [[*order] for order in permutations(labels)]}
    critique: dict[str, JsonObject] = {
        "text": remark,
        "severity": {"type": "string", "enum": ["high", "medium", "low"]},
    }
    if not is_demonstration:
        critique["quote"] = {"type": ["string", "null"]}
    critiques: JsonObject = {"type": "array", "items": object_schema(**critique)}
    if is_demonstration:
        critiques |= {"minItems": 1, "maxItems": 1}
    under = {"strengths": remark, "critiques": critiques}
    if criteria:
        score: JsonObject = {"type": "integer", "enum": [*range(WORST, BEST + 1)]}
        under["scores"] = object_schema(**dict.fromkeys(criteria, score))
    reviews: JsonObject = {"type": "array", "items": object_schema(label=label, **under), **exactly}
    if is_demonstration:
        each = [object_schema(label={"const": name}, **under) for name in labels]
        reviews = {"type": "array", "prefixItems": each, **exactly}
    return object_schema(reviews=reviews, ranking=ranking)


def labels_schema(labels: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a ranking alone."""
    label: JsonObject = {"type": "string", "enum": [*labels]}
    return object_schema(ranking={"type": "array", "items": label})


def read_ballot(
    text: str,
    labels: Sequence[str],
    criteria: Sequence[str] = (),
    *,
    answers: Mapping[str, str] | None = None,
    question: str = "",
    copied: Iterable[str] = (),
) -> Ballot:
    """Return the ballot in a reply, as JSON, as text, or as both.

    Of the reviewer's own rankings the last one counts, whether an object or a list below FINAL RANKING.
    Somebody else's never does: what also occurs in one of the `answers` (label -> text) or in the
    `question`, or is quoted. Reviews in JSON become review text, and the words around them are dropped;
    what they quote is looked up in the answer that they are about. Other text is kept byte for byte;
    below it comes the ranking of an object, unless a list has the last word. Remarks of JSON that say
    nothing but words of the `copied` texts are left out.
    """
    read_by_label = answers or {}
    body = out_of_string(unwrapped(text, ("markdown", "md")))
    written, prose = _written_ballots(body, labels, [question, *read_by_label.values()])
    listed, line = ballot_text.ranking_at(prose, labels)
    own = _last_to_rank(written)
    scores: Scored = {}
    kept, counted = text, tuple(listed)
    if own is not None:
        ballot, span = own
        said = ballot.without_copies(copied)
        is_listed = listed and (not said.ranking or line >= len(body[: span.end].splitlines()))
        ranking = listed if is_listed else said.ranking
        counted = tuple(ranking) if len(ranking) > 1 else ()
        scores = _scores(said, criteria)
        around = body[: span.start] + body[span.end :]
        if said.has_remarks or _BARE.fullmatch(around):
            points = tuple(_points(said, read_by_label))
            return Ballot(_rendered(said, ranking, scores), counted, scores, points)
        kept = with_ranking(text, counted) if counted and not is_listed else text
    points, cleared = read_sections(prose, labels)
    scores = scores or read_scores(text, labels, criteria)
    return Ballot(kept, counted, scores, points or None, tuple(cleared))


def read_labels(text: str, labels: Sequence[str], *, answers: Collection[str] = ()) -> list[str]:
    """Return the labels in a reply that should be only a ranking: JSON, a list, or one line.

    As in `read_ballot`, an object that occurs in one of the `answers`, or is quoted, doesn't count.
    """
    written, prose = _written_ballots(out_of_string(text), labels, answers)
    if (own := _last_to_rank(written)) and len(own[0].ranking) > 1:
        return own[0].ranking
    return ballot_text.listed_ranking(unwrapped(prose, ("", "json")), labels)


def with_ranking(text: str, ranking: Sequence[str]) -> str:
    """Return a review with a ranking, which came separately, at its end."""
    return "\n".join([text.rstrip(), "", *_ranking_text(ranking)])


def with_points(review: Stage2Result, labels: Collection[str]) -> Stage2Result:
    """Return a review with its points; that of an older document is read here.

    Older documents have the objections of a JSON ballot as `critiques`, and all else in the text alone.
    """
    if review.points is not None:
        return review
    if review.critiques is None:
        points, cleared = read_sections(review.ranking, labels)
        return review.model_copy(update={"points": points or None, "cleared": cleared})
    objection = partial(ReviewPoint, kind="objection", source="structured")
    points = [objection(**dict(each)) for each in review.critiques if each.label in labels]
    return review.model_copy(update={"points": points})


# JSON ---------------------------------------------------------------------------------------------


_Written = tuple[JsonBallot, Span]
"""A ballot in JSON, and where in the reply it is."""


def _last_to_rank(written: Sequence[_Written]) -> _Written | None:
    """Return the last ballot that ranks, with the reviews of another one if it has none."""
    ranked = next((each for each in written if len(each[0].ranking) > 1), None)
    reviewed = next((each for each in written if each[0].reviews and each != ranked), None)
    if ranked and reviewed and not ranked[0].reviews:
        return ranked[0].model_copy(update={"reviews": reviewed[0].reviews}), ranked[1]
    return ranked or reviewed


def _written_ballots(
    text: str, labels: Collection[str], answers: Collection[str]
) -> tuple[list[_Written], str]:
    """Return the reviewer's own ballots in JSON, the last one first.

    With them comes the text without any ballot in JSON, whosever it is, line for line.
    """
    label_of = partial(ballot_text.label_named, known=by_letter(labels))
    read = ((ballot.in_labels(label_of), span) for ballot, span in read_json_ballots(text))
    ballots = [*islice(((each, span) for each, span in read if each.ranking or each.reviews), MOST_READ)]
    if not ballots:
        return [], text
    every = (each for answer in answers for each in all_json_ballots(answer))
    theirs = {each.in_labels(label_of).model_dump_json() for each in every}
    squeezed = [*map(_squeezed, answers)]
    lines, own, prose = read_lines(text), list[_Written](), text
    for ballot, span in ballots:
        said = text[span.start : span.end]
        # An answer may keep its object from being found, but not from being the same text.
        is_theirs = ballot.model_dump_json() in theirs or any(
            _squeezed(said) in each for each in squeezed
        )
        if not is_theirs and not ballot_text.is_quoted(text, span.start, lines):
            own.append((ballot, span))
        if span.closed:  # what isn't may have swallowed a list below it
            prose = prose[: span.start] + re.sub(r"\S", " ", said) + prose[span.end :]
    return own, prose


def _squeezed(text: str) -> str:
    return "".join(text.split())


_BARE = re.compile(r"[\W_]*(?:json[\W_]*)?", re.IGNORECASE)
"""What may be around an object that is the whole reply."""


def _points(ballot: JsonBallot, answers: Mapping[str, str]) -> Iterator[ReviewPoint]:
    for review in ballot.reviews:
        point = partial(ReviewPoint, label=review.label, source="structured")
        quotes = any(critique.quote for critique in review.critiques)
        answer = _quotable(answers[review.label]) if quotes and review.label in answers else None
        if praise := " ".join(review.strengths.split()):
            yield point(kind="strength", text=praise)
        for critique in review.critiques:
            if text := " ".join(critique.text.split()):
                quote = " ".join(critique.quote.split()) or None
                found = _is_there(quote, answer) if quote and answer is not None else None
                yield point(
                    kind="objection", text=text, severity=critique.severity, quote=quote, found=found
                )


def _rendered(ballot: JsonBallot, ranking: Sequence[str], scores: Scored) -> str:
    parts = [
        [each.label, *_remark("Strengths", each.strengths), *_remark("Weaknesses", _against(each))]
        for each in ballot.reviews
    ]
    if scores:
        parts.append(scores_text(scores))
    if ranking:
        parts.append(_ranking_text(ranking))
    return "\n\n".join(map("\n".join, parts))


def _against(review: Review) -> str:
    points: list[str] = []
    for point in review.critiques:
        grade = f"[{point.severity}] " if point.severity else ""
        quote = f" (\u201c{' '.join(point.quote.split())}\u201d)" if point.quote.strip() else ""
        if text := point.text.strip():
            points.append(f"{grade}{text}{quote}")
    return "\n".join(points)


def _remark(title: str, text: str) -> list[str]:
    """Return a remark of which no line can be read as a ballot or as the header of one."""
    lines = text.strip().splitlines()
    if not lines:
        return []
    line = f"{title}: {lines[0]}"
    if len(lines) == 1 and not plain(line).endswith(":"):
        return [line]
    return [f"{title}:", *(f"> {line}" for line in lines)]


def _ranking_text(ranking: Iterable[str]) -> list[str]:
    return [HEADER, *(f"{place}. {label}" for place, label in enumerate(ranking, start=1))]


# Scores -------------------------------------------------------------------------------------------

_ROW = re.compile(r"\W*(?:response|answer) +([a-z])(?![\w'])[\s:=.-]*(.*)", re.IGNORECASE)
_ITEM = re.compile(
    # Possessive, and with a name that ends before its separators, so nothing is tried twice.
    r"\W*+(\w(?:.*?[^\s:=-])?)[\s:=-]++(\d{1,2})(?:\s*(?:/|out of)\s*10)?(?:\s*\([^()]*\))?[\s.]*"
)


def scores_text(scores: Scored) -> list[str]:
    """Return scores in the form that reviewers are asked for, one answer per line."""
    rows = ((label, given.items()) for label, given in sorted(scores.items()))
    return [
        SCORES,
        *(f"{label}: {', '.join(f'{name} {score}' for name, score in given)}" for label, given in rows),
    ]


def read_scores(text: str, labels: Collection[str], criteria: Sequence[str]) -> Scored:
    """Return the scores in the rows below SCORES, by label and criterion; the last block counts."""
    known = by_letter(labels)
    scores: dict[str, dict[str, int]] = {}
    is_block = False
    for line in read_lines(unwrapped(text, ("markdown", "md"))) if criteria else ():
        row = _ROW.fullmatch(line.text)
        is_own = not line.block and not any(map(ballot_text.is_attributed, line.before))
        if is_own and line.text.strip(" #:=-").upper() == SCORES.rstrip(":"):
            is_block, scores = True, {}
        elif is_block and row:
            items = filter(None, map(_ITEM.fullmatch, re.split("[,;]", row[2])))
            given = scores_of({item[1]: int(item[2]) for item in items}, criteria)
            if given and row[1].upper() in known:
                scores.setdefault(known[row[1].upper()], given)
        elif line.text:
            is_block = False
    return scores


def scores_of(given: object, criteria: Sequence[str]) -> dict[str, int]:
    """Return an answer's scores: whole numbers from 1 to 10, by known criteria."""
    found = cast("dict[object, object]", given) if isinstance(given, dict) else {}
    known = {_key(name): name for name in criteria}
    scores: dict[str, int] = {}
    for name, score in found.items():
        criterion = known.get(_key(str(name)))
        if criterion and type(score) is int and WORST <= score <= BEST:
            scores.setdefault(criterion, score)
    return scores


def _scores(ballot: JsonBallot, criteria: Sequence[str]) -> Scored:
    """Return the scores beside the reviews, or rather those in them."""
    given = [*ballot.scores.items(), *((each.label, each.scores) for each in reversed(ballot.reviews))]
    return {label: scores for label, said in given if (scores := scores_of(said, criteria))}


def _key(name: str) -> str:
    return " ".join(plain(name).casefold().split())


# Prose --------------------------------------------------------------------------------------------

_PRAISE = (
    "strengths?|pros?|positives?|advantages?|merits?|good|right|correct|stärken?|vorteile?|points forts"
    "|puntos fuertes|fortalezas|punti di forza|pontos fortes|优点|优势"
)
_FAULT = (
    "weakness(?:es)?|weak|cons?|negatives?|wrong|dangerous|misleading|missing|unclear|issues?|problems?"
    "|flaws?|concerns?|critiques?|criticisms?|objections?|improvements?|suggestions?|schwächen?|nachteile?"
    "|points faibles|debilidades|punti deboli|pontos fracos|缺点|不足"
)
_PART = re.compile(
    rf"[\s#*_+\u2022-]*(?:key |main )?(?:(?P<praise>{_PRAISE})|{_FAULT})(?:,? (?:and |or )?\w+){{0,2}}"
    r"(?: \([^()]*\))?[*_\s]*(?:[:\uff1a][*_\s]*(?P<rest>.*)|$)",
    re.IGNORECASE,
)
"""A heading of a form, with what it says on its own line."""
_HEADING = re.compile(
    r"(?:[^\w\"'|]|_)*(?:\d{1,2}[.)][\s*_]*)?(?:(?P<lead>\w+) (?:of|for) )?(?:response|answer) "
    r"(?P<letter>[a-z])(?![a-z\d'])[*_\])]*\s*(?:\([^()]*\)\s*)?[*_]*"
    r"(?:[#\s]*$|[:\uff1a][*_\s]*|[-\u2013\u2014]\s+)(?P<rest>.*)",
    re.IGNORECASE,
)
_PIECES = re.compile(
    r"(?<=[^\W\d][.;!|])\s+(?=\W{0,3}(?:strengths|weaknesses|(?:response|answer) [a-z])\W{0,3}:)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:(?:[-+\u2022]|\*(?!\*)|\(?\d{1,2}[.)])\s+)*(.*)")
_BOLD = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")
_BALLOT = re.compile(r".{0,40}\b(?:ranking|scores)\W*(?:\([^()]*\)\W*)?", re.IGNORECASE)
_NONE = {"", "none", "n/a", "nothing"}
_BOLD_LEVEL, _PLAIN_LEVEL = 7, 8


@dataclass(slots=True)
class _Section:
    """What is below an answer's heading; without a letter, lines are below no such heading.

    `level` is the heading's, 1 the highest. `is_form`: it has headings of a form, of which those of
    strengths are left out. `sure` counts the faults up to where a conclusion may begin.
    """

    letter: str = ""
    level: int = _PLAIN_LEVEL
    is_form: bool = False
    is_praise: bool = False
    is_inline: bool = False
    has_words: bool = False
    faults: list[str] = field(default_factory=list[str])
    sure: int | None = None

    def add(self, line: str) -> None:
        part, bare = _PART.match(line), _BULLET.match(line)
        if part:
            self.is_form, self.is_praise = True, bool(part["praise"])
        if said := ((part["rest"] or "") if part else bare[1] if bare else "").strip():
            self.has_words = True
            if not self.is_praise:
                self.faults.append(said)


def read_sections(text: str, labels: Collection[str]) -> tuple[list[ReviewPoint], list[str]]:
    """Return what a review in prose says of each answer below its heading, each as one objection.

    Of a section in the form that is asked for, this is what is below its headings of weaknesses. Beside
    them come the labels whose sections have only strengths. Quotations, code and tables are left out.
    """
    known = by_letter(labels)
    faults, cleared = defaultdict[str, list[str]](list), list[str]()
    sections = [each for each in _sections(text) if each.letter]
    for section in sections:
        said = " ".join(section.faults[: section.sure if section is sections[-1] else None])
        label = known.get(section.letter)
        if label and section.is_form and said.strip(" .*_-").lower() in _NONE:
            cleared.append(label)
        elif label and said:
            faults[label].append(said)
    objection = partial(ReviewPoint, kind="objection", source="section")
    points = [objection(label=label, text=" ".join(said)) for label, said in faults.items()]
    return points, [label for label in dict.fromkeys(cleared) if label not in faults]


def _sections(text: str) -> list[_Section]:
    body = unwrapped(text, ("", "markdown", "md"))
    sections, outer, is_gap, is_ballot = [_Section()], False, False, False
    for whole, line in zip(body.splitlines(), read_lines(body), strict=True):
        for raw in (
            _PIECES.split(whole) if line.text and not line.block and whole[:1] not in ">|" else ()
        ):
            section, (level, letter, rest) = sections[-1], _heading(raw)
            is_title = level < _PLAIN_LEVEL
            if letter and (is_title or not is_ballot):
                is_praise = outer or rest.startswith("+")
                sections.append(_Section(letter, level, is_praise, is_praise))
                sections[-1].add(rest.removeprefix("+"))
                sections[-1].is_inline = sections[-1].has_words
                is_ballot = False
            elif _is_end(raw, section, level, is_gap=is_gap):
                part = _PART.match(raw)
                outer, is_ballot = bool(part and part["praise"]), _begins_ballot(raw)
                sections.append(_Section())
            else:
                if is_gap and _is_paragraph(raw) and section.has_words and section.sure is None:
                    section.sure = len(section.faults)
                section.add(raw)
        is_gap = not whole.strip()
        if _RULE.fullmatch(whole):
            sections.append(_Section())
    return sections


def _heading(raw: str) -> tuple[int, str, str]:
    """Return a line's level as a heading, the letter of the answer that it names as one, and its rest.

    A rest that belongs to a heading of strengths begins with a plus.
    """
    level = len(raw) - len(raw.lstrip("#")) or (_BOLD_LEVEL if _BOLD.fullmatch(raw) else _PLAIN_LEVEL)
    if found := _HEADING.match(raw):
        lead = _PART.match(found["lead"] or "")
        is_title = level < _BOLD_LEVEL and not _PART.match(found["rest"])
        sign = "+" if lead and lead["praise"] else ""
        return level, found["letter"].upper(), sign + ("" if is_title else found["rest"])
    named = answers_named(plain(raw)) if level < _PLAIN_LEVEL and not _PART.match(raw) else ()
    return level, next(iter(named)) if len(named) == 1 else "", ""


def _is_end(raw: str, section: _Section, level: int, *, is_gap: bool) -> bool:
    if _begins_ballot(raw):
        return True
    if level < _PLAIN_LEVEL:
        is_part = section.letter and _PART.match(raw) and level >= section.level
        return level <= section.level and not is_part
    is_other = section.is_inline or answers_named(plain(raw)) - {section.letter}
    return is_gap and _is_paragraph(raw) and bool(is_other)


def _is_paragraph(raw: str) -> bool:
    return raw[:1].isalpha() and not _PART.match(raw)


def _begins_ballot(raw: str) -> bool:
    return ballot_text.begins_ranking(raw) or bool(_BALLOT.fullmatch(plain(raw)))


# Quotations ---------------------------------------------------------------------------------------

_MARKUP = re.compile(r"^[ \t]*(?:[-+>][ \t]+)+|!?\[([^\[\]\n]*)\]\([^()\s]*\)|[*_`~#\\]", re.MULTILINE)
_QUOTES = (
    "\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
)
_NO_QUOTES = str.maketrans({**dict.fromkeys(_QUOTES), "|": " "})
_OMITTED = re.compile(r"[\[(]?\.{3,}[\])]?")
_BEGIN, _END = r"(?<![0-9a-z])(?<!\d[.,])", r"(?![0-9a-z]|[.,]\d)"


def _is_there(quote: str, answer: str) -> bool | None:
    """Return whether a quotation is in an answer that `_quotable` gave; `None` if it says too little.

    Words may be left out with dots: what is on either side is looked up in order.
    """
    said = _quotable(quote)
    pieces = [piece for each in _OMITTED.split(said) if (piece := each.strip(" .,;:!?()"))]
    at = 0
    for piece in pieces:
        begin = _BEGIN if piece[0].isascii() and piece[0].isalnum() else ""
        end = _END if piece[-1].isascii() and piece[-1].isalnum() else ""
        found = re.compile(f"{begin}{re.escape(piece)}{end}").search(answer, at)
        if found is None:
            return False
        at = found.end()
    words = sum(len(re.findall(r"\w+", piece)) for piece in pieces)
    return True if words >= ENOUGH_QUOTED or any(map(str.isdigit, said)) else None


def _quotable(text: str) -> str:
    """Return a text as quotations are looked up in it: words alone, in small letters.

    Spaces, quotation marks, Markdown and what NFKC makes equal don't count.
    """
    bare = _MARKUP.sub(r"\1", unicodedata.normalize("NFKC", text)).translate(_NO_QUOTES)
    return " ".join(set_apart(bare, " ").casefold().split())
