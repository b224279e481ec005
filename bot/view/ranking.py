"""How the reviewers ranked a round's answers: ranks, votes, scores, and whose voice is missing."""

from collections.abc import Iterator

from bot.view import words
from bot.view.card import names
from bot.view.message import Block, Heading, Line, Pairs, Table
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import thread as wording
from council.criteria import EvaluationCriteria
from council.document.conversation import Place
from council.document.results import ScoringMatrix
from council.reviews.ranking import counted

OWN, NONE, DISQUALIFIED = "own", "\u2013", "out"


def ranked(view: RunView) -> list[Seat]:
    """Return the members, best first; those without a rank keep their seating order at the end."""
    return sorted(view.seats, key=lambda seat: view.place(seat.name) or len(view.seats) + 1)


def places(view: RunView) -> Iterator[tuple[str, Place]]:
    """Yield each ranked answer's rank in words, and its place."""
    for number, place in enumerate(view.ranking.places if view.ranking else (), 1):
        yield NONE if place.mean_position is None else words.ordinal(number), place


def explained(view: RunView) -> Iterator[Line]:
    """Say how to read a ranking."""
    yield Line(wording.ONE_IS_BEST_OF_TWO if len(view.labels) == 2 else wording.ONE_IS_BEST)
    if view.ranking and (agreement := words.agreement(view.ranking.agreement_word)):
        yield Line(f"{agreement[0].upper()}{agreement[1:]}. Agreement is not certainty.")


def votes(view: RunView) -> Pairs:
    """Return each reviewer's vote, best first, by name."""
    short = names(view)
    ballots = [seat.review for seat in view.seats if seat.review]
    counts = counted({each.model: each.parsed_ranking for each in ballots}, view.labels)
    rows = (
        (
            short[ballot.model],
            ", ".join(
                short.get(view.labels.get(label, ""), label) for label in counts.get(ballot.model, ())
            )
            or wording.NOT_COUNTED,
        )
        for ballot in ballots
    )
    return Pairs(tuple(rows))


def counted_votes(view: RunView) -> list[tuple[str, list[str]]]:
    """Return the ballots as they count: the reviewer, and the labels of the answers, best first."""
    ballots = {seat.review.model: seat.review.parsed_ranking for seat in view.seats if seat.review}
    return [*counted(ballots, view.labels).items()]


def scores(view: RunView) -> Iterator[Block]:
    """Return the answers' scores by criterion, where the run has criteria."""
    if view.scores and view.criteria:
        yield from _scores(view.scores, view.criteria, names(view))


def _scores(
    matrix: ScoringMatrix, criteria: EvaluationCriteria, short: dict[str, str]
) -> Iterator[Block]:
    yield Heading("Scores by criterion", 3)
    if not matrix.ballots:
        yield Line("No reviewer gave scores that could be read.")
        return
    rows = (
        (
            DISQUALIFIED if each.is_disqualified else _place(number, each.total),
            short.get(each.model, each.model),
            *(_score(each.means.get(name)) for name in criteria.names),
            _score(each.total),
        )
        for number, each in enumerate(matrix.answers, 1)
    )
    yield Table(("Place", "Member", *map(str, criteria.criteria), "Weighted"), tuple(rows))
    yield Line(
        "Reviewers' mean scores, 1 to 10, without scores for their own answers. The number after a "
        "criterion is its weight; ! marks a must-have."
    )
    for each in matrix.answers:
        if each.is_disqualified:
            yield Line(
                f"{short.get(each.model, each.model)}'s answer is disqualified: most reviewers score it "
                f"below 4 for {words.listing(each.failed)}. It is still shown below."
            )


def _place(number: int, total: float | None) -> str:
    return NONE if total is None else words.ordinal(number)


def _score(score: float | None) -> str:
    return NONE if score is None else f"{score:.1f}"


def missing(view: RunView) -> Iterator[Line]:
    """Say whose voice is missing from a ranking, and why."""
    short = names(view)
    for seat in view.seats:
        name = short[seat.name]
        if isinstance(seat.answering, Failed):
            yield Line(wording.no_answer(name, words.failure(seat.answering.failure)))
        if isinstance(seat.reviewing, Failed):
            yield Line(wording.no_review(name, words.failure(seat.reviewing.failure)))
        if seat.review and not seat.review.parsed_ranking:
            yield Line(wording.not_counted(name, truncated=seat.review.truncated))
