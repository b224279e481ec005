"""Everything that is kept, whichever way: in a data folder, or in PostgreSQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from storage.audit import AuditLog
from storage.database import Database
from storage.documents.conversations import Conversations
from storage.processes.coordination import Coordination
from storage.processes.locks import Locks


@dataclass(frozen=True, slots=True)
class Recovery:
    """A database that was damaged: where it is now, and what was carried over to a new one.

    `carried_over` has the rows of each table; `complete`: every table could be read to its end.
    """

    set_aside: Path
    carried_over: Mapping[str, int]
    complete: bool


@dataclass(frozen=True, slots=True)
class Stores:
    """An open store; `locks` records which process works on what.

    `coordination` is what processes that share it agree on; a folder's runs belong to one process.
    """

    database: Database
    documents: Conversations
    audit: AuditLog
    locks: Locks
    recovered: Recovery | None = None
    coordination: Coordination | None = None
