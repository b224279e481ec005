"""`council budget`: what counts toward a budget, corrected at the operator's terminal, in each store."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.app import Library, open_library
from bot.errors import UsageError
from bot.service.channels import Operator
from bot.service.limits import Budgets, payer
from bot.terminal.spending import KEYS, Account
from council.document.conversation import Source
from storage.journal.rows import Reservation, RunRow
from storage.scope import Scope
from tests.pairs import rows
from tests.storage.journal.test_journal import RUN
from tests.stores import Home
from tests.test_program import Program

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
THERE = Source(platform="discord", workspace="7", channel="42", user="99")
LIMITS = Operator(budgets=Budgets(user_day=1, channel_day=2, workspace_month=30))


@pytest.fixture
async def library(home: Home) -> AsyncIterator[Library]:
    """What is kept after a question each on Slack and Discord, which reserve 30 cents each."""
    async with open_library(home.folder, home.address) as opened:
        for number, origin in enumerate((HERE, THERE)):
            reserved = Reservation(
                payer=payer(origin),
                amount=300_000_000,
                unpriced_call=0,
                limits={("user", "day"): 10**12},
            )
            run = RunRow(
                id=f"run-{number}",
                entry_key=str(number),
                conversation_id="conversation-1",
                origin=origin,
                brief=RUN.brief,
            )
            await opened.journal.begin(run, reservation=reserved)
        yield opened


async def test_each_budget_is_shown_and_corrected(library: Library, home: Home) -> None:
    """What is reserved stays; the audit has the amounts and no id."""
    now, audited = datetime.now(UTC), list[object]()
    for key, whose, limit in (
        *(("user_day", "slack:T1/U1", 1.0), ("user_month", "discord:99", None)),
        *(("channel_day", "slack:T1/C1", 2.0), ("channel_month", "discord:42", None)),
        *(("workspace_month", "slack:T1", 30.0), ("workspace_day", "discord:7", None)),
    ):
        account = Account(library, LIMITS, key, whose)
        shown = await account.show(now)
        assert (shown.spent, shown.reserved, shown.limit) == (0.0, 0.3, limit)
        corrected = await account.set(0.5, now)
        assert (corrected.spent, corrected.reserved) == (0.5, 0.3)
        assert (await account.set(0.0, now)).spent == 0.0
        about = {"at": "", "by": "terminal", "budget": key}
        audited += [{**about, "from": 0.0, "to": 0.5}, {**about, "from": 0.5, "to": 0.0}]
    assert [{**json.loads(line), "at": ""} for line in home.audit()] == audited


async def test_a_channels_own_budget_is_its_limit(library: Library) -> None:
    """Where it is less than the operator's."""
    account = Account(library, LIMITS, "channel_day", "slack:T1/C1")
    await library.overrides.change(Scope("slack", "T1", "C1"), {"budget_day": 0.5}, by="slack:U1")
    assert (await account.show()).limit == 0.5


@rows(
    ("key", "whose", "said"),
    [
        ("run", "discord:1", f"run isn't a budget. Choose one of {', '.join(KEYS)}."),
        ("user_day", "99", "99 names no user. Write discord:ID or slack:TEAM/ID."),
        ("user_day", "slack:T1", "slack:T1 names no user. Write discord:ID or slack:TEAM/ID."),
        ("user_day", "discord:ada", "discord:ada names no user. Write discord:ID or slack:TEAM/ID."),
        ("workspace_day", "discord:", "discord: names no workspace. Write discord:ID or slack:TEAM."),
        (
            "channel_day",
            "discord:43",
            "No question in discord:43 is on record, so its server isn't known and nothing counts for it.",
        ),
    ],
)
async def test_what_names_no_budget_is_refused(
    library: Library, key: str, whose: str, said: str
) -> None:
    """With what can be written instead."""
    with pytest.raises(UsageError) as caught:
        await Account(library, LIMITS, key, whose).show()
    assert str(caught.value) == said


async def test_the_commands(tmp_path: Path) -> None:
    """They say what counts by now, in words and as JSON."""
    council = Program(tmp_path)
    told = await council("budget", "set", "user_month", "slack:T1/U1", "1.5")
    month = f"{datetime.now(UTC):%Y-%m}"
    assert told.out == (
        f"user_month of slack:T1/U1, {month} (UTC): $1.50 spent, nothing reserved; no limit is set.\n"
    )
    shown = await council("budget", "show", "user_month", "slack:T1/U1", "--json")
    assert json.loads(shown.out) == {
        "key": "user_month",
        "id": "slack:T1/U1",
        "period": month,
        "spent": 1.5,
        "reserved": 0.0,
        "limit": None,
    }
    told = await council("budget", "reset", "user_month", "slack:T1/U1")
    assert told.out.endswith(": nothing spent, nothing reserved; no limit is set.\n")
    refused = await council("budget", "show", "user", "slack:T1/U1")
    assert (refused.code, refused.err) == (2, f"user isn't a budget. Choose one of {', '.join(KEYS)}.\n")
