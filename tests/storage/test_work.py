"""The list of what must still happen: it has all that older programs kept in lists of their own."""

from itertools import takewhile
from pathlib import Path

import orjson
import pytest

from bot.app import open_library
from council.document.conversation import Source
from storage.database import Migration, Statement, known_migrations
from storage.forgetting import Selection
from storage.work import Kind, Left, Refused, Work
from tests.postgres_server import PostgresServer
from tests.storage.examples import NOW, answer, new_id
from tests.stores import Home

HERE = Source(platform="discord", workspace="W", channel="C")
MESSAGE = """
INSERT INTO retractions (forgetting, platform, workspace, channel, thread, kind, message, since, refusal)
VALUES ('one', 'discord', 'W', 'C', ?, ?, ?, '2026-01-20T10:00:00.000Z', ?)
"""


@pytest.mark.parametrize("on_server", [False, True], ids=["folder", "server"])
async def test_what_an_older_program_has_left_is_done(
    tmp_path: Path, postgres_server: PostgresServer, on_server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for the audit, a selection to forget, bytes to overwrite, a message and a thread's name."""

    def before(store: str = "storage.sqlite") -> tuple[Migration, ...]:
        return tuple(takewhile(lambda each: each.name != "work", known_migrations(store)))

    with postgres_server.schema() as address:
        home, asked = Home(tmp_path, address if on_server else None), new_id()
        selection = Selection(what="conversation", conversations=(asked,), runs=(), by="ada")
        with monkeypatch.context() as older:
            for store in ("sqlite.database", "postgres.database"):
                older.setattr(f"storage.{store}.known_migrations", before)
            async with home.open() as stores:
                await stores.documents.add_exchange(
                    asked, "?", answer("-"), title="-", source=HERE, now=NOW
                )
                begin = "INSERT INTO forgettings (since, selection) VALUES ('', ?)"
                await stores.database.write(
                    (begin, (selection.model_dump_json(),)),
                    (begin, (None,)),
                    ("INSERT INTO unaudited (line) VALUES (?)", ('{"set":"rounds"}',)),
                    (MESSAGE, ("7", "thread", "7", None)),
                    (MESSAGE, ("7", "message", "8", "no access")),
                )
        async with open_library(tmp_path, home.address) as library:
            assert len(await library.journal.work.keys("scrub", by="9")) == 2
            assert await library.journal.work.left("one") == Left(1, {"no access": 1})
            assert asked not in (await library.store.listing()).documents
            await library.forgetting.scrub(large=True)
            rows = await library.database.read("SELECT thread, item FROM work ORDER BY number")
        assert [(row["thread"], row["item"]) for row in rows] == [("7", ""), ("7", "8")]
        lines = [orjson.loads(line) for line in home.audit()]
    assert [line.get("set") or line["forgot"] for line in lines] == ["conversation", "rounds"]


async def test_what_is_listed_once_is_known_by_its_kind_and_key(tmp_path: Path) -> None:
    """Another kind with that key, and that kind with another key, are listed beside it."""
    listed: list[tuple[Kind, str]] = [
        ("deliver", "a"),
        ("tell", "a"),
        ("deliver", "b"),
        ("deliver", "a"),
    ]
    async with open_library(tmp_path) as library:
        work = library.journal.work
        for kind, key in listed:
            await work.add_once(kind, f"{kind} {key}", key, HERE)
        rows = await library.database.read("SELECT item FROM work ORDER BY number")
        assert [row["item"] for row in rows] == ["deliver a", "tell a", "deliver b"]
        assert await work.items("deliver", "") == {"deliver a", "deliver b"}


async def test_a_channel_that_refuses_three_times_in_a_row_is_left_for_an_hour(tmp_path: Path) -> None:
    """What is done between two refusals begins the count again."""
    tried: list[str] = []

    async def do(one: Work) -> tuple[Statement, ...]:
        tried.append(one.item)
        if one.item.startswith("refused"):
            raise Refused("no access")
        return ()

    async with open_library(tmp_path) as library:
        work = library.journal.work
        for item in ("refused 1", "refused 2", "done", "refused 3", "refused 4", "refused 5", "left"):
            await library.database.write(work.add("retract", item, where=HERE))
        await work.carry_out("retract", do, platform="discord")
        assert tried == ["refused 1", "refused 2", "done", "refused 3", "refused 4", "refused 5"]
        assert await work.left("") == Left(0, {"no access": 6})
