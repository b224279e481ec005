"""A run as its observers see it: events folded into one frozen view.

`fold` is pure and total over `council.events.Event`; what it is given as `now` is any monotonic
clock, in seconds. `of_document` gives the same view from a stored answer, however old.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from pydantic import ValidationError

from council.conversation import (
    AggregateRanking,
    AssistantMessage,
    Conversation,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
)
from council.criteria import EvaluationCriteria
from council.errors import Failure
from council.events import (
    STAGES,
    AnswerStreamed,
    Event,
    MemberAnswered,
    MemberFailed,
    MemberRetried,
    MemberStarted,
    RunCompleted,
    RunFailed,
    RunHeld,
    Stage,
    StageCompleted,
    StageResult,
    StageStarted,
    TitleCompleted,
)
from council.history import Round, rounds_of
from council.iteration import IterationState
from council.profile import Profile, Strategy
from council.results import ScoringMatrix
from council.usage import Usage, total


@dataclass(frozen=True, slots=True)
class Waiting:
    """The call wasn't sent."""


@dataclass(frozen=True, slots=True)
class Working:
    """The call is under way; after a failed attempt `retried` says why it is made again."""

    retried: Failure | None = None
    again_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Answered:
    """The call came back; a document doesn't say how long it took."""

    latency_ms: int | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The call gave nothing, for good."""

    failure: Failure


State = Waiting | Working | Answered | Failed
ROUND_STAGES: tuple[Stage, ...] = ("stage2", "stage2_5")
RoundEvent = (
    StageStarted | StageCompleted | MemberStarted | MemberRetried | MemberAnswered | MemberFailed
)
WAITING = Waiting()


@dataclass(frozen=True, slots=True)
class Seat:
    """One member: how far it is in each stage of the round `number`, and what it gave."""

    name: str
    persona: str | None = None
    answering: State = WAITING
    reviewing: State = WAITING
    correcting: State = WAITING
    answer: Stage1Result | None = None
    review: Stage2Result | None = None
    correction: Stage2_5Result | None = None
    number: int = 1

    def state(self, stage: Stage) -> State:
        """Give how far this member is in a stage of the members."""
        match stage:
            case "stage1":
                return self.answering
            case "stage2":
                return self.reviewing
            case "stage2_5" | "stage3":
                return self.correcting

    @property
    def has_changed(self) -> bool:
        """Whether the correction is another text than the first answer."""
        result = self.correction
        return result is not None and (
            result.changed or result.corrected_response != result.original_response
        )


@dataclass(frozen=True, slots=True)
class Writer:
    """One who took the chair: the chairman, or the next in line after a failure."""

    name: str
    state: State = WAITING


Progress = Literal["waiting", "running", "done", "skipped", "unfinished"]


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage: how far it is, whom it waits for, when it began and ended."""

    stage: Stage
    progress: Progress = "waiting"
    members: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why there is no answer: a sentence for people, and each member's failure."""

    run_id: str
    message: str
    failures: Mapping[str, Failure]


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything that is shown of a run; `position` is its place in the queue, 1 is next.

    `rounds` is how many there may be; `consultants` says in which form the members answer. `text` is
    the final answer as far as it has streamed; `final` is the whole of it. Reviews, corrections, labels
    and ranking are those of the round `number`; `earlier` holds the view at the end of every round
    before. `iteration` is known once the run is over.
    """

    question: str
    profile: str | None
    seats: tuple[Seat, ...]
    asker: str | None = None
    position: int | None = None
    demonstration: bool = False
    strategy: Strategy = "consensus"
    consultants: bool = False
    rounds: int = 1
    web: bool = False
    criteria: EvaluationCriteria | None = None
    stages: tuple[StageView, ...] = tuple(StageView(stage) for stage in STAGES)
    chair: tuple[Writer, ...] = ()
    started: float | None = None
    ended: float | None = None
    usage: Usage | None = None
    title: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None
    number: int = 1
    earlier: tuple["RunView", ...] = ()
    iteration: IterationState | None = None
    text: str = ""
    final: Stage3Result | None = None
    conversation_id: str | None = None
    error: RunFailure | None = None
    held: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the answer is durably written, or there will be none."""
        return self.conversation_id is not None or self.error is not None

    def stage(self, stage: Stage) -> StageView:
        """Give how far a stage is."""
        return self.stages[STAGES.index(stage)]

    def seat(self, name: str) -> Seat | None:
        """Give the member of this name."""
        return next((seat for seat in self.seats if seat.name == name), None)

    def place(self, name: str) -> int | None:
        """Give a member's place in the ranking, 1 is best; `None` where no counted ballot names it."""
        if self.ranking is None:
            return None
        for number, place in enumerate(self.ranking.places, 1):
            if place.model == name and place.mean_position is not None:
                return number
        return None

    def failed_must_haves(self, name: str) -> list[str]:
        """Name the must-haves that a member's answer fails; one is enough to disqualify it."""
        answers = self.scores.answers if self.scores else []
        return next((answer.failed for answer in answers if answer.model == name), list[str]())

    def elapsed(self, now: float) -> float | None:
        """Give the seconds since the run began, until it ended; `None` where nobody knows."""
        if self.started is None:
            return None
        return max(0.0, (now if self.ended is None else self.ended) - self.started)


