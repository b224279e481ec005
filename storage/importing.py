"""Import of conversations of other llm-council programs, as they are."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from storage.atomic import read_regular
from storage.documents.conversations import Documents, Problem, Stored
from storage.errors import DocumentError, FolderError, explain_system
from storage.index.index import Index

_BATCH = 100
_LARGEST = 32_000_000  # bytes: reading one takes up to twenty times as much memory


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The ids that were imported, and the files that were not, with the reason each."""

    imported: tuple[str, ...]
    skipped: tuple[Problem, ...]


async def import_folder(folder: Path, store: Documents, index: Index) -> ImportReport:
    """Copy every conversation document of a folder, byte for byte, into the store and the index.

    A document is stored under the id in it, whatever its file is called. One with an id that the store
    already has is skipped, and so is a file that is too large or not a regular one. Raises
    `FolderError` if the folder can't be read.
    """
    imported: list[Stored] = []
    skipped: list[Problem] = []
    files = await asyncio.to_thread(_json_files, folder)
    for start in range(0, len(files), _BATCH):
        batch: list[Stored] = []
        for file in files[start : start + _BATCH]:
            one = await _import_file(file, store)
            if isinstance(one, Problem):
                skipped.append(one)
            else:
                batch.append(one)
        await index.upsert(*batch)
        imported += batch
    return ImportReport(tuple(stored.conversation.id for stored in imported), tuple(skipped))


async def _import_file(file: Path, store: Documents) -> Stored | Problem:
    try:
        content, _ = await asyncio.to_thread(read_regular, file, _LARGEST)
        stored = await store.adopt(content)
    except DocumentError as error:
        return Problem(file.name, error.reason)
    except OSError as error:
        return Problem(file.name, explain_system(file, error))
    return stored or Problem(file.name, "a conversation with its id is already here")


def _json_files(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.suffix == ".json")
    except OSError as error:
        raise FolderError(explain_system(folder, error), folder) from error
