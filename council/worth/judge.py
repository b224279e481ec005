"""The judge: one reader of anonymous answers says where they differ and which is better.

It is the profile's `judge` and never learns who wrote what. Its reply is read leniently but never
guessed, and what can't be read after a second request is a `Failure` of the cause `malformed`.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast

from council.calls import AskAgain, Reply, object_schema
from council.cancel import Cancellation
from council.document.results import Comparison, DifferingPoint
from council.errors import Failure
from council.offload import offload
from council.profile import Member
from council.prompts.prompts import COMPARE_AGAIN
from council.reviews.ballot_text import by_letter, label_named
from council.session import Request, Session
from council.text import clip
from council.text.json_objects import JsonObject, objects, out_of_string

LONGEST_POINT = 400  # characters
TIE = "tie"
UNREAD = Failure(cause="malformed")

Labelled = Sequence[tuple[str, str]]
"""Answers under their labels: `Response A`, and what it says."""
ReadComparison = Comparison | AskAgain[Comparison | Failure]


def comparison_schema(labels: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a comparison, within OpenAI's strict subset."""
    label: JsonObject = {"type": "string", "enum": [*labels]}
    point = object_schema(point={"type": "string"}, checkable={"type": "boolean"})
    # Reasons come first: a model that has written its verdict would only defend it.
    return object_schema(
        differences={"type": "array", "items": point},
        recommendation={"type": "string", "enum": ["same", "different", "unsure"]},
        steering={"type": "array", "items": label},
        better={"type": "string", "enum": [*labels, TIE]},
    )


async def compare(
    session: Session, step: str, judge: Member, answers: Labelled, cancellation: Cancellation
) -> Comparison | Failure:
    """Ask the judge once about labelled answers; `step` is the call's key in the journal."""
    labels = [label for label, _ in answers]
    texts = [session.brief.question, *(text for _, text in answers)]

    async def read(reply: Reply) -> ReadComparison:
        size = len(reply.text) + sum(map(len, texts))
        found = await offload(size, read_comparison, reply.text, labels, texts)
        return found or AskAgain(COMPARE_AGAIN, UNREAD)

    request = Request(
        prompt=partial(session.prompts.comparison, judge, answers), schema=comparison_schema(labels)
    )
    return await session.ask_beside(step, judge, request, read, cancellation)


def read_comparison(text: str, labels: Sequence[str], texts: Sequence[str] = ()) -> Comparison | None:
    """Return the comparison in a reply, `None` where there is none that can be read.

    It is the last whole object that has differences and a recommendation. An object that also occurs
    in one of the `texts` is an answer's, not the judge's.
    """
    body = out_of_string(text)
    for found in objects(body):
        said = body[found.span.start : found.span.end]
        if found.span.closed and not any(said in other for other in texts):
            fields = {name.strip().casefold(): value for name, value in found.fields.items()}
            if comparison := _read(fields, labels):
                return comparison
    return None


def _read(fields: JsonObject, labels: Sequence[str]) -> Comparison | None:
    differences = fields.get("differences", fields.get("points"))
    if not isinstance(differences, list) or "recommendation" not in fields:
        return None
    known, better = by_letter(labels), fields.get("better")
    named = label_named(better, known) if isinstance(better, str) else None
    is_tie = isinstance(better, str) and better.strip().casefold() in _TIES
    if named is None and not is_tie and "better" in fields:
        return None
    return Comparison(
        same=_same(fields["recommendation"]),
        points=tuple(filter(None, map(_point, cast("list[object]", differences)))),
        better=named,
        steering=tuple(_labels(fields.get("steering"), known)),
    )


def _same(value: object) -> bool | None:
    word = value.strip().strip(".").casefold() if isinstance(value, str) else value
    if word is True or word in _SAME:
        return True
    return False if word is False or word in _DIFFERENT else None


def _point(value: object) -> DifferingPoint | None:
    """Read one difference, however it is written: none is dropped because it can't be read."""
    if isinstance(value, dict):
        fields = {name.casefold(): said for name, said in cast("JsonObject", value).items()}
        words = next((fields[name] for name in _POINT if isinstance(fields.get(name), str)), None)
        checkable = fields.get("checkable") in (True, "true", "yes")
        text = words if isinstance(words, str) else " ".join(map(str, fields.values()))
    else:
        text, checkable = str(value or ""), False
    text = " ".join(text.split())
    return DifferingPoint(text=clip(text, LONGEST_POINT), checkable=checkable) if text else None


def _labels(value: object, known: dict[str, str]) -> list[str]:
    """Return the labels in a list; where names can't be read, all: somebody was reported."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value] if value else []
    names = [each for each in listed if str(each).strip().casefold() not in _NONE]
    found = [label_named(each, known) if isinstance(each, str) else None for each in names]
    return [*known.values()] if None in found else [*dict.fromkeys(filter(None, found))]


_POINT = ("point", "text", "difference", "description")
_SAME = ("same", "yes", "true", "agree", "identical")
_DIFFERENT = ("different", "no", "false", "disagree", "differ")
_TIES = (TIE, "equal", "none", "neither", "both")
_NONE = ("", "none", "no", "n/a", "-")
