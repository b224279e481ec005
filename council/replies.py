"""An author's replies to the objections to its answer: the form, and how it is read.

The form: for each objection a line `1. holds: …` or `1. doesn't hold: …`, the run's mark alone on a
line, then `KEEP` or the corrected answer. Where structured output is supported, the same as JSON.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import orjson

from council.calls import object_schema
from council.document.results import GRADES, CritiqueItem, ObjectionReply, Severity, Stage2Result
from council.text import clip
from council.text.fence import stripped
from council.text.json_objects import JsonObject, as_object, objects

MOST_OBJECTIONS = 30
"""How many objections an author is asked to answer, the gravest."""
LONGEST_REASON = 600
"""Characters of a reason; what is longer is shortened."""

_LINE = re.compile(
    r"[\W_]*(?:objection\W*)?(?P<number>\d{1,3})\b[\W_]*(?:it\s+)?(?P<verdict>holds|does(?:\s*not|n\W?t)\s+hold)\b"
    r"[*_`]*[ \t]*[:.,;\u2013\u2014-]*[*_]*[ \t]*(?P<reason>.*)",
    re.IGNORECASE,
)
_DECORATION = r"[ \t\[\](){}<>*_=#`~:.|-]*"
_KEEP = re.compile(
    r"[\W_]*(?:(?i:keep)[\W_]*\Z|KEEP\b(?=[*_`]*[ \t]*(?:$|[:.\u2013\u2014-])))", re.MULTILINE
)
_BLOCK = re.compile(r"\s*(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(?P<inner>.*)\n[ \t]*\1\s*", re.DOTALL)


class PeerObjection(NamedTuple):
    """What a critic holds against an answer; `found` says whether the answer has the words it quotes."""

    critic: str
    text: str
    severity: Severity | None = None
    quote: str | None = None
    found: bool | None = None


class AuthorReply(NamedTuple):
    """A reply in the form: by number, whether the objection holds and why; the answer below, if any."""

    verdicts: Mapping[int, tuple[bool, str]]
    answer: str | None


def objections_about(label: str, reviews: Iterable[Stage2Result]) -> list[PeerObjection]:
    """Return what reviews hold against the answer of a label: the gravest first.

    Those that quote what the answer doesn't say come last.
    """
    said = [
        PeerObjection(review.model, point.text, point.severity, point.quote, point.found)
        for review in reviews
        for point in review.points or ()
        if point.label == label and point.kind == "objection"
    ]
    said.sort(key=lambda each: (each.found is False, GRADES.index(each.severity or "medium")))
    return said[:MOST_OBJECTIONS]


def handed_over(
    points: Iterable[CritiqueItem], objections: Sequence[PeerObjection]
) -> list[PeerObjection]:
    """Return the points that are handed over in place of reviews, with what is known of each."""
    known = {(each.critic, each.text): each for each in objections}
    return [
        known.get((point.source_model, point.critique_text))
        or PeerObjection(point.source_model, point.critique_text, point.severity)
        for point in points
    ]


def listed(objections: Iterable[PeerObjection]) -> Iterator[str]:
    """Number objections as their author reads them, without names: it shan't count who agrees."""
    for number, each in enumerate(objections, 1):
        grade = f"[{each.severity}] " if each.severity else ""
        quote = ""
        if each.found is False:
            quote = f" (It quotes words that aren't in your answer: \u201c{each.quote}\u201d)"
        elif each.quote:
            quote = f" (About your words \u201c{each.quote}\u201d)"
        yield f"{number}. {grade}{' '.join(each.text.split())}{quote}"


def reply_schema(answer: JsonObject | None) -> JsonObject:
    """Return the JSON schema of a reply with this form of answer, or with text.

    It is within OpenAI's strict subset.
    """
    whole: JsonObject = {"type": ["string", "null"]}
    if answer:
        whole = {"anyOf": [answer, {"type": "null"}]}
    reply = object_schema(
        objection={"type": "integer"}, reason={"type": "string"}, holds={"type": "boolean"}
    )
    return object_schema(replies={"type": "array", "items": reply}, answer=whole)


def read_replies(text: str, mark: str, count: int, ours: str = "") -> AuthorReply | None:
    """Read a reply to `count` objections; `None` if it isn't in the form.

    Lines whose reason only repeats `ours`, the words of the prompt, don't count. Without an objection
    an author may raise some itself, so none is missing.
    """
    if block := _BLOCK.fullmatch(text):
        text = block["inner"]
    marked = re.search(rf"^{_DECORATION}{re.escape(mark)}{_DECORATION}$", text, re.MULTILINE)
    read = _read_lines(text, marked.span(), mark) if marked else _read_json(text)
    if read is None:
        return None
    known = " ".join(ours.split()).casefold()
    verdicts = {
        number: (holds, clip(reason, LONGEST_REASON))
        for number, (holds, reason) in read.verdicts.items()
        if 1 <= number <= (count or MOST_OBJECTIONS)
        and not (reason.count(" ") > 1 and reason.casefold() in known)
    }
    return AuthorReply(verdicts, read.answer) if verdicts or not count else None


def named(author: str, objections: Sequence[PeerObjection], read: AuthorReply) -> list[ObjectionReply]:
    """Return an author's replies with the objections that they are to."""
    if not objections:
        found = (reason for holds, reason in read.verdicts.values() if holds and reason)
        return [ObjectionReply(critic=author, objection=each, holds=True) for each in found]
    return [
        ObjectionReply(critic=each.critic, objection=each.text, holds=verdict[0], reason=verdict[1])
        for number, each in enumerate(objections, 1)
        if (verdict := read.verdicts.get(number))
    ]


def _read_lines(text: str, at: tuple[int, int], mark: str) -> AuthorReply:
    verdicts = dict[int, tuple[bool, str]]()
    number = 0
    for line in text[: at[0]].splitlines():
        if found := _LINE.match(line):
            number = int(found["number"])
            verdicts[number] = found["verdict"].casefold() == "holds", _bare(found["reason"])
        elif number and line.strip():  # a reason that goes on in a further line
            holds, reason = verdicts[number]
            verdicts[number] = holds, f"{reason} {line.strip()}".strip()
    answer = stripped(mark, text[at[1] :]).strip()
    return AuthorReply(
        {number: (holds, stripped(mark, reason)) for number, (holds, reason) in verdicts.items()},
        None if _KEEP.match(answer) or not answer else answer,
    )


def _bare(reason: str) -> str:
    """Return a reason without what encloses its whole line, or a placeholder."""
    reason = reason.strip(" <>")
    return reason.removesuffix("**") if reason.count("**") % 2 else reason


def _read_json(text: str) -> AuthorReply | None:
    fields = next((each.fields for each in objects(text) if "replies" in each.fields), None)
    if fields is None or not isinstance(fields["replies"], list):
        return None
    verdicts = dict[int, tuple[bool, str]]()
    for place, each in enumerate(map(as_object, cast("list[object]", fields["replies"])), 1):
        number = str(each.get("objection", place)).strip()
        holds = str(each.get("holds")).strip().casefold() in ("true", "holds", "yes")
        if number.isdecimal() and "holds" in each:
            verdicts[int(number)] = holds, " ".join(str(each.get("reason") or "").split())
    if any(holds for holds, _ in verdicts.values()) and "answer" not in fields:
        return None  # cut off before it
    answer = fields.get("answer")
    text = orjson.dumps(answer).decode() if isinstance(answer, dict) else str(answer or "").strip()
    return AuthorReply(verdicts, None if _KEEP.match(text) or not text else text)
