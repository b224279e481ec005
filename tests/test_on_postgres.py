"""The whole program with `DATABASE_URL`: everything is in PostgreSQL, and nothing in the data folder."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from storage.postgres.opening import open_server
from storage.processes.locks import SHARED
from tests.postgres_server import PASSWORD
from tests.storage.examples import CONTRACT_EXAMPLE
from tests.storage.test_postgres import disconnect
from tests.test_program import QUESTION, Program, asked
from tests.test_team_chat import general_of, pings, running, servers, until


def count(address: str, table: str) -> int:
    with psycopg.connect(address) as connection:
        [(rows,)] = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()  # noqa: S608 - a test
    return rows


def on(council: Program, address: str) -> Program:
    return Program(council.folder, {**council.environment, "DATABASE_URL": address})


@pytest.mark.soak
async def test_every_command_works_with_a_database(tmp_path: Path, postgres: str) -> None:
    """Ask, look up, export, import, check, back up, restore, forget; the folder isn't even made."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.json").write_bytes(CONTRACT_EXAMPLE)
    async with asked(tmp_path) as (plain, models):
        council = on(plain, postgres)
        answered = await council("ask", QUESTION, "--json")
        assert (answered.code, answered.err) == (0, "")
        one = json.loads(answered.out)["conversation_id"]
        assert (count(postgres, "documents"), count(postgres, "runs")) == (1, 1)

        exported = await council("export", one[:8], "--format", "json")
        assert json.loads(exported.out)["id"] == one
        assert (await council("import", str(tmp_path / "in"))).out == "1 imported, 0 skipped\n"
        assert (await council("index", "check")).out == "2 conversations\n"
        assert (await council("index", "rebuild")).code == 0
        process = await council.start("chat", stdin=subprocess.PIPE)
        typed = "/council-search shard\n/council-search france\n/council-history\n/council-stats\n"
        out, err = await process.communicate(typed.encode())
        assert (process.returncode, err) == (0, b"")
        assert out.count(b"_1 result_") == 2
        assert b"1 answer" in out

        examined = await council("doctor")
        assert "✓ Database            sound" in examined.out
        assert "2 conversations" in examined.out
        assert PASSWORD not in examined.out + examined.err
        saved = await council("backup", "all.tar.gz")
        assert saved.out.startswith("2 conversations in all.tar.gz")
        refused = await council("restore", "all.tar.gz")
        assert refused.code == 1
        assert "say --replace to put the backup in its place" in refused.err
        assert PASSWORD not in refused.err
        restored = await council("restore", "all.tar.gz", "--replace")
        assert restored.out == "2 conversations restored to DATABASE_URL\n"
        assert (await council("index", "check")).out == "2 conversations\n"
        assert len(models.history) == 10
    assert not (tmp_path / "data").exists()


async def test_what_is_in_the_folder_moves_there_and_back(tmp_path: Path, postgres: str) -> None:
    """A failed run's calls aren't paid again on the other side."""
    async with asked(tmp_path) as (folder, models):
        server = on(folder, postgres)
        await folder("ask", QUESTION)
        there = await server("migrate")
        assert there.out == "1 conversation and 1 run copied\n"
        assert "0 of 1 conversation copied\n1 of 1 conversation copied\n" in there.err
        assert (await server("migrate")).out == "1 conversation and 1 run had been copied already\n"
        await server("ask", "And who decides?")
        held = await server("migrate", "--back")
        assert held.code == 1
        assert "holds other data already (conversations: 1, runs: 1), so nothing was copied" in held.err
        (tmp_path / "data").rename(tmp_path / "before")
        assert (await server("migrate", "--back")).out == "2 conversations and 2 runs copied\n"
        assert (await folder("index", "check")).out == "2 conversations\n"
        assert len(models.history) == 2 * 10
        nowhere = await folder("migrate")
        assert (nowhere.code, nowhere.out) == (2, "")
        assert nowhere.err == "DATABASE_URL isn't set: it names the database to copy to or from.\n"


