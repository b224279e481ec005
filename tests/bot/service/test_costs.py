"""What a run may cost: foreseen before it begins, by the budgets in force, and enlarged while it runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import structlog

from bot.service import costs as module
from bot.service.channels import Channels, Operator
from bot.service.costs import Costs, unknown
from bot.service.limits import NANO, NO_BUDGETS, Budgets
from council.brief import Attachment, Brief, Discussion, History, ThreadMessage, Turn
from council.calls import Ask, Call, Reply
from council.document.conversation import Conversation, Source
from council.estimate import estimate
from council.events import Event, RunHeld
from council.models.costs import Catalog
from council.profile import Member
from council.usage import Price, Usage, tokens
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, DamageError, DatabaseError, RunSuperseded, Used
from storage.journal.journal import Journal
from storage.journal.progress import RunSteps
from storage.journal.rows import Allowance, Reservation, RunRow
from tests.bot.service.test_run_budget import within
from tests.council.scripted import profile

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
TERMINAL = Source(platform="terminal", user="ada")
OPERATORS = Budgets(user_day=9, unpriced_call=0.25)
CHANNELS = Budgets(channel_day=2, run=1, unpriced_call=0.25)
PROFILE = profile(name="lawyers")
BRIEF = Brief(question="Why?", profile=PROFILE, seed=0, boundary="0" * 16)
RUN = RunRow(
    id="run-1", entry_key="e", conversation_id="c1", origin=HERE, brief=BRIEF, created_at="2026-11-01"
)
CHAIR = Price(0.000_001, 0.000_002)


def prices(name: str, member: Member) -> Price | None:
    """Know only the chairman's price, and only in one council."""
    return CHAIR if (name, member.model) == ("lawyers", "chair/man") else None


@dataclass
class World:
    """All that costs rest on, with a record of what was asked of it."""

    window: int = 100_000
    fetches: Callable[[], Awaitable[None]] | None = None
    stored: Conversation | None = None
    unread: list[Exception] = field(default_factory=list[Exception])
    refuses: list[Exception] = field(default_factory=list[Exception])
    reserved: list[tuple[str, Reservation]] = field(default_factory=list[tuple[str, Reservation]])
    fetched: int = 0
    allowance: Allowance | None = None
    operator: Operator = field(default_factory=lambda: Operator(budgets=OPERATORS))

    def costs(self) -> Costs:
        """Return what is tested, with this world in each place."""
        return Costs(
            catalog=cast("Catalog", Listed(self)),
            journal=cast("Journal", self),
            store=cast("Conversations", self),
            channels=cast("Channels", self),
            prices=prices,
        )

    async def load(self, conversation_id: str) -> Conversation:
        if self.stored is None:
            raise ConversationNotFound(conversation_id, "the folder")
        return self.stored

    async def in_force(self, source: Source) -> Any:
        """Return a channel's settings; it is what has the budgets, too."""
        assert source == HERE
        if self.unread:
            raise self.unread.pop()
        return self

    @property
    def budgets(self) -> Budgets:
        return CHANNELS

    async def reserve(self, run_id: str, reservation: Reservation) -> None:
        if self.refuses:
            raise self.refuses.pop()
        self.reserved.append((run_id, reservation))

    async def used(self, reservation: Reservation) -> list[Used]:
        return [Used(*budgeted, limit, 7) for budgeted, limit in reservation.limits.items()]

    async def send(self, step: str, amount: int) -> None:
        """Note a request."""

    def bounded(self, ask: Ask, emit: Callable[[Event], None] = lambda _: None) -> Ask:
        """Return what may ask within a run's reservation."""
        return within(self.costs().budget(RUN, BRIEF, cast("RunSteps", self), emit), ask)


@dataclass
class Listed:
    """The models' list."""

    world: World

    async def refresh(self) -> None:
        self.world.fetched += 1
        if self.world.fetches:
            await self.world.fetches()

    def window(self, _: object) -> int:
        return self.world.window


def answered(question: str, answer: str) -> Conversation:
    final = {"model": "a/one", "response": answer}
    messages: list[object] = [
        {"role": "user", "content": question},
        {"role": "assistant", "stage1": [], "stage2": [], "stage3": final},
    ]
    document: dict[str, object] = {
        "id": "c1",
        "created_at": "2026-11-01T00:00:00Z",
        "title": "",
        "messages": messages,
    }
    return Conversation.model_validate(document)


def expected(brief: Brief) -> float:
    """Return the dollars of a brief, by the same prices and the operator's unpriced call."""
    return estimate(brief, lambda member: prices("lawyers", member), 0.25).cost


def test_a_run_costs_what_its_councils_calls_do() -> None:
    """By the prices of its profile, and the operator's amount where there is none."""
    costs = World().costs()
    found = costs.estimate(BRIEF)
    assert found.cost == expected(BRIEF)
    assert 3 < found.cost < 3.1
    assert found.of("stage3") < 0.1
    assert found.unpriced_call == 0.25
    assert unknown("lawyers", PROFILE.chairman) is None


def test_a_short_questions_cost_is_known_without_a_question() -> None:
    """That of a few words."""
    found = World().costs().estimate_short(PROFILE)
    assert found.cost == pytest.approx(expected(BRIEF), rel=1e-4)
    assert found == World().costs().estimate(BRIEF.model_copy(update={"question": "?"}))


