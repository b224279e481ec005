"""The run: from a question to the council's answer, one way.

    answers → reviews → corrections → synthesis

Scheduling follows the data. Reviews begin when the last expected answer is in; a member's
correction begins when every *other* member's review is in; the title never delays anything.
A failing member costs the council a voice, never the run.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from council import consulting, prompts
from council.ballot import ballot_schema, read_ballot
from council.brief import Brief
from council.calls import Ask, Reply, Steps
from council.changes import detect_significant_changes, summarize_changes
from council.consultation import as_spoken, for_reviewers, for_the_chair
from council.conversation import (
    AggregateRanking,
    AnswerSource,
    AssistantMessage,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
    peer_critiques,
    timestamp,
)
from council.critique import shorten
from council.cutoff import Cutoff, Stop
from council.errors import Failure, NoAnswers, RunStopped
from council.events import Emit, StageCompleted, StageStarted, TitleCompleted
from council.floor import Floor
from council.profile import Member, Profile
from council.ranking import aggregate, disagreements
from council.results import ScoringMatrix
from council.scoring import score
from council.seating import label_answers, reading_orders

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Deliberation:
    """What a run gives: the message for the conversation document, and a title if one was wanted."""

    message: AssistantMessage
    title: str | None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The answers after review and correction."""

    labels: dict[str, str]
    reviews: list[Stage2Result]
    corrections: list[Stage2_5Result] | None
    ranking: AggregateRanking | None
    scores: ScoringMatrix | None = None

    @property
    def best(self) -> str:
        """Name who gave the best-ranked answer; a disqualified one is it only where all are."""
        scored = self.scores.answers if self.scores else []
        disqualified = {answer.model for answer in scored if answer.is_disqualified}
        places = self.ranking.places if self.ranking else []
        ranked = [place.model for place in places] or [self.labels["Response A"]]
        return next((model for model in ranked if model not in disqualified), ranked[0])


async def deliberate(
    brief: Brief,
    *,
    ask: Ask,
    steps: Steps,
    emit: Emit,
    now: Callable[[], datetime],
    stop: Stop | None = None,
) -> Deliberation:
    """Take a question through all stages.

    Raises `NoAnswers`, `AccountError` or `RunStopped` when there can't be an answer.
    """
    started_at = brief.started_at or timestamp(now())
    floor = Floor(brief, ask=ask, steps=steps, emit=emit, now=now, stop=stop or Stop())
    titling = Cutoff(within=floor.stop.members)
    title = asyncio.create_task(_title(floor, titling))
    try:
        answers = await _answers(floor)
        if len(answers) == 1:
            reviewed = Reviewed({}, [], None, None)
            final = _only(answers[0])
        else:
            reviewed = await _review_and_correct(floor, answers)
            final = await _synthesis(floor, answers, reviewed)
    finally:
        titling.trip("not_needed")
        named = await title
    if brief.wants_title:
        emit(TitleCompleted(named))
    return Deliberation(
        message=AssistantMessage(
            role="assistant",
            stage1=answers,
            stage2=reviewed.reviews,
            stage2_5=reviewed.corrections,
            stage3=final,
            label_to_model=reviewed.labels or None,
            aggregate_ranking=reviewed.ranking,
            usage=floor.usage(),
            settings=brief.profile.model_dump(mode="json", exclude_defaults=True),
            strategy=brief.profile.strategy,
            criteria=brief.profile.criteria,
            scores=reviewed.scores,
            failures=floor.failures,
            started_at=started_at,
            finished_at=timestamp(now()),
        ),
        title=named if brief.wants_title else None,
    )


async def _answers(floor: Floor) -> list[Stage1Result]:
    """Stage 1: every member answers on its own; answers come back in seating order."""
    profile = floor.brief.profile

    async def answer(member: Member) -> Stage1Result | Failure:
        def becomes(reply: Reply) -> Stage1Result:
            return Stage1Result(
                model=member.name,
                response=reply.text,
                answered_by=reply.answered_by,
                persona=member.persona.name if member.persona else None,
                truncated=reply.truncated,
                citations=reply.citations,
                consultation=reply.consultation,
                unstructured=reply.unstructured,
            )

        messages = prompts.answer(floor.brief, member)
        form = consulting.form(floor, member, messages)
        return await floor.hear(sitting, member, messages, becomes, form=form)

    floor.emit(StageStarted("stage1", tuple(member.name for member in profile.members)))
    with floor.open("stage1") as sitting:
        async with asyncio.TaskGroup() as group:
            seats = [group.create_task(answer(member)) for member in profile.members]
    results = [seat.result() for seat in seats]
    answers = [result for result in results if isinstance(result, Stage1Result)]
    floor.emit(StageCompleted("stage1", tuple(answers)))
    floor.raise_for_account()
    failures = {
        member.name: result
        for member, result in zip(profile.members, results, strict=True)
        if isinstance(result, Failure)
    }
    if len(answers) < profile.quorum and floor.skips("stage2"):
        raise RunStopped(failures)
    if not answers:
        raise NoAnswers(failures)
    return answers