@pytest.mark.soak
async def test_nothing_is_asked_while_a_database_is_moved(tmp_path: Path, postgres: str) -> None:
    """Neither at the terminal nor by a start of the bot: both say what to wait for."""
    async with asked(tmp_path) as (plain, models), open_server(postgres) as moving:
        council = on(plain, postgres)
        async with moving.locks.acquire(SHARED):
            refused = await council("ask", QUESTION)
            assert refused.code == 2
            assert "is being copied or replaced, so nothing was asked. Try again when" in refused.err
            slack = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
            ended = await Program(tmp_path, {**council.environment, **slack})("run")
            assert ended.code == 2
            assert (
                "DATABASE_URL: what this database holds is being copied or replaced. "
                "Start again when council migrate or council restore has ended"
            ) in ended.err
        assert (count(postgres, "runs"), models.history) == (0, [])
        assert (await council("ask", QUESTION)).code == 0


async def test_config_shows_the_address_without_its_password(tmp_path: Path, postgres: str) -> None:
    """Wherever it comes from."""
    (tmp_path / "address").write_text(postgres)
    async with asked(tmp_path) as (council, _):
        shown = await on(council, postgres)("config")
        environment = {**council.environment, "DATABASE_URL_FILE": str(tmp_path / "address")}
        from_file = await Program(tmp_path, environment)("config")
    masked = postgres.replace(PASSWORD, "••••")
    assert f" {masked}  (environment)\n" in shown.out
    assert f" {masked}  (environment, by DATABASE_URL_FILE)\n" in from_file.out
    assert PASSWORD not in shown.out + from_file.out


async def test_a_database_that_cannot_be_reached_is_told_of(tmp_path: Path) -> None:
    """By every command in one line, without the password."""
    address = f"postgresql://council:{PASSWORD}@127.0.0.1:1/council"
    async with asked(tmp_path) as (plain, _):
        council = on(plain, address)
        for words in (
            ("ask", QUESTION),
            ("index", "check"),
            ("backup", "b.tar.gz"),
            ("migrate", "--back"),
        ):
            ended = await council(*words)
            assert ended.code == 1
            assert (
                "postgresql://127.0.0.1:1/council can't be reached: the connection is refused"
                in ended.err
            )
            assert "Traceback" not in ended.err
            assert PASSWORD not in ended.err
        examined = await council("doctor")
        assert examined.code == 1
        assert "can't be reached: the connection is refused" in examined.out
        assert PASSWORD not in examined.out


@pytest.mark.soak
async def test_a_team_is_served_from_a_database(tmp_path: Path, postgres: str) -> None:
    """On both platforms; a run isn't moved, and if its connections are cut, nothing is paid or posted twice."""
    async with servers() as (discord, slack, models):
        models.gate = asyncio.Event()
        async with running(tmp_path, discord, slack, models, DATABASE_URL=postgres) as team:
            general, ada = general_of(discord)
            question = discord.slash(general, ada, "council", question=QUESTION)
            await question.acknowledged()
            await until(lambda: len(models.history) == 4)
            moved = await Program(tmp_path, {"DATABASE_URL": postgres})("migrate", "--back")
            assert moved.code == 1
            assert "is in use by a running council; stop it and try again" in moved.err
            shutil.rmtree(tmp_path / "data")
            disconnect(postgres)
            models.gate.set()
            await until(lambda: len(discord.pings()) == 1)
            bob = slack.add_user("bob")
            room = slack.add_channel("room", bob)
            assert (await slack.slash(room, bob, "/council", QUESTION)).acked
            await until(lambda: len(pings(team, room)) == 1)
            assert count(postgres, "documents") == 2
            assert len(models.history) == 2 * 13
    assert count(postgres, "runs WHERE delivery IS DISTINCT FROM 'shown'") == 0
    assert not (tmp_path / "data").exists()


MISSING = """
import sys
sys.modules["psycopg"] = None
from bot.cli import main
main()
"""


async def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """With the command that installs it."""
    async with asked(tmp_path) as (council, _):
        environment = {**council.environment, "DATABASE_URL": "postgresql://127.0.0.1/council"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MISSING, "migrate",
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, err = await process.communicate()
    assert process.returncode
    assert "Run make install EXTRAS=postgres, or unset DATABASE_URL" in err.decode()
    assert "Traceback" not in err.decode()
