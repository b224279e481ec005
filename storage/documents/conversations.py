"""The conversation documents; by default one JSON file each, `{folder}/{id}.json`.

The files are the source of truth; the index is derived from them. Reading needs no lock, because a file
is replaced as a whole. A write holds a lock, which other processes respect, from reading the old file
until it is replaced.
"""

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self, TypeVar

from filelock import FileLock, Timeout
from typing_extensions import override

from council.brief import Discussion
from council.document.conversation import (
    AssistantMessage,
    Conversation,
    FileRecord,
    LinkRecord,
    Source,
    UserMessage,
    Vote,
    timestamp,
)
from storage.atomic import Stamp, read_regular, replace_file, stamp, sync_folder
from storage.documents import codec, edits
from storage.documents.edits import Edit, Edited
from storage.errors import ConversationNotFound, DocumentError, FolderError, explain_system

T = TypeVar("T")

_LEFTOVER = re.compile(r"\.(?P<id>[0-9a-f-]{36})\.json\b.*\.tmp")
_LOCK_POLL = 0.002  # seconds: a write takes about one millisecond


@dataclass(frozen=True, slots=True)
class Stored:
    """A conversation as it is stored.

    `set_aside` is where a write copied an unreadable document that it replaced.
    """

    conversation: Conversation
    stamp: Stamp
    set_aside: Path | str | None = None


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """A file that can't be used, by its name, and why."""

    name: str
    reason: str


@dataclass(slots=True)
class FolderListing:
    """What the folder contains, by name only.

    `misnamed` are JSON files whose name is not a conversation's id; `set_aside` are the names of
    unreadable documents that a write has copied aside.
    """

    documents: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    misnamed: list[DocumentProblem] = field(default_factory=list[DocumentProblem])
    set_aside: list[str] = field(default_factory=list[str])


