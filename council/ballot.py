"""A reviewer's ballot: asked for as JSON where an endpoint can, read out of text everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from pydantic import BaseModel
from pydantic_core import from_json

from council.ballot_text import by_letter, label_named, parse_ranking, plain, unwrapped
from council.calls import JsonObject

TERSE_REMARK = 60  # characters


@dataclass(frozen=True, slots=True)
class Ballot:
    """A review's text and the labels it ranks, best first; no labels where it isn't counted."""

    text: str
    ranking: tuple[str, ...]


class _Review(BaseModel):
    label: str
    strengths: str = ""
    weaknesses: str = ""


class _JsonBallot(BaseModel):
    reviews: list[_Review]
    ranking: list[str] = []


def ballot_schema(labels: Sequence[str], *, terse: bool = False) -> JsonObject:
    """Give the JSON schema of a ballot over these answers, within OpenAI's strict subset.

    The subset knows no `uniqueItems`: that each label comes once is checked when it is read. A
    `terse` schema is for small models whose server makes a grammar of it: remarks have an end, and
    the ranking is one of all orders.
    """
    label: JsonObject = {"type": "string", "enum": [*labels]}
    remark: JsonObject = {"type": "string"}
    exactly: JsonObject = {"minItems": len(labels), "maxItems": len(labels)}
    ranking: JsonObject = {"type": "array", "items": label, **exactly}
    if terse:
        remark |= {"maxLength": TERSE_REMARK}
        ranking = {"enum": [[*order] for order in permutations(labels)]}
    review = _object(label=label, strengths=remark, weaknesses=remark)
    return _object(reviews={"type": "array", "items": review, **exactly}, ranking=ranking)


def read_ballot(text: str, labels: Sequence[str]) -> Ballot:
    """Read a review: a JSON ballot becomes review text, any other text stays byte for byte."""
    bare = unwrapped(text, ("", "json"))
    try:
        # A ballot that was cut off counts as far as it goes.
        votes = _JsonBallot.model_validate(from_json(bare, allow_partial=True))
    except ValueError:
        return Ballot(text, tuple(parse_ranking(text, labels)))
    rendered = _rendered(votes, by_letter(labels))
    return Ballot(rendered, tuple(parse_ranking(rendered, labels)))


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _rendered(votes: _JsonBallot, known: Mapping[str, str]) -> str:
    parts = [
        [label, *_remark("Strengths", review.strengths), *_remark("Weaknesses", review.weaknesses)]
        for review in votes.reviews
        if (label := label_named(review.label, known))
    ]
    ranking = dict.fromkeys(label for name in votes.ranking if (label := label_named(name, known)))
    listed = [f"{place}. {label}" for place, label in enumerate(ranking, start=1)]
    if listed:
        parts.append(["FINAL RANKING:", *listed])
    return "\n\n".join(map("\n".join, parts))


def _remark(title: str, text: str) -> list[str]:
    """Write a remark so that no line of it can pass for a ballot or announce one."""
    lines = text.strip().splitlines()
    if not lines:
        return []
    line = f"{title}: {lines[0]}"
    if len(lines) == 1 and not plain(line).endswith(":"):
        return [line]
    return [f"{title}:", *(f"> {line}" for line in lines)]
