"""What workspaces have installed: encrypted, removed at once, and never in a backup."""

import asyncio
import sqlite3
import tarfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.oauth.installation_store.models.installation import Installation

from bot.app import open_library
from bot.errors import ConfigurationError
from bot.slack.oauth import installations as installations_file
from bot.slack.oauth.installations import NAME, SECRETS, Installations, open_installations
from storage.backups.backup import backup
from storage.backups.restore import restore
from storage.errors import DatabaseError
from tests.bot.slack.oauth.scene import KEY, OTHER_KEY

TOKEN = "xoxb-Qz7KxWv9JyHb3FdRm5Tn"  # noqa: S105 - no real token
MONTH = timedelta(days=30)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 23, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


def granted(team: str = "T1", of: str = TOKEN, **more: Any) -> Installation:
    """Return what a workspace grants."""
    return Installation(
        app_id="A1",
        team_id=team,
        team_name=team.lower(),
        bot_token=of,
        bot_id="B1",
        bot_user_id=f"U{team}",
        bot_scopes="chat:write",
        user_id="U1",
        **more,
    )


def everything_in(folder: Path) -> bytes:
    """Return the bytes of all files in a folder."""
    return b"".join(file.read_bytes() for file in folder.rglob("*"))


@asynccontextmanager
async def opened(
    folder: Path, keys: Sequence[str] = (KEY,), clock: Clock | None = None
) -> AsyncGenerator[Installations]:
    """Open the file as the program does."""
    async with open_installations(folder, "1.2", keys, clock or Clock()) as installations:
        yield installations


async def tokens(installations: Installations) -> dict[str, str]:
    """Return every workspace's token."""
    return {each.team: each.token for each in await installations.all()}


class TestEncrypted:
    """What the file says to somebody without the key."""

    async def test_no_column_holds_a_token_in_the_clear(self, tmp_path: Path) -> None:
        """Whatever Slack may hand out, in the file or beside it; only its owner may read it."""
        secrets = {name: f"{name}-Qz7KxWv9Jy" for name in SECRETS}
        secrets["bot_token"] = TOKEN
        async with opened(tmp_path) as installations:
            more = {name: value for name, value in secrets.items() if name != "bot_token"}
            await installations.save(granted(**more))
            content = everything_in(tmp_path)
            assert [name for name, value in secrets.items() if value.encode() in content] == []
            assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
            assert await tokens(installations) == {"T1": TOKEN}
        with sqlite3.connect(tmp_path / NAME) as database:
            database.row_factory = sqlite3.Row
            [row] = database.execute("SELECT * FROM slack_installations")
            [bot] = database.execute("SELECT * FROM slack_bots")
        assert [name for name in SECRETS if not row[name].startswith("gAAAA")] == []
        assert bot["bot_token"].startswith("gAAAA")

    async def test_another_key_changes_nothing_and_says_what_to_do(self, tmp_path: Path) -> None:
        """With the right one, everything is there."""
        async with opened(tmp_path) as installations:
            await installations.save(granted())
        before = (tmp_path / NAME).read_bytes()
        with pytest.raises(ConfigurationError, match="SLACK_TOKEN_KEY: it isn't the key with which"):
            async with opened(tmp_path, [OTHER_KEY]):
                pass
        assert (tmp_path / NAME).read_bytes() == before
        async with opened(tmp_path) as installations:
            assert await tokens(installations) == {"T1": TOKEN}

    async def test_a_key_is_replaced_in_two_starts(self, tmp_path: Path) -> None:
        """Once with both, the new one first; from then on the old one fits no more."""
        async with opened(tmp_path) as installations:
            await installations.save(granted())
        for keys in ([OTHER_KEY, KEY], [OTHER_KEY]):
            async with opened(tmp_path, keys) as installations:
                assert await tokens(installations) == {"T1": TOKEN}
        with pytest.raises(ConfigurationError):
            async with opened(tmp_path, [KEY]):
                pass

    async def test_what_is_removed_is_overwritten(self, tmp_path: Path) -> None:
        """Nobody finds it in the file, not even with the key."""
        async with opened(tmp_path) as installations:
            await installations.save(granted())
            with sqlite3.connect(tmp_path / NAME) as database:
                [(encrypted,)] = database.execute("SELECT bot_token FROM slack_bots")
            database.close()
            assert encrypted.encode() in (tmp_path / NAME).read_bytes()
            await installations.remove("T1")
            assert await tokens(installations) == {}
            assert b"gAAAA" not in (tmp_path / NAME).read_bytes()

    async def test_no_backup_has_it_and_a_restore_leaves_it(self, tmp_path: Path) -> None:
        """Neither its name nor its content."""
        folder, file = tmp_path / "data", tmp_path / "all.tar.gz"
        async with open_library(folder), opened(folder) as installations:
            await installations.save(granted())
            await backup(folder, file)
        with tarfile.open(file) as archive:
            assert not [name for name in archive.getnames() if NAME in name]
        before = (folder / NAME).read_bytes()
        await restore(file, folder, replace=True)
        assert (folder / NAME).read_bytes() == before
        async with opened(folder) as installations:
            assert await tokens(installations) == {"T1": TOKEN}


