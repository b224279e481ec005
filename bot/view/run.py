"""A run as its observers see it: the answer's message in the making, and the clocks of its calls.

Events fill the message that the document will have; a stored one, however old, has all of it. Who sits
where, under which label and rank, what critics hold against whom and what that changed is computed from
it once. `fold` is pure and total over `council.events.Event`; `now` is any monotonic clock, in seconds.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Literal, TypeVar

from pydantic import ValidationError

from bot.view.passages import Passage, gravest, passages, weight
from bot.view.wording.figures import short_names
from council import events
from council.brief import Discussion
from council.criteria import EvaluationCriteria
from council.document import results
from council.document.changes import share_changed, words_changed
from council.document.conversation import (
    AssistantMessage,
    Conversation,
    Round,
    RunUsage,
    exchanges,
    rounds_of,
)
from council.errors import Failure
from council.events import STAGES, Stage
from council.profile import Profile, Strategy
from council.reviews.ballots import with_points
from council.reviews.ranking import counted
from council.usage import Usage, total
from storage.index.statistics import Typical

ROUND_STAGES: tuple[Stage, ...] = ("stage2", "stage2_5")
EXACT_POSITIONS = 10
"""Up to here a position in the queue is exact; further back it is shown at marks on the way."""
MOST_POINTS = 50
"""How many objections of a review to an answer are chosen from."""


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
    """The call returned; a document doesn't say how long it took."""

    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The call gave nothing, for good."""

    failure: Failure


State = Waiting | Working | Answered | Failed
CallKey = tuple[Stage, int, str]
"""A call's stage, round and member."""
MemberEvent = events.MemberStarted | events.MemberRetried | events.MemberAnswered | events.MemberFailed
Result = TypeVar("Result", results.Stage1Result, results.Stage2Result, results.Stage2_5Result)
Progress = Literal["waiting", "running", "done", "skipped", "unfinished"]


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage: its state, whom it waits for, when it began and ended."""

    stage: Stage
    progress: Progress = "waiting"
    members: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Criticism:
    """What the others' reviews of a round say of one answer, and what its author replied.

    `points` are each critic's, with the review that makes them, the gravest first; of them the
    `objections`, below all others those that quote what the answer doesn't say. Critics in `clear` have
    none; of those in `undivided`, nobody can tell. `replies` are by critic and objection. It `has_none`
    if somebody reviewed it and nobody objects.
    """

    points: Sequence[tuple[str, results.Stage2Result, Sequence[results.ReviewPoint]]]
    objections: Sequence[tuple[str, Sequence[results.ReviewPoint]]]
    clear: Sequence[str]
    undivided: Sequence[str]
    replies: Mapping[tuple[str, str], results.ObjectionReply]
    has_none: bool
    gravest: tuple[str, results.ReviewPoint] | None


@dataclass(frozen=True)
class Seat:
    """One member in the round of its view: its calls, its results, and how its answer fared.

    `first` is its first answer, `text` the one after its last correction; `label` is that of its answer.
    """

    view: "RunView" = field(repr=False, compare=False)
    name: str
    short: str
    persona: str | None
    answering: State
    reviewing: State
    correcting: State
    answer: results.Stage1Result | None
    review: results.Stage2Result | None
    correction: results.Stage2_5Result | None
    label: str | None
    rank: results.Rank | None
    first: str
    text: str

    def state(self, stage: Stage) -> State:
        return {"stage1": self.answering, "stage2": self.reviewing}.get(stage, self.correcting)

    @property
    def full_name(self) -> str:
        model, _, slug = self.name.partition("#")
        persona = self.persona or slug
        return f"{model} ({persona})" if persona else model

    @property
    def has_changed(self) -> bool:
        made = self.correction
        return made is not None and (made.changed or made.corrected_response != made.original_response)

    @cached_property
    def moved(self) -> tuple[int, int]:
        """How many words corrections removed from its first answer, and how many they added."""
        return words_changed(self.first, self.text)

    @property
    def share(self) -> float:
        return share_changed(self.first, self.text)

    @cached_property
    def passages(self) -> list[Passage]:
        return passages(self.first, self.text)

    @cached_property
    def passage(self) -> Passage | None:
        points = [point for _, points in self.criticism.objections for point in points]
        return gravest(self.passages, points)

    @cached_property
    def criticism(self) -> Criticism:
        """What this round's reviews hold against its answer; readers know the members by their names."""
        view, named, label = self.view, self.view.named, self.label
        points: list[tuple[str, results.Stage2Result, list[results.ReviewPoint]]] = []
        against: list[tuple[str, list[results.ReviewPoint]]] = []
        clear: list[str] = []
        undivided: list[str] = []
        for peer in view.seats:
            if peer.name == self.name or (review := peer.review) is None:
                continue
            about = sorted((each for each in review.points or () if each.label == label), key=weight)
            about = [each.model_copy(update={"text": named(each.text)}) for each in about]
            points.append((peer.short, review, about))
            objections = [each for each in about if each.kind == "objection"][:MOST_POINTS]
            if not objections:
                is_clear = label and review.objects_to(label) is False
                (clear if is_clear else undivided).append(peer.short)
            kinds = groupby(objections, lambda each: each.found is False)
            against += ((peer.short, [*kind]) for _, kind in kinds)
        against.sort(key=lambda each: each[1][0].found is False)
        replies = {
            (view.name(each.critic), named(each.objection)): each.model_copy(
                update={"reason": named(each.reason)}
            )
            for each in (self.correction and self.correction.replies) or ()
        }
        firsts = ((critic, said[0]) for critic, said in against)
        return Criticism(
            points,
            against,
            clear,
            undivided,
            replies,
            has_none=bool(clear) and not (against or undivided),
            gravest=min(firsts, key=lambda each: weight(each[1]), default=None),
        )


