"""The thread below the card: the ranking, then each member's answers and its peers' critiques."""

from collections.abc import Collection, Iterator, Sequence
from urllib.parse import urlsplit

from bot.view import words
from bot.view.card import before, correction, names
from bot.view.consultants import consultation, moved
from bot.view.message import Block, Heading, Line, Message, Pairs, Prose, Table
from bot.view.state import Answered, Failed, RunView, Seat
from council.calls import Citation
from council.criteria import EvaluationCriteria
from council.document.conversation import (
    AggregateRanking,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    peer_critiques,
)
from council.document.iteration import IterationState
from council.document.results import ScoringMatrix
from council.reviews.ranking import counted

OWN, NONE, DISQUALIFIED = "own", "\u2013", "out"


def thread(view: RunView) -> tuple[Message, ...]:
    """Return every message whose content is final, in the order in which they are posted.

    Before the ranking is known there is none. A message once given stays as it is.
    """
    return tuple(unposted(view, ()))


def unposted(view: RunView, posted: Collection[str]) -> Iterator[Message]:
    """Return the thread's messages but those with these keys, each built only when it is taken."""
    for each in (*view.earlier, view):
        yield from _of_round(each, posted)
    told = view.iteration if view.conversation_id else None
    if told and told.max_rounds > 1 and (key := "rounds") not in posted:
        yield Message(key, tuple(_moves(view, told)))


def _of_round(view: RunView, posted: Collection[str]) -> Iterator[Message]:
    again = "" if view.number == 1 else f"{view.number}:"
    if view.stage("stage2").progress not in ("done", "skipped"):
        return
    if view.stage("stage2").progress == "done" and (key := f"{again}ranking") not in posted:
        yield Message(key, tuple(_ranking(view)))

    def order(seat: Seat) -> tuple[bool, int]:
        # Critiques stand right below their member's answers, whoever else has corrected meanwhile.
        return f"{again}member:{seat.name}" not in posted, view.place(seat.name) or len(view.seats)

    for seat in sorted(view.seats, key=order):
        if seat.answer and _is_final(view, seat):
            if (key := f"{again}member:{seat.name}") not in posted:
                yield Message(key, tuple(_member(view, seat, seat.answer)))
            if (key := f"{again}critiques:{seat.name}") not in posted and (
                critiques := tuple(_critiques(view, seat))
            ):
                yield Message(key, critiques)


def _is_final(view: RunView, seat: Seat) -> bool:
    corrected = isinstance(seat.correcting, Answered | Failed)
    return corrected or view.stage("stage2_5").progress in ("done", "skipped")


def _ranking(view: RunView) -> Iterator[Block]:
    short = names(view)
    ballots = [seat.review for seat in view.seats if seat.review]
    yield Heading(f"Ranking{_round(view)}")
    if view.ranking is None:
        yield from _ballots(ballots, short)
    elif not view.ranking.ballots:
        yield Line("No vote could be counted, so the answers are not ranked.")
    else:
        yield _table(view, view.ranking, short)
        own = (
            "of two answers, one\u2019s own counts too."
            if len(view.labels) == 2
            else "nobody votes on their own answer."
        )
        yield Line(
            "Position 1 is the best. \u201cby A\u201d is the vote of whoever wrote Response A; " + own
        )
        yield Line(_agreement(view.ranking))
    yield from map(Line, _notes(view, short))
    if view.scores and view.criteria:
        yield from _scores(view.scores, view.criteria, short)


def _ballots(ballots: list[Stage2Result], short: dict[str, str]) -> Iterator[Block]:
    """Return the votes as they were cast, where a document doesn't say what they came to."""
    yield Line("The votes as they were cast; which answer came out best is not on record.")
    yield Table(
        ("Reviewer", "Vote, best first"),
        tuple(
            (short[ballot.model], ", ".join(ballot.parsed_ranking) or "not counted")
            for ballot in ballots
        ),
    )


