"""Forgetting: what was selected is deleted from documents, index, search text and journal.

Runs in it are stopped before. What is to be deleted is written down first, so that the next start
finishes what a killed process has begun (`finish`). Its bytes stay in the database's file, in free
pages, old search segments and the write-ahead log, until `scrub` has run.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import cast

import orjson
from pydantic import ValidationError

from council.document.conversation import timestamp
from council.text.json_objects import JsonObject
from storage.audit import AuditLog
from storage.database import SqlValue, Statement, listed
from storage.documents.conversations import Documents
from storage.errors import StorageError
from storage.index.index import Index
from storage.journal import spending
from storage.processes.locks import PLATFORMS
from storage.selections import Selection, Selections
from storage.work import COLUMNS, LATEST, Work, WorkList

_BRIEFS = "SELECT id, brief FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_BRIEFS_ABOUT = "SELECT id, brief FROM runs WHERE conversation_id IN (SELECT value FROM json_each(?))"
_CHANGE_BRIEF = "UPDATE runs SET brief = ? WHERE id = ? AND brief = ?"
_FORGET_STEPS = """
DELETE FROM steps WHERE run_id IN (
    SELECT id FROM runs WHERE conversation_id = ? AND status <> 'running'
)
"""
# An evaluation of past questions keys each call by the conversation that the question began.
_FORGET_EVALUATED = """
DELETE FROM steps WHERE run_id IN (SELECT id FROM runs WHERE origin ->> 'platform' = 'evaluation')
    AND (key LIKE ? OR key LIKE ?)
"""
_FORGET_STEPS_OF = """
DELETE FROM steps WHERE run_id IN (
    SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'running'
)
"""
# What was selected as old, and has been followed up or retried since.
_REVIVED = """
SELECT id FROM conversations
WHERE updated_at >= :before AND id IN (SELECT value FROM json_each(:conversations))
UNION
SELECT conversation_id FROM runs
WHERE status = 'running' AND conversation_id IN (SELECT value FROM json_each(:conversations))
"""
_SCRUBBED = "DELETE FROM work WHERE kind = 'scrub' AND key = ?"
_ABOUT = "SELECT id, conversation_id FROM runs WHERE id IN (SELECT value FROM json_each(?))"
# Of what one person asked, only their own runs' messages: other askers' cards stay.
_RETRACT = f"""
INSERT INTO work ({COLUMNS})
SELECT 'retract', :forgetting, origin ->> 'platform', origin ->> 'workspace', origin ->> 'channel',
    origin ->> 'thread', {{item}}, :since, :since
FROM {{table}}
WHERE {{which}} AND origin ->> 'platform' IN (SELECT value FROM json_each(:platforms)) AND (
    runs.id IN (SELECT value FROM json_each(:runs))
    OR (:own = 0 AND conversation_id IN (SELECT value FROM json_each(:conversations)))
)
ORDER BY {{order}}
"""  # noqa: S608 - our own words
_POSTS = "runs JOIN posts ON posts.run_id = runs.id"
# A thread below a card on Discord is called by the answer's title; its item is empty.
_RENAMED = "origin ->> 'platform' = 'discord' AND origin ->> 'thread' = origin ->> 'message'"
_MESSAGES = tuple(
    _RETRACT.format(item=item, table=table, which=which, order=order)
    for item, table, which, order in (
        ("origin ->> 'message'", "runs", "origin ->> 'message' <> ''", "created_at"),
        ("origin ->> 'card'", "runs", "origin ->> 'card' <> ''", "created_at"),
        ("posts.message", _POSTS, "posts.message <> ''", "runs.created_at, posted_at"),
        ("''", "runs", _RENAMED, "created_at"),
    )
)
_SHOWING = """
conversation IN (SELECT value FROM json_each(:conversations))
OR conversation IN (SELECT value FROM json_each(:shared))
"""
_RETRACT_COPIES = f"""
INSERT INTO work ({COLUMNS})
SELECT DISTINCT 'retract', :forgetting, platform, NULLIF(workspace, ''), channel, thread, message,
    :since, :since
