"""What model servers were learned to take, in the table `server_traits`.

It is kept for `KEPT_DAYS` after it was learned, since servers change. Nothing depends on it: what can't
be read or written is learned again.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import structlog

from council.document.conversation import timestamp
from storage.database import Database
from storage.errors import StorageError

KEPT_DAYS = 7

log = structlog.stdlib.get_logger()

_OF = "SELECT model, traits FROM server_traits WHERE server = ? AND learned_at >= ?"
_KEEP = """
INSERT INTO server_traits (server, model, traits, learned_at) VALUES (?, ?, ?, ?)
ON CONFLICT (server, model) DO UPDATE SET traits = excluded.traits, learned_at = excluded.learned_at
"""
_FORGET_OLD = "DELETE FROM server_traits WHERE learned_at < ?"


class ServerTraits:
    """The memory of the model client (`council.models.servers.Memory`)."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._now = now

    async def load(self, server: str) -> Mapping[str, str]:
        """Return what is known of a server's models, as JSON, by model."""
        try:
            rows = await self._database.read(_OF, (server, self._oldest))
        except StorageError:
            log.exception("server_traits_not_read")
            return {}
        return {row["model"]: row["traits"] for row in rows}

    async def save(self, server: str, model: str, traits: str) -> None:
        """Keep what is known of one model."""
        try:
            await self._database.write(
                (_FORGET_OLD, (self._oldest,)),
                (_KEEP, (server, model, traits, timestamp(self._now()))),
            )
        except StorageError:
            log.exception("server_traits_not_kept")

    @property
    def _oldest(self) -> str:
        return timestamp(self._now() - timedelta(days=KEPT_DAYS))
