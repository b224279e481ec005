"""From a data folder to PostgreSQL and back: everything is kept, and an interruption costs nothing."""

import asyncio
import random
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from council.brief import Attachment
from council.document.conversation import Source, Vote
from storage.archive import backup, restore
from storage.errors import BackupError, DatabaseError
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.journal.journal import Journal
from storage.journal.rows import Payer, Reservation
from storage.overrides import Overrides
from storage.postgres.opening import open_server
from storage.postgres.transfer import (
    backup_server,
    move_to_folder,
    move_to_server,
    restore_server,
)
from storage.processes.coordination import QueueEntry
from storage.processes.locks import PLATFORMS, SHARED
from storage.scope import Scope
from storage.sqlite.schema import known_tables
from tests.launcher import start
from tests.postgres_server import PostgresServer
from tests.storage.examples import NOW, answer, legacy, new_id
from tests.storage.journal.test_journal import REPLY, RUN, call
from tests.stores import Home

HERE = Source(platform="slack", workspace="W", channel="C", user="ada")
ROOT = Path(__file__).parents[2]
SEARCHED = ("paris", "北京", "capital 1", "shard tenant", "straße", "naive 2024", '"capital shard"')
OF_AN_OLDER_PROGRAM = Path(__file__).parent / "data" / "backup-1.tar.gz"
BROKEN = b'{"id": "half a docum'


def silent(done: int, total: int) -> None:
    assert done <= total


async def fill(home: Home, conversations: int = 3) -> list[str]:
    """Keep something of every kind there; return the documents' ids."""
    async with home.open() as stores:
        index, journal = Index(stores.database), Journal(stores.database)
        ids: list[str] = []
        for number in range(conversations):
            said = answer(f"Paris {number}. 北京 \0").model_copy(update={"run_id": f"run-{number}"})
            stored = await stores.documents.add_exchange(
                new_id(), f"Capital {number}?", said, title=f"Title {number}", source=HERE, now=NOW
            )
            ids.append(stored.conversation.id)
            await index.upsert(stored)
        vote = Vote(voter="bob", platform="slack", helpful=True, at="2026-01-20T10:32:00.000Z")
        await index.upsert(await stores.documents.vote(ids[0], "run-0", vote))
        payer = Payer(user="u", channel="c", workspace="w")
        reserved = Reservation(
            payer=payer, amount=7, unpriced_call=0, limits={("user", "day"): 10}, is_bound=True
        )
        attachment = Attachment(name="nul.txt", text="a\0b")
        brief = RUN.brief.model_copy(update={"attachments": (attachment,)})
        run = (await journal.begin(replace(RUN, brief=brief), reservation=reserved)).run
        await journal.claim(run.id, "worker")
        await (await journal.steps(run)).record(call("stage1.1:a/one"), REPLY)
        await (await journal.posts(run)).record("answer.1", "Paris", "M9")
        await Overrides(journal.work, stores.audit).change(Scope.of(HERE), {"rounds": 2}, by="boss")
        other = legacy(new_id())
        home.put(str(other["id"]), orjson.dumps(other))
        await index.repair(stores.documents)
        broken = new_id()
        home.put(broken, BROKEN)
        home.put_copy(ids[0], BROKEN)
    return [*ids, str(other["id"]), broken]


def cell(item: tuple[str, Any]) -> tuple[str, Any]:
    """Return a column and its value, which two stores may write in two ways."""
    name, value = item
    return name, orjson.loads(value) if name == "members" else value