FROM copies WHERE {_SHOWING}
"""  # noqa: S608 - our own words
_FORGET_COPIES = f"""
DELETE FROM copies WHERE message IN (SELECT message FROM copies WHERE {_SHOWING})
"""  # noqa: S608 - our own words


class Forgetting:
    """Forgets what `select` returns; the audit keeps a line for each, without content."""

    def __init__(
        self,
        work: WorkList,
        store: Documents,
        index: Index,
        audit: AuditLog,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.select = Selections(work.database, store)
        self._work = work
        self._database = work.database
        self._store = store
        self._index = index
        self._audit = audit
        self._now = now
        self._scrubbing = asyncio.Lock()

    async def forget(self, selection: Selection, by: str) -> None:
        """Delete what was selected and add a line to the audit; `by` is the id of whoever asked for it.

        Raises `StorageError`; it can then be tried again, and the next start does so in any case.
        """
        pending = selection.model_copy(update={"by": by}).model_dump_json()
        await self._database.write(self._work.add("forget", pending, key=selection.id))
        await self.finish()

    async def finish(self) -> None:
        """Delete what a crash or a failing disk has left of what is to be forgotten.

        Raises `StorageError` if something still can't be deleted, after deleting the rest.
        """
        failed: StorageError | None = None
        for key in await self._work.keys("forget", by=LATEST):
            try:
                await self._work.carry_out("forget", self.delete, key, by=LATEST)
            except StorageError as error:
                failed = error
        if failed:
            raise failed

    async def delete(self, one: Work) -> list[Statement]:
        """Delete a selection; return what the journal forgets with it. Raises `StorageError`."""
        try:
            pending = Selection.model_validate_json(one.item)
        except ValidationError:
            raise self._database.damaged() from None
        async with self._index.mending:
            return await self._delete(one.number, pending)

    async def _delete(self, number: int, pending: Selection) -> list[Statement]:
        if pending.read:  # first: a run that is about to be stored looks here once more
            await self._change_briefs(_BRIEFS, pending.read, partial(_without_words, user=pending.user))
        removed: list[str] = []
        for conversation_id in pending.conversations:
            if not await self._revived([conversation_id], pending.before):
                await self._store.remove(conversation_id)
                removed.append(conversation_id)
        cut = [
            (conversation_id, await self._store.remove_questions(conversation_id, pending.user))
            for conversation_id in (*pending.shared, *pending.heard, *pending.voted)
            if pending.user is not None
        ]
        gone = [*removed, *(one for one, left in cut if left is None)]
        await self._index.upsert(*(left for _, left in cut if left is not None))
        await self._index.remove(*gone)
        pending = await self._without_revived(pending)
        await self._audit.add(
            {
                "at": timestamp(self._now()),
                "forgot": pending.what,
                "by": pending.by,
                "conversations": len(gone),
                "shared_conversations": len(pending.shared),
                "heard_conversations": len(pending.heard),
                "voted_conversations": len(pending.voted),
                "runs": len(pending.runs),
                **({"tokens": [*pending.tokens]} if pending.tokens else {}),
            }
        )
        shared = [one for one in pending.shared if one not in gone]
        await self._change_briefs(_BRIEFS_ABOUT, shared, _without_history)
        revived = await self._revived(gone, pending.before)
        over = [one for one in gone if one not in revived]
        return [*self._journal(pending, over, shared), self._work.add("scrub", "", str(number))]

    def _journal(self, pending: Selection, gone: list[str], shared: list[str]) -> list[Statement]:
        """Return the statements that clear the journal, also of steps about forgotten context.

        Unless they stay, messages are listed before: those of its runs, of all runs about what is `gone`
        if not only one person's are meant, and copies of what that and the `shared` conversations say.
        """
        values: dict[str, SqlValue] = {
            "forgetting": pending.id,
            "platforms": listed(PLATFORMS),
            "runs": listed(pending.runs),
            "conversations": listed(gone),
            "shared": listed(shared),
            "own": int(pending.what == "user"),
            "since": timestamp(self._now()),
        }
        listing = () if pending.stay else (*_MESSAGES, _RETRACT_COPIES)
        return [
            *((statement, values) for statement in listing),
            # What was paid still counts toward the budgets, of nobody who could be named.
            *(statement for one in (*gone, *pending.runs) for statement in spending.forget(one)),
            *(("DELETE FROM runs WHERE conversation_id = ?", (one,)) for one in gone),
            *(("DELETE FROM runs WHERE id = ?", (run,)) for run in pending.runs),
            *((_FORGET_STEPS, (one,)) for one in shared),
            (_FORGET_STEPS_OF, (listed(pending.read),)),
            *((_FORGET_EVALUATED, (f"{one}/%", f"pilot/{one}/%")) for one in (*gone, *shared)),
            *(("DELETE FROM tokens WHERE name = ?", (name,)) for name in pending.tokens),
            (_FORGET_COPIES, values),
        ]

    async def _revived(self, conversations: Sequence[str], before: str | None) -> set[str]:
        """Return which of these conversations are no longer too old."""
        if before is None:
            return set()
        values: dict[str, SqlValue] = {"before": before, "conversations": listed(conversations)}
        return {row["id"] for row in await self._database.read(_REVIVED, values)}

    async def _without_revived(self, pending: Selection) -> Selection:
        """Leave out the runs of conversations that are no longer too old."""
        if pending.before is None:
            return pending
        about = await self._database.read(_ABOUT, (listed(pending.runs),))
        revived = await self._revived([row["conversation_id"] for row in about], pending.before)
        kept = {row["id"] for row in about if row["conversation_id"] in revived}
        runs = tuple(run for run in pending.runs if run not in kept)
        return pending.model_copy(update={"runs": runs})

    async def _change_briefs(
        self, which: str, ids: Sequence[str], change: Callable[[JsonObject], JsonObject]
    ) -> None:
        """Change what runs were told, until none holds what it shouldn't: they may be storing it."""
        while True:
            changes: list[Statement] = []
            for row in await self._database.read(which, (listed(ids),)):
                brief = self._parsed(row["brief"])
                if (changed := change(brief)) != brief:
                    after = orjson.dumps(changed).decode()
                    changes.append((_CHANGE_BRIEF, (after, row["id"], row["brief"])))
            if not changes:
                return
            await self._database.write(*changes)

    def _parsed(self, brief: str) -> JsonObject:
        try:
            return orjson.loads(brief)
        except orjson.JSONDecodeError:
            raise self._database.damaged() from None

    async def scrub(self, *, large: bool = False) -> None:
        """Overwrite what forgetting has left in the database, if anything and as far as it can.

        Without `large`, what can't be used for long meanwhile is left to the next retention pass.
        """
        async with self._scrubbing:
            # What is forgotten from now on is left to the next time.
            keys = await self._work.keys("scrub", by=LATEST)
            if keys and await self._database.scrub(large=large):
                await self._database.write(*((_SCRUBBED, (key,)) for key in keys))


def _without_history(brief: JsonObject) -> JsonObject:
    return {**brief, "history": {}, **({"earlier": []} if brief.get("earlier") else {})}


def _without_words(brief: JsonObject, user: str | None) -> JsonObject:
    """Return a run's brief without what a user wrote in the thread that was read for it."""
    context = cast("JsonObject | None", brief.get("context"))
    if not context:
        return brief
    messages = cast("Sequence[JsonObject]", context.get("messages", ()))
    kept = [message for message in messages if message.get("author") != user]
    return {**brief, "context": {**context, "messages": kept}}