async def _review_and_correct(floor: Floor, answers: list[Stage1Result]) -> Reviewed:
    """Stages 2 and 2.5: anonymous reviews, then corrections, each as soon as its data is there."""
    profile = floor.brief.profile
    criteria = profile.criteria
    scored_by = criteria.names if criteria else ()
    members = {member.name: member for member in profile.members}
    names = [answer.model for answer in answers]
    texts = {answer.model: answer.response for answer in answers}
    consultations = {answer.model: answer.consultation for answer in answers}
    readable = {name: for_reviewers(texts[name], consultations[name]) for name in names}
    labels = label_answers(names, floor.brief.seed)
    label_of = {name: label for label, name in labels.items()}
    orders = reading_orders(names, floor.brief.seed, self_review=profile.self_review)
    if floor.skips("stage2"):
        return Reviewed(labels, [], None, None)

    async def review(name: str) -> Stage2Result | Failure:
        read = [label_of[author] for author in orders[name]]

        def becomes(reply: Reply) -> Stage2Result:
            ballot = read_ballot(reply.text, read, scored_by)
            return Stage2Result(
                model=name,
                ranking=ballot.text,
                parsed_ranking=[*ballot.ranking],
                answered_by=reply.answered_by,
                order=read,
                scores={label: dict(given) for label, given in ballot.scores.items()},
                critiques=None if ballot.critiques is None else [*ballot.critiques],
                truncated=reply.truncated,
            )

        schema = ballot_schema(read, scored_by, terse=profile.demonstration)
        labelled = [(label, readable[labels[label]]) for label in read]
        return await floor.hear(
            review_sitting,
            members[name],
            prompts.review(floor.brief, members[name], labelled),
            becomes,
            schema=schema if members[name].structured else None,
        )

    async def correct(name: str) -> Stage2_5Result:
        peers = [await reviewing[peer] for peer in names if peer != name]
        reviews = [peer for peer in peers if isinstance(peer, Stage2Result)]
        critiques = peer_critiques(name, reviews)

        def corrected(
            text: str, reply: Reply | None = None, why: Failure | None = None
        ) -> Stage2_5Result:
            changed = detect_significant_changes(texts[name], text)
            return Stage2_5Result(
                model=name,
                original_response=texts[name],
                peer_critiques=critiques,
                corrected_response=text,
                changed=changed,
                change_summary=summarize_changes(texts[name], text) if changed else None,
                answered_by=reply.answered_by if reply else None,
                truncated=reply.truncated if reply else False,
                citations=reply.citations if reply else (),
                fallback=why,
                consultation=reply.consultation if reply else consultations[name],
                unstructured=reply.unstructured if reply else None,
            )

        handed = shorten([peer.ranking for peer in reviews], profile.max_critique_tokens)
        messages = prompts.correction(
            floor.brief,
            members[name],
            original=as_spoken(texts[name], consultations[name]),
            label=label_of[name],
            critiques=[(peer.model, text) for peer, text in zip(reviews, handed, strict=True)],
        )
        result = await floor.hear(
            correct_sitting,
            members[name],
            messages,
            lambda reply: corrected(reply.text, reply),
            form=consulting.form(
                floor, members[name], messages, after=1, critics=[peer.model for peer in reviews]
            ),
        )
        return corrected(texts[name], why=result) if isinstance(result, Failure) else result

    floor.emit(StageStarted("stage2", tuple(names)))
    with floor.open("stage2") as review_sitting, floor.open("stage2_5") as correct_sitting:
        async with asyncio.TaskGroup() as group:
            reviewing = {name: group.create_task(review(name)) for name in names}
            correcting = [group.create_task(correct(name)) for name in names]
            outcomes = [await reviewing[name] for name in names]
            reviews = [outcome for outcome in outcomes if isinstance(outcome, Stage2Result)]
            ranking = aggregate({review.model: review.parsed_ranking for review in reviews}, labels)
            given = {review.model: review.scores for review in reviews}
            scores = score(given, labels, criteria) if criteria else None
            floor.emit(
                StageCompleted(
                    "stage2",
                    tuple(reviews),
                    label_to_model=labels,
                    aggregate_ranking=ranking,
                    scores=scores,
                )
            )
            floor.emit(StageStarted("stage2_5", tuple(names)))
    corrections = [task.result() for task in correcting]
    floor.emit(StageCompleted("stage2_5", tuple(corrections)))
    floor.raise_for_account()
    return Reviewed(labels, reviews, corrections, ranking, scores)