async def kept(home: Home) -> dict[str, Any]:
    """Return every row, document and line that is kept there."""
    found: dict[str, Any] = {"audit": home.audit()}
    async with home.open() as stores:
        for table in known_tables():
            rows = await stores.database.read(f"SELECT * FROM {table}")  # noqa: S608 - our own names
            found[table] = sorted(
                (
                    [*map(cell, sorted(item for item in dict(row).items() if item[0] != "rowid"))]
                    for row in rows
                ),
                key=repr,
            )
        listing = await stores.documents.listing()
        found["documents"] = {
            one: (stamp, home.content(one)) for one, stamp in listing.documents.items()
        }
        found["set aside"] = sorted(listing.set_aside)
        past_answers = PastAnswers(stores.database)
        hits = {words: await past_answers.search(Scope.of(HERE), words) for words in SEARCHED}
        found["search"] = {  # which are shown of many is each store's own choice
            words: each.found if each.found > len(each.rows) else sorted(row.id for row in each.rows)
            for words, each in hits.items()
        }
        found["index"] = (await Index(stores.database).check(stores.documents)).consistent
    return found


async def mended(home: Home) -> dict[str, Any]:
    """Return what is kept there, once the index has been compared with the documents."""
    async with home.open() as stores:
        await Index(stores.database).repair(stores.documents)
    return await kept(home)


async def test_everything_goes_there_and_back(tmp_path: Path, postgres: str) -> None:
    """Documents byte for byte, rows, votes, budgets, settings, audit; a search finds the same."""
    first, server, last = Home(tmp_path / "one"), Home(tmp_path, postgres), Home(tmp_path / "two")
    await fill(first)
    before = await kept(first)
    assert all(before["search"][words] for words in SEARCHED[:3])
    assert before["index"]

    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    moved = await move_to_server(first.folder, postgres, tell)
    assert (moved.conversations, moved.runs, told) == (5, 1, [(0, 5), (5, 5)])
    assert await mended(server) == before
    assert (await move_to_server(first.folder, postgres, silent)).was_there

    async with server.open() as stores:  # numbers go on where they were
        said = answer("Rome.")
        await Index(stores.database).upsert(
            await stores.documents.add_exchange(
                new_id(), "Italy?", said, title="Rome", source=HERE, now=NOW
            )
        )
    before = await kept(server)
    moved = await move_to_folder(postgres, last.folder, silent)
    assert await mended(last) == before
    assert (await move_to_folder(postgres, last.folder, silent)).was_there


async def test_other_data_is_not_overwritten(tmp_path: Path, postgres: str) -> None:
    """In neither place; nor is what a running council uses copied."""
    one, two, server = Home(tmp_path / "one"), Home(tmp_path / "two"), Home(tmp_path, postgres)
    for home in (one, two, server):
        await fill(home, 1)
    before = await kept(server), await kept(two)
    with pytest.raises(BackupError, match=r"holds other data already \(conversations: 3, runs: 1\)"):
        await move_to_server(one.folder, postgres, silent)
    with pytest.raises(BackupError, match="holds other data already"):
        await move_to_folder(postgres, two.folder, silent)
    assert (await kept(server), await kept(two)) == before
    async with one.open():
        with pytest.raises(DatabaseError, match="is in use by a running council"):
            await move_to_server(one.folder, postgres, silent)
    with pytest.raises(BackupError, match=r"holds no council\.db"):
        await move_to_server(tmp_path / "none", postgres, silent)