def opening(question: str, profile: Profile, *, asker: str | None = None, now: float) -> RunView:
    """Give the view of a run that was accepted and has not begun."""
    return RunView(
        question=question,
        asker=asker,
        profile=profile.name,
        demonstration=profile.demonstration,
        strategy=profile.strategy,
        consultants=profile.answer_format == "structured",
        rounds=profile.max_rounds,
        web=profile.web,
        criteria=profile.criteria,
        seats=_seats(profile),
        started=now,
    )


def _seats(profile: Profile) -> tuple[Seat, ...]:
    return tuple(
        Seat(member.name, member.persona.name if member.persona else None) for member in profile.members
    )


def fold(view: RunView, event: Event, now: float) -> RunView:
    """Give the view after one more event."""
    view = _in_round(view, _round_of(event))
    match event:
        case AnswerStreamed():
            # The text is copied each time, cheaply: 5,000 parts of a 60 kB answer take 0.06 s in all.
            return replace(view, text=view.text + event.text)
        case StageStarted():
            return _stage_started(view, event, now)
        case StageCompleted():
            return _stage_completed(view, event, now)
        case MemberStarted():
            return _moved(_begun(view, event.stage, now), event, Working())
        case MemberRetried():
            return _moved(view, event, Working(event.failure, now + event.wait))
        case MemberAnswered():
            answered = _moved(view, event, Answered(event.latency_ms, event.usage))
            return _with_result(_spent(answered, event.usage), event.result)
        case MemberFailed():
            return _moved(_spent(view, event.failure.usage), event, Failed(event.failure))
        case TitleCompleted():
            return replace(view, title=event.title)
        case RunCompleted():
            settled = _with_message(_closed(view, now), event.message)
            return replace(settled, conversation_id=event.conversation_id)
        case RunFailed():
            error = RunFailure(event.run_id, event.message, dict(event.failures))
            return replace(_closed(view, now), error=error)
        case RunHeld():
            return replace(view, held=event.message)


def of_document(message: AssistantMessage, question: str, conversation: Conversation) -> RunView:
    """Give the view of a stored answer; fields that the document lacks stay unknown."""
    profile = _profile(message)
    view = RunView(
        question=question,
        profile=profile.name if profile else None,
        demonstration=profile.demonstration if profile else False,
        consultants=profile.answer_format == "structured" if profile else False,
        rounds=profile.max_rounds if profile else 1,
        web=profile.web if profile else False,
        seats=_seats(profile) if profile else (),
        title=conversation.title,
        conversation_id=conversation.id,
    )
    for answer in message.stage1:
        view = _with_result(view, answer)
    for number, each in enumerate(rounds_of(message), 1):
        view = _in_round(view, number)
        for failed in message.failures:
            if failed.stage in STAGES and failed.round == number:
                # Who gave nothing in stage 1 is nowhere else in the document.
                event = MemberFailed(failed.stage, failed.member, failed.failure, number)
                view = _moved(view, event, Failed(failed.failure))
        view = _with_round(view, each)
    view = _with_message(view, message)
    took = _seconds(message.started_at, message.finished_at)
    return view if took is None else replace(view, started=0.0, ended=took)


def _profile(message: AssistantMessage) -> Profile | None:
    if message.settings is None:
        return None
    try:
        return Profile.model_validate(message.settings)
    except ValidationError:
        return None  # another program's settings, or another version's: shown without them


