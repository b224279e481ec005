"""What happens in a run, as one stream of typed events for every observer.

The order of the stage events is part of the data model; the finer events of members come between
them. `to_json` returns the event contract, one object per event:
`{"type": "stage2_5_complete", "data": [...], "round": 1}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Self

from council.brief import Discussion
from council.document import results
from council.document.conversation import AssistantMessage, FileRecord, LinkRecord
from council.document.results import AggregateRanking, RunDepth, ScoringMatrix
from council.errors import Failure
from council.text.json_objects import JsonObject
from council.usage import Usage

Stage = Literal["stage1", "stage2", "stage2_5", "stage3"]
STAGES: tuple[Stage, ...] = ("stage1", "stage2", "stage2_5", "stage3")

StageResult = results.Stage1Result | results.Stage2Result | results.Stage2_5Result | results.Stage3Result


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage begins; `members` are the ones it waits for."""

    stage: Stage
    members: tuple[str, ...]
    round: int = 1


@dataclass(frozen=True, slots=True)
class StageCompleted:
    """A stage is over. After stage 2 labels and aggregate ranking are known, and any scores."""

    stage: Stage
    results: tuple[StageResult, ...]
    round: int = 1
    label_to_model: Mapping[str, str] | None = None
    aggregate_ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None


@dataclass(frozen=True, slots=True)
class MemberStarted:
    """A member's call of this stage was sent."""

    stage: Stage
    member: str
    round: int = 1


@dataclass(frozen=True, slots=True)
class MemberAnswered:
    """A member's call of this stage returned; `result` is what it becomes in the document."""

    stage: Stage
    member: str
    result: StageResult
    latency_ms: int
    usage: Usage
    round: int = 1


@dataclass(frozen=True, slots=True)
class MemberRetried:
    """An attempt failed; the next one follows in `wait` seconds. Text streamed so far is void."""

    stage: Stage
    member: str
    failure: Failure
    wait: float
    round: int = 1


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """A member's call of this stage gave nothing, for good."""

    stage: Stage
    member: str
    failure: Failure
    round: int = 1


@dataclass(frozen=True, slots=True)
class CallSpent:
    """A call is over, and this is what it used; the run's cost is the sum, the title's call included."""

    step: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class AnswerStreamed:
    """The chairman wrote a little more of the final answer."""

    member: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerWithdrawn:
    """What the chairman wrote so far were its thoughts: the answer begins now."""

    member: str


@dataclass(frozen=True, slots=True)
class DepthChosen:
    """It is decided how deep the run goes; a full run that nobody chose otherwise doesn't tell."""

    depth: RunDepth


@dataclass(frozen=True, slots=True)
class TitleCompleted:
    """The conversation has a title."""

    title: str


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """The answer is durably written."""

    run_id: str
    conversation_id: str
    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ended without an answer. `message` is for people; `failures` by member."""

    run_id: str
    message: str
    failures: Mapping[str, Failure]


@dataclass(frozen=True, slots=True)
class HistoryShortened:
    """A follow-up's prompts don't repeat all of its conversation.

    The last `answers` are repeated, before them the titles of `titles` questions, and nothing of
    `left_out` before those. `cut` says that the last answer is shortened.
    """

    answers: int
    titles: int
    left_out: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ContextRead:
    """The thread in which the question was asked was read, or not: `unread` says why, for people.

    The members read its last `messages`. `left_out` counts those before, `more` says that there are
    others before them, and `files_left_out` counts the messages' files that weren't taken.
    """

    messages: int
    left_out: int = 0
    more: bool = False
    files_left_out: int = 0
    unread: str | None = None

    @classmethod
    def of(cls, context: Discussion | None) -> Self | None:
        """Return how much was read of a thread; `None` if there was none, or nothing in it."""
        if context is None or not (context.messages or context.unread):
            return None
        return cls(
            len(context.messages), context.left_out, context.more, context.files_left_out, context.unread
        )


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The question's files and links were read, as far as they can be; the calls come after that.

    `earlier` names the files of earlier questions that the members read, too.
    """

    files: tuple[FileRecord, ...] = ()
    links: tuple[LinkRecord, ...] = ()
    earlier: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: Sequence[FileRecord], links: Sequence[LinkRecord]) -> Self | None:
        """Return what was read of a stored question's files and links; `None` if it has none."""
        return cls(tuple(files), tuple(links)) if files or links else None


