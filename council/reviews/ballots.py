"""A reviewer's ballot: asked for as JSON where an endpoint can, read out of text everywhere.

With criteria it has scores, too: a whole number for every answer and criterion.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, permutations

from council.calls import object_schema
from council.document.results import ReviewPoint
from council.reviews.ballot_json import (
    JsonBallot,
    Review,
    all_json_ballots,
    listed_names,
    read_json_ballots,
)
from council.reviews.ballot_lines import BallotLines, plain, unwrapped
from council.reviews.ballot_text import by_letter, label_named, opening_labels, parse_ranking, ranking_at
from council.reviews.prose import LONGEST_POINT, read_review
from council.reviews.reviewer_lines import LONGEST_LINE, LONGEST_REVIEW, bare, says
from council.reviews.score_text import BEST, WORST, Scored, parse_scores, scores_of, scores_text
from council.text import clip, sentences
from council.text.json_objects import JsonObject, Span, out_of_string

HEADER = "FINAL RANKING:"
TERSE_REMARK = 60  # characters
MOST_READ = 20
"""Ballots in JSON that a reply is read for, the last ones."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """A review's text and the labels it ranks, best first; without labels it isn't counted.

    `scores`: label -> criterion -> 1 to 10, where given. `points` are what it says for and against the
    answers, `None` where its prose doesn't tell; `cleared` the answers whose sections are praise alone.
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
    critiques, each with its severity. The server of a demonstration turns the schema into a grammar:
    remarks have a maximum length, the answers are reviewed in their order, and the ranking is one of
    all permutations.
    """
    label: JsonObject = {"type": "string", "enum": [*labels]}
    remark: JsonObject = {"type": "string"}
    # Several servers refuse bounds of lists; what is missing or twice is seen on reading.
    exactly: JsonObject = {"minItems": len(labels), "maxItems": len(labels)} if is_demonstration else {}
    ranking: JsonObject = {"type": "array", "items": label, **exactly}
    if is_demonstration:
        remark |= {"maxLength": TERSE_REMARK}
        ranking = {"enum": [[*order] for order in permutations(labels)]}
    critique = object_schema(text=remark, severity={"type": "string", "enum": ["high", "medium", "low"]})
    critiques: JsonObject = {"type": "array", "items": critique}
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


def read_ballot(
    text: str,
    labels: Sequence[str],
    criteria: Sequence[str] = (),
    *,
    answers: Collection[str] = (),
    copied: Iterable[str] = (),
) -> Ballot:
    """Return the ballot in a reply, as JSON, as text, or as both.

    Of the reviewer's own rankings the last one counts, whether an object or a list below FINAL RANKING.
    Somebody else's never does: an object that also occurs in one of the `answers`, or is quoted.
    Reviews in JSON become review text, and the words around them are dropped. Other text is kept byte
    for byte; below it comes the ranking of an object, unless a list has the last word. Remarks of JSON
    that say nothing but words of the `copied` texts are left out.
    """
    body = out_of_string(unwrapped(text, ("markdown", "md")))
    written, prose = _written_ballots(body, labels, answers)
    listed, line = ranking_at(prose, labels)
    own = _last_to_rank(written)
    if own is None:
        scores = parse_scores(text, labels, criteria)
        read = read_review(prose, labels)
        return Ballot(text, tuple(listed), scores, read.points, read.cleared)
    said, lines = own.ballot.without_copies(copied), BallotLines(body)
    is_listed = listed and (not said.ranking or line > lines.number(own.span.end - 1))
    ranking = listed if is_listed else said.ranking
    counted = tuple(ranking) if len(ranking) > 1 else ()
    scores = _scores(said, criteria)
    around = body[: own.span.start] + body[own.span.end :]
    if said.has_remarks or _BARE.fullmatch(around):
        return Ballot(_rendered(said, ranking, scores), counted, scores, tuple(_points(said)))
    kept = with_ranking(text, counted) if counted and not is_listed else text
    scores = scores or parse_scores(text, labels, criteria)
    read = read_review(prose, labels)
    return Ballot(kept, counted, scores, read.points, read.cleared)


@dataclass(frozen=True, slots=True)
class _Written:
    """A ballot in JSON, and where in the reply it is."""

    ballot: JsonBallot
    span: Span


def _last_to_rank(written: Sequence[_Written]) -> _Written | None:
    """Return the last ballot that ranks, with the reviews of another one if it has none."""
    ranked = next((each for each in written if len(each.ballot.ranking) > 1), None)
    reviewed = next((each for each in written if each.ballot.reviews and each != ranked), None)
    if ranked and reviewed and not ranked.ballot.reviews:
        reviews = {"reviews": reviewed.ballot.reviews}
        return replace(ranked, ballot=ranked.ballot.model_copy(update=reviews))
    return ranked or reviewed


def _written_ballots(
    text: str, labels: Collection[str], answers: Collection[str]
) -> tuple[list[_Written], str]:
    """Return the reviewer's own ballots in JSON, the last one first.

    With them comes the text without any ballot in JSON, whosever it is, line for line.
    """
    label_of = partial(label_named, known=by_letter(labels))
    read = ((ballot.in_labels(label_of), span) for ballot, span in read_json_ballots(text))
    ballots = [*islice(((each, span) for each, span in read if each.ranking or each.reviews), MOST_READ)]
    if not ballots:
        return [], text
    every = (each for answer in answers for each in all_json_ballots(answer))
    theirs = {each.in_labels(label_of).model_dump_json() for each in every}
    squeezed = [*map(_squeezed, answers)]
    lines, own, prose = BallotLines(text), list[_Written](), text
    for ballot, span in ballots:
        said = text[span.start : span.end]
        # An answer may keep its object from being found, but not from being the same text.
        is_theirs = ballot.model_dump_json() in theirs or any(
            _squeezed(said) in each for each in squeezed
        )
        if not is_theirs and not lines.quote(span.start):
            own.append(_Written(ballot, span))
        if span.closed:  # what isn't may have swallowed a list below it
            prose = prose[: span.start] + re.sub(r"\S", " ", said) + prose[span.end :]
    return own, prose


def _squeezed(text: str) -> str:
    return "".join(text.split())


_BARE = re.compile(r"[\W_]*(?:json[\W_]*)?", re.IGNORECASE)
"""What may be around an object that is the whole reply."""


def labels_schema(labels: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a ranking alone."""
    label: JsonObject = {"type": "string", "enum": [*labels]}
    return object_schema(ranking={"type": "array", "items": label})


