"""How a run's view is built: from its events, one by one, or from a stored answer, however old.

`fold` is pure and total over `council.events.Event`; `now` is any monotonic clock,
in seconds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from pydantic import ValidationError

from bot.view.state import (
    ROUND_STAGES,
    WAITING,
    Answered,
    Failed,
    Progress,
    RunFailure,
    RunView,
    Seat,
    StageView,
    State,
    Working,
    Writer,
    seats_of,
)
from council.brief import Discussion
from council.document.conversation import AssistantMessage, Conversation, Exchange, exchanges
from council.document.corrections import Round, rounds_of
from council.document.results import (
    RunDepth,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
    was_skipped,
)
from council.events import (
    STAGES,
    AnswerStreamed,
    AnswerWithdrawn,
    CallSpent,
    ContextRead,
    DepthChosen,
    Event,
    FilesRead,
    HistoryShortened,
    MemberAnswered,
    MemberFailed,
    MemberRetried,
    MemberStarted,
    RunAdmitted,
    RunCompleted,
    RunFailed,
    RunHeld,
    RunQueued,
    Stage,
    StageCompleted,
    StageResult,
    StageStarted,
    TitleCompleted,
)
from council.profile import Profile
from council.reviews.ballots import with_points
from council.usage import total

RoundEvent = (
    StageStarted | StageCompleted | MemberStarted | MemberRetried | MemberAnswered | MemberFailed
)


def fold(view: RunView, event: Event, now: float) -> RunView:
    """Return the view after one more event."""
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
            answered = Answered(event.latency_ms)
            written = _moved(view, event, answered) if event.stage == "stage3" else view
            return _with_result(written, event.result, answered)
        case MemberFailed():
            return _moved(view, event, Failed(event.failure))
        case TitleCompleted():
            return replace(view, title=event.title)
        case RunCompleted():
            settled = _timed(_with_message(_closed(view, now), event.message), event.message)
            return replace(settled, conversation_id=event.conversation_id)
        case RunFailed():
            error = RunFailure(event.run_id, event.message, dict(event.failures))
            return replace(_closed(view, now), error=error)
        case _:
            return _noted(view, event, now)


def _noted(
    view: RunView,
    event: AnswerWithdrawn
    | CallSpent
    | RunQueued
    | RunAdmitted
    | RunHeld
    | HistoryShortened
    | ContextRead
    | DepthChosen
    | FilesRead,
    now: float,
) -> RunView:
    match event:
        case AnswerWithdrawn():
            return replace(view, text="")
        case CallSpent():
            spent = (view.usage, event.usage) if view.usage else (event.usage,)
            return replace(view, usage=total(spent))
        case RunQueued():
            return replace(view, position=event.position)
        case RunAdmitted():
            return replace(view, position=None, started=now - event.elapsed)
        case RunHeld():
            return replace(view, held=event.message)
        case HistoryShortened():
            return replace(view, history=event)
        case ContextRead():
            return replace(view, context=event)
        case DepthChosen():
            return _with_depth(view, event.depth)
        case FilesRead():
            return replace(view, files=event)


def of_document(
    message: AssistantMessage,
    question: str,
    conversation: Conversation,
    context: Discussion | None = None,
    files: FilesRead | None = None,
) -> RunView:
    """Return the view of a stored answer; fields that the document lacks stay unknown.

    `context` is the thread that was read with its question, `files` what was read of its files.
    """
    profile = _profile(message)
    view = RunView(
        question=question,
        profile=profile.name if profile else None,
        demonstration=profile.demonstration if profile else False,
        example=profile.example if profile else False,
        consultants=profile.answer_format == "structured" if profile else False,
        rounds=profile.max_rounds if profile else 1,
        web=profile.web if profile else False,
        thread=profile.thread if profile else "digest",
        judged_by_member=profile.judged_by_a_member if profile else False,
        seats=seats_of(profile) if profile else (),
        title=conversation.title,
        conversation_id=conversation.id,
        context=ContextRead.of(context),
        files=files,
    )
    for answer in message.stage1:
        view = _with_result(view, answer)
    for number, each in enumerate(rounds_of(message), 1):
        view = _in_round(view, number)
        for failed in message.failures:
            if failed.stage in STAGES and failed.round == number:
                # The document lists members that failed in stage 1 nowhere else.
                event = MemberFailed(failed.stage, failed.member, failed.failure, number)
                view = _moved(view, event, Failed(failed.failure))
        view = _with_round(view, each)
    return _timed(_with_message(view, message), message)


def run_views(conversation: Conversation) -> list[tuple[AssistantMessage, RunView]]:
    """Return a conversation's answers, oldest first, each with the view of its run."""
    return [
        (each.answer, _of_exchange(each, each.answer, conversation))
        for each in exchanges(conversation)
        if each.answer
    ]


def run_view(conversation: Conversation, run_id: str) -> RunView | None:
    """Return the view of the answer that a run gave; `None` if the conversation has none."""
    for each in exchanges(conversation):
        if each.answer and each.answer.run_id == run_id:
            return _of_exchange(each, each.answer, conversation)
    return None


def _of_exchange(asked: Exchange, answer: AssistantMessage, conversation: Conversation) -> RunView:
    files = FilesRead.of(asked.files, asked.links)
    return of_document(answer, asked.question, conversation, asked.context, files)


