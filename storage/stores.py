"""Everything that is kept, whichever way: in a data folder, or in PostgreSQL."""

from dataclasses import dataclass
from typing import Any

from storage.audit import AuditLog
from storage.conversations import Documents
from storage.database import Database
from storage.locks import Holds


@dataclass(frozen=True, slots=True)
class Stores:
    """An open store; `locks` records which process works on what.

    `recovery` says what was done where the database was damaged.
    """

    database: Database
    documents: Documents
    audit: AuditLog
    locks: Holds
    recovery: dict[str, Any] | None = None
