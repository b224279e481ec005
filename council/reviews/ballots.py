"""A reviewer's ballot: asked for as JSON where an endpoint can, read out of text everywhere.

With criteria it has scores, too: a whole number for every answer and criterion.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from council.calls import JsonObject
from council.document.results import ReviewPoint
from council.reviews.ballot_json import JsonBallot, Review, read_json_ballot, read_names
from council.reviews.ballot_text import (
    by_letter,
    label_named,
    opening_labels,
    parse_ranking,
    plain,
    unwrapped,
)
from council.reviews.critique_text import points_in_remark
from council.reviews.score_text import BEST, WORST, Scored, parse_scores, scores_of, scores_text

HEADER = "FINAL RANKING:"
TERSE_REMARK = 60  # characters


@dataclass(frozen=True, slots=True)
class Ballot:
    """A review's text and the labels it ranks, best first; without labels it isn't counted.

    `scores`: label -> criterion -> 1 to 10, where given. `critiques` are the points of a JSON ballot,
    `None` where only the text has them.
    """

    text: str
    ranking: tuple[str, ...]
    scores: Scored = field(default_factory=dict[str, dict[str, int]])
    critiques: tuple[ReviewPoint, ...] | None = None


def ballot_schema(
    labels: Sequence[str], criteria: Sequence[str] = (), *, terse: bool = False
) -> JsonObject:
    """Return the JSON schema of a ballot over these answers, within OpenAI's strict subset.

    The subset has no `uniqueItems`, so repeated labels are dropped on reading. A `terse` schema is for
    small models whose server turns it into a grammar: remarks have a maximum length, the answers are
    reviewed in their order, and the ranking is one of all permutations. Each label has its critiques,
    each with its severity.
    """
    label: JsonObject = {"type": "string", "enum": [*labels]}
    remark: JsonObject = {"type": "string"}
    exactly: JsonObject = {"minItems": len(labels), "maxItems": len(labels)}
    ranking: JsonObject = {"type": "array", "items": label, **exactly}
    if terse:
        remark |= {"maxLength": TERSE_REMARK}
        ranking = {"enum": [[*order] for order in permutations(labels)]}
    critique = _object(text=remark, severity={"type": "string", "enum": ["high", "medium", "low"]})
    critiques: JsonObject = {"type": "array", "items": critique}
    if terse:
        critiques |= {"minItems": 1, "maxItems": 1}
    under = {"strengths": remark, "critiques": critiques}
    if criteria:
        score: JsonObject = {"type": "integer", "enum": [*range(WORST, BEST + 1)]}
        under["scores"] = _object(**dict.fromkeys(criteria, score))
    reviews: JsonObject = {"type": "array", "items": _object(label=label, **under), **exactly}
    if terse:
        each = [_object(label={"const": name}, **under) for name in labels]
        reviews = {"type": "array", "prefixItems": each, **exactly}
    return _object(reviews=reviews, ranking=ranking)


def read_ballot(
    text: str, labels: Sequence[str], criteria: Sequence[str] = (), *, copied: Iterable[str] = ()
) -> Ballot:
    """Return the ballot in a reply: JSON becomes review text, any other text is kept byte for byte.

    Remarks of JSON that say nothing but words of the `copied` texts are left out.
    """
    known = by_letter(labels)
    ballot = read_json_ballot(unwrapped(text, ("", "json"))).without_copies(copied)
    scores = {
        label: given
        for review in reversed(ballot.reviews)
        if (label := label_named(review.label, known)) and (given := scores_of(review.scores, criteria))
    }
    rendered = _rendered(ballot, known, scores)
    if not rendered:
        ranking = parse_ranking(text, labels)
        return Ballot(text, tuple(ranking), parse_scores(text, labels, criteria))
    points = tuple(_points(ballot, known))
    return Ballot(rendered, tuple(parse_ranking(rendered, labels)), scores, points)


def labels_schema(labels: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a ranking alone."""
    label: JsonObject = {"type": "string", "enum": [*labels]}
    return _object(ranking={"type": "array", "items": label})


def read_labels(text: str, labels: Sequence[str]) -> list[str]:
    """Return the labels in a reply that should be only a ranking: JSON, a list, or one line."""
    named = _ranked(read_names(unwrapped(text, ("", "json"))), by_letter(labels))
    if len(named) > 1:
        return named
    listed = parse_ranking(text, labels) or parse_ranking(f"{HEADER}\n{text}", labels)
    return listed or opening_labels(text, labels)


def with_ranking(text: str, ranking: Sequence[str]) -> str:
    """Return a review with a ranking, which came separately, at its end."""
    return "\n".join([text.rstrip(), "", *ranking_text(ranking)])


def ranking_text(ranking: Iterable[str]) -> list[str]:
    """Return a ranking in the form that reviewers are asked for, one label per line."""
    return [HEADER, *(f"{place}. {label}" for place, label in enumerate(ranking, start=1))]


def _points(ballot: JsonBallot, known: Mapping[str, str]) -> Iterator[ReviewPoint]:
    for review in ballot.reviews:
        label = label_named(review.label, known)
        if label is None:
            continue
        for critique in review.critiques:
            if text := " ".join(critique.text.split()):
                yield ReviewPoint(label=label, text=text, severity=critique.severity)
        yield from points_in_remark(label, review.weaknesses)


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _rendered(ballot: JsonBallot, known: Mapping[str, str], scores: Scored) -> str:
    parts = [
        [label, *_remark("Strengths", review.strengths), *_remark("Weaknesses", _against(review))]
        for review in ballot.reviews
        if (label := label_named(review.label, known))
    ]
    if scores:
        parts.append(scores_text(scores))
    if ranking := _ranked(ballot.ranking, known):
        parts.append(ranking_text(ranking))
    return "\n\n".join(map("\n".join, parts))


def _ranked(names: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return the labels that these names mean; none if most names are unknown."""
    labels = [label_named(name, known) for name in dict.fromkeys(names)]
    ranking = [*dict.fromkeys(filter(None, labels))]
    return ranking if len(ranking) >= labels.count(None) else []


def _against(review: Review) -> str:
    points = [
        f"[{point.severity}] {point.text.strip()}" for point in review.critiques if point.text.strip()
    ]
    return "\n".join([*points, *filter(None, [review.weaknesses.strip()])])


def _remark(title: str, text: str) -> list[str]:
    """Return a remark of which no line can be read as a ballot or as the header of one."""
    lines = text.strip().splitlines()
    if not lines:
        return []
    line = f"{title}: {lines[0]}"
    if len(lines) == 1 and not plain(line).endswith(":"):
        return [line]
    return [f"{title}:", *(f"> {line}" for line in lines)]
