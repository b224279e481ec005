"""A run as its observers see it: one frozen view of everybody's state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from council.criteria import EvaluationCriteria
from council.document.results import (
    AggregateRanking,
    IterationState,
    Rank,
    RunDepth,
    ScoringMatrix,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
)
from council.errors import Failure
from council.events import (
    STAGES,
    ContextRead,
    FilesRead,
    HistoryShortened,
    Stage,
)
from council.profile import Profile, Strategy
from council.usage import Usage
from storage.index.statistics import Typical


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
ROUND_STAGES: tuple[Stage, ...] = ("stage2", "stage2_5")
WAITING = Waiting()
EXACT_POSITIONS = 10
"""Up to here a position in the queue is exact; further back it is told at marks on the way."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One member: its state in each stage of round `number`, and its results."""

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
        """Return this member's state in one of the members' stages."""
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
    """A writer of the final answer: the chairman, or the next in line after a failure."""

    name: str
    state: State = WAITING


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
class RunFailure:
    """Why there is no answer: a sentence for people, and each member's failure."""

    run_id: str
    message: str
    failures: Mapping[str, Failure]


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything shown of a run; `position` is its place in the queue, 1 is next.

    `rounds` is how many there may be; `consultants` says in which form the members answer. `text` is
    the final answer as far as it has streamed; `final` is the whole of it. Reviews, corrections, labels
    and ranking are those of the round `number`; `earlier` holds the view at the end of every round
    before. `iteration` is known once the run is over. `typical` is what an answer took lately where it
    was asked. `depth` is known once it was decided, and only where it wasn't plainly full;
    `asks_judge` says that the judge is asked for it.
    """

    question: str
    profile: str | None
    seats: tuple[Seat, ...]
    asker: str | None = None
    position: int | None = None
    demonstration: bool = False
    example: bool = False
    strategy: Strategy = "consensus"
    consultants: bool = False
    rounds: int = 1
    web: bool = False
    thread: Literal["digest", "full"] = "digest"
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
    depth: RunDepth | None = None
    judged_by_member: bool = False
    asks_judge: bool = False
    number: int = 1
    earlier: tuple["RunView", ...] = ()
    iteration: IterationState | None = None
    text: str = ""
    final: Stage3Result | None = None
    conversation_id: str | None = None
    error: RunFailure | None = None
    held: str | None = None
    history: HistoryShortened | None = None
    context: ContextRead | None = None
    files: FilesRead | None = None
    typical: Typical | None = None
    estimated: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the answer is durably written or there will be none."""
        return self.conversation_id is not None or self.error is not None

    def stage(self, stage: Stage) -> StageView:
        """Return a stage's view."""
        return self.stages[STAGES.index(stage)]

    def seat(self, name: str) -> Seat | None:
        """Return the member of this name."""
        return next((seat for seat in self.seats if seat.name == name), None)

    def rank(self, name: str) -> Rank | None:
        """Return a member's rank, 1 is best; `None` where no counted ballot names its answer."""
        return self.ranking.rank(name) if self.ranking and not self.is_undecided else None

    @property
    def is_undecided(self) -> bool:
        """Whether all answers tie, which of the built-in model says that it couldn't rank them."""
        places = self.ranking.places if self.ranking else []
        return (
            self.demonstration and len(places) > 1 and len({each.mean_position for each in places}) == 1
        )

    def failed_must_haves(self, name: str) -> list[str]:
        """Name the must-haves that a member's answer fails; one is enough to disqualify it."""
        answers = self.scores.answers if self.scores else []
        return next((answer.failed for answer in answers if answer.model == name), list[str]())

    def elapsed(self, now: float) -> float | None:
        """Return the seconds since the run began, until it ended; `None` if nobody knows."""
        if self.started is None:
            return None
        return max(0.0, (now if self.ended is None else self.ended) - self.started)


def opening(
    question: str,
    profile: Profile,
    *,
    asker: str | None = None,
    now: float,
    typical: Typical | None = None,
    estimated: float = 0.0,
) -> RunView:
    """Return the view of a run that was accepted and hasn't begun; `estimated` is in US dollars."""
    return RunView(
        question=question,
        asker=asker,
        profile=profile.name,
        demonstration=profile.demonstration,
        example=profile.example,
        strategy=profile.strategy,
        consultants=profile.answer_format == "structured",
        rounds=profile.max_rounds,
        web=profile.web,
        thread=profile.thread,
        criteria=profile.criteria,
        judged_by_member=profile.judged_by_a_member,
        asks_judge=profile.asks_judge,
        seats=seats_of(profile),
        started=now,
        typical=typical,
        estimated=estimated,
    )


def seats_of(profile: Profile) -> tuple[Seat, ...]:
    """Return the members of a profile, none of whom has begun."""
    return tuple(
        Seat(member.name, member.persona.name if member.persona else None) for member in profile.members
    )