def _table(view: RunView, ranking: AggregateRanking, short: dict[str, str]) -> Table:
    votes = counted_votes(view)
    rows = (
        (
            NONE if place.mean_position is None else words.ordinal(number),
            _letter(place.label),
            short.get(place.model, place.model),
            words.position(place.mean_position),
            *(_vote(ballot, place.label, own) for own, ballot in votes),
        )
        for number, place in enumerate(ranking.places, 1)
    )
    reviewers = (f"by {_letter(own)}" for own, _ in votes)
    return Table(("Rank", "Answer", "Member", "Mean", *reviewers), tuple(rows))


def counted_votes(view: RunView) -> list[tuple[str, list[str]]]:
    """Return the ballots as they count, by the label of the reviewer's own answer: label, labels."""
    short = names(view)
    label_of = {name: label for label, name in view.labels.items()}
    ballots = {seat.review.model: seat.review.parsed_ranking for seat in view.seats if seat.review}
    votes = counted(ballots, view.labels)
    return sorted((label_of.get(name, short[name]), ballot) for name, ballot in votes.items())


def _letter(label: str) -> str:
    return label.removeprefix("Response ")


def _vote(ballot: list[str], label: str, own: str) -> str:
    if label in ballot:
        return str(ballot.index(label) + 1)
    return OWN if label == own else NONE


def _agreement(ranking: AggregateRanking) -> str:
    if ranking.agreement is None:
        return "Too few shared votes to say how far the reviewers agree."
    return f"Among the reviewers: {words.agreement(ranking.agreement_word)}. Agreement is not certainty."


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
            _letter(each.label),
            short.get(each.model, each.model),
            *(_score(each.means.get(name)) for name in criteria.names),
            _score(each.total),
        )
        for number, each in enumerate(matrix.answers, 1)
    )
    yield Table(("Place", "Answer", "Member", *map(str, criteria.criteria), "Weighted"), tuple(rows))
    yield Line(
        "Mean scores of the reviewers, 1 to 10, without those for one's own answer. The number behind a "
        "criterion is its weight; ! marks a must-have."
    )
    for each in matrix.answers:
        if each.is_disqualified:
            yield Line(
                f"{short.get(each.model, each.model)}'s answer is disqualified: most reviewers score it "
                f"below 4 for {words.listing(each.failed)}. It still stands below."
            )


def _place(number: int, total: float | None) -> str:
    return NONE if total is None else words.ordinal(number)


def _score(score: float | None) -> str:
    return NONE if score is None else f"{score:.1f}"


def _notes(view: RunView, short: dict[str, str]) -> Iterator[str]:
    """Say whose voice is missing here, and why."""
    for seat in view.seats:
        if isinstance(seat.answering, Failed):
            yield f"{short[seat.name]} did not answer: {words.failure(seat.answering.failure)}."
        if isinstance(seat.reviewing, Failed):
            yield f"{short[seat.name]} gave no review: {words.failure(seat.reviewing.failure)}."
        if seat.review and not seat.review.parsed_ranking:
            yield (
                f"{short[seat.name]}'s vote is not counted: no ranking of two or more answers could be "
                "read from its review."
            )


def _round(view: RunView) -> str:
    return "" if view.number == 1 else f", round {view.number}"


def _moves(view: RunView, iteration: IterationState) -> Iterator[Block]:
    """Tell how each answer moved from round to round, and why there was no further one."""
    said = words.rounds(iteration)
    yield Heading("Rounds")
    yield Line(f"{said[0].upper()}{said[1:]}.")
    held = (*view.earlier, view)[: len(iteration.rounds)]
    seats = [seat for seat in view.seats if seat.answer]
    if held and seats:
        short = names(view)
        moves = {seat.name: tuple(_move(each.seat(seat.name)) for each in held) for seat in seats}
        yield Table(
            ("Member", *(f"Round {each.number}" for each in held)),
            tuple((short[seat.name], *moves[seat.name]) for seat in seats),
        )


def _move(seat: Seat | None) -> str:
    if seat is None or not seat.correction:
        return NONE
    if isinstance(seat.correcting, Failed):
        return f"fell back ({words.cause(seat.correcting.failure)})"
    return correction(seat)


