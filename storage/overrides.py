"""What admins have set for single channels, in the table `overrides`.

A change is recorded together with its line for the audit. A line that a crash has kept from being
appended is appended at the next start: no change goes without one, though one may be there twice.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import cast

import orjson
import structlog

from council.document.conversation import timestamp
from storage.audit import AuditLog
from storage.database import Database, Statement
from storage.errors import DamageError, FolderError
from storage.scope import Scope

log = structlog.stdlib.get_logger()

_OF = "SELECT key, value FROM overrides WHERE platform = ? AND workspace = ? AND channel = ?"
_EVERYWHERE = "SELECT platform, workspace, channel, value, set_at FROM overrides WHERE key = ?"
_SET = """
INSERT INTO overrides (platform, workspace, channel, key, value, set_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (platform, workspace, channel, key)
DO UPDATE SET value = excluded.value, set_at = excluded.set_at
"""
_RESET = "DELETE FROM overrides WHERE platform = ? AND workspace = ? AND channel = ? AND key = ?"
_NOTE = "INSERT INTO unaudited (line) VALUES (?)"
_NOTED = "SELECT number, line FROM unaudited ORDER BY number"
_AUDITED = "DELETE FROM unaudited WHERE number = ?"


class Overrides:
    """The settings of channels. Every method may raise `StorageError`."""

    def __init__(
        self,
        database: Database,
        audit: AuditLog,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._audit = audit
        self._now = now
        self._changing = asyncio.Lock()

    async def of(self, scope: Scope) -> dict[str, object]:
        """Return what is set in a channel, by key."""
        rows = await self._database.read(_OF, _place(scope))
        return {row["key"]: self._read(row["value"]) for row in rows}

    async def everywhere(self, key: str) -> dict[Scope, tuple[object, str]]:
        """Return a setting of all channels that have it: its value, and when it was set (ISO 8601)."""
        return {
            Scope(row["platform"], row["workspace"] or None, row["channel"] or None): (
                self._read(row["value"]),
                row["set_at"],
            )
            for row in await self._database.read(_EVERYWHERE, (key,))
        }

    async def change(self, scope: Scope, changes: Mapping[str, object], by: str) -> list[str]:
        """Set these keys, and reset those that are `None`; return the keys that changed.

        `by` is the id of whoever wants it. What is set already changes nothing.
        """
        async with self._changing:
            before = await self.of(scope)
            changed = [key for key, value in changes.items() if before.get(key) != value]
            if changed:
                at = timestamp(self._now())
                await self._database.write(
                    *(_change(scope, at, key, changes[key]) for key in changed),
                    *(
                        (_NOTE, (_json(_line(scope, at, by, key, before.get(key), changes[key])),))
                        for key in changed
                    ),
                )
            try:
                await self._finish()
            except (
                FolderError
            ):  # the change counts; its line is tried again with the next, and at every start
                log.exception("change_not_audited")
            return changed

    def noted(self, line: Mapping[str, object]) -> Statement:
        """Return the statement that leaves a line for the audit; `finish` appends it."""
        return _NOTE, (_json({"at": timestamp(self._now()), **line}),)

    async def finish(self) -> None:
        """Append to the audit what a crash or a failing disk has left."""
        async with self._changing:
            await self._finish()

    async def _finish(self) -> None:
        for row in await self._database.read(_NOTED):
            line = self._read(row["line"])
            await self._audit.add(cast("Mapping[str, object]", line))
            await self._database.write((_AUDITED, (row["number"],)))

    def unreadable(self) -> DamageError:
        """Return the error that says that a stored value isn't one that this program writes."""
        return self._database.damaged()

    def _read(self, text: str) -> object:
        """Return what a text holds; `null` isn't written, and would open what a setting closes."""
        try:
            value: object = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise self.unreadable() from None
        if value is None:
            raise self.unreadable()
        return value


def _place(scope: Scope) -> tuple[str, str, str]:
    return scope.platform, scope.workspace or "", scope.channel or ""


def _change(scope: Scope, at: str, key: str, value: object) -> Statement:
    if value is None:
        return _RESET, (*_place(scope), key)
    return _SET, (*_place(scope), key, _json(value), at)


def _line(
    scope: Scope, at: str, by: str, key: str, before: object, after: object
) -> Mapping[str, object]:
    where = {"platform": scope.platform, "workspace": scope.workspace, "channel": scope.channel}
    return {"at": at, "by": by, "set": key, **where, "from": before, "to": after}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
