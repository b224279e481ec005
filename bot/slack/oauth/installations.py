"""The workspaces that have installed the app, in a file of their own; their tokens are encrypted.

The table of installations is Bolt's. Every column that holds a token is of a type that
encrypts what is written and decrypts what is read, so that none of Bolt's queries can write one in
the clear. A third table has the workspaces that have removed the app, until they install it again.
No backup has this file, and `restore` leaves it alone.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# slack-sdk annotates its models and stores without types.

import os
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.installation_store.sqlalchemy import AsyncSQLAlchemyInstallationStore
from sqlalchemy import (
    URL,
    Column,
    Dialect,
    Float,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.types import TypeDecorator

from bot.errors import ConfigurationError, Problem
from bot.view.wording import slack_install as wording
from storage.errors import DatabaseError

NAME = "slack.db"
SECRETS = (
    "bot_token",
    "bot_refresh_token",
    "user_token",
    "user_refresh_token",
    "incoming_webhook_url",
    "incoming_webhook_configuration_url",
)
"""The columns that let somebody act as the app, in whichever table they are."""
BUSY_SECONDS = 5.0
"""How long another program may keep the file locked."""
LONGEST_STEP = timedelta(days=2)
"""The most that counts between two looks at a removal: a stop, or a clock that jumped, is longer."""


class Encrypted(TypeDecorator[str]):
    """Text that the database only has encrypted."""

    impl = Text
    cache_ok = True

    def __init__(self, keys: MultiFernet) -> None:
        super().__init__()
        self.keys = keys

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Encrypt what is written."""
        del dialect  # part of the interface
        return None if value is None else self.keys.encrypt(value.encode()).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Decrypt what is read. Raises `InvalidToken` if no key fits."""
        del dialect  # part of the interface
        return None if value is None else self.keys.decrypt(value.encode()).decode()


@dataclass(frozen=True, slots=True)
class Installed:
    """The app in one workspace; `at` is when it was installed, in seconds since 1970."""

    team: str
    name: str
    user: str
    token: str
    at: float


class InstallationStore(AsyncSQLAlchemyInstallationStore):
    """Bolt's store, with encrypted tokens."""

    def __init__(self, client_id: str, engine: AsyncEngine, keys: MultiFernet) -> None:
        super().__init__(client_id=client_id, engine=engine)
        for table in (self.bots, self.installations):
            for name in SECRETS:
                if name in table.c:
                    table.c[name].type = Encrypted(keys)


