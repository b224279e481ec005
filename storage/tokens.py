"""The tokens with which programs ask, in the table `tokens`: of each, a digest and never the token.

A token opens one channel, or the terminal. Each that is made, revoked or forgotten leaves a line in the
audit.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from council.document.conversation import timestamp
from storage.database import Database, Row
from storage.errors import ConstraintError
from storage.overrides import Overrides
from storage.scope import Scope

PREFIX = "council_"
"""What every token begins with, so that logs hide it by its shape."""
USED_EVERY = timedelta(minutes=1)
"""How exactly it is kept when a token was last used."""

_NEW = """
INSERT INTO tokens (
    name, digest, platform, workspace, channel, profile, day_limit, created_at, expires_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ALL = "SELECT * FROM tokens ORDER BY name"
_NAMED = "SELECT * FROM tokens WHERE name = ?"
_OF = "SELECT * FROM tokens WHERE digest = ?"
_USED = "UPDATE tokens SET used_at = ? WHERE name = ?"
_REVOKE = "DELETE FROM tokens WHERE name = ?"
_PARENT = """
SELECT origin ->> 'parent' AS parent FROM runs
WHERE origin ->> 'platform' = ? AND origin ->> 'workspace' = ? AND origin ->> 'channel' = ? LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramToken:
    """A program's token, times in ISO 8601, UTC.

    `id` is part of its digest; `day_limit` is the most that its runs may cost in a day of UTC, in
    billionths of a dollar.
    """

    id: str
    name: str
    scope: Scope
    profile: str | None
    day_limit: int | None
    created_at: str
    expires_at: str | None
    used_at: str | None = None

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of an open database. Every method may raise `StorageError`."""

    _database: Database
    _overrides: Overrides
    _now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def new(
        self,
        name: str,
        scope: Scope,
        *,
        profile: str | None,
        day_limit: int | None,
        lasts: timedelta | None,
    ) -> str | None:
        """Make a token and return it; `None` if there is one of this name."""
        token = PREFIX + secrets.token_hex(24)
        now = self._now()
        expires_at = timestamp(now + lasts) if lasts else None
        place = scope.platform, scope.workspace or "", scope.channel or ""
        row = (name, digest(token), *place, profile, day_limit, timestamp(now), expires_at)
        line = {"by": "terminal", "token": name, "made": True, **asdict(scope), "expires": expires_at}
        try:
            await self._database.write((_NEW, row), self._overrides.noted(line))
        except ConstraintError:
            if await self._database.read(_NAMED, (name,)):
                return None
            raise
        await self._overrides.finish()
        return token

    async def all(self) -> list[ProgramToken]:
        return [_read(row) for row in await self._database.read(_ALL)]

    async def find(self, token: str) -> ProgramToken | None:
        """Return what a token opens and note its use; `None` if it opens nothing."""
        rows = await self._database.read(_OF, (digest(token),))
        found = _read(rows[0]) if rows else None
        now = self._now()
        if found is None or found.is_expired(now):
            return None
        if found.used_at is None or now - datetime.fromisoformat(found.used_at) >= USED_EVERY:
            await self._database.write((_USED, (timestamp(now), found.name)))
        return found

    async def revoke(self, name: str) -> bool:
        rows = await self._database.read(_NAMED, (name,))
        if not rows:
            return False
        line = {"by": "terminal", "token": name, "revoked": True, **asdict(_read(rows[0]).scope)}
        await self._database.write((_REVOKE, (name,)), self._overrides.noted(line))
        await self._overrides.finish()
        return True

    async def is_private(self, scope: Scope) -> bool:
        """Return whether a channel is a private thread, as far as anybody has asked there."""
        rows = await self._database.read(_PARENT, (scope.platform, scope.workspace, scope.channel))
        return bool(rows) and rows[0]["parent"] is not None


def digest(token: str) -> str:
    """Return what is stored of a token: it has 192 random bits, so that nobody finds it by guessing."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _read(row: Row) -> ProgramToken:
    names = ("name", "profile", "day_limit", "created_at", "expires_at", "used_at")
    scope = Scope(row["platform"], row["workspace"] or None, row["channel"] or None)
    return ProgramToken(id=row["digest"][:16], scope=scope, **{name: row[name] for name in names})
