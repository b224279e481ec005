"""A provider's own bill against a budget, whatever happens to calls, runs and the process.

`make soak` asks 2,000 questions in 40 seeds and prints what each kind of call was billed and counted.
"""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from bot.errors import Refusal
from bot.service.channels import Operator
from bot.service.limits import NANO, Budgets
from council.calls import Call
from council.models import reply as replies
from council.models.client import ModelClient, Retries
from council.models.costs import used
from council.text.json_objects import JsonObject
from council.usage import Price, Usage
from storage.errors import WriterError
from storage.journal.rows import RunRow
from tests.billing_provider import KINDS, MOST_TOKENS, PRICES, BillingProvider
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import Office, office
from tests.council.scripted import ScriptedCouncil, as_called, profile

MEMBERS = ("lab/plain", "lab/thinker", "lab/small")
COUNCIL = profile(
    *MEMBERS, chairman="lab/chair", title_model="lab/small", call_deadline=0.4, stage_deadline=0.6
)
PROMPT_TOKENS = 12_000
"""More than any prompt of these runs has."""
ONE_CALL_EACH = sum(
    PRICES[model][0] * PROMPT_TOKENS + PRICES[model][1] * MOST_TOKENS
    for model in (*MEMBERS, "lab/chair", "lab/small")
)
"""Dollars that one call of each member, of the chairman and for the title costs at most."""


UNANSWERED = "(cut off before an answer)"


@dataclass
class Table:
    """What each kind of call was billed and counted, in dollars."""

    calls: Counter[str] = field(default_factory=Counter[str])
    billed: dict[str, float] = field(default_factory=dict[str, float])
    counted: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, kind: str, calls: int, billed: float, counted: float) -> None:
        """Add to a kind's line."""
        self.calls[kind] += calls
        self.billed[kind] = self.billed.get(kind, 0.0) + billed
        self.counted[kind] = self.counted.get(kind, 0.0) + counted

    def __str__(self) -> str:
        lines = [f"| {'kind':<28} | {'calls':>6} | {'billed':>9} | {'counted':>9} |"]
        lines += [
            f"| {kind:<28} | {calls:>6} | {self.billed[kind]:>9.4f} | {self.counted[kind]:>9.4f} |"
            for kind, calls in sorted(self.calls.items())
        ]
        total = sum(self.calls.values()), sum(self.billed.values()), sum(self.counted.values())
        lines.append(f"| {'all':<28} | {total[0]:>6} | {total[1]:>9.4f} | {total[2]:>9.4f} |")
        return "\n".join(lines)