class Conversations(ABC):
    """The conversations, however they are stored.

    A store reads and replaces documents; what is done to one (`storage.documents.edits`) is the same
    wherever they are kept. `place` is where, for errors. Methods may raise `StorageError`; what is
    written is durable on return.
    """

    place: Path | str

    @abstractmethod
    async def document(self, conversation_id: str) -> tuple[bytes, Conversation]:
        """Read a document, as bytes and as data. Raises `ConversationNotFound` or `DocumentError`."""

    @abstractmethod
    async def listing(self) -> FolderListing:
        """Return the name and stamp of every document, without opening any."""

    @abstractmethod
    async def present(self, conversation_ids: Sequence[str]) -> tuple[str, ...]:
        """Return which of these documents exist, readable or not."""

    @abstractmethod
    async def read(self, conversation_ids: Sequence[str]) -> list[Stored | DocumentProblem]:
        """Read these documents in this order: leave out what is gone, return a problem for a bad one."""

    @abstractmethod
    async def remove(self, conversation_id: str) -> None:
        """Delete a document, if it exists, and every copy of it that was set aside."""

    @abstractmethod
    async def edit(self, conversation_id: str, edit: Edit, now: datetime | None = None) -> Stored | None:
        """Replace a document by what an edit makes of it; return `None` if that deletes it.

        One that can't be read is copied aside where the edit says so, under the time `now`. Raises what
        the edit raises.
        """

    async def load(self, conversation_id: str) -> Conversation:
        """Read one conversation. Raises `ConversationNotFound` or `DocumentError`."""
        return (await self.document(conversation_id))[1]

    async def content(self, conversation_id: str) -> bytes:
        """Return a document's bytes. Raises `ConversationNotFound` or `DocumentError`."""
        return (await self.document(conversation_id))[0]

    async def adopt(self, content: bytes) -> Stored | None:
        """Store another program's document, byte for byte; return `None` if its id is taken.

        Raises `DocumentError` if it can't be read or its id is not a uuid.
        """
        conversation = await asyncio.to_thread(edits.adopted, content)
        is_taken = False

        def edit(old: bytes | None) -> Edited:
            nonlocal is_taken
            is_taken = old is not None
            return Edited(conversation, None if is_taken else content)

        stored = await self.edit(conversation.id, edit)
        return None if is_taken else stored

    async def add_exchange(
        self,
        conversation_id: str,
        question: str,
        answer: AssistantMessage,
        *,
        title: str,
        source: Source | None,
        now: datetime,
        context: Discussion | None = None,
        files: Sequence[FileRecord] = (),
        links: Sequence[LinkRecord] = (),
    ) -> Stored:
        """Append a question and its answer, in one write, to a new or existing conversation.

        `context` is the thread that was read with the question, without its files' texts; `files` and
        `links` say what was read of the question's own. An answer with a `run_id` that is already there
        is not added again. Title and source are used only for a new document. One that can't be read is
        copied aside, and a new one is created, so that neither it nor the answer is lost.
        """
        asked = UserMessage(
            role="user", content=question, context=context, files=[*files], links=[*links]
        )
        edit = edits.exchange(conversation_id, asked, answer, title=title, source=source, now=now)
        return _left(await self.edit(conversation_id, edit, now))

    async def vote(self, conversation_id: str, run_id: str, vote: Vote) -> Stored:
        """Store somebody's vote on a run's answer in place of an earlier one of theirs.

        Raises `ConversationNotFound` where there is no such answer, and `DocumentError`.
        """
        edit = edits.vote(conversation_id, run_id, vote, self.place)
        return _left(await self.edit(conversation_id, edit))

    async def add_assistant_message(
        self,
        conversation_id: str,
        stage1: Sequence[object],
        stage2: Sequence[object],
        stage2_5: Sequence[object] | None,
        stage3: object,
    ) -> Stored:
        """Append an answer to a question that is already stored, as the storage contract has it.

        The stages are models or their JSON form; `stage2_5=None` leaves the field out.
        Raises `DocumentError` if no question is unanswered.
        """
        answer = codec.answer_of(stage1, stage2, stage2_5, stage3)
        edit = edits.response(conversation_id, answer, self.place)
        return _left(await self.edit(conversation_id, edit))

    async def remove_questions(self, conversation_id: str, user: str) -> Stored | None:
        """Delete what a user asked, wrote or voted; return `None` if nothing else was there.

        What the user wrote in the threads of others' questions is deleted, too. A document that can't be
        read can't be edited, and is deleted as a whole.
        """
        return await self.edit(conversation_id, edits.cut(conversation_id, user))


