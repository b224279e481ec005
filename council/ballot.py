"""A reviewer's ballot: asked for as JSON where an endpoint can, read out of text everywhere.

Where there are criteria it holds scores, too: a whole number for every answer and criterion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from pydantic import BaseModel
from pydantic_core import from_json

from council.ballot_text import by_letter, label_named, parse_ranking, plain, unwrapped
from council.calls import JsonObject
from council.score_text import BEST, WORST, Scored, parse_scores, scores_of, scores_text

TERSE_REMARK = 60  # characters


@dataclass(frozen=True, slots=True)
class Ballot:
    """A review's text and the labels it ranks, best first; no labels where it isn't counted.

    `scores`: label -> criterion -> 1 to 10, as far as they were given.
    """

    text: str
    ranking: tuple[str, ...]
    scores: Scored = field(default_factory=dict[str, dict[str, int]])


class _Review(BaseModel):
    label: str
    strengths: str = ""
    weaknesses: str = ""
    scores: object = None


class _JsonBallot(BaseModel):
    reviews: list[_Review]
    ranking: list[str] = []


def ballot_schema(
    labels: Sequence[str], criteria: Sequence[str] = (), *, terse: bool = False
) -> JsonObject:
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
    if criteria:
        score: JsonObject = {"type": "integer", "enum": [*range(WORST, BEST + 1)]}
        scores = _object(**dict.fromkeys(criteria, score))
        review = _object(label=label, strengths=remark, weaknesses=remark, scores=scores)
    return _object(reviews={"type": "array", "items": review, **exactly}, ranking=ranking)


def read_ballot(text: str, labels: Sequence[str], criteria: Sequence[str] = ()) -> Ballot:
    """Read a review: a JSON ballot becomes review text, any other text stays byte for byte."""
    bare = unwrapped(text, ("", "json"))
    try:
        # A ballot that was cut off counts as far as it goes.
        votes = _JsonBallot.model_validate(from_json(bare, allow_partial=True))
    except ValueError:
        ranking = parse_ranking(text, labels)
        return Ballot(text, tuple(ranking), parse_scores(text, labels, criteria))
    known = by_letter(labels)
    scores = {
        label: given
        for review in reversed(votes.reviews)
        if (label := label_named(review.label, known)) and (given := scores_of(review.scores, criteria))
    }
    rendered = _rendered(votes, known, scores)
    return Ballot(rendered, tuple(parse_ranking(rendered, labels)), scores)


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _rendered(votes: _JsonBallot, known: Mapping[str, str], scores: Scored) -> str:
    parts = [
        [label, *_remark("Strengths", review.strengths), *_remark("Weaknesses", review.weaknesses)]
        for review in votes.reviews
        if (label := label_named(review.label, known))
    ]
    if scores:
        parts.append(scores_text(scores))
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