@dataclass(frozen=True, slots=True)
class RunQueued:
    """The run waits for its turn; `position` is its place in the queue, 1 is next."""

    position: int


@dataclass(frozen=True, slots=True)
class RunAdmitted:
    """The run has its turn; its first one was `elapsed` seconds ago."""

    elapsed: float = 0.0


@dataclass(frozen=True, slots=True)
class RunHeld:
    """The run waits for its storage; `message` says so for people; `None`: it continues."""

    message: str | None


Event = (
    StageStarted
    | StageCompleted
    | MemberStarted
    | MemberAnswered
    | MemberRetried
    | MemberFailed
    | CallSpent
    | AnswerStreamed
    | AnswerWithdrawn
    | DepthChosen
    | TitleCompleted
    | RunCompleted
    | RunFailed
    | RunQueued
    | RunAdmitted
    | RunHeld
    | HistoryShortened
    | ContextRead
    | FilesRead
)

Emit = Callable[[Event], None]
"""Hears events at once and returns at once: an observer can't hold up a run."""


def to_json(event: Event) -> JsonObject:
    match event:
        case StageStarted():
            return {"type": f"{event.stage}_start", "round": event.round, "members": [*event.members]}
        case StageCompleted():
            return _completed(event)
        case MemberStarted():
            return {"type": "member_start", **_of_member(event)}
        case MemberAnswered(result=result, latency_ms=latency):
            usage = event.usage.model_dump(exclude_none=True)
            answered = {"data": result.dump(), "latency_ms": latency, "usage": usage}
            return {"type": "member_complete", **_of_member(event), **answered}
        case MemberRetried(failure=failure):
            again = {"wait": round(event.wait, 3), "failure": _failure(failure)}
            return {"type": "member_retry", **_of_member(event), **again}
        case MemberFailed(failure=failure):
            return {"type": "member_failed", **_of_member(event), "failure": _failure(failure)}
        case CallSpent(step, usage):
            return {"type": "call_spent", "step": step, "usage": usage.model_dump(exclude_none=True)}
        case AnswerStreamed(member, text):
            return {"type": "stage3_token", "member": member, "data": text}
        case DepthChosen(depth):
            return {"type": "depth_chosen", "data": depth.dump()}
        case TitleCompleted(title):
            return {"type": "title_complete", "data": {"title": title}}
        case RunCompleted(run_id, conversation_id):
            return {"type": "complete", "run_id": run_id, "conversation_id": conversation_id}
        case RunFailed(run_id, message, failures):
            causes = {who: _failure(why) for who, why in failures.items()}
            return {"type": "error", "run_id": run_id, "message": message, "failures": causes}
        case FilesRead():
            files, links = ([each.dump() for each in listed] for listed in (event.files, event.links))
            return {"type": "files_read", "files": files, "links": links, "earlier": [*event.earlier]}
        case RunAdmitted():
            return {"type": "admitted"}
        case _:
            return {"type": _AS_THEY_ARE[type(event)], **asdict(event)}


_AS_THEY_ARE: Mapping[type[Event], str] = {
    AnswerWithdrawn: "stage3_withdrawn",
    RunQueued: "queued",
    RunHeld: "held",
    HistoryShortened: "history_shortened",
    ContextRead: "context_read",
}


def _completed(event: StageCompleted) -> JsonObject:
    results = [result.dump() for result in event.results]
    data = results[0] if event.stage == "stage3" else results
    complete: JsonObject = {"type": f"{event.stage}_complete", "data": data, "round": event.round}
    if event.aggregate_ranking is not None:
        complete["metadata"] = {
            "label_to_model": dict(event.label_to_model or {}),
            "aggregate_ranking": event.aggregate_ranking.dump(),
            **({"scores": event.scores.dump()} if event.scores else {}),
        }
    return complete


def _of_member(event: MemberStarted | MemberAnswered | MemberRetried | MemberFailed) -> JsonObject:
    return {"stage": event.stage, "round": event.round, "member": event.member}


def _failure(failure: Failure) -> JsonObject:
    return failure.model_dump(mode="json", exclude_defaults=True)
