"""Review and correction, round after round, until there is a reason to stop.

Inside a round, scheduling follows the data: a member's correction begins when every *other* member's
review is in. Between rounds there is nothing to overlap: whoever reviews reads all answers, so a
further round begins when the last correction is in.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from council import consultation_calls
from council.calls import AskAgain, ChatMessage, Reply
from council.consultation import for_reviewers, spoken_text
from council.document.conversation import peer_critiques
from council.document.corrections import Round, corrected, maintained, overall, record
from council.document.results import (
    CritiqueItem,
    IterationRound,
    IterationState,
    MemberAnswer,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    TerminationReason,
    format_critiques_for_refinement,
)
from council.echo import CorrectionInputs, fault
from council.errors import Cause, Failure
from council.events import StageCompleted, StageStarted
from council.offload import offload
from council.profile import Member
from council.prompts.opening import shorten
from council.prompts.prompts import Prompts, labels_only
from council.reviews.ballot_text import without_ranking
from council.reviews.ballots import (
    ballot_schema,
    labels_schema,
    read_ballot,
    read_labels,
    with_ranking,
)
from council.reviews.extraction import extract_critiques_from_rankings
from council.reviews.labels import label_answers, reading_orders
from council.reviews.ranking import aggregate, score
from council.session import Request, Session, StageCancellation
from council.task_group import TaskGroup
from council.termination import complete_round, start_new_round
from council.text.json_objects import JsonObject

# Built once: an annotation is evaluated whenever its function is defined, and these are inner ones.
ReadReview = Stage2Result | AskAgain[Stage2Result]
ReadCorrection = Stage2_5Result | Failure | AskAgain[Stage2_5Result | Failure]
Judged = tuple[Stage2_5Result, Cause | None]

LABELS_TOKENS = 1_000
"""Room for a ranking alone, and for a model that thinks before it writes one."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The answers after all rounds, and what the chairman works from.

    `first` is the round in the document's stage 2, `last` the last one with a counted vote.
    `corrections` lead from the first answers to the last; `None` if there was no round.
    """

    first: Round
    last: Round
    corrections: list[Stage2_5Result] | None
    iteration: IterationState | None

    @classmethod
    def none(cls, labels: dict[str, str] | None = None) -> "Reviewed":
        """Return what there is without any round."""
        none = Round(labels or {}, [], [])
        return cls(none, none, None, None)


async def review_and_correct(session: Session, answers: list[Stage1Result]) -> Reviewed:
    """Run rounds of stages 2 and 2.5 until a `TerminationReason` applies."""
    profile = session.brief.profile
    state = IterationState(max_rounds=profile.max_rounds)
    current: Sequence[MemberAnswer] = answers
    rounds: list[Round] = []
    while not state.terminated:
        if session.skips("stage2", state.current_round + 1):
            state.terminate(TerminationReason.USER_STOPPED)
            break
        data = start_new_round(state)
        held = await _Table(session, current, data).run_round()
        if not held.reviews and not data.refinements:
            state.terminate(
                TerminationReason.USER_STOPPED
                if session.was_stopped
                else TerminationReason.ERROR_OCCURRED
            )
        number = data.round_number
        complete_round(state, data, session.tokens(f"stage2.{number}", f"stage2_5.{number}"))
        rounds.append(held)
        current = held.corrections
    is_told = profile.max_rounds > 1 or profile.critique_mode == "extracted"
    told = state if is_told else None
    if not rounds:
        nothing = Reviewed.none(label_answers([each.model for each in answers], session.brief.seed))
        return replace(nothing, iteration=told)
    ranked = [each for each in rounds if each.ranking and each.ranking.ballots]
    steps = [*zip(*(each.corrections for each in rounds), strict=True)]
    size = _size(rounds[-1].corrections) if len(rounds) > 1 else 0
    return Reviewed(
        first=rounds[0],
        last=ranked[-1] if ranked else rounds[-1],
        corrections=await offload(size, lambda: [*map(overall, steps)]),
        iteration=told,
    )


def _size(corrections: list[Stage2_5Result]) -> int:
    return sum(len(each.original_response) + len(each.corrected_response) for each in corrections)


@dataclass(frozen=True, slots=True)
class _Reviewer:
    """A member that reviews answers, by their labels, in the order in which it reads them."""

    prompts: Prompts
    member: Member
    labelled: Sequence[tuple[str, str]]

    @property
    def order(self) -> list[str]:
        """The labels it ranks."""
        return [label for label, _ in self.labelled]

    @property
    def schema(self) -> JsonObject | None:
        """The form of its ballot, where its endpoint takes one."""
        if not self.member.structured:
            return None
        return ballot_schema(
            self.order, self._criteria, is_demonstration=self.prompts.brief.profile.demonstration
        )

    def prompt(self) -> tuple[ChatMessage, ...]:
        """Ask for a review."""
        return self.prompts.review(self.member, self.labelled)

    def plain_prompt(self) -> tuple[ChatMessage, ...]:
        """Ask for one in prose."""
        unstructured = self.member.model_copy(update={"structured": False})
        return self.prompts.review(unstructured, self.labelled)

    async def read(self, reply: Reply) -> ReadReview:
        """Read a review, or ask for its ranking alone where that can't be read."""
        order, profile = self.order, self.prompts.brief.profile
        # The built-in model must criticize, and copies what it reads when it has nothing to say.
        copied = self._texts if profile.demonstration else ()
        reading = partial(
            read_ballot,
            reply.text,
            order,
            self._criteria,
            answers=dict(self.labelled),
            question=self.prompts.brief.question,
            copied=copied,
        )
        ballot = await offload(self._size(reply), reading)
        result = Stage2Result(
            model=self.member.name,
            ranking=ballot.text,
            parsed_ranking=[*ballot.ranking],
            answered_by=reply.answered_by,
            order=order,
            scores={label: dict(scores) for label, scores in ballot.scores.items()},
            points=None if ballot.points is None else [*ballot.points],
            cleared=[*ballot.cleared],
            truncated=reply.truncated,
        )
        if result.parsed_ranking or len(order) < 2:
            return result
        words = labels_only(order)
        again = partial(self._read_labels, result)
        return AskAgain(words, result, labels_schema(order), LABELS_TOKENS, again)

    async def _read_labels(self, first: Stage2Result, reply: Reply) -> Stage2Result:
        read = partial(read_labels, reply.text, self.order, answers=self._texts)
        ranking = await offload(self._size(reply), read)
        text = with_ranking(first.ranking, ranking) if ranking else first.ranking
        return first.model_copy(update={"ranking": text, "parsed_ranking": ranking})

    def _size(self, reply: Reply) -> int:
        beside = self._texts if "{" in reply.text else ()  # only an object is looked for in them
        return len(reply.text) + sum(map(len, beside))

    @property
    def _texts(self) -> list[str]:
        return [self.prompts.brief.question, *(text for each in self.labelled for text in each)]

    @property
    def _criteria(self) -> Sequence[str]:
        return self.prompts.brief.profile.criteria.names if self.prompts.brief.profile.criteria else ()