async def test_no_cursor_outlives_its_thread(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its last reference goes in one thread, Python resets the statement that another one uses."""
    server = Home(tmp_path, postgres)
    await fill(server, 1)
    in_thread = asyncio.to_thread
    results: list[object] = []

    async def watched(function: Callable[..., object], *args: object) -> object:
        result = await in_thread(function, *args)
        results.append(result)
        return result

    monkeypatch.setattr(asyncio, "to_thread", watched)
    await move_to_folder(postgres, tmp_path / "two", silent)
    assert results
    assert [result for result in results if isinstance(result, sqlite3.Cursor)] == []


COPY = """
import asyncio, os, sys
from pathlib import Path
from storage.postgres import transfer
transfer._BATCH = 1
def tell(done, total):
    print(done, flush=True)
    if done == int(sys.argv[3]):
        sys.stdin.read()
copy = transfer.move_to_server if sys.argv[4] == "to" else None
folder, address = Path(sys.argv[1]), sys.argv[2]
asyncio.run(copy(folder, address, tell) if copy else transfer.move_to_folder(address, folder, tell))
"""


async def killed(code: str, *words: str, moment: int) -> None:
    """Copy in another process, and kill it once so many documents are copied."""
    copying = await start(*words, cwd=ROOT, env={}, stdin=subprocess.PIPE, code=code)
    assert copying.stdout
    while int(await copying.stdout.readline()) < moment:
        pass
    copying.kill()
    await copying.communicate()


async def test_a_database_that_is_used_is_neither_copied_nor_replaced(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is answered meanwhile would be lost there, and paid for twice here."""
    monkeypatch.setattr("storage.postgres.transfer.LOOK_SECONDS", 0.0)
    folder, server = Home(tmp_path / "one"), Home(tmp_path, postgres)
    await fill(folder)
    backup_file = tmp_path / "backup.tar.gz"
    await backup(folder.folder, backup_file)
    for name in (SHARED, *PLATFORMS):
        async with server.open() as stores, stores.locks.acquire(name, shared=name == SHARED) as is_held:
            assert is_held
            for attempt in (
                move_to_server(folder.folder, postgres, silent),
                move_to_folder(postgres, tmp_path / "two", silent),
                restore_server(backup_file, postgres, replace=True),
            ):
                with pytest.raises(DatabaseError, match="is in use by a running council; stop it and"):
                    await attempt
    assert (await move_to_server(folder.folder, postgres, silent)).conversations == 5


@pytest.mark.parametrize(
    "moment", [pytest.param(0, marks=pytest.mark.soak), 2, pytest.param(5, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("way", ["to", "back"])
async def test_a_copy_that_was_killed_is_made_again(
    tmp_path: Path, postgres: str, moment: int, way: str
) -> None:
    """Until it is complete nothing is there; started again, it copies everything."""
    folder, server, other = Home(tmp_path / "one"), Home(tmp_path, postgres), Home(tmp_path / "two")
    source, target = (folder, server) if way == "to" else (server, other)
    await fill(source)
    before = await kept(source)
    arguments = [str((folder if way == "to" else other).folder), postgres, str(moment), way]
    await killed(COPY, *arguments, moment=moment)
    assert not [one for one in await documents_of(target) if one]
    if way == "to":
        await move_to_server(source.folder, postgres, silent)
    else:
        await move_to_folder(postgres, target.folder, silent)
        assert not [*target.folder.glob(".staging-*")]
    assert await mended(target) == before


@pytest.mark.soak
async def test_ten_thousand_conversations_move_there_and_back(tmp_path: Path, postgres: str) -> None:
    """Killed half-way and started again: documents byte for byte, rows, and what searches find."""
    first, server, last = Home(tmp_path / "one"), Home(tmp_path, postgres), Home(tmp_path / "two")
    await fill(first)
    rng = random.Random(7)  # noqa: S311 - a corpus
    words = ["paris", "北京", "capital", "shard", "tenant", "straße", "naïve", "é\u0301", "👍", "2024"]
    for number in range(10_000):
        document = legacy(str(UUID(int=rng.getrandbits(128), version=4)))
        document["title"] = " ".join(rng.choices(words, k=rng.randint(1, 6)))
        document["source"] = HERE.dump()
        document["theirs"] = {"number": number, "kept": "as it is"}
        home_bytes = orjson.dumps(document, option=rng.choice((0, orjson.OPT_INDENT_2)))
        first.put(str(document["id"]), home_bytes, mtime_ns=number * 1_000_000)
    async with first.open() as stores:
        await Index(stores.database).rebuild(stores.documents)
    before = await kept(first)
    assert len(before["documents"]) == 10_005
    assert all(before["search"].values())
    arguments = [str(first.folder), postgres, "5000", "to"]
    await killed(COPY.replace("= 1\n", "= 500\n"), *arguments, moment=5000)
    assert await documents_of(server) == []
    assert (await move_to_server(first.folder, postgres, silent)).conversations == 10_005
    assert await mended(server) == before
    await move_to_folder(postgres, last.folder, silent)
    assert await mended(last) == before


async def documents_of(home: Home) -> list[str]:
    if home.address is None:
        return [path.name for path in (home.folder / "conversations").glob("*.json")]
    async with home.open() as stores:
        return [*(await stores.documents.listing()).documents]


async def test_a_copy_that_was_killed_while_put_in_place_is_made_again(
    tmp_path: Path, postgres: str
) -> None:
    """Some documents are in the folder, and the database isn't."""
    server, target = Home(tmp_path, postgres), Home(tmp_path / "two")
    await fill(server)
    before = await kept(server)
    await move_to_folder(postgres, target.folder, silent)
    (target.folder / "council.db").unlink()
    next((target.folder / "conversations").glob("*.json")).unlink()
    await move_to_folder(postgres, target.folder, silent)
    assert await mended(target) == before


async def test_a_backup_of_one_store_is_restored_to_the_other(
    tmp_path: Path, postgres: str, postgres_server: PostgresServer
) -> None:
    """The file is the same kind; data that is there is replaced only where that is wanted."""
    folder, server = Home(tmp_path / "one"), Home(tmp_path, postgres)
    await fill(folder)
    before = await kept(folder)
    (tmp_path / "backups").mkdir()
    first, second = tmp_path / "backups" / "1.tar.gz", tmp_path / "backups" / "2.tar.gz"
    with postgres_server.schema() as other:
        assert (await restore_server(OF_AN_OLDER_PROGRAM, other)).conversations
    report = await backup(folder.folder, first)
    assert (await restore_server(first, postgres)).conversations == report.conversations == 5
    copies = before.pop("set aside")  # a backup holds none
    restored = await mended(server)
    assert restored.pop("set aside") == [] != copies
    assert restored == before

    with pytest.raises(BackupError, match=r"holds data already .*; say --replace"):
        await restore_server(first, postgres)
    await restore_server(first, postgres, replace=True)
    assert (await backup_server(postgres, second)).conversations == 5
    with pytest.raises(BackupError, match="is there already"):
        await backup_server(postgres, second)
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == [first.name, second.name]
    last = Home(tmp_path / "two")
    await restore(second, last.folder)
    assert {**await mended(last), "set aside": []} == {**before, "set aside": []}
    with postgres_server.schema() as other:
        await restore_server(second, other)
        assert {**await mended(Home(tmp_path, other)), "set aside": []} == {**before, "set aside": []}


async def test_what_processes_share_is_not_copied(tmp_path: Path, postgres: str) -> None:
    """A run that waits is copied without its entry, and is found again; a backup put back ends the queue."""
    server, folder = Home(tmp_path, postgres), tmp_path / "one"
    async with open_server(postgres) as stores:
        assert stores.coordination
        journal = Journal(stores.database)
        await journal.begin(RUN, entry=QueueEntry(RUN.id, "C", "ada", RUN.conversation_id))
        await stores.coordination.ready(RUN.id)
    await backup_server(postgres, tmp_path / "1.tar.gz")
    assert (await move_to_folder(postgres, folder, silent)).runs == 1
    async with Home(folder).open() as stores:
        assert stores.coordination is None
        assert await Journal(stores.database).get(RUN.id)
    await restore_server(tmp_path / "1.tar.gz", postgres, replace=True)
    async with server.open() as stores:
        assert stores.coordination
        assert await stores.coordination.present([RUN.id]) == set()
        assert await stores.coordination.due("") == [RUN.id]


async def test_ids_that_are_paths_name_no_file(tmp_path: Path, postgres: str) -> None:
    """A database that somebody has changed can't write outside the folder."""
    server = Home(tmp_path, postgres)
    await fill(server, 1)
    server.put("../../evil", b"{}")
    await move_to_folder(postgres, tmp_path / "two", silent)
    assert not [*tmp_path.rglob("evil*")]  # noqa: ASYNC240 - a test
    with closing(sqlite3.connect(tmp_path / "two" / "council.db")) as made:
        assert made.execute("SELECT count(*) FROM runs").fetchone() == (1,)