def _profile(message: AssistantMessage) -> Profile | None:
    if message.settings is None:
        return None
    try:
        return Profile.model_validate(message.settings)
    except ValidationError:
        return None  # another program's settings, or another version's: shown without them


def _timed(view: RunView, message: AssistantMessage) -> RunView:
    """Take the duration from the document, so that a run shown again shows the same."""
    took = _seconds(message.started_at, message.finished_at)
    return view if took is None else replace(view, started=0.0, ended=took)


def _seconds(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None  # not a timestamp, or one with a zone beside one without


def _stage_started(view: RunView, event: StageStarted, now: float) -> RunView:
    before = STAGES[: STAGES.index(event.stage)]

    def changed(each: StageView) -> StageView:
        if each.stage == event.stage:
            return replace(_running(each, now), members=event.members)
        if each.stage in before and each.progress == "waiting":
            return replace(each, progress="skipped")
        return each

    return _staged(view, changed)


def _begun(view: RunView, stage: Stage, now: float) -> RunView:
    """Note that a stage runs: a correction may begin before the last review is in."""
    if view.stage(stage).progress == "running":
        return view
    return _staged(view, lambda each: _running(each, now) if each.stage == stage else each)


def _running(stage: StageView, now: float) -> StageView:
    if stage.progress == "running":
        return stage
    return replace(stage, progress="running", started=now, ended=None)


def _stage_completed(view: RunView, event: StageCompleted, now: float) -> RunView:
    for result in event.results:
        view = _with_result(view, result)
    return replace(
        view,
        stages=tuple(
            replace(each, progress="done", ended=now) if each.stage == event.stage else each
            for each in view.stages
        ),
        labels=view.labels if event.label_to_model is None else dict(event.label_to_model),
        ranking=event.aggregate_ranking or view.ranking,
        scores=event.scores or view.scores,
    )


def _closed(view: RunView, now: float) -> RunView:
    """Close what is still open when a run ends."""
    left: Mapping[Progress, Progress] = {"waiting": "skipped", "running": "unfinished"}
    settled = _staged(view, lambda each: replace(each, progress=left.get(each.progress, each.progress)))
    return replace(settled, ended=now)


def _staged(view: RunView, change: Callable[[StageView], StageView]) -> RunView:
    return replace(view, stages=tuple(change(stage) for stage in view.stages))


def _moved(
    view: RunView,
    event: MemberStarted | MemberRetried | MemberAnswered | MemberFailed,
    state: State,
) -> RunView:
    """Set a member's state in a stage; what a retried or failed chairman streamed is void."""
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
    # A stage's end repeats what its members' events have said: that changes nothing.
    return view if seats == view.seats else replace(view, seats=seats)


def _with_result(view: RunView, result: StageResult, state: Answered | None = None) -> RunView:
    match result:
        case Stage1Result():
            return _with_seat(view, result.model, lambda seat: _answered(seat, result, state))
        case Stage2Result():
            return _with_seat(
                view,
                result.model,
                lambda seat: replace(seat, review=result, reviewing=state or _ended(seat.reviewing)),
            )
        case Stage2_5Result():
            return _with_seat(view, result.model, lambda seat: _corrected(seat, result, state))
        case Stage3Result():
            return replace(view, final=result)


def _answered(seat: Seat, result: Stage1Result, state: Answered | None) -> Seat:
    persona = seat.persona or result.persona
    return replace(seat, answer=result, persona=persona, answering=state or _ended(seat.answering))


def _corrected(seat: Seat, result: Stage2_5Result, state: Answered | None) -> Seat:
    ended = Failed(result.fallback) if result.fallback else state or _ended(seat.correcting)
    return replace(seat, correction=result, correcting=ended)


def _ended(state: State) -> Answered:
    return state if isinstance(state, Answered) else Answered()


def _round_of(event: Event) -> int:
    return event.round if isinstance(event, RoundEvent) and event.stage in ROUND_STAGES else 1


def _in_round(view: RunView, number: int) -> RunView:
    """Begin a further round; keep the one before as last seen."""
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
    """Adopt what the document says about the view's round; older reviews are read here, once."""
    reviews = (with_points(review, held.labels) for review in held.reviews)
    for result in (*reviews, *held.corrections):
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


def _with_depth(view: RunView, depth: RunDepth | None) -> RunView:
    """Adopt how deep the run goes; what it skips, nobody waits for."""
    view = replace(view, depth=depth)
    return _settled(view, {"stage2": False, "stage2_5": False}) if was_skipped(depth) else view


def _settled(view: RunView, present: Mapping[Stage, bool]) -> RunView:
    """Record whether these stages took place."""
    return _staged(
        view,
        lambda each: (
            replace(each, progress="done" if present[each.stage] else "skipped")
            if each.stage in present
            else each
        ),
    )


def _with_message(view: RunView, message: AssistantMessage) -> RunView:
    """Adopt what the document says: it is the whole truth about a run."""
    final = () if message.stage3.is_missing else (message.stage3,)
    results: Iterable[StageResult] = (*message.stage1, *final)
    for result in results:
        view = _with_result(view, result)
    held = rounds_of(message)
    view = _with_round(_in_round(view, len(held)), held[-1])
    view = _settled(view, {"stage1": bool(message.stage1), "stage3": bool(final)})
    return replace(
        view,
        strategy=message.strategy or view.strategy,
        criteria=message.criteria or view.criteria,
        iteration=message.iteration,
        depth=message.depth,
        usage=message.usage.run if message.usage else view.usage,
    )