_NO_ROUND = Round({}, [], [])
_NO_MESSAGE = AssistantMessage(
    role="assistant",
    stage1=[],
    stage2=[],
    stage3=results.Stage3Result(model="", response="", source="missing"),
)
_NO_PROFILE = Profile.model_construct(name="", members=())
"""What is known of a council whose settings a document doesn't have."""


@dataclass(frozen=True)
class RunView:
    """Everything shown of a run; `position` is its place in the queue, 1 is next.

    `message` is as much of the document's answer as there is, but for its `rounds`, of which `number` is
    looked at. `text` is the final answer as far as it has streamed. `typical` is what an answer took
    lately where it was asked, `estimated` the most that it may cost, in US dollars.
    """

    question: str
    profile: Profile = _NO_PROFILE
    asker: str | None = None
    message: AssistantMessage = _NO_MESSAGE
    rounds: tuple[Round, ...] = (_NO_ROUND,)
    number: int = 1
    calls: Mapping[CallKey, State] = field(default_factory=dict[CallKey, State])
    stages: tuple[StageView, ...] = tuple(map(StageView, STAGES))
    started: float | None = None
    ended: float | None = None
    title: str | None = None
    text: str = ""
    conversation_id: str | None = None
    error: events.RunFailed | None = None
    position: int | None = None
    held: str | None = None
    history: events.HistoryShortened | None = None
    context: events.ContextRead | None = None
    files: events.FilesRead | None = None
    typical: Typical | None = None
    estimated: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the answer is durably written or there will be none."""
        return self.conversation_id is not None or self.error is not None

    @property
    def final(self) -> results.Stage3Result | None:
        return None if self.message.stage3.is_missing else self.message.stage3

    @property
    def usage(self) -> Usage | None:
        return self.message.usage.run if self.message.usage else None

    @property
    def strategy(self) -> Strategy:
        return self.message.strategy or self.profile.strategy

    @property
    def criteria(self) -> EvaluationCriteria | None:
        return self.message.criteria or self.profile.criteria

    @property
    def round(self) -> Round:
        """The round that is looked at: labels, reviews, corrections, ranking, scores."""
        return self.rounds[self.number - 1]

    @cached_property
    def every_round(self) -> tuple["RunView", ...]:
        before = range(1, self.number)
        return (*(_settled(replace(self, number=number)) for number in before), self)

    def stage(self, stage: Stage) -> StageView:
        return self.stages[STAGES.index(stage)]

    @cached_property
    def members(self) -> dict[str, str | None]:
        """The members in their order, each with its persona; below them those that only events know."""
        answers = {each.model: each.persona for each in self.message.stage1}
        known = {each.name: each.persona and each.persona.name for each in self.profile.members}
        others = (
            *(member for stage, _, member in self.calls if stage != "stage3"),
            *(each.model for each in (*self.round.reviews, *self.round.corrections)),
        )
        return {name: known.get(name) or answers.get(name) for name in (*known, *answers, *others)}

    @cached_property
    def seats(self) -> tuple[Seat, ...]:
        answers = {each.model: each for each in self.message.stage1}
        reviews = {each.model: each for each in self.round.reviews}
        corrections = {each.model: each for each in self.round.corrections}
        labels = {name: label for label, name in self.round.labels.items()}

        def state(stage: Stage, name: str, given: object) -> State:
            number = self.number if stage in ROUND_STAGES else 1
            call = self.calls.get((stage, number, name), Waiting())
            # What a call gave outlives it.
            return Answered() if given and not isinstance(call, Answered) else call

        def seat(name: str) -> Seat:
            answer, review, made = answers.get(name), reviews.get(name), corrections.get(name)
            first = answer.response if answer else ""
            return Seat(
                view=self,
                name=name,
                short=self.names[name],
                persona=self.members[name],
                answering=state("stage1", name, answer),
                reviewing=state("stage2", name, review),
                correcting=Failed(made.fallback)
                if made and made.fallback
                else state("stage2_5", name, made),
                answer=answer,
                review=review,
                correction=made,
                label=labels.get(name),
                rank=self.rank(name),
                first=first,
                text=made.corrected_response if made else first,
            )

        return tuple(map(seat, self.members))

    def seat(self, name: str) -> Seat | None:
        return next((seat for seat in self.seats if seat.name == name), None)

    @property
    def chair(self) -> dict[str, State]:
        """The writers of the final answer: the chairman, and the next in line after a failure."""
        return {member: state for (stage, _, member), state in self.calls.items() if stage == "stage3"}

    @cached_property
    def names(self) -> dict[str, str]:
        personas = {name: persona for name, persona in self.members.items() if persona}
        short = short_names(self.members, personas)
        # Members keep their short names when somebody who reads alike takes the chair later.
        taken = {*short.values()}
        chair = (*self.chair, *([self.final.model] if self.final else []))
        for name, said in short_names(chair).items():
            short.setdefault(name, name if said in taken else said)
        return short

    def name(self, member: str) -> str:
        return self.names.get(member, member)

    @cached_property
    def by_label(self) -> dict[str, str]:
        return {label: self.name(name) for label, name in self.round.labels.items()}

    def named(self, text: str) -> str:
        """Return a text with members' names in place of their answers' labels."""
        labels = "|".join(map(re.escape, self.by_label)) or "(?!)"  # which is nowhere
        return re.sub(f"(?:{labels})(?![0-9A-Za-z])", lambda found: self.by_label[found[0]], text)

    @cached_property
    def ranked(self) -> list[Seat]:
        """The members, best first; those without a rank keep their seating order at the end."""
        places = self.round.ranking.places if self.round.ranking else []
        order = [place.model for place in places if place.mean_position is not None]
        return sorted(self.seats, key=lambda seat: (*order, seat.name).index(seat.name))

    @cached_property
    def votes(self) -> dict[str, list[str]]:
        """The ballots as they count: by reviewer, the labels of the answers, best first."""
        ballots = {seat.name: seat.review.parsed_ranking for seat in self.seats if seat.review}
        return counted(ballots, self.round.labels)

    def rank(self, name: str) -> results.Rank | None:
        """Return a member's rank, 1 is best; `None` where no counted ballot names its answer."""
        ranking = self.round.ranking
        return ranking.rank(name) if ranking and not self.is_undecided else None

    @property
    def is_undecided(self) -> bool:
        """Whether all answers tie, which of the built-in model says that it couldn't rank them."""
        places = self.round.ranking.places if self.round.ranking else []
        is_tied = len(places) > 1 and len({each.mean_position for each in places}) == 1
        return self.profile.demonstration and is_tied

    def elapsed(self, now: float) -> float | None:
        """Return the seconds since the run began, until it ended; `None` if nobody knows."""
        if self.started is None:
            return None
        return max(0.0, (now if self.ended is None else self.ended) - self.started)


