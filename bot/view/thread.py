"""What the members of a run said: the thread below the card, what *Open* shows, and the record of all.

The thread explains in a minute why the answer is what it is. First the whole in short: the ranking, and
for each member the gravest objection and what it changed. Then a message per member, best first: its
critics' other objections, its replies, what changed, and its corrected response. What it leaves out is
behind *Open* (`opened`) and in transcripts and files (`record`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal
from urllib.parse import urlsplit

from bot.view.card import correction
from bot.view.message import LINE, Block, Columns, Diff, Heading, Line, Message, Pairs, Prose, Table
from bot.view.passages import Passage, beginning
from bot.view.run import Failed, RunView, Seat
from bot.view.wording import card, failures, figures, worth
from bot.view.wording import thread as wording
from bot.view.wording.figures import listing
from council.consultation import HIGHEST, Consultation, Debate, fenced, scored_alternative
from council.document import results
from council.text import clip

SUMMARY = 2 * LINE
"""How much is shown of what a critic says about an answer: two lines."""
REASON = LINE - 20
"""How much is shown of a reply's reason: a line, with what is before it."""
SENTENCE = LINE - 25
"""How much the digest shows of a changed sentence: a line, with what is before it."""
PASSAGE = LINE - 15
"""How much of a changed sentence is shown, before and after: a line each."""
SENTENCE_ENDS = tuple(".!?;:\u2026\u3002\uff01\uff1f\uff1b")
FULL, EMPTY = "\u25b0", "\u25b1"
_REFERENCE = re.compile(r"\[\d{1,2}\](?!\()")
"""How Perplexity's models refer to a page that they cite."""

PartKind = Literal["answer", "digest", "member"]


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """A message of the thread: its kind, its text, and the seat of the member it is about."""

    kind: PartKind
    message: Message
    seat: int = 0


def thread(view: RunView) -> tuple[ThreadPart, ...]:
    """Return the digest, if reviews were made, and each member's message, in their order."""
    seats = [seat for seat in view.ranked if seat.answer]
    if len(seats) < 2:  # one alone has no peers, and its answer is the card's
        return ()
    messages: list[ThreadPart] = []
    if view.stage("stage2").progress == "done":
        messages.append(ThreadPart("digest", Message("ranking", tuple(_digest(view, seats)))))
    for seat in seats:
        message = Message(f"member:{seat.name}", tuple(_in_full(seat)), bounded=True)
        messages.append(ThreadPart("member", message, view.seats.index(seat)))
    return tuple(messages)


def _digest(view: RunView, seats: Sequence[Seat]) -> Iterator[Block]:
    yield Heading(f"{wording.RANKING}{wording.of_round(view.number)}")
    if view.is_undecided:
        yield Line(wording.UNDECIDED)
    elif view.round.ranking and view.round.ranking.ballots:
        explained = (line.text for line in _explained(view))
        yield Line(" ".join((f"{wording.AVERAGE} beside each name.", *explained)))
    else:
        yield Line(wording.NOT_RANKED)
    yield from _missing(view)
    none = all(seat.criticism.has_none for seat in seats)
    if none:
        yield Line(wording.NO_OBJECTIONS)
    for seat in seats:
        yield Pairs(tuple(_in_short(seat, none_at_all=none)), together=True)
    yield from _scores(view)


def _in_short(seat: Seat, *, none_at_all: bool) -> Iterator[tuple[str, str]]:
    said, rank = seat.criticism, seat.rank
    stands = f"average vote {figures.position(rank.mean_position)}" if rank else "not ranked"
    verdicts = [each.holds for (critic, _), each in said.replies.items() if critic != seat.short]
    if verdicts:
        hold = "1 holds" if sum(verdicts) == 1 else f"{sum(verdicts)} hold"
        stands = f"{stands}; {figures.count(len(verdicts), 'objection')}, {hold}"
    yield f"{figures.rank(rank)} {seat.short}" if rank else seat.short, stands
    if found := said.gravest:
        critic, point = found
        reply = said.replies.get((critic, point.text))
        verdict = "" if reply is None else " (it holds)" if reply.holds else " (doesn't hold)"
        by = f"{wording.OBJECTION}, by {critic}{verdict}"
        yield by, summary([point], SUMMARY - len(by))
    elif said.undivided:
        yield wording.OBJECTION, "not divided; see Open"
    elif said.clear and not none_at_all:
        yield wording.OBJECTION, "none"
    if seat.correction:
        yield "Changed", _change(seat)


