"""Whether the program can serve: what a process manager asks before it sends traffic here."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from bot.service.dispatcher import Dispatcher
from storage.database import Database
from storage.errors import StorageError

WRITE_SECONDS = 2.0
"""How long a write to the journal may wait for its turn."""

Connected = Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class Health:
    """The program's phase, its journal, and whether each configured platform is connected."""

    database: Database
    phase: Literal["starting", "serving", "ending"] = "starting"
    platforms: dict[str, Connected] = field(default_factory=dict[str, Connected])
    dispatcher: Dispatcher | None = None
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def connected(self) -> dict[str, bool]:
        """Return whether each platform is connected."""
        return {name: await is_connected() for name, is_connected in self.platforms.items()}

    async def troubles(self) -> list[str]:
        """Return why the program can't serve right now, in sentences; none if it can."""
        if self.phase != "serving":
            return [f"The council is {self.phase}."]
        lost = [name for name, is_connected in (await self.connected()).items() if not is_connected]
        return [f"{name} isn't connected." for name in lost] + await self._trouble_of_the_journal()

    async def _trouble_of_the_journal(self) -> list[str]:
        async with self._writing:  # however often this is called, at most one write waits
            try:
                await self.database.check_writable(asyncio.get_running_loop().time() + WRITE_SECONDS)
            except TimeoutError:
                return [f"The journal has been busy for {WRITE_SECONDS:.0f} s."]
            except StorageError as error:
                return [f"The journal has a problem: {error.told_in_chat}."]
            return []