# ── from a stored answer ─────────────────────────────────────────────────────────────────────────


def of_document(
    message: AssistantMessage,
    question: str,
    conversation: Conversation,
    context: Discussion | None = None,
    files: events.FilesRead | None = None,
) -> RunView:
    """Return the view of a stored answer; fields that the document lacks stay unknown.

    `context` is the thread that was read with its question, `files` what was read of its files.
    """
    view = RunView(
        question,
        _profile(message),
        title=conversation.title,
        conversation_id=conversation.id,
        context=events.ContextRead.of(context),
        files=files,
        # The document lists members that failed in stage 1 nowhere else.
        calls={
            (each.stage, each.round, each.member): Failed(each.failure)
            for each in message.failures
            if each.stage in STAGES
        },
    )
    return _with_message(view, message)


def run_views(conversation: Conversation) -> list[RunView]:
    return [
        of_document(
            each.answer,
            each.question,
            conversation,
            each.context,
            events.FilesRead.of(each.files, each.links),
        )
        for each in exchanges(conversation)
        if each.answer
    ]


def run_view(conversation: Conversation, run_id: str) -> RunView | None:
    """Return the view of the answer that a run gave; `None` if the conversation has none."""
    return next((each for each in run_views(conversation) if each.message.run_id == run_id), None)


