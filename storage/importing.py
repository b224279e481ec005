"""Import of conversations of other llm-council programs, as they are."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from storage.atomic import read_regular
from storage.documents import codec, edits
from storage.documents.conversations import Conversations, DocumentProblem, Stored
from storage.errors import DocumentError, explain_system
from storage.index.index import Index

_BATCH = 100
_LARGEST = 32_000_000  # bytes: reading one takes up to twenty times as much memory


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The ids that were imported, how many were here already, and what wasn't taken, each with why."""

    imported: tuple[str, ...]
    present: int
    skipped: tuple[DocumentProblem, ...]

    @property
    def is_taken(self) -> bool:
        """Whether anything is here now; a conversation that already was counts."""
        return bool(self.imported or self.present)


async def import_from(places: Iterable[Path], store: Conversations, index: Index) -> ImportReport:
    """Copy conversation documents, byte for byte, into the store and the index.

    A place is a file, or a folder whose `.json` files are taken; a file may hold a list of them.
    Each is stored under the id in it, or a new one where that is no uuid. One whose id the store already
    has stays as it is there. What can't be read, is too large or isn't a regular file is skipped, and so
    is another conversation of that id.
    """
    imported: list[str] = []
    present, skipped = 0, list[DocumentProblem]()
    files: list[Path] = []
    for place in places:
        found = await asyncio.to_thread(_files, place)
        if isinstance(found, DocumentProblem):
            skipped.append(found)
        else:
            files += found
    for start in range(0, len(files), _BATCH):
        batch: list[Stored] = []
        for file in files[start : start + _BATCH]:
            async for one in _import_file(file, store):
                if isinstance(one, DocumentProblem):
                    skipped.append(one)
                elif one is None:
                    present += 1
                else:
                    batch.append(one)
        await index.upsert(*batch)
        imported += (stored.conversation.id for stored in batch)
    return ImportReport(tuple(imported), present, tuple(skipped))


async def _import_file(
    file: Path, store: Conversations
) -> AsyncIterator[Stored | DocumentProblem | None]:
    """Yield each conversation in a file: stored, why not, or nothing where it was here already."""
    try:
        content, _ = await asyncio.to_thread(read_regular, file, _LARGEST)
        pieces = await asyncio.to_thread(codec.contents, content)
    except DocumentError as error:
        yield DocumentProblem(file.name, error.reason)
        return
    except OSError as error:
        yield DocumentProblem(file.name, explain_system(file, error))
        return
    for number, piece in enumerate(pieces, 1):
        name = file.name if len(pieces) == 1 else f"{file.name}, conversation {number}"
        try:
            stored = await store.adopt(piece)
            is_kept = stored is not None
            if not is_kept:
                there = await asyncio.to_thread(edits.adopted, piece)
                is_kept = await store.content(there.id) == piece
        except DocumentError as error:
            yield DocumentProblem(name, error.reason)
            continue
        reason = "a conversation with its id is already here, with other content"
        yield stored if is_kept else DocumentProblem(name, reason)


def _files(place: Path) -> list[Path] | DocumentProblem:
    if not place.is_dir():
        return [place]
    try:
        found = sorted(entry for entry in place.iterdir() if entry.suffix.lower() == ".json")
    except OSError as error:
        return DocumentProblem(place.name, explain_system(place, error))
    return found or DocumentProblem(place.name, "it has no .json files")