def _seconds(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None  # not a timestamp, or one with a zone beside one without


def _stage_started(view: RunView, event: StageStarted, now: float) -> RunView:
    begun = _begun(view, event.stage, now)
    before = STAGES[: STAGES.index(event.stage)]
    return _staged(
        begun,
        lambda stage: (
            replace(stage, members=event.members)
            if stage.stage == event.stage
            else replace(stage, progress="skipped")
            if stage.stage in before and stage.progress == "waiting"
            else stage
        ),
    )


def _begun(view: RunView, stage: Stage, now: float) -> RunView:
    """Note that a stage runs: a correction may begin before the last review is in."""
    if view.stage(stage).progress == "running":
        return view
    return _staged(
        view,
        lambda each: (
            replace(each, progress="running", started=now, ended=None) if each.stage == stage else each
        ),
    )


def _stage_completed(view: RunView, event: StageCompleted, now: float) -> RunView:
    for result in event.results:
        view = _with_result(view, result)
    view = _staged(
        view,
        lambda each: replace(each, progress="done", ended=now) if each.stage == event.stage else each,
    )
    return replace(
        view,
        labels=view.labels if event.label_to_model is None else dict(event.label_to_model),
        ranking=event.aggregate_ranking or view.ranking,
        scores=event.scores or view.scores,
    )


def _closed(view: RunView, now: float) -> RunView:
    """Settle what is left open when a run ends."""
    left: Mapping[Progress, Progress] = {"waiting": "skipped", "running": "unfinished"}
    settled = _staged(view, lambda each: replace(each, progress=left.get(each.progress, each.progress)))
    return replace(settled, ended=now)


def _staged(view: RunView, change: Callable[[StageView], StageView]) -> RunView:
    return replace(view, stages=tuple(change(stage) for stage in view.stages))


def _spent(view: RunView, usage: Usage | None) -> RunView:
    if usage is None:
        return view
    return replace(view, usage=total((view.usage, usage)) if view.usage else usage)


def _moved(
    view: RunView,
    event: MemberStarted | MemberRetried | MemberAnswered | MemberFailed,
    state: State,
) -> RunView:
    """Set how far a member is in a stage; what a retried or failed chairman streamed is void."""
    if event.stage != "stage3":
        return _with_seat(view, event.member, lambda seat: _with_state(seat, event.stage, state))
    others = tuple(writer for writer in view.chair if writer.name != event.member)
    text = view.text if isinstance(state, Answered) else ""
    return replace(view, chair=(*others, Writer(event.member, state)), text=text)


def _with_state(seat: Seat, stage: Stage, state: State) -> Seat:
    match stage:
        case "stage1":
            return replace(seat, answering=state)
        case "stage2":
            return replace(seat, reviewing=state)
        case "stage2_5" | "stage3":
            return replace(seat, correcting=state)


def _with_seat(view: RunView, name: str, change: Callable[[Seat], Seat]) -> RunView:
    before = view.seats if view.seat(name) else (*view.seats, Seat(name))
    seats = tuple(change(seat) if seat.name == name else seat for seat in before)
    # A stage's end says again what its members' events have said: that changes nothing.
    return view if seats == view.seats else replace(view, seats=seats)


def _with_result(view: RunView, result: StageResult) -> RunView:
    match result:
        case Stage1Result():
            return _with_seat(view, result.model, lambda seat: _answered(seat, result))
        case Stage2Result():
            return _with_seat(view, result.model, lambda seat: _reviewed(seat, result))
        case Stage2_5Result():
            return _with_seat(view, result.model, lambda seat: _corrected(seat, result))
        case Stage3Result():
            return replace(view, final=result)


def _answered(seat: Seat, result: Stage1Result) -> Seat:
    persona = seat.persona or result.persona
    return replace(seat, answer=result, persona=persona, answering=_ended(seat.answering))


def _reviewed(seat: Seat, result: Stage2Result) -> Seat:
    return replace(seat, review=result, reviewing=_ended(seat.reviewing))


def _corrected(seat: Seat, result: Stage2_5Result) -> Seat:
    state = Failed(result.fallback) if result.fallback else _ended(seat.correcting)
    return replace(seat, correction=result, correcting=state)


def _ended(state: State) -> State:
    return state if isinstance(state, Answered) else Answered()


def _round_of(event: Event) -> int:
    return event.round if isinstance(event, RoundEvent) and event.stage in ROUND_STAGES else 1


def _in_round(view: RunView, number: int) -> RunView:
    """Begin a further round: the one before is kept as it was seen last."""
    if number <= view.number:
        return view
    seats = (
        replace(seat, number=number, reviewing=WAITING, correcting=WAITING, review=None, correction=None)
        for seat in view.seats
    )
    begun = replace(
        view,
        number=number,
        earlier=(*view.earlier, replace(view, earlier=())),
        seats=tuple(seats),
        labels={},
        ranking=None,
        scores=None,
    )
    return _staged(begun, lambda each: StageView(each.stage) if each.stage in ROUND_STAGES else each)


def _with_round(view: RunView, held: Round) -> RunView:
    """Take over what the document says of the round that the view is in."""
    for result in (*held.reviews, *held.corrections):
        view = _with_result(view, result)
    # All reviews may have failed: then there is the ranking of no votes.
    reviewed = bool(held.reviews or held.ranking)
    view = _settled(view, {"stage2": reviewed, "stage2_5": bool(held.corrections)})
    return replace(
        view,
        labels=held.labels or view.labels,
        ranking=held.ranking or view.ranking,
        scores=held.scores or view.scores,
    )


def _settled(view: RunView, present: Mapping[Stage, bool]) -> RunView:
    """Say of these stages whether they were held."""
    return _staged(
        view,
        lambda each: (
            replace(each, progress="done" if present[each.stage] else "skipped")
            if each.stage in present
            else each
        ),
    )


def _with_message(view: RunView, message: AssistantMessage) -> RunView:
    """Take over what the document says: it is the whole truth of a run."""
    results: Iterable[StageResult] = (*message.stage1, message.stage3)
    for result in results:
        view = _with_result(view, result)
    held = rounds_of(message)
    view = _with_round(_in_round(view, len(held)), held[-1])
    view = _settled(view, {"stage1": bool(message.stage1), "stage3": True})
    return replace(
        view,
        strategy=message.strategy or view.strategy,
        criteria=message.criteria or view.criteria,
        iteration=message.iteration,
        usage=message.usage.run if message.usage else view.usage,
    )