def _profile(message: AssistantMessage) -> Profile:
    if message.settings is None:
        return _NO_PROFILE
    try:
        return Profile.model_validate(message.settings)
    except ValidationError:
        return _NO_PROFILE  # another program's settings, or another version's: shown without them


def _with_message(view: RunView, message: AssistantMessage) -> RunView:
    """Adopt what the document says: it is the whole truth about a run, its duration included.

    So a run that is shown again shows the same. Reviews of older documents are read here, once.
    """
    rounds = tuple(
        replace(each, reviews=[with_points(review, each.labels) for review in each.reviews])
        for each in rounds_of(message)
    )
    took = _seconds(message.started_at, message.finished_at)
    clock = {} if took is None else {"started": 0.0, "ended": took}
    return _settled(replace(view, message=message, rounds=rounds, number=len(rounds), **clock))


def _settled(view: RunView) -> RunView:
    held = view.round
    took_place = {
        "stage1": view.message.stage1,
        "stage2": held.reviews or held.ranking,  # if all reviews fail, there is the ranking of no votes
        "stage2_5": held.corrections,
        "stage3": view.final,
    }
    view = _set(view, STAGES, progress="skipped")
    return _set(view, [each for each in STAGES if took_place[each]], progress="done")


def _at(view: RunView, progress: Progress) -> set[Stage]:
    return {each.stage for each in view.stages if each.progress == progress}


def _set(view: RunView, stages: Collection[Stage], **changes: object) -> RunView:
    changed = (replace(each, **changes) if each.stage in stages else each for each in view.stages)
    return replace(view, stages=tuple(changed))