class TestSaved:
    """What is stored, whatever happens meanwhile."""

    async def test_the_newest_token_of_each_workspace_counts(self, tmp_path: Path) -> None:
        """Older ones are deleted, whatever the clock said when they came."""
        async with opened(tmp_path) as installations:
            await installations.save(granted(installed_at=2e9))
            await installations.save(granted(of="xoxb-2", installed_at=1e9))
            await installations.save(granted("T2", "xoxb-3"))
            assert await tokens(installations) == {"T1": "xoxb-2", "T2": "xoxb-3"}
        with sqlite3.connect(tmp_path / NAME) as database:
            assert database.execute("SELECT count(*) FROM slack_bots").fetchone() == (2,)
            assert database.execute("SELECT count(*) FROM slack_installations").fetchone() == (2,)
        database.close()

    async def test_a_process_that_dies_while_saving_leaves_a_usable_file(self, tmp_path: Path) -> None:
        """The new token counts once it is written; what was to follow is done at the next start."""
        async with opened(tmp_path) as installations:
            await installations.save(granted())
            await installations.remove("T1")
            await installations.bolt.async_save(granted(of="xoxb-2"))
        async with opened(tmp_path) as installations:
            assert await tokens(installations) == {"T1": "xoxb-2"}
            assert await installations.removed(timedelta(0)) == []

    async def test_many_at_once_are_all_stored(self, tmp_path: Path) -> None:
        """Each waits for its turn."""
        async with opened(tmp_path) as installations:
            teams = [f"T{number}" for number in range(20)]
            await asyncio.gather(*(installations.save(granted(team)) for team in teams))
            assert sorted(await tokens(installations)) == sorted(teams)

    async def test_a_file_that_is_no_database_is_named(self, tmp_path: Path) -> None:
        """And left as it is."""
        (tmp_path / NAME).write_bytes(b"something else, longer than a header of a hundred bytes" * 9)
        with pytest.raises(DatabaseError, match=r"slack\.db can't be used: file is not a database"):
            async with opened(tmp_path):
                pass
        assert (tmp_path / NAME).read_bytes().startswith(b"something else")

    async def test_a_locked_file_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was there stays, and it works again once the lock is gone."""
        monkeypatch.setattr(installations_file, "BUSY_SECONDS", 0.05)
        async with opened(tmp_path) as installations:
            await installations.save(granted())
            other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(DatabaseError, match="database is locked"):
                await installations.save(granted(of="xoxb-2"))
            with pytest.raises(DatabaseError, match="database is locked"):
                await installations.all()
            other.execute("ROLLBACK")
            other.close()
            assert await tokens(installations) == {"T1": TOKEN}


class TestRemoved:
    """When a removed workspace's conversations are due."""

    async def pass_time(self, folder: Path, clock: Clock, days: float) -> list[str]:
        """Start again, look at once and then daily; return what is due at the end."""
        async with opened(folder, clock=clock) as installations:
            due = await installations.removed(MONTH)
            while days > 0:
                clock.now += timedelta(days=min(days, 1))
                due = await installations.removed(MONTH)
                days -= 1
        return due

    async def gone(self, folder: Path, clock: Clock) -> None:
        """Let a workspace install the app, and remove it."""
        async with opened(folder, clock=clock) as installations:
            await installations.save(granted())
            await installations.remove("T1")

    async def test_they_are_due_after_the_stated_days(self, tmp_path: Path) -> None:
        """However often the program starts meanwhile, and from then on at every look."""
        clock = Clock()
        await self.gone(tmp_path, clock)
        assert await self.pass_time(tmp_path, clock, 29.75) == []
        assert await self.pass_time(tmp_path, clock, 0.25) == ["T1"]
        assert await self.pass_time(tmp_path, clock, 3) == ["T1"]

    async def test_a_new_installation_cancels_it(self, tmp_path: Path) -> None:
        """And a later removal waits for all its days."""
        clock = Clock()
        await self.gone(tmp_path, clock)
        assert await self.pass_time(tmp_path, clock, 29) == []
        await self.gone(tmp_path, clock)
        assert await self.pass_time(tmp_path, clock, 29) == []
        assert await self.pass_time(tmp_path, clock, 1) == ["T1"]

    async def test_removed_twice_it_waits_once(self, tmp_path: Path) -> None:
        """Slack tells it in two events, and may repeat each."""
        clock = Clock()
        await self.gone(tmp_path, clock)
        await self.pass_time(tmp_path, clock, 29)
        async with opened(tmp_path, clock=clock) as installations:
            await installations.remove("T1")
        assert await self.pass_time(tmp_path, clock, 1) == ["T1"]

    @pytest.mark.parametrize(
        "jump",
        [-1, 4000, *(pytest.param(days, marks=pytest.mark.soak) for days in (-4000, 3, 29))],
        ids=lambda days: f"{days} days",
    )
    async def test_a_clock_that_jumps_brings_it_hardly_closer(self, tmp_path: Path, jump: int) -> None:
        """By two days at most, in whichever direction, and also if it is set right again."""
        clock = Clock()
        await self.gone(tmp_path, clock)
        assert await self.pass_time(tmp_path, clock, 5) == []
        clock.now += timedelta(days=jump)
        assert await self.pass_time(tmp_path, clock, 5) == []
        clock.now -= timedelta(days=jump)
        assert await self.pass_time(tmp_path, clock, 17) == []
        assert await self.pass_time(tmp_path, clock, 4) == ["T1"]

    async def test_a_long_stop_counts_as_two_days(self, tmp_path: Path) -> None:
        """It can't be told from a clock that jumped."""
        clock = Clock()
        await self.gone(tmp_path, clock)
        clock.now += timedelta(days=60)
        assert await self.pass_time(tmp_path, clock, 27.75) == []
        assert await self.pass_time(tmp_path, clock, 0.5) == ["T1"]
