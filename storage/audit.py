"""The audit: who had what deleted, and who changed which setting; never a text."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import orjson
from typing_extensions import override

from storage.errors import FolderError, explain_system


class AuditLog(Protocol):
    """Lines that are added and never changed: one for each deletion and each changed setting."""

    async def add(self, line: Mapping[str, object]) -> None:
        """Add a line, durably. Raises `StorageError`."""
        ...


class Audit(AuditLog):
    """An append-only file of JSON lines: one for each deletion and each changed setting."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @override
    async def add(self, line: Mapping[str, object]) -> None:
        await asyncio.to_thread(self._append, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def _append(self, line: bytes) -> None:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise FolderError(explain_system(self._path, error), self._path) from error