def _member(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    yield Heading(f"{_full_name(seat)}{_round(view)}")
    yield Line(" ".join(_standing(view, seat)))
    if view.number == 1:
        yield Heading("Original response", 3)
        yield from _text(view, answer.response, answer)
    if isinstance(seat.correcting, Failed):
        yield Heading("Corrected response", 3)
        kept = "original response" if view.number == 1 else "previous round's response"
        yield Line(f"The correction failed; the {kept} is kept.")
    elif seat.correction:
        yield Heading("Corrected response", 3)
        if seat.has_changed:
            yield from _text(view, seat.correction.corrected_response, seat.correction, answer)
        else:
            yield Line("The same, word for word.")
            if seat.correction.consultation:
                yield from moved(seat.correction.consultation, names(view), _score_of(answer))


def _text(
    view: RunView, text: str, result: Stage1Result | Stage2_5Result, before: Stage1Result | None = None
) -> Iterator[Block]:
    """Return a member's answer, as a consultation if it is one; a correction with what came before."""
    if result.consultation:
        yield from consultation(result.consultation, names(view), _score_of(before))
    else:
        yield Prose(text)
    if result.unstructured:
        yield Line(f"Shown as plain text: it didn't follow the form: {result.unstructured}.")
    if result.truncated:
        yield Line("It reached its length limit and ends here.")
    yield from _sources(result.citations)


def _score_of(answer: Stage1Result | None) -> int | None:
    return answer.consultation.confidence.score if answer and answer.consultation else None


def _sources(citations: Sequence[Citation]) -> Iterator[Block]:
    """Return the pages that a text rests on; their titles are other people's words."""
    if citations:
        yield Line("Sources on the web:")
        yield Pairs(
            tuple(
                (words.clip(cited.title, 100) or urlsplit(cited.url).netloc, cited.url)
                for cited in citations
            )
        )


def _standing(view: RunView, seat: Seat) -> Iterator[str]:
    """Say who this is and how it came off, sentence by sentence."""
    if (place := view.place(seat.name)) and view.ranking:
        yield f"Ranked {words.ordinal(place)} of {len(view.ranking.places)}."
    if failed := view.failed_must_haves(seat.name):
        yield f"Disqualified: it fails {words.listing(failed)}."
    if isinstance(seat.correcting, Failed):
        yield f"Fell back to {before(seat)}: {words.failure(seat.correcting.failure)}."
    elif seat.correction:
        said = correction(seat)
        yield f"{said[0].upper()}{said[1:]}."
    for what, result in (("answer", seat.answer), ("correction", seat.correction)):
        if result and result.answered_by:
            yield f"The {what} is by its fallback {result.answered_by}."
    if seat.correction and seat.correction.maintained:
        yield "Nobody objected, so it wasn't revised."
    elif seat.correction and not _peers(view, seat) and not isinstance(seat.correcting, Failed):
        yield "No peer's review came back, so it reviewed its own answer."


def _full_name(seat: Seat) -> str:
    model, _, slug = seat.name.partition("#")
    persona = seat.persona or slug
    return f"{model} ({persona})" if persona else model


def _peers(view: RunView, seat: Seat) -> list[Stage2Result]:
    return [peer.review for peer in view.seats if peer.review and peer.name != seat.name]


def _critiques(view: RunView, seat: Seat) -> Iterator[Block]:
    peers = _peers(view, seat)
    handed = seat.correction.peer_critiques if seat.correction else ""
    if not peers and not handed:
        return
    yield Heading(f"Critiques of {_full_name(seat)}{_round(view)}")
    if label := next((label for label, name in view.labels.items() if name == seat.name), None):
        yield Line(f"Its answer is called {label} here; the reviewers did not know whose it was.")
    if handed and handed != peer_critiques(seat.name, peers):
        # Other programs hand over something else than the whole reviews: this is what it read.
        yield Prose(handed)
        return
    short = names(view)
    for review in peers:
        yield Heading(f"By {short[review.model]}", 3)
        yield Prose(review.ranking)
        if review.truncated:
            yield Line("The review reached its length limit and ends here.")
