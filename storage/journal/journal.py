"""The run journal: what each run was asked, every model call that has ended, every message posted.

A run whose process has died is continued from it. `sql_journal` stores it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, get_args

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from council.brief import Brief
from council.calls import Steps
from council.document.conversation import Source
from council.errors import Failure
from storage.errors import Used
from storage.processes.coordination import Bounds, Entry

RunStatus = Literal["running", "answered", "failed", "stopped"]
Ended = Literal["answered", "failed", "stopped"]
ENDED: tuple[Ended, ...] = get_args(Ended)
Delivery = Literal["shown", "untold"]
Clock = Callable[[], datetime]


class Why(BaseModel):
    """Why a run gave no answer: a sentence for people, and each member's failure."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    message: str
    failures: dict[str, Failure] = {}


class Telling(BaseModel):
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
    def unsure(self) -> int:
        """How often the asker may have been mentioned."""
        return self.begun + self.lost


NOTHING_TOLD = Telling()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run about to begin.

    `entry_key` is the id under which the platform delivered the question: a redelivery carries the
    same. `origin` says where the question was asked, by whom, and which message is the card.
    """

    id: str
    entry_key: str
    conversation_id: str
    origin: Source
    brief: Brief


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(NewRun):
    """A run as the journal has it, times in ISO 8601, UTC.

    `error` says why there is no answer. `delivery` is `None` until all of the run is shown, or its asker
    could not be told. `stops` counts the presses of Stop, `retries` those of Retry, the last one at
    `retried_at`. `epoch` counts the workers that have claimed it.
    """

    created_at: str
    status: RunStatus = "running"
    error: Why | None = None
    finished_at: str | None = None
    delivery: Delivery | None = None
    stops: int = 0
    retries: int = 0
    retried_at: str | None = None
    telling: Telling = NOTHING_TOLD
    epoch: int = 0

    @property
    def is_over(self) -> bool:
        """Whether there is an answer, or will be none."""
        return self.status != "running"


@dataclass(frozen=True, slots=True)
class Begun:
    """The run of an entry key; `created` is false if an earlier delivery began it."""

    run: RunRow
    created: bool


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


class RunSteps(Steps, Protocol):
    """What one run remembers of its calls, and what it might spend when that was loaded."""

    @property
    def allowance(self) -> Allowance | None:
        """What the run may spend; `None` if no budget bounds it."""
        ...

    async def send(self, step: str, amount: int) -> None:
        """Note, before a request of a step is sent, what it may cost, in billionths of a dollar.

        It counts until the step's outcome is recorded, also if this process doesn't live until then.
        """
        ...


class Posts(Protocol):
    """What one run has posted beside its card: a run that is continued posts nothing twice."""

    @property
    def messages(self) -> frozenset[str]:
        """The ids of the messages that are known to be posted."""
        ...

    def has(self, key: str, text: str) -> bool:
        """Whether this part is posted; after a Retry, whether it said just this."""
        ...

    async def record(self, key: str, text: str, message: str) -> None:
        """Keep that a part was posted, as this message; returns when that is durable.

        `message` is empty where the platform never said which one it is.
        """
        ...


class Journal(Protocol):
    """All runs. Every method may raise `DatabaseError`; what is written is durable on return.

    What is written about a claimed run raises `RunSuperseded` once another worker has claimed it.
    Presses of Stop and Retry are anybody's.
    """

    async def begin(
        self,
        run: NewRun,
        *,
        by: float | None = None,
        reservation: Reservation | None = None,
        entry: Entry | None = None,
        bounds: Bounds | None = None,
    ) -> Begun:
        """Record a run as running, or find the one that was begun with its entry key before.

        `by` is a time on the event loop's clock. Raises `TimeoutError` where writing has not begun by
        then: the run is not there, nor will it be at the next start. A run is recorded with its
        `reservation` and its `entry`, or not at all. Raises `BudgetExceeded`, and `QueueFull` where the
        bounds forbid the entry. Only a database that processes share takes an entry.
        """
        ...

    async def claim(
        self, run_id: str, worker: str, lost: Callable[[], None] = lambda: None
    ) -> RunRow | None:
        """Take up a run, so that nobody who claimed it earlier can write to it; `None` if there is none.

        It lasts until another claim, or until `unclaim`. `lost` is called when a write finds out about
        another.
        """
        ...

    def unclaim(self, run_id: str) -> None:
        """Forget that a run was claimed here: what is written from now on isn't checked."""
        ...

    async def is_current(self, run_id: str, epoch: int) -> bool:
        """Return whether nobody has claimed a run since this epoch; false if it has been forgotten."""
        ...

    async def knows(self, entry_key: str) -> bool:
        """Return whether a delivery with this entry key began a run."""
        ...

    async def get(self, run_id: str) -> RunRow | None:
        """Return a run, or `None` if there is none."""
        ...

    async def origin(self, run: RunRow) -> Source | None:
        """Return where a run is shown by now, or `None` if it has been forgotten.

        If its row can't be read, the run is not taken for forgotten: the origin in `run` is returned.
        """
        ...

    async def undelivered(
        self, platform: str, since: str = "", workspace: str | None = None
    ) -> list[RunRow]:
        """Return a platform's runs that were not shown to their end, the oldest first.

        With `workspace`, only those of it. Those that are over and *untold* are left out where they were
        accepted or retried before `since`.
        """
        ...

    async def steps(self, run: RunRow) -> RunSteps:
        """Load what a run has recorded so far, ready to record more."""
        ...

    async def posts(self, run: RunRow, *, is_new: bool = False) -> Posts:
        """Load what a run has posted so far, ready to record more; a new one has posted nothing."""
        ...

    async def place(self, run_id: str, origin: Source) -> None:
        """Record where a run is shown: its card and its thread, as they become known."""
        ...

    async def prepare(self, run_id: str, brief: Brief, reservation: Reservation | None = None) -> None:
        """Complete a run's brief, before its first call, and correct what it has reserved.

        Raises `BudgetExceeded`.
        """
        ...

    async def press_stop(self, run_id: str) -> None:
        """Record a press of Stop: a run that is continued after a crash stays stopped."""
        ...

    async def finish(self, run_id: str, status: Ended, why: Why | None = None) -> None:
        """Record how a run ended, and settle what it reserved; a run ends once."""
        ...

    async def deliver(self, run_id: str, delivery: Delivery) -> None:
        """Record that a run was shown to its end, or that its asker could not be told."""
        ...

    async def note_telling(self, run_id: str, telling: Telling) -> None:
        """Record what is known of a run's posts and its mention, before they are sent and after."""
        ...

    async def reserve(self, run_id: str, reservation: Reservation) -> None:
        """Replace what an open run has reserved, or leave it. Raises `BudgetExceeded`."""
        ...

    async def used(self, reservation: Reservation) -> list[Used]:
        """Return what is used or reserved of each budget that a reservation names."""
        ...

    async def reopen(
        self,
        run_id: str,
        reservation: Reservation | None = None,
        *,
        entry: Entry | None = None,
        bounds: Bounds | None = None,
    ) -> RunRow | None:
        """Reopen a run without an answer; return `None` if there is none.

        It reserves again, or stays as it is: raises `BudgetExceeded`. Failures and presses of Stop are
        deleted. Replies are kept, and are used again if the run still asks what they answer.
        """
        ...

    async def askers(self, conversation_ids: Sequence[str]) -> dict[str, str]:
        """Return who began each of these conversations, as far as it is on record."""
        ...

    async def conversation_in(self, here: Source) -> str | None:
        """Return the conversation whose thread this is, if there is one.

        A thread has the id of the message on which it began: the card's.
        """
        ...

    async def shown_as(self, here: Source, message: str) -> RunRow | None:
        """Return the run of which this message of a channel is the card or a part, if there is one."""
        ...

    async def opened_thread(self, here: Source) -> bool:
        """Return whether this thread is one below a card, opened for a run."""
        ...
