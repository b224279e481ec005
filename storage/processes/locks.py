"""Who works on what: locks between processes, released by the system when their process dies."""

import asyncio
import hashlib
import re
import threading
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout
from typing_extensions import override

SHARED = "council"
"""What every process holds, together with others, that serves or asks with a database they share."""
PLATFORMS = ("discord", "slack")
"""What a process holds that serves these alone, from its data folder or its database."""
LOOK_SECONDS = 2.0
"""How long `council doctor` may hold a name, to see whether anybody else does."""
_POLL = 0.1  # seconds
_NAME = re.compile("[a-z0-9-]{1,64}")


class Locks(Protocol):
    """Names that one process at a time can hold."""

    def acquire(
        self, name: str, *, wait: float = 0.0, shared: bool = False
    ) -> AbstractAsyncContextManager[bool]:
        """Hold a name; yield false if another process holds it for longer than `wait` seconds.

        A `shared` hold goes with others that are shared; files can't be held so.
        """
        ...

    async def until_unsure(self) -> None:
        """Wait until another process may hold what this one holds; with files, that never happens."""
        ...

    async def publish(self, fingerprint: str) -> list[str]:
        """Tell other processes which configuration this one has; return theirs. Raises `DatabaseError`.

        A folder is served by one process.
        """
        ...


class FileLocks(Locks):
    """Names that one process at a time can hold, as lock files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @override
    @asynccontextmanager
    async def acquire(
        self, name: str, *, wait: float = 0.0, shared: bool = False
    ) -> AsyncGenerator[bool]:
        if shared:
            raise ValueError("a file is held by one process")
        # A run's id may be a restored database's, or typed: as a path it could name any file.
        known = _NAME.fullmatch(name)
        path = self._folder / f"{name if known else hashlib.sha256(name.encode()).hexdigest()}.lock"
        left = threading.Event()
        # Acquired in one thread and released in another: the lock belongs to the process.
        lock = FileLock(path, timeout=wait, poll_interval=_POLL, mode=0o600, thread_local=False)

        def take() -> bool:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                lock.acquire(cancel_check=left.is_set)
            except Timeout:
                return False
            return True

        try:
            held = await asyncio.to_thread(take)
        except asyncio.CancelledError:
            left.set()
            raise
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)
                lock.release()

    @override
    async def until_unsure(self) -> None:
        await asyncio.Event().wait()  # the system releases the files of dead processes only

    @override
    async def publish(self, fingerprint: str) -> list[str]:
        del fingerprint  # a folder is served by one process
        return []