def _seconds(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None  # not a timestamp, or one with a zone beside one without


# ── from events ──────────────────────────────────────────────────────────────────────────────────


_READ: Mapping[type[events.Event], str] = {
    events.HistoryShortened: "history",
    events.ContextRead: "context",
    events.FilesRead: "files",
}


def fold(view: RunView, event: events.Event, now: float) -> RunView:
    match event:
        case events.AnswerStreamed() | events.AnswerWithdrawn():
            # The text is copied each time, cheaply: 5,000 parts of a 60 kB answer take 0.06 s in all.
            return replace(
                view, text=view.text + event.text if isinstance(event, events.AnswerStreamed) else ""
            )
        case events.StageStarted():
            view = _running(_in_round(view, event), event.stage, now)
            overtaken = _at(view, "waiting") & {*STAGES[: STAGES.index(event.stage)]}
            view = _set(view, overtaken, progress="skipped")
            return _set(view, (event.stage,), members=event.members)
        case events.StageCompleted():
            return _completed(_in_round(view, event), event, now)
        case (
            events.MemberStarted()
            | events.MemberRetried()
            | events.MemberAnswered()
            | events.MemberFailed()
        ):
            return _called(_in_round(view, event), event, now)
        case events.CallSpent():
            spent = total(filter(None, (view.usage, event.usage)))
            return _drafted(view, usage=RunUsage(run=spent, stages={}, calls={}))
        case events.DepthChosen():
            skipped = ROUND_STAGES if results.was_skipped(event.depth) else ()  # nobody waits for these
            return _set(_drafted(view, depth=event.depth), skipped, progress="skipped")
        case events.TitleCompleted():
            return replace(view, title=event.title)
        case events.RunCompleted():
            view = replace(view, conversation_id=event.conversation_id, ended=now)
            return _with_message(view, event.message)
        case events.RunFailed():
            view = _set(view, _at(view, "waiting"), progress="skipped")
            view = _set(view, _at(view, "running"), progress="unfinished")
            return replace(view, ended=now, error=event)
        case events.RunQueued():
            return replace(view, position=event.position)
        case events.RunAdmitted():
            return replace(view, position=None, started=now - event.elapsed)
        case events.RunHeld():
            return replace(view, held=event.message)
        case events.HistoryShortened() | events.ContextRead() | events.FilesRead():
            return replace(view, **{_READ[type(event)]: event})


def _in_round(
    view: RunView, event: MemberEvent | events.StageStarted | events.StageCompleted
) -> RunView:
    if event.stage not in ROUND_STAGES or event.round <= view.number:
        return view
    view = replace(view, number=event.round, rounds=(*view.rounds, _NO_ROUND))
    return _set(view, ROUND_STAGES, progress="waiting", members=(), started=None, ended=None)


def _running(view: RunView, stage: Stage, now: float) -> RunView:
    """Note that a stage runs: a correction may begin before the last review is in."""
    if view.stage(stage).progress == "running":
        return view
    return _set(view, (stage,), progress="running", started=now, ended=None)


def _completed(view: RunView, event: events.StageCompleted, now: float) -> RunView:
    for result in event.results:
        view = _with_result(view, result)
    held = view.round
    held = replace(
        held,
        labels=held.labels if event.label_to_model is None else dict(event.label_to_model),
        ranking=event.aggregate_ranking or held.ranking,
        scores=event.scores or held.scores,
    )
    view = replace(view, rounds=(*view.rounds[:-1], held))
    return _set(view, (event.stage,), progress="done", ended=now)


def _called(view: RunView, event: MemberEvent, now: float) -> RunView:
    """Set a call's state; what a retried or failed chairman streamed is void."""
    match event:
        case events.MemberStarted():
            state, view = Working(), _running(view, event.stage, now)
        case events.MemberRetried():
            state = Working(event.failure, now + event.wait)
        case events.MemberAnswered():
            state, view = Answered(event.latency_ms), _with_result(view, event.result)
        case events.MemberFailed():
            state = Failed(event.failure)
    is_void = event.stage == "stage3" and not isinstance(state, Answered)
    call = event.stage, view.number if event.stage in ROUND_STAGES else 1, event.member
    return replace(view, calls={**view.calls, call: state}, text="" if is_void else view.text)


def _with_result(view: RunView, result: events.StageResult) -> RunView:
    held = view.round
    match result:
        case results.Stage1Result():
            return _drafted(view, stage1=_put(view.message.stage1, result))
        case results.Stage3Result():
            return _drafted(view, stage3=result)
        case results.Stage2Result():
            held = replace(held, reviews=_put(held.reviews, result))
        case results.Stage2_5Result():
            held = replace(held, corrections=_put(held.corrections, result))
    return replace(view, rounds=(*view.rounds[:-1], held))


def _put(given: list[Result], result: Result) -> list[Result]:
    return [*({each.model: each for each in given} | {result.model: result}).values()]


def _drafted(view: RunView, **fields: object) -> RunView:
    return replace(view, message=view.message.model_copy(update=fields))
