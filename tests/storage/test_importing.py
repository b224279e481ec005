"""Importing copies other programs' conversations byte for byte and changes nothing else."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import orjson
import pytest

from storage.documents.conversations import Conversations, DocumentProblem
from storage.importing import ImportReport, import_from
from storage.index.index import Index
from storage.stores import Stores
from tests.pairs import pairs
from tests.storage.examples import CONTRACT_EXAMPLE, CONTRACT_ID, NOW, answer, legacy, new_id, put
from tests.stores import Home, quick_on_sqlite


@pytest.fixture
def index(stores: Stores) -> Index:
    return Index(stores.database)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "theirs"
    path.mkdir()
    return path


@quick_on_sqlite
async def test_each_file_that_is_not_imported_is_named_with_its_reason(
    folder: Path, home: Home, store: Conversations, index: Index
) -> None:
    """Broken files, invalid ids and folders are skipped; an existing conversation is kept."""
    await store.add_exchange(CONTRACT_ID, "?", answer(), title="Mine", source=None, now=NOW)
    mine = home.content(CONTRACT_ID)
    (folder / f"{CONTRACT_ID}.json").write_bytes(CONTRACT_EXAMPLE)
    (folder / "broken.json").write_bytes(CONTRACT_EXAMPLE[:9])
    (folder / "subfolder.json").mkdir()
    good = legacy(new_id())
    put(folder, good)
    report = await import_from([folder], store, index)
    assert (report.imported, report.present) == ((str(good["id"]),), 0)
    where = folder / "subfolder.json"
    assert {problem.name: problem.reason for problem in report.skipped} == {
        where.name: f"{where} can't be used: there is a folder where the file should be; move it away",
        f"{CONTRACT_ID}.json": "a conversation with its id is already here, with other content",
        "broken.json": "it is not JSON (see its line 2)",
    }
    assert [*report.skipped] == sorted(report.skipped, key=lambda problem: problem.name)
    assert home.content(CONTRACT_ID) == mine


@quick_on_sqlite
async def test_only_regular_files_are_opened(
    folder: Path, home: Home, store: Conversations, index: Index
) -> None:
    """A pipe without a writer and an endless device are named, and the rest is imported."""
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    good = legacy(new_id())
    content = put(folder, good)
    (folder / f"{good['id']}.json").rename(folder / "elsewhere")
    (folder / "link.json").symlink_to(folder / "elsewhere")
    async with asyncio.timeout(5):
        report = await import_from([folder], store, index)
    assert report.imported == (str(good["id"]),)
    assert home.content(str(good["id"])) == content
    assert [problem.reason.partition(": ")[2] for problem in report.skipped] == [
        "Too many levels of symbolic links",
        "it is not a regular file",
        "it is not a regular file",
    ]


@quick_on_sqlite
async def test_a_huge_file_is_not_read(folder: Path, store: Conversations, index: Index) -> None:
    """It would fill the memory."""
    with (folder / "huge.json").open("wb") as file:
        file.truncate(10**12)
    tracemalloc.start()
    report = await import_from([folder], store, index)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reason = f"{folder / 'huge.json'} can't be used: it is larger than 32 MB"
    assert report == ImportReport((), 0, (DocumentProblem("huge.json", reason),))
    assert peak < 100_000_000


async def test_importing_again_changes_nothing(folder: Path, store: Conversations, index: Index) -> None:
    """A second import of the same folder finds everything here, which counts as taken."""
    put(folder, legacy(CONTRACT_ID))
    await import_from([folder], store, index)
    report = await import_from([folder], store, index)
    assert report == ImportReport((), 1, ())
    assert report.is_taken


@quick_on_sqlite
async def test_files_and_folders_are_taken_together(
    folder: Path, tmp_path: Path, store: Conversations, index: Index
) -> None:
    """A file needs no ending; in a folder, only those in `.json` are documents. The rest is named."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "saved").write_bytes(orjson.dumps(legacy(CONTRACT_ID)))
    other = legacy(new_id())
    (folder / "OTHER.JSON").write_bytes(orjson.dumps(other))
    (folder / "notes.txt").touch()
    places = [tmp_path / "saved", folder, tmp_path / "empty", tmp_path / "nowhere"]
    report = await import_from(places, store, index)
    assert (report.imported, report.present) == ((CONTRACT_ID, str(other["id"])), 0)
    assert {problem.name: problem.reason for problem in report.skipped} == {
        "empty": "it has no .json files",
        "nowhere": f"{tmp_path / 'nowhere'} can't be used: No such file or directory",
    }
    assert not (await import_from(places[2:], store, index)).is_taken


@quick_on_sqlite
@pytest.mark.parametrize(
    ("given", "field"), pairs(["conv-1", 42, {"$oid": "65a1"}, None], [None, "conversations"])
)
async def test_lists_and_ids_that_are_no_uuid(
    given: object,
    field: str | None,
    folder: Path,
    home: Home,
    store: Conversations,
    index: Index,
) -> None:
    """Each of a list is a document of its own; a new id is the same at each import, the old one is kept."""
    ours, theirs = legacy(CONTRACT_ID), {**legacy("x"), "id": given}
    other = {**legacy("x"), "id": given, "created_at": "2024-01-01T00:00:00"}
    listed = [ours, theirs, other, "scrap"]
    (folder / "all.json").write_bytes(orjson.dumps({"version": 2, field: listed} if field else listed))
    (folder / "one.json").write_bytes(orjson.dumps(theirs))
    report = await import_from([folder], store, index)
    reason = "it is not a conversation document: the document isn't an object"
    assert report.skipped == (DocumentProblem("all.json, conversation 4", reason),)
    assert report.present == 1
    first, second, third = report.imported
    assert first == CONTRACT_ID
    assert len({first, second, third}) == 3
    assert orjson.loads(home.content(second)) == {**theirs, "id": second, "imported_id": given}
    assert (await import_from([folder], store, index)).present == 4
