"""What admins have set for single channels, in the table `overrides`.

A change is recorded together with its line for the audit, in the list of work: no change goes without
one, though one may be there twice.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

import orjson
import structlog

from council.document.conversation import timestamp
from storage.audit import AuditLog
from storage.database import Statement
from storage.errors import DamageError, FolderError
from storage.scope import Scope
from storage.work import LATEST, Work, WorkList

log = structlog.stdlib.get_logger()

_OF = "SELECT key, value FROM overrides WHERE platform = ? AND workspace = ? AND channel = ?"
_EVERYWHERE = "SELECT platform, workspace, channel, value, set_at FROM overrides WHERE key = ?"
_SET = """
INSERT INTO overrides (platform, workspace, channel, key, value, set_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (platform, workspace, channel, key)
DO UPDATE SET value = excluded.value, set_at = excluded.set_at
"""
_RESET = "DELETE FROM overrides WHERE platform = ? AND workspace = ? AND channel = ? AND key = ?"


class Overrides:
    """The settings of channels. Every method may raise `StorageError`."""

    def __init__(self, work: WorkList, audit: AuditLog) -> None:
        self._work = work
        self._database = work.database
        self._audit = audit
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
        statements: list[Statement] = []
        async with self._changing:
            before = await self.of(scope)
            changed = [key for key, value in changes.items() if before.get(key) != value]
            at = timestamp(datetime.now(UTC))
            place = {"platform": scope.platform, "workspace": scope.workspace, "channel": scope.channel}
            for key in changed:
                line = {"by": by, "set": key, **place, "from": before.get(key), "to": changes[key]}
                statements += [_change(scope, at, key, changes[key]), self.noted(line)]
            if changed:
                await self._database.write(*statements)
        try:
            await self.finish()
        except FolderError:  # the change counts; its line is tried again
            log.exception("change_not_audited")
        return changed

    def noted(self, line: Mapping[str, object]) -> Statement:
        """Return the statement that leaves a line for the audit; `finish` appends it."""
        return self._work.add("audit", _json({"at": timestamp(datetime.now(UTC)), **line}))

    async def finish(self) -> None:
        """Append to the audit what a crash or a failing disk has left."""
        await self._work.carry_out("audit", self.append, by=LATEST)

    async def append(self, one: Work) -> list[Statement]:
        await self._audit.add(cast("Mapping[str, object]", self._read(one.item)))
        return []

    def unreadable(self) -> DamageError:
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


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
