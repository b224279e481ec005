"""Tokens: made and shown once, kept as digests, bound to one scope, revoked, in each store."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.app import Library
from bot.errors import UsageError
from bot.service.limits import payer
from bot.terminal import spending as doors
from bot.terminal.spending import TokenRequest, list_all, make
from council.document.conversation import Source
from storage.journal.rows import Reservation, RunRow
from storage.journal.spending import Spending
from storage.scope import Scope
from storage.tokens import Tokens
from tests.storage.journal.test_journal import RUN
from tests.stores import Home
from tests.test_program import Program

CHANNEL = Scope("slack", "T1AAAAAA", "C1AAAAAA")
IN_CHANNEL = "slack:T1AAAAAA/C1AAAAAA"
ARABIC = f"discord:{chr(0x661) * 18}/{chr(0x661) * 18}"


def wanted(name: str = "ci", scope: str = IN_CHANNEL) -> TokenRequest:
    """Return what `council token new` asks for by default."""
    return TokenRequest.read(name, scope, doors.DEFAULT_DAY, doors.DEFAULT_TIME, None)


async def test_a_token_opens_one_scope_until_it_is_revoked(library: Library, home: Home) -> None:
    """Only its digest is kept; making and revoking are in the audit."""
    made = await make(library.tokens, wanted())
    assert re.fullmatch("council_[0-9a-f]{48}", made)
    found = await library.tokens.find(made)
    assert found is not None
    assert (found.name, found.scope, found.day_limit) == ("ci", CHANNEL, 2_000_000_000)
    assert datetime.fromisoformat(found.expires_at or "") - datetime.now(UTC) > timedelta(days=89)
    assert await library.tokens.find(made[:-1]) is None
    assert await library.tokens.find("council_" + "0" * 48) is None
    with pytest.raises(UsageError, match="There is a token ci already"):
        await make(library.tokens, wanted(scope="terminal"))
    assert await library.tokens.revoke("ci")
    assert not await library.tokens.revoke("ci")
    assert await library.tokens.find(made) is None
    [new, gone] = [json.loads(line) for line in home.audit()]
    assert (new["token"], new["made"], new["channel"]) == ("ci", True, "C1AAAAAA")
    assert (gone["token"], gone["revoked"]) == ("ci", True)
    assert made not in str([new, gone])


async def test_an_expired_token_opens_nothing(library: Library) -> None:
    """And stays in the list until it is revoked."""
    made = await make(library.tokens, TokenRequest.read("ci", "terminal", "none", "1h", None))
    [token] = await library.tokens.all()
    assert token.day_limit is None
    assert not token.is_expired(datetime.now(UTC) + timedelta(minutes=59))
    assert token.is_expired(datetime.now(UTC) + timedelta(hours=1))
    later = Tokens(library.database, library.overrides, lambda: datetime.now(UTC) + timedelta(hours=2))
    assert await later.find(made) is None
    assert len(await library.tokens.all()) == 1


UNREADABLE = {
    "name": ("can't name a token", ["", "mcp", "a b", "x" * 41, "ci/2", "\x1b[1m"]),
    "scope": ("is no scope", ["slack:T1AAAAAA", "slack:acme/general", "discord:1/2", ARABIC, ""]),
    "place": (
        "Direct messages",
        ["slack:T1AAAAAA/D1AAAAAA", *(f"discord:{at}/{'1' * 18}" for at in ("", "@me"))],
    ),
    "limit": ("is no limit", ["0", "-1", "nan", "inf", "free", "", "2000000", "1_0", "\u0661"]),
    "time": ("is no time", ["0d", "90", "1w", "99999d", "", "\u0661d"]),
}


@pytest.mark.parametrize("field", UNREADABLE)
def test_what_cant_be_read_is_refused(field: str) -> None:
    """`mcp` is what `council mcp` asks as; no limit and no end have to be written, as `none` and `never`."""
    said, every = UNREADABLE[field]
    for given in every:
        read = {"name": "ci", "scope": "terminal", "limit": "2", "time": "90d"}
        read["scope" if field == "place" else field] = given
        with pytest.raises(UsageError, match=said):
            TokenRequest.read(read["name"], read["scope"], read["limit"], read["time"], None)


async def test_a_private_threads_token_is_refused(library: Library) -> None:
    """Its members alone read it."""
    thread = Source(
        platform="discord", workspace="1" * 18, channel="2" * 18, thread="2" * 18, parent="3" * 18
    )
    await library.journal.begin(
        RunRow(id="r", entry_key="e", conversation_id="c", origin=thread, brief=RUN.brief)
    )
    with pytest.raises(UsageError, match="A private thread is read by its members alone"):
        await make(library.tokens, wanted(scope=f"discord:{'1' * 18}/{'2' * 18}"))


async def test_forgetting_a_channel_revokes_its_tokens(library: Library, home: Home) -> None:
    """Those of other channels stay."""
    here = await make(library.tokens, wanted("here"))
    there = await make(library.tokens, wanted("there", "slack:T1AAAAAA/C2AAAAAA"))
    selection = await library.forgetting.select.channel(CHANNEL)
    assert (selection.tokens, selection.is_empty) == (("here",), False)
    await library.forgetting.forget(selection, by="slack:U1")
    assert await library.tokens.find(here) is None
    assert await library.tokens.find(there) is not None
    assert json.loads(home.audit()[-1])["tokens"] == ["here"]


async def test_what_a_token_has_spent_is_listed(library: Library) -> None:
    """With what its open runs have reserved, whatever channel it opens."""
    await make(library.tokens, wanted())
    origin = Source(platform="slack", workspace="T1AAAAAA", channel="C1AAAAAA", program="ci")
    reserved = Reservation(
        payer=payer(origin), amount=300_000_000, unpriced_call=0, limits={("user", "day"): 10**12}
    )
    run = RunRow(id="r", entry_key="e", conversation_id="c", origin=origin, brief=RUN.brief)
    await library.journal.begin(run, reservation=reserved)
    [listed] = await list_all(library.tokens, Spending(library.database))
    assert (listed.spent_today, listed.max_cost_day, listed.last_used) == (0.3, 2.0, None)


async def test_the_commands(tmp_path: Path) -> None:
    """The token is alone on standard output; what it opens is said beside."""
    council = Program(tmp_path)
    made = await council("token", "new", "--name", "ci", "--scope", IN_CHANNEL, "--expires", "never")
    token = made.out.rstrip("\n")
    assert re.fullmatch("council_[0-9a-f]{48}", token)
    assert made.err == (
        f"Whoever holds this token reads all past questions and answers of {IN_CHANNEL}, and asks there "
        "as ci (program), up to $2.00 a day (UTC), for ever.\n"
        "It isn't stored and won't be shown again. `council token revoke ci` ends it.\n"
    )
    again = await council("token", "new", "--name", "ci", "--scope", "terminal")
    assert (again.code, again.out) == (2, "")
    listed = await council("token", "list")
    assert listed.out == (f"ci: {IN_CHANNEL}; expires never; last used never; today $0.00 of $2.00\n")
    assert json.loads((await council("token", "list", "--json")).out) == [
        {
            "name": "ci",
            "scope": IN_CHANNEL,
            "profile": None,
            "expires_at": None,
            "last_used": None,
            "spent_today": 0.0,
            "max_cost_day": 2.0,
        }
    ]
    ended = await council("token", "revoke", "ci")
    assert ended.out == "ci is revoked. Runs that it has begun end as usual.\n"
    assert (await council("token", "revoke", "ci")).code == 2
    kept = b"".join(file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    assert token.encode() not in kept