@dataclass
class Race:
    """Questions at once, against one budget, to a provider that keeps its own bill."""

    folder: Path
    chance: random.Random
    provider: BillingProvider
    limit: float
    counted: Counter[str] = field(default_factory=Counter[str])
    asked: int = 0
    accepted: int = 0
    is_dead: bool = False
    place: Office | None = None
    worst: float = float("-inf")
    conversations: list[str] = field(default_factory=list[str])

    def count(
        self,
        call: Call,
        arrived: int,
        usage: JsonObject,
        headers: Mapping[str, str],
        price: Price | None,
        unpriced_call: float,
        *,
        is_whole: bool,
    ) -> Usage:
        """Note what the program counts for a request, by the kind that the provider's header names."""
        found = used(call, arrived, usage, headers, price, unpriced_call, is_whole=is_whole)
        if not self.is_dead:
            self.counted[headers.get("x-kind", UNANSWERED)] += round(found.cost * NANO)
        return found

    def look(self) -> None:
        """Compare the bill with the limit, whenever it grows."""
        over = self.provider.dollars - self.limit
        running = self.place.dispatcher.tasks.run_counts().running if self.place else 1
        self.worst = max(self.worst, over - max(1, running) * ONE_CALL_EACH)

    @asynccontextmanager
    async def process(self) -> AsyncGenerator[Office]:
        """Open a program on the folder, with its own connections."""
        chance = random.Random(self.chance.random())  # noqa: S311 - the same each time
        retries = Retries(max_attempts=3, first=0.001, chance=chance)
        async with ModelClient(
            as_called, base_url=self.provider.base_url, api_key="key", dialect="openrouter",
            retries=retries, linger=0.2, idle_timeout=0.3,
        ) as client:  # fmt: skip
            await client.catalog.refresh()
            asking = ScriptedCouncil()
            asking.ask = client.ask
            async with office(
                self.folder, asking, prices=client.price, catalog=client.catalog,
                waiting_per_user=99, waiting_per_channel=99, runs_per_channel=8, runs_per_user=8,
                runs=8,
            ) as place:  # fmt: skip
                self.place = place
                budgets = Budgets(workspace_day=self.limit)
                place.dispatcher.reconfigure(Operator(profiles={"default": COUNCIL}, budgets=budgets))
                yield place

    async def ask(self, place: Office, questions: int) -> None:
        """Ask questions and follow-ups, and press Stop now and then, until all are over."""
        for _ in range(questions):
            self.asked += 1
            follows = self.conversations and self.chance.random() < 0.3
            conversation = self.chance.choice(self.conversations) if follows else None
            with suppress(Refusal):
                run = await place.ask(str(self.asked), conversation_id=conversation)
                if run is not None:
                    self.accepted += 1
                    self.conversations.append(run.conversation_id)
                    self.show(place, run)
            await asyncio.sleep(self.chance.random() * 0.02)
            if self.chance.random() < 0.1:  # what wasn't spent of a reservation has room again
                await place.dispatcher.tasks.settled()

    def show(self, place: Office, run: RunRow) -> None:
        """Carry out a run, and perhaps press Stop, once or twice."""
        place.dispatcher.tasks.begin(run, RecordingVenue())
        presses = self.chance.choices((0, 1, 2), (7, 2, 1))[0]

        def press() -> None:
            if stop := place.dispatcher.tasks.stops.get(run.id):
                stop.press()

        for _ in range(presses):
            asyncio.get_running_loop().call_later(self.chance.random() * 0.5, press)

    async def kill(self, place: Office) -> None:
        """End the program at once: from now on, nothing it does reaches the disk."""
        self.is_dead = True
        self.provider.killed()

        async def never(*_: object, **__: object) -> None:
            raise WriterError("the database", None)

        place.library.database.write = never
        await place.dispatcher.tasks.drain(0)

    async def run(self, questions: int, kills: int) -> None:
        """Ask all questions, in a process for each kill and a last one that finishes."""
        for left in range(kills, -1, -1):
            async with self.process() as place:
                self.is_dead = False
                tasks = place.dispatcher.tasks
                await tasks.resume(await tasks.undelivered("slack"), lambda _: RecordingVenue())
                await self.ask(place, questions // (kills + 1))
                if left:
                    await self.kill(place)
                else:
                    await place.dispatcher.tasks.settled()


def settled(folder: Path) -> tuple[int, int, int]:
    """Return what counts in all, what of it was in flight when a process died, and how many are open."""
    query = "SELECT sum(amount), sum(in_flight), sum(settled = 0) FROM spending"
    with closing(sqlite3.connect(folder / "council.db")) as database:
        return cast("tuple[int, int, int]", database.execute(query).fetchone())


async def race(
    folder: Path, seed: int, questions: int, table: Table, *, kills: int, limit: float
) -> Race:
    """Play one seed, compare the bill with the limit and with what is counted, and fill the table."""
    chance = random.Random(seed)  # noqa: S311 - a test draws the same each time
    async with BillingProvider(random.Random(seed)) as provider:  # noqa: S311 - likewise
        race = Race(folder, chance, provider, limit)
        provider.on_bill = race.look
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replies, "used", race.count)
            await race.run(questions, kills)
        amount, in_flight, still_open = settled(folder)
    assert still_open == 0
    assert race.worst <= 0, f"{race.worst + ONE_CALL_EACH} dollars over the limit"
    heard = race.counted.total()
    if kills:  # what was heard in its last moment wasn't recorded
        assert amount <= heard + in_flight + len(provider.bills)
    else:
        assert amount == pytest.approx(heard, abs=len(provider.bills))
    assert amount / NANO >= provider.dollars
    for kind, (calls, billed) in provider.by_kind().items():
        counted = in_flight if kind == "killed" else race.counted[kind]
        table.note(kind, calls, billed, counted / NANO)
    table.note(UNANSWERED, 0, 0.0, race.counted[UNANSWERED] / NANO)
    return race


async def test_a_budget_holds_whatever_happens(tmp_path: Path) -> None:
    """A few questions, Stop and a kill; no less is counted than is billed."""
    found = await race(tmp_path, 1, 8, Table(), kills=1, limit=0.7)
    assert 0 < found.accepted < found.asked


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_budget_holds_in_forty_races(tmp_path: Path) -> None:
    """2,000 questions, each forty of a seed of their own against another limit."""
    table, accepted = Table(), 0
    for seed in range(40):
        limit = random.Random(seed).uniform(0.5, 4.0)  # noqa: S311 - the same each time
        found = await race(tmp_path / str(seed), seed, 50, table, kills=seed % 3, limit=limit)
        assert 0 < found.accepted < found.asked
        accepted += found.accepted
    print(f"\n{table}\n{accepted} of 2000 questions accepted")  # noqa: T201 - the soak's result
    assert len(table.calls) == len(KINDS) + 2