def read_labels(text: str, labels: Sequence[str], *, answers: Collection[str] = ()) -> list[str]:
    """Return the labels in a reply that should be only a ranking: JSON, a list, or one line.

    As in `read_ballot`, an object that occurs in one of the `answers`, or is quoted, doesn't count.
    """
    written, prose = _written_ballots(out_of_string(text), labels, answers)
    if (own := _last_to_rank(written)) and len(own.ballot.ranking) > 1:
        return own.ballot.ranking
    label_of = partial(label_named, known=by_letter(labels))
    names = listed_names(unwrapped(text, ("", "json")))
    named = JsonBallot(ranking=names).in_labels(label_of).ranking
    if len(named) > 1:
        return named
    listed = parse_ranking(prose, labels) or parse_ranking(f"{HEADER}\n{prose}", labels)
    return listed or opening_labels(prose, labels)


def with_ranking(text: str, ranking: Sequence[str]) -> str:
    """Return a review with a ranking, which came separately, at its end."""
    return "\n".join([text.rstrip(), "", *ranking_text(ranking)])


def ranking_text(ranking: Iterable[str]) -> list[str]:
    """Return a ranking in the form that reviewers are asked for, one label per line."""
    return [HEADER, *(f"{place}. {label}" for place, label in enumerate(ranking, start=1))]


def _points(ballot: JsonBallot) -> Iterator[ReviewPoint]:
    for review in ballot.reviews:
        point = partial(ReviewPoint, label=review.label, source="structured")
        for praise in _sentences(review.strengths):
            yield point(kind="strength", text=praise)
        for critique in review.critiques:
            if text := " ".join(critique.text.split()):
                yield point(kind="objection", text=text, severity=critique.severity)
        for weakness in _sentences(review.weaknesses):
            yield point(kind="objection", text=weakness)


def _sentences(remark: str) -> Iterator[str]:
    lines = (line[:LONGEST_LINE] for line in remark[:LONGEST_REVIEW].splitlines())
    said = (each for line in lines for each in sentences(bare(line)))
    return (clip(each, LONGEST_POINT) for each in said if says(each))


def _scores(ballot: JsonBallot, criteria: Sequence[str]) -> Scored:
    """Return the scores beside the reviews, or rather those in them."""
    given = [*ballot.scores.items(), *((each.label, each.scores) for each in reversed(ballot.reviews))]
    return {label: scores for label, said in given if (scores := scores_of(said, criteria))}


def _rendered(ballot: JsonBallot, ranking: Sequence[str], scores: Scored) -> str:
    parts = [
        [each.label, *_remark("Strengths", each.strengths), *_remark("Weaknesses", _against(each))]
        for each in ballot.reviews
    ]
    if scores:
        parts.append(scores_text(scores))
    if ranking:
        parts.append(ranking_text(ranking))
    return "\n\n".join(map("\n".join, parts))


def _against(review: Review) -> str:
    points = [
        f"[{point.severity or 'medium'}] {point.text.strip()}"
        for point in review.critiques
        if point.text.strip()
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
