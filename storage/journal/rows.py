"""What the journal keeps of a run, and what a run may spend."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter

from council.brief import Brief
from council.document.conversation import Source
from council.errors import Failure
from storage.database import Row

RunStatus = Literal["running", "answered", "failed", "stopped"]
Ended = Literal["answered", "failed", "stopped"]
ENDED: tuple[Ended, ...] = get_args(Ended)
Delivery = Literal["shown", "untold"]
Clock = Callable[[], datetime]


class EndReason(BaseModel):
    """Why a run gave no answer: a sentence for people, and each member's failure."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    message: str
    failures: dict[str, Failure] = {}


class MentionState(BaseModel):
    """The record of what was posted for a run while nobody knows whether it arrived.

    Of its mention, `begun` counts posts that were begun and not heard of again, `lost` those that had no
    response. `post_at` (seconds since 1970) is when the platform posts the mention by itself, if it took
    it. `posts` counts the others by their key.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    begun: NonNegativeInt = 0
    lost: NonNegativeInt = 0
    post_at: NonNegativeInt | None = None
    posts: Mapping[str, NonNegativeInt] = {}

    @property
    def possibly_posted(self) -> int:
        """How often the asker may have been mentioned."""
        return self.begun + self.lost


NOT_MENTIONED = MentionState()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as the journal has it, or is about to; times in ISO 8601, UTC.

    `entry_key` is the id under which the platform delivered the question: a redelivery carries the
    same; a program's request does until it was sent the whole answer. `origin` says where the question
    was asked, by whom, and which message is the card.
    `created_at` is empty until it is recorded. `error` says why there is no answer. `delivery` is `None`
    until all of the run is shown, or its asker could not be told. `stops` counts the presses of Stop,
    `retries` those of Retry, the last one at `retried_at`. `epoch` counts the workers that have claimed
    it.
    """

    id: str
    entry_key: str
    conversation_id: str
    origin: Source
    brief: Brief
    created_at: str = ""
    status: RunStatus = "running"
    error: EndReason | None = None
    finished_at: str | None = None
    delivery: Delivery | None = None
    stops: int = 0
    retries: int = 0
    retried_at: str | None = None
    telling: MentionState = NOT_MENTIONED
    epoch: int = 0

    @property
    def is_over(self) -> bool:
        """Whether there is an answer, or will be none."""
        return self.status != "running"


_ROW = TypeAdapter(RunRow)
_MOST_STOPS = 1_000


def read_run(row: Row) -> RunRow:
    """Return a row as a run. Raises `ValueError` for one that this program can't have written."""
    run = _ROW.validate_python(
        {
            **dict(row),
            "origin": Source.model_validate_json(row["origin"]),
            "brief": Brief.model_validate_json(row["brief"]),
            "error": EndReason.model_validate_json(row["error"]) if row["error"] else None,
            "telling": MentionState.model_validate_json(row["telling"])
            if row["telling"]
            else NOT_MENTIONED,
        }
    )
    for moment in (run.created_at, run.finished_at, run.retried_at, run.brief.started_at):
        if moment is not None and datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError("a time without a zone")
    if not 0 <= run.stops <= _MOST_STOPS:
        raise ValueError("more presses of Stop than anybody makes")
    return run


def dump_origin(source: Source) -> str:
    return orjson.dumps(source.dump()).decode()


@dataclass(frozen=True, slots=True)
class Begun:
    """The run of an entry key; `created` is false if an earlier delivery began it."""

    run: RunRow
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that isn't over, whichever process has it: whether it is of a channel, and has its turn."""

    id: str
    is_here: bool
    program: str | None
    has_begun: bool


Period = Literal["day", "month"]
Budgeted = tuple[Literal["user", "channel", "workspace"], Period]
"""Whose spending a budget limits, and over which time: of UTC."""
BUDGETED: tuple[Budgeted, ...] = (
    ("user", "day"),
    ("user", "month"),
    ("channel", "day"),
    ("channel", "month"),
    ("workspace", "day"),
    ("workspace", "month"),
)


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose budgets a run counts toward, each by a name that nobody else has; stored as digests."""

    user: str
    channel: str
    workspace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a run may spend, all amounts in billionths of a dollar.

    `limits` are the budgets in force. Each of the run's calls without a known price is taken to cost
    `unpriced_call`. `is_bound` says that the run may not spend more than `amount` itself.
    """

    payer: Payer
    amount: int
    unpriced_call: int
    limits: Mapping[Budgeted, int]
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an open run has reserved, and what it has cost since: its recorded steps, and calls cut off.

    Amounts in billionths of a dollar.
    """

    reserved: int
    spent: int
    unpriced_call: int
