"""What can go wrong on the disk, as a tree under `council.errors.CouncilError`.

    CouncilError
    └── StorageError
        ├── DatabaseError         council.db is locked, damaged, full, read-only or from a newer program
        │   ├── ConstraintError   a row that is there, or is missing, forbids this write
        │   │   ├── BudgetExceeded    a budget has no room for what a run may cost
        │   │   ├── ReservationRefused  the same, before it is known which budget
        │   │   ├── QueueFull         a limit doesn't let another question wait
        │   │   └── RunSuperseded     another worker has taken up the run
        │   ├── DamageError       its content isn't what was written
        │   └── WriterError       the part of the program that writes it has failed
        ├── FolderError           the folder of documents can't be read, written or locked
        ├── BackupError           a backup can't be made, or a file isn't a whole backup
        ├── DocumentError         not JSON, not a conversation, or an answer that breaks the contract
        └── ConversationNotFound  there is no document with this id

Each sentence names the file and, if somebody can do something about it, what to do.
"""

import errno
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from council.errors import CouncilError

_ADDRESS = re.compile(r"postgresql://\S*[^\s:;,]")


class StorageError(CouncilError):
    """The disk, or what is stored on it, is in the way; `path` is the file or folder."""

    def __init__(self, sentence: str, path: Path | None = None) -> None:
        super().__init__(sentence)
        self.path = path

    @property
    def for_chat(self) -> str:
        """The sentence without paths and addresses: those are for its operator."""
        said = _ADDRESS.sub("the database", str(self))
        return said.replace(f"{self.path.parent}/", "") if self.path else said


class DatabaseError(StorageError):
    """The database can't do what is asked of it; the sentence names its file and what to do."""


class ConstraintError(DatabaseError):
    """A row that is there, or is missing, forbids a write: trying again won't help."""


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a budget is used or reserved; amounts in billionths of a dollar."""

    scope: Literal["user", "channel", "workspace"]
    period: Literal["day", "month"]
    limit: int
    amount: int


class BudgetExceeded(ConstraintError):
    """A budget has no room for the `amount` that a run may cost; nothing was written."""

    def __init__(self, database: str, used: Used, amount: int) -> None:
        super().__init__(f"{database}: the budget of a {used.scope} for a {used.period} has no room")
        self.used = used
        self.amount = amount


class ReservationRefused(ConstraintError):
    """Some budget had no room for a reservation; nothing was written."""


class QueueFull(ConstraintError):
    """A limit doesn't let another question wait; nothing was written.

    `left` is how many seconds of a cooldown are left.
    """

    def __init__(
        self, database: str, bound: Literal["user", "channel", "cooldown"], left: float = 0.0
    ) -> None:
        what = "asked again too soon" if bound == "cooldown" else f"too many questions of a {bound} wait"
        super().__init__(f"{database}: {what}")
        self.bound: Literal["user", "channel", "cooldown"] = bound
        self.left = left


class RunSuperseded(ConstraintError):
    """Another worker has taken up the run that this one claimed earlier; nothing was written."""

    def __init__(self, database: str, run_id: str) -> None:
        super().__init__(f"{database}: another worker has taken up run {run_id}")
        self.run_id = run_id


class DamageError(DatabaseError):
    """The database's content isn't what was written: only the next start repairs that."""


class WriterError(DatabaseError):
    """This process can no longer write anything: only a restart helps."""

    def __init__(self, database: str, path: Path | None) -> None:
        super().__init__(
            f"{database} can't be written any more, because the part of this program that writes it has "
            f"failed (the log says how); what was written before is kept, so start the program again",
            path,
        )


class FolderError(StorageError):
    """The folder of documents can't be read, written or locked."""


class BackupError(StorageError):
    """A backup can't be made or put back."""


class DocumentError(StorageError, ValueError):
    """A document, or an answer to be added to one, breaks the contract.

    `reason` is the problem without the file's name.
    """

    def __init__(self, reason: str, path: Path | None = None) -> None:
        super().__init__(f"{path}: {reason}" if path else reason, path)
        self.reason = reason


class ConversationNotFound(StorageError, LookupError):
    """There is no document with this id."""

    def __init__(self, conversation_id: str, place: Path | str) -> None:
        folder = place if isinstance(place, Path) else None
        super().__init__(f"there is no conversation {conversation_id} in {place}", folder)
        self.conversation_id = conversation_id


_DAMAGED = (
    "is damaged; move it away together with its -wal and -shm files, or restore a backup, then run "
    "`council index rebuild` (the conversations are safe in files of their own)"
)
_NO_DATABASE = (
    "is not a SQLite database; move it away, then run `council index rebuild` "
    "(the conversations are safe in files of their own)"
)
_SQLITE = {
    sqlite3.SQLITE_BUSY: "is locked by another process; wait for it to end, or stop it, and try again",
    sqlite3.SQLITE_LOCKED: "is locked by another process; wait for it to end, or stop it, and try again",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _NO_DATABASE,
    sqlite3.SQLITE_READONLY: "can't be written; make the file and its folder writable for this user",
    sqlite3.SQLITE_PERM: "can't be written; make the file and its folder writable for this user",
    sqlite3.SQLITE_CANTOPEN: "can't be opened; check that its folder is there and is writable",
    sqlite3.SQLITE_FULL: "can't grow; the disk is full; free some space and try again",
    sqlite3.SQLITE_IOERR: "can't be read or written; the disk is failing, or full; check it",
}

_SYSTEM = {
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "this user's disk quota is used up; free some space and try again",
    errno.EFBIG: "this process may not write a file that large; raise its limit (ulimit -f)",
    errno.EMFILE: "this process has too many files and connections open; raise its limit (ulimit -n)",
    errno.ENFILE: "the system has too many files open; close some of them",
    errno.EIO: "the disk reports an error; check it",
    errno.EROFS: "the file system is read-only; mount it writable or choose another folder",
    errno.EACCES: "permission denied; make it readable and writable for this user",
    errno.EPERM: "permission denied; make it readable and writable for this user",
    errno.ENOTDIR: "there is a file where a folder should be; choose another path",
    errno.EEXIST: "there is a file where a folder should be; choose another path",
    errno.EISDIR: "there is a folder where the file should be; move it away",
}


def explain_sqlite(path: Path, error: sqlite3.Error) -> DatabaseError:
    """Return the error that says what a SQLite error means for the database at `path`."""
    if str(error).startswith(("Could not decode", "malformed JSON")):
        return damaged(path)  # the first quotes what is stored
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the primary code; the rest tells variants apart.
    if isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_CONSTRAINT:
        refused = ReservationRefused if "room >= 0" in str(error) else ConstraintError
        return refused(f"{path}: {error}", path)
    meaning = _SQLITE.get(code & 0xFF) if isinstance(code, int) else None
    kind = DamageError if meaning in (_DAMAGED, _NO_DATABASE) else DatabaseError
    return kind(f"{path} {meaning} ({error})" if meaning else f"{path}: {error}", path)


def damaged(path: Path) -> DamageError:
    """Return the error that says that the database at `path` doesn't contain what was written."""
    return DamageError(f"{path} {_DAMAGED}", path)


def explain_system(path: Path, error: OSError) -> str:
    """Return what an operating-system error means for the file or folder at `path`."""
    meaning = _SYSTEM.get(error.errno or 0, error.strerror or str(error))
    return f"{path} can't be used: {meaning}"