async def _synthesis(floor: Floor, answers: list[Stage1Result], reviewed: Reviewed) -> Stage3Result:
    """Stage 3: the chairman writes; when it can't, the next in line does, and that is said."""
    profile = floor.brief.profile
    stopped_early = floor.was_stopped
    texts = {answer.model: answer.response for answer in answers}
    texts |= {result.model: result.corrected_response for result in reviewed.corrections or []}
    consultations = {
        result.model: result.consultation for result in (*answers, *(reviewed.corrections or ()))
    }
    best = reviewed.best
    ballots = {review.model: review.parsed_ranking for review in reviewed.reviews}
    read = shorten([review.ranking for review in reviewed.reviews], profile.max_critique_tokens)

    async def write(member: Member, source: AnswerSource) -> Stage3Result | Failure:
        def becomes(reply: Reply) -> Stage3Result:
            return Stage3Result(
                model=member.name,
                response=reply.text,
                source=source,
                answered_by=reply.answered_by,
                stopped_early=stopped_early,
                truncated=reply.truncated,
            )

        prompt = prompts.synthesis(
            floor.brief,
            member,
            responses=[
                (label, name, for_the_chair(texts[name], consultations[name]))
                for label, name in reviewed.labels.items()
            ],
            ranking=reviewed.ranking,
            scores=reviewed.scores,
            disagreements=disagreements(ballots, reviewed.labels),
            reviews=[(each.model, text) for each, text in zip(reviewed.reviews, read, strict=True)],
        )
        return await floor.hear(sitting, member, prompt, becomes, role=source)

    result = Stage3Result(
        model=best, response=texts[best], source="verbatim", stopped_early=stopped_early
    )
    floor.emit(StageStarted("stage3", (profile.chairman.name,)))
    with floor.open("stage3") as sitting:
        for member, source in _line_to_the_chair(profile, best):
            written = await write(member, source)
            if isinstance(written, Stage3Result):
                result = written
                break
            floor.raise_for_account()
            if floor.stop.everything.cause is not None:
                raise RunStopped
    floor.emit(StageCompleted("stage3", (result,)))
    return result


def _line_to_the_chair(profile: Profile, best: str) -> Iterable[tuple[Member, AnswerSource]]:
    """Give who writes the final answer, in order; no model at one address is asked twice."""
    best_ranked = [member for member in profile.members if member.name == best]
    ranks: tuple[tuple[Iterable[Member], AnswerSource], ...] = (
        ([profile.chairman], "chairman"),
        (profile.chairman_fallbacks, "fallback"),
        (best_ranked, "best_ranked"),
    )
    seats: dict[tuple[str, str | None], tuple[Member, AnswerSource]] = {}
    for members, source in ranks:
        for member in members:
            seats.setdefault((member.model, member.endpoint), (member, source))
    return seats.values()


def _only(answer: Stage1Result) -> Stage3Result:
    """Give the one answer there is as the final one: one model, not reviewed."""
    return Stage3Result(
        model=answer.model,
        response=answer.response,
        source="single",
        answered_by=answer.answered_by,
        truncated=answer.truncated,
    )


async def _title(floor: Floor, cutoff: Cutoff) -> str:
    """Name the conversation: by the title model where there is one, else by the question."""
    member = floor.brief.profile.title_model
    if member and floor.brief.wants_title:
        text = await floor.hear_title(member, prompts.title(floor.brief, member), cutoff)
        if text and (line := _one_line(text.strip().strip("\"'*#`\u201c\u201d "))):
            return line
    return _one_line(floor.brief.question)


def _one_line(text: str) -> str:
    line = " ".join(re.split(r"\s+", text.strip()))
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}\u2026"
