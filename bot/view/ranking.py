"""How the reviewers ranked a round's answers: ranks, votes, scores, and whose vote is missing."""

from collections.abc import Iterator

from bot.view.member import names
from bot.view.message import Block, Heading, Line, Pairs, Table
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import failures, figures
from bot.view.wording import thread as wording
from bot.view.wording.card import agreement
from council.criteria import EvaluationCriteria
from council.document.results import RankedAnswer, ScoringMatrix
from council.reviews.ranking import counted


def ranked(view: RunView) -> list[Seat]:
    """Return the members, best first; those without a rank keep their seating order at the end."""
    places = view.ranking.places if view.ranking else []
    order = [place.model for place in places if place.mean_position is not None]
    return sorted(view.seats, key=lambda seat: (*order, seat.name).index(seat.name))


def places(view: RunView) -> Iterator[tuple[str, RankedAnswer]]:
    """Yield each ranked answer's rank in words, and its place."""
    for place in view.ranking.places if view.ranking else ():
        rank = view.rank(place.model)
        yield figures.rank(rank) if rank else wording.NONE, place


def explained(view: RunView) -> Iterator[Line]:
    """Return how to read a ranking."""
    if len(view.labels) == 2:
        yield Line(wording.OWN_VOTES_OF_TWO)
    if view.ranking and (alike := agreement(view.ranking.agreement_word)):
        yield Line(wording.sentence(alike))


def votes(view: RunView) -> Pairs:
    """Return each reviewer's vote, best first, by name."""
    short, counts = names(view), counted_votes(view)
    reviewers = [seat.name for seat in view.seats if seat.review]
    named = {label: short.get(name, label) for label, name in view.labels.items()}
    return Pairs(
        tuple(
            (
                short[reviewer],
                ", ".join(named.get(label, label) for label in counts.get(reviewer, ()))
                or wording.NOT_COUNTED,
            )
            for reviewer in reviewers
        )
    )


def counted_votes(view: RunView) -> dict[str, list[str]]:
    """Return the ballots as they count: by reviewer, the labels of the answers, best first."""
    ballots = {seat.name: seat.review.parsed_ranking for seat in view.seats if seat.review}
    return counted(ballots, view.labels)


def scores(view: RunView) -> Iterator[Block]:
    """Return the answers' scores by criterion, if the run has criteria."""
    if view.scores and view.criteria:
        yield from _scores(view.scores, view.criteria, names(view))


def _scores(
    matrix: ScoringMatrix, criteria: EvaluationCriteria, short: dict[str, str]
) -> Iterator[Block]:
    yield Heading(wording.SCORES, 3)
    if not matrix.ballots:
        yield Line(wording.NO_SCORES)
        return
    rows = (
        (
            wording.DISQUALIFIED if each.is_disqualified else _place(number, each.total),
            short.get(each.model, each.model),
            *(_score(each.means.get(name)) for name in criteria.names),
            _score(each.total),
        )
        for number, each in enumerate(matrix.answers, 1)
    )
    first = (wording.SCORES_PLACE, wording.SCORES_MEMBER)
    yield Table((*first, *map(str, criteria.criteria), wording.SCORES_TOTAL), tuple(rows))
    yield Line(wording.HOW_SCORED)
    for each in matrix.answers:
        if each.is_disqualified:
            yield Line(wording.disqualified_here(short.get(each.model, each.model), each.failed))


def _place(number: int, total: float | None) -> str:
    return wording.NONE if total is None else figures.ordinal(number)


def _score(score: float | None) -> str:
    return wording.NONE if score is None else f"{score:.1f}"


def missing(view: RunView) -> Iterator[Line]:
    """Return whose vote is missing from a ranking, and why."""
    short, counts = names(view), counted_votes(view)
    for seat in view.seats:
        name = short[seat.name]
        if isinstance(seat.answering, Failed):
            yield Line(wording.no_answer(name, failures.failure(seat.answering.failure)))
        if isinstance(seat.reviewing, Failed):
            yield Line(wording.no_review(name, failures.failure(seat.reviewing.failure)))
        if seat.review and seat.name not in counts:
            yield Line(wording.not_counted(name, truncated=seat.review.truncated))