class Installations:
    """What is installed where, and what was removed. Every method may raise `DatabaseError`."""

    def __init__(
        self,
        path: Path,
        engine: AsyncEngine,
        client_id: str,
        keys: MultiFernet,
        now: Callable[[], datetime],
    ) -> None:
        self._path = path
        self._engine = engine
        self._client_id = client_id
        self._now = now
        self.bolt = InstallationStore(client_id, engine, keys)
        self._removals = Table(
            "removals",
            MetaData(),
            Column("team_id", String(32), primary_key=True),
            Column("seen_at", Float, nullable=False),
            Column("waited", Float, nullable=False),
        )

    async def prepare(self) -> None:
        """Make the tables, and encrypt everything with the newest key.

        Raises `ConfigurationError`, having changed nothing, if a token can't be decrypted.
        """
        with self._explained():
            async with self._engine.begin() as connection:
                await connection.run_sync(self.bolt.metadata.create_all)
                await connection.run_sync(self._removals.metadata.create_all)
            async with self._begun() as connection:
                for table in (self.bolt.bots, self.bolt.installations):
                    await self._encrypt_again(connection, table)
                for team in await self._teams(connection):
                    await self._keep_newest(connection, team)

    async def all(self) -> list[Installed]:
        """Return the app in every workspace."""
        bots = self.bolt.bots
        query = select(bots).where(bots.c.client_id == self._client_id).order_by(bots.c.id)
        with self._explained():
            async with self._begun() as connection:
                rows = (await connection.execute(query)).mappings().all()
        newest = {str(row["team_id"]): row for row in rows if row["bot_token"]}
        return [
            Installed(
                team,
                str(row["team_name"] or team),
                str(row["bot_user_id"]),
                str(row["bot_token"]),
                row["installed_at"].replace(tzinfo=UTC).timestamp(),
            )
            for team, row in newest.items()
        ]

    async def find(self, team: str) -> Installed | None:
        """Return the app in one workspace."""
        return next((each for each in await self.all() if each.team == team), None)

    async def save(self, installation: Installation) -> None:
        """Store what a workspace has installed, in the place of what it had, and of its removal."""
        with self._explained():
            await self.bolt.async_save(installation)
            async with self._begun() as connection:
                await self._keep_newest(connection, str(installation.team_id))

    async def remove(self, team: str) -> None:
        """Delete a workspace's tokens; from now on, its conversations wait for their deletion."""
        removals = self._removals
        with self._explained():
            async with self._begun() as connection:
                for table in (self.bolt.bots, self.bolt.installations):
                    await connection.execute(delete(table).where(table.c.team_id == team))
                known = select(removals.c.team_id).where(removals.c.team_id == team)
                if await connection.scalar(known) is None:
                    now = self._now().timestamp()
                    values = insert(removals).values(team_id=team, seen_at=now, waited=0.0)
                    await connection.execute(values)

    async def removed(self, after: timedelta) -> list[str]:
        """Return the workspaces that removed the app so long ago; look at it every few hours.

        Only time in which somebody looks counts: of a longer gap, two days. A clock that jumps ahead
        so brings no deletion much closer, and one that is set back delays it by nothing but the jump.
        """
        removals, now = self._removals, self._now().timestamp()
        with self._explained():
            async with self._begun() as connection:
                rows = (await connection.execute(select(removals))).mappings().all()
                waited: dict[str, float] = {}
                for row in rows:
                    step = min(max(now - row["seen_at"], 0.0), LONGEST_STEP.total_seconds())
                    waited[row["team_id"]] = row["waited"] + step
                    seen = update(removals).where(removals.c.team_id == row["team_id"])
                    values = seen.values(seen_at=now, waited=row["waited"] + step)
                    await connection.execute(values)
        return [team for team, seconds in waited.items() if seconds >= after.total_seconds()]

    async def _teams(self, connection: AsyncConnection) -> list[str]:
        bots = self.bolt.bots
        query = select(bots.c.team_id).where(bots.c.client_id == self._client_id).distinct()
        return [str(team) for team in (await connection.scalars(query)).all()]

    async def _keep_newest(self, connection: AsyncConnection, team: str) -> None:
        """Leave only the newest token of a workspace, and nothing of its removal."""
        for table in (self.bolt.bots, self.bolt.installations):
            of_team = table.c.client_id == self._client_id, table.c.team_id == team
            newest = await connection.scalar(select(func.max(table.c.id)).where(*of_team))
            await connection.execute(delete(table).where(*of_team, table.c.id < newest))
        removals = self._removals
        await connection.execute(delete(removals).where(removals.c.team_id == team))

    async def _encrypt_again(self, connection: AsyncConnection, table: Table) -> None:
        """Write every token again: what is written is encrypted with the newest key."""
        secrets = [table.c[name] for name in SECRETS if name in table.c]
        rows = (await connection.execute(select(table.c.id, *secrets))).mappings().all()
        for row in rows:
            values = {name: row[name] for name in SECRETS if name in row}
            await connection.execute(update(table).where(table.c.id == row["id"]).values(values))

    @asynccontextmanager
    async def _begun(self) -> AsyncGenerator[AsyncConnection]:
        """Open a transaction in which what is deleted is overwritten."""
        async with self._engine.begin() as connection:
            await connection.exec_driver_sql("PRAGMA secure_delete = ON")
            yield connection

    @contextmanager
    def _explained(self) -> Generator[None]:
        with explained(self._path):
            yield


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn errors of the file at `path` into a `DatabaseError`; of its key, a `ConfigurationError`."""
    try:
        yield
    except InvalidToken as error:
        what = wording.wrong_key(path)
        raise ConfigurationError([Problem("SLACK_TOKEN_KEY", what, wording.RIGHT_KEY)]) from error
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or type(error).__name__
        raise DatabaseError(wording.unusable(path, str(reason)), path) from error
    except OSError as error:
        raise DatabaseError(wording.unusable(path, error.strerror or str(error)), path) from error


def address_of(path: Path) -> URL:
    """Return where installations are kept."""
    return URL.create("sqlite+aiosqlite", database=str(path))


@asynccontextmanager
async def open_installations(
    folder: Path,
    client_id: str,
    keys: Sequence[str],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncGenerator[Installations]:
    """Open the file in a data folder, creating it if it is missing.

    `keys` are in URL-safe base64, the newest first. Raises `DatabaseError`, and `ConfigurationError`
    if no key fits.
    """
    path = folder / NAME
    with explained(path):
        _create(path)
    async with _opened(path, client_id, keys, now) as installations:
        await installations.prepare()
        yield installations


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


async def read_installations(folder: Path, client_id: str, keys: Sequence[str]) -> list[Installed]:
    """Return the app in every workspace, and change nothing; raises as `open_installations` does."""
    path = folder / NAME
    if not path.exists():
        return []
    async with _opened(path, client_id, keys, lambda: datetime.now(UTC)) as installations:
        return await installations.all()


@asynccontextmanager
async def _opened(
    path: Path, client_id: str, keys: Sequence[str], now: Callable[[], datetime]
) -> AsyncGenerator[Installations]:
    options: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0}
    # One connection: what is done at once waits for its turn instead of for SQLite's lock.
    engine = create_async_engine(
        address_of(path), hide_parameters=True, connect_args={"timeout": BUSY_SECONDS}, **options
    )
    try:
        yield Installations(path, engine, client_id, MultiFernet([*map(Fernet, keys)]), now)
    finally:
        await engine.dispose()
