"""The run: from a question to the council's answer, one way.

    answers → reviews → corrections → synthesis

Scheduling follows the data. Reviews begin when the last expected answer is in; the title never
delays anything. Reviews and corrections, in one or more rounds, are in `council.rounds`.
A failing member costs the council a voice, never the run.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from council import consultation_calls
from council.brief import Brief
from council.calls import Ask, AskAgain, Reply, Steps
from council.consultation import chairman_view
from council.document import results
from council.document.changes import dropped
from council.document.conversation import AssistantMessage, Round, timestamp
from council.document.results import AnswerSource, Stage1Result, Stage2_5Result, Stage3Result
from council.errors import Failure, NoAnswers, RunStopped
from council.estimate import WITHDRAWN_TOKENS
from council.events import DepthChosen, Emit, StageCompleted, StageStarted, TitleCompleted
from council.models.costs import PriceOf
from council.notes import has_no_answer, read_notes
from council.profile import Member
from council.prompts.chair import Material
from council.prompts.opening import shorten
from council.reviews.labels import label_answers
from council.reviews.ranking import counted, disagreements
from council.rounds import ReviewResult, review_and_correct
from council.session import Request, Session
from council.tasks import Cancellation, Stop, TaskGroup, offload
from council.text import clip
from council.worth.depth import choose_depth, have_changed

# Built once: an annotation is evaluated whenever its function is defined, and these are inner ones.
Answered = Stage1Result | Failure
ReadAnswer = Stage1Result | AskAgain[Stage1Result]
ReadFinal = Stage3Result | Failure | AskAgain[Stage3Result | Failure]

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Deliberation:
    """The result of a run: the message for the conversation document, and a title if one was wanted.

    `saw` names who was shown the question's pictures.
    """

    message: AssistantMessage
    title: str | None
    saw: tuple[str, ...] = ()


async def deliberate(
    brief: Brief,
    *,
    ask: Ask,
    steps: Steps,
    emit: Emit,
    now: Callable[[], datetime],
    stop: Stop | None = None,
    price_of: PriceOf = lambda _: None,
) -> Deliberation:
    """Take a question through all stages and return the answer.

    `price_of` tells what is saved where stages are skipped. Raises `NoAnswers` or `RunStopped` when
    there can't be an answer.
    """
    session = Session(brief, ask=ask, steps=steps, emit=emit, now=now, stop=stop or Stop())
    titling = Cancellation(session.stop.members)
    title = asyncio.create_task(_title(session, titling))
    try:
        answers = await _answers(session)
        reviewed, final, depth = await _concluded(session, answers, price_of)
    except asyncio.CancelledError:
        title.cancel()  # the next start asks for it
        raise
    finally:
        if not title.cancelling():
            titling.cancel("not_needed")
        named = await title
    if brief.history.is_empty:
        emit(TitleCompleted(named))
    return Deliberation(
        message=AssistantMessage(
            role="assistant",
            stage1=answers,
            stage2=reviewed.first.reviews,
            stage2_5=reviewed.corrections,
            stage3=final,
            label_to_model=None if results.was_skipped(depth) else reviewed.first.labels or None,
            aggregate_ranking=reviewed.first.ranking,
            usage=session.usage(),
            settings=brief.profile.model_dump(mode="json", exclude_defaults=True),
            strategy=brief.profile.strategy,
            criteria=brief.profile.criteria,
            scores=reviewed.first.scores,
            depth=depth,
            iteration=reviewed.iteration,
            failures=session.failures,
            started_at=brief.started_at,
            finished_at=timestamp(now()),
        ),
        title=named if brief.history.is_empty else None,
        saw=tuple(session.saw),
    )


async def _concluded(
    session: Session, answers: list[Stage1Result], price_of: PriceOf
) -> tuple[ReviewResult, Stage3Result, results.RunDepth | None]:
    """Take the answers as deep as the run goes, to the final one."""
    if depth := await choose_depth(session, answers, price_of):
        session.emit(DepthChosen(depth))
    if len(answers) == 1:
        reviewed, [only] = ReviewResult.none(), answers
        final = Stage3Result(
            model=only.model,
            response=only.response,
            source="single",
            answered_by=only.answered_by,
            truncated=only.truncated,
        )
        session.emit(StageStarted("stage3", ()))
        session.emit(StageCompleted("stage3", (final,)))
    else:
        if results.was_skipped(depth):
            names = [answer.model for answer in answers]
            reviewed = ReviewResult.none(label_answers(names, session.brief.seed))
        else:
            reviewed = await review_and_correct(session, answers)
        final = await _synthesis(session, answers, reviewed, depth)
    if depth and depth.ran == "full" and not (reviewed.first.reviews or reviewed.corrections):
        # It was stopped before the first review.
        depth = depth.model_copy(update={"ran": "quick", "reason": "stopped"})
    elif depth and depth.audited:
        changed = await have_changed(session, answers, reviewed.corrections or [], final)
        depth = depth.model_copy(update={"changed": changed})
    return reviewed, final, depth


async def _answers(session: Session) -> list[Stage1Result]:
    """Stage 1: every member answers on its own; answers come back in seating order."""
    profile = session.brief.profile

    async def answer(member: Member) -> Answered:
        async def read(reply: Reply) -> ReadAnswer:
            said = await consultation_calls.read(session, member, reply)
            result = Stage1Result(
                model=member.name,
                response=said.text,
                answered_by=said.answered_by,
                persona=member.persona.name if member.persona else None,
                truncated=said.truncated,
                citations=said.citations,
                consultation=said.consultation,
                unstructured=said.unstructured,
            )
            return consultation_calls.or_again(result)

        prompt = partial(session.prompts.answer, member)
        schema = consultation_calls.schema(profile)
        return await session.ask(stage, member, Request(prompt=prompt, schema=schema), read)

    session.emit(StageStarted("stage1", tuple(member.name for member in profile.members)))
    with session.open("stage1") as stage:
        async with TaskGroup() as group:
            seats = [group.create_task(answer(member)) for member in profile.members]
    given = [seat.result() for seat in seats]
    answers = [result for result in given if isinstance(result, Stage1Result)]
    session.emit(StageCompleted("stage1", tuple(answers)))
    failures = {
        member.name: session.accounts.seen_whole(member, result)
        for member, result in zip(profile.members, given, strict=True)
        if isinstance(result, Failure)
    }
    if len(answers) < profile.quorum and session.skips("stage2"):
        raise RunStopped(failures)
    if not answers:
        raise NoAnswers(failures)
    return answers


async def _synthesis(
    session: Session, answers: list[Stage1Result], reviewed: ReviewResult, depth: results.RunDepth | None
) -> Stage3Result:
    """Stage 3: the chairman writes the answer; if it can't, the next in line does."""
    profile = session.brief.profile
    stopped_early = session.was_stopped
    corrections = reviewed.corrections or []
    current: dict[str, results.MemberAnswer] = {
        answer.model: answer for answer in (*answers, *corrections)
    }
    last = reviewed.last
    ballots = {review.model: review.parsed_ranking for review in last.reviews}
    votes = counted(ballots, last.labels)
    withdrawn = await offload(
        sum(len(each.original_response) for each in corrections), _withdrawn, corrections
    )
    rejected = _rejected(last)
    skipped: results.DepthReason | None = "stopped" if reviewed.corrections is None else None
    if depth and depth.ran == "quick":
        skipped = depth.reason
    critiques = shorten([review.ranking for review in last.reviews], profile.critique_tokens)

    async def write(member: Member, source: AnswerSource) -> Stage3Result | Failure:
        async def read(reply: Reply) -> ReadFinal:
            text, mark = reply.text, session.brief.notes_mark
            if has_no_answer(mark, text):
                return AskAgain(session.prompts.no_answer(), Failure(cause="malformed"))
            parting = partial(read_notes, mark, text, last.labels, reply.truncated)
            answer, notes = await offload(len(text) // 16, parting)
            return Stage3Result(
                model=member.name,
                response=answer,
                source=source,
                answered_by=reply.answered_by,
                stopped_early=stopped_early,
                truncated=reply.truncated and notes is None,
                notes=notes,
            )

        given = Material(
            responses=[
                (label, name, chairman_view(current[name].text, current[name].consultation))
                for label, name in last.labels.items()
            ],
            withdrawn=withdrawn,
            rejected=rejected,
            ranking=last.ranking,
            votes=votes,
            scores=last.scores,
            disagreements=disagreements(votes, last.labels),
            reviews=[(each.model, text) for each, text in zip(last.reviews, critiques, strict=True)],
            skipped=skipped,
        )
        prompt = partial(session.prompts.synthesis, member, given)
        penalty = session.prompts.repeat_penalty
        request = Request(prompt=prompt, repeat_penalty=penalty, role=source)
        return await session.ask(stage, member, request, read)

    result = _verbatim(last.ranked[0], answers, reviewed, stopped_early=stopped_early)
    session.emit(StageStarted("stage3", (profile.chairman.name,)))
    with session.open("stage3") as stage:
        for member, source in _chair_candidates(session, last.ranked):
            written = await write(member, source)
            if isinstance(written, Stage3Result):
                result = written
                break
            if session.stop.everything.cause is not None:
                raise RunStopped(enough=True)
    session.emit(StageCompleted("stage3", (result,)))
    return result


def _withdrawn(corrections: Sequence[Stage2_5Result]) -> list[tuple[str, str]]:
    """Return what members said at first and no longer say, sentence by sentence."""
    found = [
        (each.model, "\n".join(dropped(each.original_response, each.text)))
        for each in corrections
        if each.changed
    ]
    short = shorten([text for _, text in found], WITHDRAWN_TOKENS)
    return [(member, text) for (member, _), text in zip(found, short, strict=True) if text]


def _rejected(held: Round) -> list[tuple[str, str]]:
    """Return the objections that their answers' authors reject, each with its reason.

    An objection that quotes what the answer doesn't say is none that anybody need decide.
    """
    unfounded = {
        (review.model, point.text)
        for review in held.reviews
        for point in review.points or ()
        if point.found is False
    }
    found = [
        (each.model, f"{reply.critic}: {reply.objection}\n\n{each.model}: {reply.reason}")
        for each in held.corrections
        for reply in each.replies or ()
        if not reply.holds and (reply.critic, reply.objection) not in unfounded
    ]
    short = shorten([text for _, text in found], WITHDRAWN_TOKENS)
    return [(author, text) for (author, _), text in zip(found, short, strict=True)]


def _chair_candidates(session: Session, ranked: Sequence[str]) -> Iterator[tuple[Member, AnswerSource]]:
    """Yield who may write the final answer, in order; no model at the same address twice.

    The last one is the best-ranked member whose account can still be asked.
    """
    profile = session.brief.profile
    members = {member.name: member for member in profile.members}
    line: list[tuple[Member, AnswerSource]] = [(profile.chairman, "chairman")]
    line.extend((member, "fallback") for member in profile.chairman_fallbacks)
    line.extend((members[name], "best_ranked") for name in ranked)
    asked: set[tuple[str, str | None]] = set()
    for member, source in line:
        if source != "best_ranked" or session.can_ask(member):
            seat = member.model, member.endpoint_id
            if seat not in asked:
                asked.add(seat)
                yield member, source
            # Another member could only help against a refused account.
            if source == "best_ranked" and session.can_ask(member):
                return


def _verbatim(
    model: str, answers: list[Stage1Result], reviewed: ReviewResult, *, stopped_early: bool
) -> Stage3Result:
    """Return a member's answer as the final one: its correction, or without one its first answer."""
    given = (
        each for each in reviewed.corrections or () if each.fallback is None and not each.maintained
    )
    written = next(each for each in (*given, *answers) if each.model == model)
    return Stage3Result(
        model=model,
        response=written.text,
        source="verbatim",
        answered_by=written.answered_by,
        stopped_early=stopped_early,
        truncated=written.truncated,
    )


async def _title(session: Session, cancellation: Cancellation) -> str:
    member = session.brief.profile.title_model
    if member and session.brief.history.is_empty:
        prompt = partial(session.prompts.title, member)

        async def read(reply: Reply) -> str:
            return _one_line(reply.text.strip().strip("\"'*#`\u201c\u201d "))

        line = await session.ask_beside("title", member, Request(prompt=prompt), read, cancellation)
        if line and not isinstance(line, Failure):
            return line
    return _one_line(session.brief.question)


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), TITLE_LENGTH)
