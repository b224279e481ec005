"""The pictures that members are shown, each run its own, and the files of a conversation's earlier runs.

The same picture in two conversations is kept twice: forgetting one never takes the other's.
"""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from council.brief import Attachment, Brief, Picture
from storage.database import Database, Statement, listed
from storage.journal.rows import RunRow

_KEEP = "INSERT INTO pictures (run_id, sha256, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LOAD = """
SELECT run_id, sha256, content FROM pictures
WHERE run_id IN (SELECT value FROM json_each(?)) AND sha256 IN (SELECT value FROM json_each(?))
"""
_EARLIER = """
SELECT id, brief FROM runs
WHERE conversation_id = ? AND id <> ? AND status = 'answered' AND created_at <= ? ORDER BY created_at, id
"""


def keep_pictures(run_id: str, pictures: Mapping[str, str]) -> list[Statement]:
    """Return what keeps a run's pictures: Base64 by SHA-256."""
    return [(_KEEP, (run_id, name, content)) for name, content in pictures.items()]


async def load_pictures(database: Database, run_id: str, wanted: Sequence[Picture]) -> dict[str, str]:
    """Return pictures of a run and of those that it follows, by SHA-256; some may be forgotten."""
    runs = {each.run or run_id for each in wanted}
    names = {each.sha256 for each in wanted}
    rows = await database.read(_LOAD, (listed([*runs]), listed([*names])))
    return {row["sha256"]: row["content"] for row in rows}


async def load_earlier_files(database: Database, run: RunRow) -> tuple[Attachment, ...]:
    """Return what was read of the files of a conversation's answered questions, oldest first.

    Their pictures name the run that keeps them.
    """
    found: list[Attachment] = []
    for row in await database.read(_EARLIER, (run.conversation_id, run.id, run.created_at)):
        try:
            brief = Brief.model_validate_json(row["brief"])
        except ValidationError:  # what can't be read any more is left out, as it is everywhere
            continue
        for file in brief.attachments:
            if not file.is_unread:
                pictures = tuple(each.model_copy(update={"run": row["id"]}) for each in file.pictures)
                found.append(file.model_copy(update={"pictures": pictures}))
    return tuple(found)