class ConversationStore(Conversations):
    """A folder of conversation documents; opened by `ConversationStore.open`.

    `lock_timeout` is how many seconds a write waits for another process's write.
    """

    def __init__(self, folder: Path, *, lock_timeout: float = 30.0) -> None:
        self.place = self.folder = folder
        self._locks = folder / ".locks"
        self._lock_timeout = lock_timeout

    @classmethod
    async def open(cls, folder: Path, *, lock_timeout: float = 30.0) -> Self:
        """Create the folder if it is missing, and delete what a crashed write has left."""
        store = cls(folder, lock_timeout=lock_timeout)
        await store._in_thread(store._prepare)
        return store

    @override
    async def document(self, conversation_id: str) -> tuple[bytes, Conversation]:
        path = self._path(conversation_id)

        def read() -> tuple[bytes, Conversation]:
            content, _ = _content(path)
            return content, edits.read(conversation_id, content, path).conversation

        return await self._in_thread(read)

    @override
    async def listing(self) -> FolderListing:
        return await self._in_thread(self._list)

    @override
    async def present(self, conversation_ids: Sequence[str]) -> tuple[str, ...]:
        paths = [self._path(one) for one in conversation_ids]
        return await self._in_thread(lambda: tuple(path.stem for path in paths if path.exists()))

    @override
    async def read(self, conversation_ids: Sequence[str]) -> list[Stored | DocumentProblem]:
        return await self._in_thread(lambda: [*self._read_each(conversation_ids)])

    @override
    async def remove(self, conversation_id: str) -> None:
        path = self._path(conversation_id)

        def delete() -> None:
            with self._locked(conversation_id):
                _delete(path)

        await self._in_thread(delete)

    @override
    async def edit(self, conversation_id: str, edit: Edit, now: datetime | None = None) -> Stored | None:
        path = self._path(conversation_id)

        def change() -> Stored | None:
            with self._locked(conversation_id):
                try:
                    old, version = read_regular(path)
                except FileNotFoundError:
                    old, version = None, Stamp(0, 0)
                edited = edit(old)
                if edited is None:
                    _delete(path)
                    return None
                if edited.drops_copies:
                    _delete_copies(path)
                if edited.content is None:
                    return Stored(edited.conversation, version)
                aside = None
                if edited.sets_aside and now:  # a copy: the document stays until the new one replaces it
                    name = f"{path.name}.broken-{re.sub('[-:.]', '', timestamp(now))}"
                    aside = path.with_name(name)
                    replace_file(aside, path.read_bytes())
                return Stored(edited.conversation, replace_file(path, edited.content), aside)

        return await self._in_thread(change)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, to its end even if the waiter is cancelled."""

        def run() -> T:
            try:
                return work()
            except OSError as error:
                path = Path(str(error.filename)) if error.filename else self.folder
                raise FolderError(explain_system(path, error), path) from error

        return await asyncio.to_thread(run)

    def _path(self, conversation_id: str) -> Path:
        edits.check_id(conversation_id)
        return self.folder / f"{conversation_id}.json"

    @contextmanager
    def _locked(self, conversation_id: str) -> Generator[None]:
        # Conversations share 256 lock files: one for each would double the number of files, and a lock
        # file can't be deleted safely.
        lock = FileLock(
            self._locks / f"{conversation_id[:2]}.lock",
            timeout=self._lock_timeout,
            poll_interval=_LOCK_POLL,
            mode=0o600,
        )
        try:
            lock.acquire()
        except Timeout as error:
            raise FolderError(
                f"{lock.lock_file} has been held by another process for {self._lock_timeout:g} s; "
                f"wait for that process to end, or stop it, and try again",
                Path(lock.lock_file),
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _prepare(self) -> None:
        if not self._locks.is_dir():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._locks.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self.folder.parent)
        with os.scandir(self.folder) as entries:
            leftovers = [found for entry in entries if (found := _LEFTOVER.fullmatch(entry.name))]
        for leftover in leftovers:
            # A writer holds the lock, so a temporary file that is seen while holding it has no writer.
            with self._locked(leftover["id"]):
                (self.folder / leftover.string).unlink(missing_ok=True)

    def _list(self) -> FolderListing:
        listing = FolderListing()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name, suffix, rest = entry.name.partition(".json")
                if not suffix or entry.name.startswith("."):
                    continue
                if rest.startswith(".broken-"):
                    listing.set_aside.append(entry.name)
                elif not rest and codec.is_id(name):
                    with suppress(FileNotFoundError):  # deleted since the folder was read
                        listing.documents[name] = stamp(entry.stat())
                elif not rest:
                    reason = "its name is not a conversation's id: a uuid in lower case with hyphens"
                    listing.misnamed.append(DocumentProblem(entry.name, reason))
        return listing

    def _read_each(self, conversation_ids: Sequence[str]) -> Iterator[Stored | DocumentProblem]:
        for conversation_id in conversation_ids:
            path = self._path(conversation_id)
            try:
                content, version = _content(path)
                document = edits.read(conversation_id, content, path)
            except ConversationNotFound:
                continue
            except DocumentError as error:
                yield DocumentProblem(path.name, error.reason)
            except OSError as error:
                yield DocumentProblem(path.name, explain_system(path, error))
            else:
                yield Stored(document.conversation, version)


def _content(path: Path) -> tuple[bytes, Stamp]:
    try:
        return read_regular(path)
    except FileNotFoundError as error:
        raise ConversationNotFound(path.stem, path.parent) from error


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    _delete_copies(path)
    sync_folder(path.parent)


def _delete_copies(path: Path) -> None:
    for copy in path.parent.glob(f"{path.name}.broken-*"):
        copy.unlink(missing_ok=True)


def _left(stored: Stored | None) -> Stored:
    assert stored is not None  # noqa: S101 - this edit deletes nothing
    return stored