def _change(seat: Seat) -> str:
    if isinstance(state := seat.correcting, Failed):
        was_stopped = state.failure.cause == "stopped"
        return f"no, {'the run was stopped first' if was_stopped else 'its correction failed'}"
    if not any(seat.moved):
        return "no, it kept its answer"
    much, passage = wording.much(seat.share), seat.passage
    if passage is None:
        return much
    before, after = _changed(passage, SENTENCE)
    how = ("Now" if before else wording.ADDED) if after else wording.DROPPED
    return f"{much}; {how.lower()} \u201c{after or before}\u201d"


def _changed(passage: Passage, length: int) -> tuple[str, str]:
    pairs = zip(passage.before, passage.after, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = passage.after.rfind(" ", 0, max(same - length // 2, 0)) + 1
    cut = "\u2026" if start else ""
    before, after = (clip(cut + text[start:], length) for text in (passage.before, passage.after))
    return before, after


def _in_full(seat: Seat) -> Iterator[Block]:
    yield Heading(seat.short)
    yield _standing(seat)
    yield from _objections(seat)
    if seat.has_changed and (passage := seat.passage):
        length = PASSAGE if passage.before and passage.after else 2 * PASSAGE
        before, after = _changed(passage, length)
        change = (("Changed from", before), ("to", after))
        if not (before and after):
            change = ((wording.ADDED, after),) if after else ((wording.DROPPED, before),)
        yield Pairs(change, together=True)
    whole, begun = tuple(_response(seat)), beginning(seat.text)
    if seat.view.profile.thread == "full" or begun == seat.text or Prose(seat.text) not in whole:
        yield from whole
    else:
        name = wording.CORRECTED if seat.has_changed else wording.RESPONSE
        yield Heading(f"{name}: how it begins", 3)
        yield Prose(begun)


def opened(view: RunView, number: int) -> Message:
    seat = view.seats[number] if number < len(view.seats) else None
    if seat is None or seat.answer is None:
        return Message("open", (Line("This member's answer is not on record."),))
    return Message("open", tuple(_opened(seat, seat.answer)))


def _opened(seat: Seat, answer: results.Stage1Result) -> Iterator[Block]:
    yield Heading(seat.short)
    yield _standing(seat)
    if any(seat.moved):
        yield Heading("Changes", 3)
        yield Line("Removed words are struck through, added ones bold.")
        yield Diff(answer.response, seat.text)
    yield from _response(seat)
    if seat.has_changed:
        yield Heading(wording.ORIGINAL, 3)
        yield from text(seat.view, answer.response, answer)
    yield from _reviewed(seat)


# ── a member's answer ────────────────────────────────────────────────────────────────────────────


def _standing(seat: Seat) -> Line:
    made, state, said = seat.correction, seat.correcting, list[str]()
    if (rank := seat.rank) and seat.view.round.ranking:
        of = len(seat.view.round.ranking.places)
        how = "Tied for" if rank.shared else "Ranked"
        said.append(f"{how} {figures.ordinal(rank.number)} of {of}.")
    scored = seat.view.round.scores.answers if seat.view.round.scores else []
    if failed := next((each.failed for each in scored if each.model == seat.name), None):
        # One must-have that it fails is enough.
        said.append(f"Disqualified: it fails {listing(failed)}.")
    if isinstance(state, Failed) and state.failure.cause == "stopped":
        said.append("The run was stopped before its correction.")
    elif isinstance(state, Failed):
        kept = "The original response" if seat.view.number == 1 else "The previous round's response"
        said.append(f"The correction failed: {failures.failure(state.failure)}. {kept} is kept.")
    elif any(seat.moved):
        much = wording.much(seat.share)
        said.append("Rewritten." if much == wording.REWRITTEN else f"Changed {much}.")
    elif made:
        maintained = "Nobody objected, so it wasn't revised."
        said.append(maintained if made.maintained else "It kept its answer.")
    for what, result in (("answer", seat.answer), ("correction", made)):
        if result and result.answered_by:
            said.append(f"The {what} is by its fallback {result.answered_by}.")
    if made and not (isinstance(state, Failed) or made.maintained or seat.criticism.points):
        said.append("No peer's review came back, so it reviewed its own answer.")
    return Line(" ".join(said))


def _response(seat: Seat) -> Iterator[Block]:
    yield Heading(wording.CORRECTED if seat.has_changed else wording.RESPONSE, 3)
    made, answer = seat.correction, seat.answer
    result = made if made and (seat.has_changed or made.consultation) else answer
    if result:
        yield from text(seat.view, seat.text, result, answer)


def text(
    view: RunView,
    said: str,
    result: results.Stage1Result | results.Stage2_5Result,
    before: results.Stage1Result | None = None,
) -> Iterator[Block]:
    """Return a member's answer, as a consultation if it is one; a correction with what came before."""
    if result.consultation:
        yield from _consultation(view, result.consultation, score_of(before))
    else:
        yield Prose(said)
    if result.unstructured:
        yield Line(f"Shown as plain text because it didn't follow the form: {result.unstructured}.")
    if result.truncated:
        yield Line("It reached its length limit and ends here.")
    if result.citations:  # numbered if the text names numbers; titles are others' words
        titles = [clip(cited.title, 100) or urlsplit(cited.url).netloc for cited in result.citations]
        if _REFERENCE.search(said):
            titles = [f"[{number}] {title}" for number, title in enumerate(titles, 1)]
        yield Line("Sources on the web:")
        yield Pairs(tuple(zip(titles, (cited.url for cited in result.citations), strict=True)))


def score_of(answer: results.MemberAnswer | None) -> int | None:
    return answer.consultation.confidence.score if answer and answer.consultation else None


# ── a consultation ───────────────────────────────────────────────────────────────────────────────


def _consultation(view: RunView, said: Consultation, before: int | None) -> Iterator[Block]:
    """Return a whole consultation; `before` is the score of the one that it corrects."""
    advice = said.response
    case = (("In short", advice.summary), ("Approach", advice.approach))
    yield Pairs((*case, *_sureness(said, before)))
    yield Prose(advice.detailed)
    yield from _columns(("Pros", advice.pros), ("Cons", advice.cons))
    yield from _columns(("Alternatives", [*map(scored_alternative, advice.alternatives)]))
    yield from _columns(("Caveats", advice.caveats))
    for snippet in advice.code_snippets:
        yield Prose("\n\n".join(filter(None, (snippet.description, fenced(snippet)))))
    yield from _columns(("References", advice.references))
    yield from _debate(view, said.debate)


def bar(score: int) -> str:
    """Draw a score as a bar of ten, with its number, so that it reads well without the bar."""
    return f"{FULL * score}{EMPTY * (HIGHEST - score)} {score} of {HIGHEST}"


def _sureness(said: Consultation, before: int | None) -> Iterator[tuple[str, str]]:
    sure = said.confidence
    earlier = "" if before is None or before == sure.score else f" (before: {before})"
    yield "Confidence", ". ".join(filter(None, (f"{bar(sure.score)}{earlier}", sure.reasoning)))
    if sure.uncertainty_factors:
        yield "Uncertain because", "; ".join(sure.uncertainty_factors)
    if said.debate:
        changed = said.debate.position_changed
        yield "Debate", "says it changed its position" if changed else "keeps its position"


def _columns(*columns: tuple[str, list[str]]) -> Iterator[Block]:
    if filled := tuple((title, tuple(items)) for title, items in columns if items):
        yield Columns(filled)


def _debate(view: RunView, debate: Debate | None) -> Iterator[Block]:
    if debate:
        objections = [
            f"{view.name(each.target)} ({each.severity}): {each.critique}" for each in debate.critiques
        ]
        ideas = [f"{view.name(each.source)}: {each.idea}" for each in debate.incorporated_from]
        yield from _columns(("Objects to", objections), ("Adopted", ideas))


# ── what critics hold against it ─────────────────────────────────────────────────────────────────


def _objections(seat: Seat) -> Iterator[Block]:
    """Return the objections to an answer but the gravest, which the digest has, and all replies."""
    said = seat.criticism
    rows = tuple(_rows(seat))
    blocks: list[Block] = [Pairs(rows, together=True)] if rows else []
    if said.undivided:
        blocks.append(Line(f"Not divided: {listing(said.undivided)} (Open)"))
    others = seat.correction.peer_critiques if seat.correction else ""
    if others and not said.points:  # another program's words
        blocks.append(Prose(beginning(others)))
    if blocks:
        yield Heading("Objections", 3)
        yield from blocks


def _rows(seat: Seat) -> Iterator[tuple[str, str]]:
    """Yield each critic's objections, each with the reply to it; without a reply they share a row."""
    held = seat.criticism
    for critic, points in held.objections:
        is_first = held.gravest == (critic, points[0])
        if is_first and (reply := held.replies.get((critic, points[0].text))):
            answered = _reply(seat, reply, clip(reply.reason, REASON))
            yield f"Reply to the gravest objection, by {critic}", answered
        shown = fitting(points[is_first:])
        replies = [held.replies.get((critic, each.text)) for each in shown]
        if shown and not any(replies):
            yield critic, summary(shown)
            continue
        for point, reply in zip(shown, replies, strict=True):
            answered = _reply(seat, reply, clip(reply.reason, REASON)) if reply else ""
            room = max(SUMMARY - len(f"{critic}: {answered}"), LINE)
            yield critic, wording.point(clip(said(point), room), None, answered)
    for critic, error in held.replies:
        if critic == seat.short:
            yield critic, wording.FOUND_ITSELF.format(clip(error, REASON))


def _reviewed(seat: Seat, *, forms_only: bool = False) -> Iterator[Block]:
    """Return the reviews of an answer alone; `forms_only`: without prose that nobody replies to."""
    replies, label = seat.criticism.replies, seat.label or ""
    for critic, review, points in seat.criticism.points:
        if forms_only and not (_is_form(review) or any(by == critic for by, _ in replies)):
            continue
        yield Heading(wording.REVIEW_BY.format(critic), 3)
        lists: dict[str, list[str]] = {wording.STRENGTHS: [], wording.FAULTS: []}
        for point in points:
            kind = wording.FAULTS if point.kind == "objection" else wording.STRENGTHS
            reply = replies.get((critic, point.text))
            answered = f"{seat.short}: {_reply(seat, reply, reply.reason)}" if reply else ""
            lists[kind].append(wording.point(said(point), point.quote, answered))
        if filled := tuple((title, tuple(items)) for title, items in lists.items() if items):
            yield Columns(filled)
        elif label and review.objects_to(label) is False:
            yield Line(wording.NO_OBJECTIONS)
        else:
            yield Prose(seat.view.named(review.ranking))
        if scores := review.scores.get(label):
            yield Line(f"Scores: {', '.join(f'{name} {score}' for name, score in scores.items())}.")
        if review.truncated:
            yield Line(wording.REVIEW_CUT_OFF)
    for critic, error in replies:
        if critic == seat.short:
            yield Line(f"{critic}: {wording.FOUND_ITSELF.format(error)}")


def _reply(seat: Seat, reply: results.ObjectionReply, reason: str) -> str:
    if not reply.holds:
        return f"doesn't hold: {reason}" if reason else "doesn't hold."
    made = seat.correction
    is_kept = made is not None and made.corrected_response == made.original_response
    verdict = "it holds, but nothing was changed." if is_kept else "it holds."
    return f"{verdict} \u201c{reason}\u201d" if reason else verdict


def _is_form(review: results.Stage2Result) -> bool:
    """Return whether it is a JSON ballot, whose points are all that it says: one that names no label."""
    return review.objects_to("") is False


def fitting(points: Sequence[results.ReviewPoint], limit: int = SUMMARY) -> list[results.ReviewPoint]:
    """Return the gravest of these, and as many others as fit beside it, each whole."""
    shown, others, room = [*points[:1]], points[1:], limit - sum(len(said(each)) for each in points[:1])
    for other in others:
        if len(said(other)) < room:
            shown.append(other)
            room -= len(said(other)) + 1
    return shown


def summary(points: Sequence[results.ReviewPoint], limit: int = SUMMARY) -> str:
    """Return as many objections as fit, the gravest first and shortened if it must be."""
    return clip(" ".join(map(said, fitting(points, limit))), limit)


def said(point: results.ReviewPoint) -> str:
    grade = {"high": "Serious: ", "low": "Minor: "}.get(point.severity or "", "")
    text = f"{grade}{point.text}{'' if point.text.endswith(SENTENCE_ENDS) else '.'}"
    return f"(quotes words that aren't in the answer) {text}" if point.found is False else text


# ── how the reviewers ranked ─────────────────────────────────────────────────────────────────────


def _explained(view: RunView) -> Iterator[Line]:
    if len(view.round.labels) == 2:
        yield Line("With two answers, each member's vote on its own counts too.")
    if view.round.ranking and (alike := card.agreement(view.round.ranking.agreement_word)):
        yield Line(wording.sentence(alike))


def _missing(view: RunView) -> Iterator[Line]:
    for seat in view.seats:
        if isinstance(state := seat.answering, Failed):
            yield Line(f"{seat.short} did not answer: {failures.failure(state.failure)}.")
        if isinstance(state := seat.reviewing, Failed):
            yield Line(f"{seat.short} gave no review: {failures.failure(state.failure)}.")
        if seat.review and seat.name not in view.votes:
            why = "vote is not counted: its review has no ranking of two or more answers."
            if seat.review.truncated:
                why = "review reached its length limit before its vote, so no vote is counted."
            yield Line(f"{seat.short}'s {why}")


def _scores(view: RunView) -> Iterator[Block]:
    matrix, criteria = view.round.scores, view.criteria
    if matrix is None or criteria is None:
        return
    yield Heading("Scores by criterion", 3)
    if not matrix.ballots:
        yield Line("No reviewer gave scores that could be read.")
        return

    def cells(number: int, each: results.ScoredAnswer) -> tuple[str, ...]:
        place = wording.NONE if each.total is None else figures.ordinal(number)
        scores = (*map(each.means.get, criteria.names), each.total)
        return (
            "out" if each.is_disqualified else place,
            view.name(each.model),
            *(wording.NONE if score is None else f"{score:.1f}" for score in scores),
        )

    header = ("Place", "Member", *map(str, criteria.criteria), "Weighted")
    yield Table(header, tuple(cells(*each) for each in enumerate(matrix.answers, 1)))
    yield Line(
        "Reviewers' mean scores, 1 to 10, without scores for their own answers. The number after a "
        "criterion is its weight; ! marks a must-have."
    )
    for each in matrix.answers:
        if each.is_disqualified:
            said = (
                f"most reviewers score it below 4 for {listing(each.failed)}. It is still shown below."
            )
            yield Line(f"{view.name(each.model)}'s answer is disqualified: {said}")


# ── the record ───────────────────────────────────────────────────────────────────────────────────


def record(view: RunView) -> Iterator[Message]:
    """Yield everything the members of a run that is over said, round by round.

    Each round has its ranking, then every member's answers and what the reviewers' forms say of them. A
    review in prose is of all answers: those come at the end. Keys are `ranking:ROUND`,
    `member:ROUND:NAME`, `reviews:ROUND:NAME` and `reviews:ROUND`.
    """
    depth, iteration = view.message.depth, view.message.iteration
    if depth and depth.judge:
        yield Message("judge", tuple(_judged(depth, depth.judge)))
    for each in view.every_round:
        yield from _of_round(each)
    if iteration and iteration.max_rounds > 1:
        yield Message("rounds", tuple(_moves(view, iteration)))


def _of_round(view: RunView) -> Iterator[Message]:
    progress, number = view.stage("stage2").progress, view.number
    if progress not in ("done", "skipped"):
        return
    if progress == "done":
        yield Message(f"ranking:{number}", tuple(_ranking(view)))
    for seat in view.ranked:
        if seat.answer:
            yield Message(f"member:{number}:{seat.name}", tuple(_member(seat, seat.answer)))
            if said := tuple(_reviews(seat)):
                yield Message(f"reviews:{number}:{seat.name}", said)
    if said := tuple(_prose_reviews(view)):
        yield Message(f"reviews:{number}", said)


def _judged(depth: results.RunDepth, report: results.JudgeReport) -> Iterator[Block]:
    yield Heading("What the judge found")
    yield Line(worth.verdict(report))
    for point in report.points:
        yield Line(f"\u2022 {point.text}{' (can be checked)' if point.checkable else ''}")
    if said := worth.known_since(depth):
        yield Line(said)


def _ranking(view: RunView) -> Iterator[Block]:
    yield Heading(f"{wording.RANKING}{wording.of_round(view.number)}")
    if view.round.ranking is None:
        yield Line("The votes as they were cast, best first; the result is not on record.")
        cast = (
            (seat.short, ", ".join(map(view.named, view.votes.get(seat.name, ()))))
            for seat in view.seats
            if seat.review
        )
        yield Pairs(tuple((name, vote or "not counted") for name, vote in cast))
    elif not view.round.ranking.ballots:
        yield Line(wording.NOT_RANKED)
    elif view.is_undecided:
        yield Line(wording.UNDECIDED)
    else:
        yield _table(view, view.round.ranking.places)
        yield from _explained(view)
    yield from _missing(view)
    yield from _scores(view)


def _table(view: RunView, places: Sequence[results.RankedAnswer]) -> Table:
    def vote(reviewer: str, ballot: list[str], place: results.RankedAnswer) -> str:
        if place.label in ballot:
            return str(ballot.index(place.label) + 1)
        return "own" if reviewer == place.model else wording.NONE

    ballots = view.votes.items()
    rows = (
        (
            figures.rank(rank) if (rank := view.rank(place.model)) else wording.NONE,
            place.label.removeprefix("Response "),
            view.name(place.model),
            figures.position(place.mean_position),
            *(vote(reviewer, ballot, place) for reviewer, ballot in ballots),
        )
        for place in places
    )
    reviewers = (f"by {view.name(reviewer)}" for reviewer, _ in ballots)
    return Table(("Rank", "Answer", "Member", wording.AVERAGE, *reviewers), tuple(rows))


def _moves(view: RunView, iteration: results.IterationState) -> Iterator[Block]:
    yield Heading("Rounds")
    yield Line(wording.sentence(card.rounds(iteration)))
    held = view.every_round[: len(iteration.rounds)]
    answered = [seat for seat in view.seats if seat.answer]
    if held and answered:
        heads = (f"Round {each.number}" for each in held)
        rows = ((seat.short, *(_move(each.seat(seat.name)) for each in held)) for seat in answered)
        yield Table(("Member", *heads), tuple(rows))


def _move(seat: Seat | None) -> str:
    return correction(seat) if seat and seat.correction else wording.NONE


def _member(seat: Seat, answer: results.Stage1Result) -> Iterator[Block]:
    yield Heading(f"{seat.full_name}{wording.of_round(seat.view.number)}")
    yield _standing(seat)
    if seat.view.number == 1:
        yield Heading(wording.ORIGINAL, 3)
        yield from text(seat.view, answer.response, answer)
    if (made := seat.correction) and not isinstance(seat.correcting, Failed):
        yield Heading(wording.CORRECTED, 3)
        if seat.has_changed:
            yield from text(seat.view, made.corrected_response, made, answer)
        else:
            yield Line("The same, word for word.")
            if made.consultation:
                yield Pairs((*_sureness(made.consultation, score_of(answer)),))
                yield from _debate(seat.view, made.consultation.debate)


def _reviews(seat: Seat) -> Iterator[Block]:
    """Return what filled-in forms say of a member's answer; without any review, what it was handed."""
    handed = seat.correction.peer_critiques if seat.correction and not seat.criticism.points else ""
    blocks = (Prose(handed),) if handed else tuple(_reviewed(seat, forms_only=True))
    if not blocks:
        return
    yield Heading(f"Reviews of {seat.short}{wording.of_round(seat.view.number)}")
    if seat.label and not handed:
        yield Line(f"Reviewers saw it as \u201c{seat.label}\u201d, without a name.")
    yield from blocks


def _prose_reviews(view: RunView) -> Iterator[Block]:
    """Return a round's reviews in prose, each whole, and whose answer each of their labels is."""
    written = [
        (seat.short, seat.review) for seat in view.seats if seat.review and not _is_form(seat.review)
    ]
    if not written:
        return
    yield Heading(f"Reviews{wording.of_round(view.number)}")
    if view.by_label:
        labels = [f"{label} is {name}" for label, name in view.by_label.items()]
        yield Line(f"Reviewers saw no names: {listing(labels)}.")
    for critic, review in written:
        yield Heading(wording.REVIEW_BY.format(critic), 3)
        yield Prose(review.ranking)
        if review.truncated:
            yield Line(wording.REVIEW_CUT_OFF)