class _Table:
    """One round of the members who gave an answer."""

    def __init__(self, session: Session, answers: Sequence[MemberAnswer], data: IterationRound) -> None:
        self._session = session
        self._answers = {answer.model: answer for answer in answers}
        self._data = data
        brief, number = session.brief, data.round_number
        self._names = [*self._answers]
        self._members = {member.name: member for member in brief.profile.members}
        self._labels = label_answers(self._names, brief.seed, number)
        self._label_of = {name: label for label, name in self._labels.items()}
        self._orders = reading_orders(self._names, brief.seed, number)
        self._by_points = brief.profile.critique_mode == "extracted"
        if self._by_points:
            data.critiques = {label: [] for label in self._labels}
        self._reviewing: dict[str, asyncio.Task[Stage2Result | Failure]] = {}

    async def run_round(self) -> Round:
        """Get every review and every correction, each as soon as its data is available."""
        session, names, number = self._session, self._names, self._data.round_number
        session.emit(StageStarted("stage2", tuple(names), number))
        with (
            session.open("stage2", number) as review_stage,
            session.open("stage2_5", number) as correction_stage,
        ):
            async with TaskGroup() as group:
                for name in names:
                    self._reviewing[name] = group.create_task(self._review(name, review_stage))
                correcting = [group.create_task(self._correct(name, correction_stage)) for name in names]
                reviews = [
                    outcome
                    for name in names
                    if isinstance(outcome := await self._reviewing[name], Stage2Result)
                ]
                held = self._ranked(reviews)
                session.emit(
                    StageCompleted(
                        "stage2",
                        tuple(reviews),
                        number,
                        label_to_model=held.labels,
                        aggregate_ranking=held.ranking,
                        scores=held.scores,
                    )
                )
                session.emit(StageStarted("stage2_5", tuple(names), number))
        held.corrections.extend(task.result() for task in correcting)
        session.emit(StageCompleted("stage2_5", tuple(held.corrections), number))
        await offload(_size(held.corrections), self._note, held)
        return held

    def _ranked(self, reviews: list[Stage2Result]) -> Round:
        criteria = self._session.brief.profile.criteria
        given = {review.model: review.scores for review in reviews}
        return Round(
            self._labels,
            reviews,
            [],
            aggregate({review.model: review.parsed_ranking for review in reviews}, self._labels),
            score(given, self._labels, criteria) if criteria else None,
        )

    def _note(self, held: Round) -> None:
        """Record what became of the answers in this round."""
        data = self._data
        data.label_to_model = held.labels
        record(data, held.corrections)
        if data.round_number > 1:  # those of round 1 are the message's own
            data.stage2 = held.reviews
            data.aggregate_ranking = held.ranking
            data.scores = held.scores

    async def _review(self, name: str, stage: StageCancellation) -> Stage2Result | Failure:
        labelled = [(self._label_of[author], self._readable(author)) for author in self._orders[name]]
        reviewer = _Reviewer(self._session.prompts, self._members[name], labelled)
        request = Request(prompt=reviewer.prompt, schema=reviewer.schema, plain=reviewer.plain_prompt)
        return await self._session.ask(stage, reviewer.member, request, reviewer.read)

    def _readable(self, name: str) -> str:
        answer = self._answers[name]
        return for_reviewers(answer.text, answer.consultation)

    async def _correct(self, name: str, stage: StageCancellation) -> Stage2_5Result:
        peers = [await self._reviewing[peer] for peer in self._names if peer != name]
        reviews = [peer for peer in peers if isinstance(peer, Stage2Result)]
        answer, member = self._answers[name], self._members[name]
        if not self._session.brief.profile.corrects:
            return maintained(answer, "" if self._by_points else peer_critiques(name, reviews))
        if self._by_points:
            points = await self._points(name, reviews)
            if not points:
                return maintained(answer)
            critiques = format_critiques_for_refinement(points)
            prompt = partial(self._by_point, member, points)
        else:
            critiques = peer_critiques(name, reviews)
            prompt = partial(self._by_review, member, reviews)
            is_open = self._session.prompts.corrects_all or not reviews
            label = self._label_of[name]
            if not is_open and all(review.objects_to(label) is False for review in reviews):
                return maintained(answer, critiques)

        session, number = self._session, self._data.round_number

        def judged(said: Reply) -> Judged:
            result = corrected(answer, critiques, said)
            keeps = result.kept_because is not None
            return result, fault(said.text, self._inputs(name, reviews), keeps=keeps)

        async def read(reply: Reply) -> ReadCorrection:
            said = await consultation_calls.read(session, member, reply, after=number)
            size = len(answer.text) + len(said.text)
            result, cause = await offload(size, judged, said)
            if cause:
                return AskAgain(session.prompts.no_correction(cause), Failure(cause=cause))
            return consultation_calls.or_again(result)

        critics = [review.model for review in reviews]
        schema = consultation_calls.schema(session.brief.profile, critics=critics)
        penalty = session.prompts.repeat_penalty
        request = Request(prompt=prompt, schema=schema, repeat_penalty=penalty)
        result = await session.ask(stage, member, request, read)
        if isinstance(result, Failure):
            return corrected(answer, critiques, result)
        return result

    async def _points(self, name: str, reviews: list[Stage2Result]) -> list[CritiqueItem]:
        label = self._label_of[name]
        size = sum(len(review.ranking) for review in reviews)
        found = await offload(size, extract_critiques_from_rankings, reviews, {label: name})
        self._data.critiques |= found
        return found[label]

    def _inputs(self, name: str, reviews: list[Stage2Result]) -> CorrectionInputs:
        brief = self._session.brief
        return CorrectionInputs(
            question=brief.question,
            original=self._answers[name].text,
            prompt=self._session.prompts.instructions(self._label_of[name]),
            reviews=[review.ranking for review in reviews],
            others=[self._answers[peer].text for peer in self._names if peer != name],
            labels=[*self._labels],
        )

    def _spoken(self, name: str) -> str:
        answer = self._answers[name]
        return spoken_text(answer.text, answer.consultation)

    def _by_point(self, member: Member, points: list[CritiqueItem]) -> tuple[ChatMessage, ...]:
        brief = self._session.brief
        short = shorten([point.critique_text for point in points], brief.profile.critique_tokens)
        handed = [
            point.model_copy(update={"critique_text": text})
            for point, text in zip(points, short, strict=True)
        ]
        original = self._spoken(member.name)
        return self._session.prompts.refinement(member, original=original, critiques=handed)

    def _by_review(self, member: Member, reviews: list[Stage2Result]) -> tuple[ChatMessage, ...]:
        brief = self._session.brief
        texts = [without_ranking(review.ranking) for review in reviews]
        short = shorten(texts, brief.profile.critique_tokens)
        return self._session.prompts.correction(
            member,
            original=self._spoken(member.name),
            label=self._label_of[member.name],
            critiques=[(review.model, text) for review, text in zip(reviews, short, strict=True)],
        )