async def test_what_came_before_is_foreseen() -> None:
    """As far as prompts will repeat it: a conversation's turns, or those that a program brings."""
    world = World(stored=answered("Is it?", "It is. " * 200))
    turn = Turn(question="Is it?", answer="It is. " * 200)
    whole = BRIEF.model_copy(update={"history": History(turns=(turn,))})
    costs = world.costs()
    assert (await costs.foresee(BRIEF, "c1")).cost == expected(whole)
    assert (await costs.foresee(BRIEF, None)).cost == expected(BRIEF)
    brought = BRIEF.model_copy(update={"history": History(turns=(turn, turn))})
    assert (await costs.foresee(brought, None)).cost == expected(brought)
    assert (await costs.foresee(brought, "c1")).cost == expected(whole)
    world.stored = None
    assert (await costs.foresee(BRIEF, "c1")).cost == expected(BRIEF)


async def test_a_long_history_is_foreseen_as_much_as_has_room_beside_files() -> None:
    """A prompt's window holds the question and its files first."""
    world = World(window=4_000, stored=answered("Is it?", "It is. " * 1_000))
    plan = Attachment(name="plan.md", text="x" * 8_000)
    alone = (await world.costs().foresee(BRIEF, "c1")).tokens
    beside = BRIEF.model_copy(update={"attachments": (plan,)})
    both = (await world.costs().foresee(beside, "c1")).tokens
    files = (await world.costs().foresee(beside, None)).tokens
    nothing = (await world.costs().foresee(BRIEF, None)).tokens
    assert 0 < both - files < alone - nothing


@pytest.mark.parametrize(("window", "characters"), [(1_000_000, 20_000), (4_002, 2_000 * 4)])
async def test_a_thread_that_is_not_read_yet_is_taken_to_be_long(window: int, characters: int) -> None:
    """As long as what is read of one at most, and as has room; what is known of it doesn't matter."""
    message = ThreadMessage(author="U2", name="Ada", text="Hello.")
    here = BRIEF.model_copy(update={"context": Discussion(until="9", messages=(message,))})
    longest = ThreadMessage(author="", name="", text="-" * characters)
    read = BRIEF.model_copy(update={"context": Discussion(until="9", messages=(longest,))})
    assert window < 5_000 or characters == 20_000
    assert tokens(BRIEF.question) == 1
    found = (await World(window=window).costs().foresee(here, None)).tokens
    assert found == estimate(read, lambda _: None).tokens


OWN = Member(model="own/model", endpoint="http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("budgets", "seats", "fetched"),
    [
        (CHANNELS, ("a/one", "b/two"), 1),
        (CHANNELS, (OWN, "b/two"), 1),
        (CHANNELS, (OWN,), 0),
        (NO_BUDGETS, ("a/one", "b/two"), 0),
    ],
)
async def test_prices_are_fetched_where_a_budget_needs_them(
    budgets: Budgets, seats: tuple[str | Member, ...], fetched: int
) -> None:
    """Servers of one's own cost nothing: if every seat has one, no price is missing."""
    world = World()
    council = profile().model_validate({"members": seats, "chairman": seats[0]})
    await world.costs().refresh_prices(council, budgets)
    assert world.fetched == fetched


async def test_a_question_waits_for_prices_only_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is asked without them."""
    assert 0.1 <= module.PRICES_SECONDS <= 0.5  # a person waits for the card
    monkeypatch.setattr(module, "PRICES_SECONDS", 0.001)
    world = World(fetches=asyncio.Event().wait)  # pyright: ignore[reportArgumentType] - never set
    await world.costs().refresh_prices(PROFILE, CHANNELS)
    assert world.fetched == 1


async def test_budgets_are_those_of_the_place() -> None:
    """The operator's own at the terminal, where no channel is."""
    costs = World().costs()
    assert await costs.budgets(HERE) == CHANNELS
    assert await costs.budgets(TERMINAL) == OPERATORS
    assert await costs.used(HERE) == [Used("channel", "day", 2 * NANO, 7)]
    assert await costs.used(TERMINAL) == []


async def test_a_damaged_channel_has_the_operators_budgets() -> None:
    """What was paid for still gives an answer, and the log says so, with the run."""
    damaged = World(unread=[DamageError("it is damaged")])
    with structlog.testing.capture_logs() as logs:
        assert await damaged.costs().budgets_of(RUN, lambda _: None) == OPERATORS
    assert [(line["event"], line["run"]) for line in logs] == [("channel_not_read", "run-1")]


async def test_a_run_waits_for_budgets_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its observers are told."""
    monkeypatch.setattr("bot.service.waits.FIRST_WAIT", 0.001)
    told: list[Event] = []
    locked = World(unread=[DatabaseError("it is locked")])
    assert await locked.costs().budgets_of(RUN, told.append) == CHANNELS
    assert [isinstance(event, RunHeld) for event in told] == [True, True]


def call(model: str = "a/one", step: str = "stage1.1:a/one") -> Call:
    return Call(step=step, member=Member(model=model), prompt=lambda: (), deadline=1.0)


async def paid(_: Call) -> Reply:
    return Reply(text="Yes.", usage=Usage(unpriced=1), latency_ms=1)


def allowed(dollars: float) -> Allowance:
    """Return an allowance of so much, nothing spent."""
    return Allowance(reserved=round(dollars * NANO), spent=0, unpriced_call=NANO // 4)


async def test_a_run_that_another_worker_has_taken_up_ends_here() -> None:
    """That isn't a lack of money."""
    world = World(allowance=allowed(0.25), refuses=[RunSuperseded("the database", "run-1")])
    with pytest.raises(RunSuperseded):
        await world.bounded(paid)(call())


async def test_reserving_more_waits_for_a_locked_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its observers are told; then it goes through."""
    monkeypatch.setattr("bot.service.waits.FIRST_WAIT", 0.001)
    told: list[Event] = []
    world = World(allowance=allowed(0.25), refuses=[DatabaseError("it is locked")])
    await world.bounded(paid, told.append)(call())
    assert len(world.reserved) == 1
    assert [isinstance(event, RunHeld) for event in told] == [True, True]
