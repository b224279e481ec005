"""Forgetting: a conversation, everything of a user, everything of a channel, or what is too old.

First something is selected, then the runs in it are stopped, then it is forgotten: documents, index,
search text and journal. What is to be deleted is written down first, so that the next start finishes
what a killed process has begun (`finish`). Its bytes stay in the database's file, in free pages, old
search segments and the write-ahead log, until `scrub` has run.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from council.calls import JsonObject
from council.document.conversation import Source, timestamp
from storage.audit import AuditLog
from storage.database import Database, SqlValue, Statement, listed
from storage.documents import codec
from storage.documents.conversations import Documents
from storage.errors import StorageError
from storage.index.index import Index
from storage.journal import spending
from storage.scope import Scope

What = Literal["conversation", "user", "channel", "retention"]

_RUNS = "SELECT id, conversation_id, origin, status FROM runs WHERE"
_IN_PLACE = (
    "origin ->> 'platform' = :platform AND origin ->> 'workspace' IS NOT DISTINCT FROM :workspace"
    " AND origin ->> 'channel' IS NOT DISTINCT FROM :channel"
)
_OF_USER = """
SELECT id,
    EXISTS (SELECT 1 FROM answers WHERE conversation = number AND "user" = :user) AS asked,
    EXISTS (
        SELECT 1 FROM answers WHERE conversation = number AND "user" IS DISTINCT FROM :user
    ) AS shared,
    EXISTS (SELECT 1 FROM authors WHERE conversation = number AND "user" = :user) AS wrote,
    (
        SELECT count(*) FROM votes JOIN answers USING (conversation, position)
        WHERE conversation = number AND votes."user" = :user AND answers."user" IS DISTINCT FROM :user
    ) AS votes
FROM conversations
WHERE number IN (
        SELECT conversation FROM answers WHERE "user" = :user
        UNION SELECT conversation FROM authors WHERE "user" = :user
        UNION SELECT conversation FROM votes WHERE "user" = :user
    )
    AND platform = :platform AND (:everywhere = 1 OR workspace IS NOT DISTINCT FROM :workspace)
"""
_RUNS_OF_USER = f"""
{_RUNS} origin ->> 'platform' = :platform AND origin ->> 'user' = :user
    AND (:everywhere = 1 OR origin ->> 'workspace' IS NOT DISTINCT FROM :workspace)
"""
# Runs of others that read what the user wrote in a thread.
_READ_FROM_USER = """
SELECT id, conversation_id FROM runs
WHERE origin ->> 'platform' = :platform
    AND (:everywhere = 1 OR origin ->> 'workspace' IS NOT DISTINCT FROM :workspace)
    AND origin ->> 'user' IS DISTINCT FROM :user AND EXISTS (
        SELECT 1 FROM json_each(brief -> 'context' -> 'messages') WHERE value ->> 'author' = :user
    )
"""
# A conversation to which a run is adding is kept for now.
_OLD = """
SELECT id FROM conversations WHERE scope = :scope AND updated_at < :before
    AND id NOT IN (SELECT conversation_id FROM runs WHERE status = 'running')
"""
_SCOPES = """
SELECT platform, workspace, channel, max(parent) AS parent FROM (
    SELECT coalesce(platform, :local) AS platform, workspace, channel, NULL AS parent FROM conversations
    UNION
    SELECT origin ->> 'platform', origin ->> 'workspace', origin ->> 'channel', origin ->> 'parent'
    FROM runs
) AS places GROUP BY platform, workspace, channel
"""
_BRIEFS = "SELECT id, brief FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_BRIEFS_ABOUT = "SELECT id, brief FROM runs WHERE conversation_id IN (SELECT value FROM json_each(?))"
_CHANGE_BRIEF = "UPDATE runs SET brief = ? WHERE id = ? AND brief = ?"
_FORGET_STEPS = """
DELETE FROM steps WHERE run_id IN (
    SELECT id FROM runs WHERE conversation_id = ? AND status <> 'running'
)
"""
_FORGET_STEPS_OF = """
DELETE FROM steps WHERE run_id IN (
    SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND status <> 'running'
)
"""
_OLD_RUNS = f"""
{_RUNS} {_IN_PLACE} AND created_at < :before AND status <> 'running'
    AND conversation_id NOT IN (SELECT id FROM conversations WHERE updated_at >= :before)
    AND conversation_id NOT IN (
        SELECT conversation_id FROM runs WHERE created_at >= :before OR status = 'running'
    )
"""  # noqa: S608 - our own words
# What was selected as old, and has been followed up or retried since.
_REVIVED = """
SELECT id FROM conversations
WHERE updated_at >= :before AND id IN (SELECT value FROM json_each(:conversations))
UNION
SELECT conversation_id FROM runs
WHERE status = 'running' AND conversation_id IN (SELECT value FROM json_each(:conversations))
"""
_ABOUT = "SELECT id, conversation_id FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_NOT_INDEXED = """
SELECT value AS id FROM json_each(?) WHERE value NOT IN (SELECT id FROM conversations)
"""
_BEGIN = "INSERT INTO forgettings (since, selection) VALUES (?, ?)"
_PENDING = "SELECT number, selection FROM forgettings WHERE selection IS NOT NULL ORDER BY number"
_DELETED = "UPDATE forgettings SET selection = NULL WHERE number = ?"
_UNSCRUBBED = "SELECT number FROM forgettings WHERE selection IS NULL"
_SCRUBBED = "DELETE FROM forgettings WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class SelectedRun:
    """A run to be forgotten; its origin says where its card and its thread are."""

    id: str
    conversation_id: str
    origin: Source
    is_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What somebody wants forgotten.

    `conversations` are deleted as a whole; from those in `shared`, where others have asked too, only
    the questions of `user` are deleted, with their answers. `heard` are others' conversations, and
    `read` others' runs, for which a thread was read that `user` wrote in: those messages are deleted,
    from shared ones, too. `voted` are others' conversations of which only votes of `user` are deleted;
    `votes` counts those on others' answers, wherever they are. Documents that can't be read are not in
    the index: they are included if the journal knows of them. `before` is the age by which retention
    has selected: what is no longer that old when its turn comes is kept.
    """

    what: What
    conversations: tuple[str, ...]
    runs: tuple[SelectedRun, ...]
    shared: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    voted: tuple[str, ...] = ()
    votes: int = 0
    user: str | None = None
    before: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (
            self.conversations or self.runs or self.shared or self.heard or self.read or self.voted
        )


class _Pending(BaseModel):
    """What is still to be deleted, as the database keeps it: ids alone."""

    model_config = ConfigDict(frozen=True)

    what: What
    by: str
    conversations: tuple[str, ...]
    shared: tuple[str, ...]
    heard: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    voted: tuple[str, ...] = ()
    user: str | None
    runs: tuple[str, ...]
    before: str | None = None


class Forgetting:
    """Selects and forgets; the audit keeps a line for each, without content."""

    def __init__(
        self,
        database: Database,
        store: Documents,
        index: Index,
        audit: AuditLog,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._store = store
        self._index = index
        self._audit = audit
        self._now = now
        self._scrubbing = asyncio.Lock()

    async def conversation(self, scope: Scope, conversation_id: str) -> Selection:
        """Select a conversation by its whole id; nothing if this scope has none."""
        place = {**_place(scope), "id": conversation_id}
        runs = await self._runs(f"{_RUNS} conversation_id = :id AND {_IN_PLACE}", place)
        known = await self._ids(
            "SELECT id FROM conversations WHERE id = :id AND scope = :scope",
            {"id": conversation_id, "scope": scope.word},
        )
        return Selection(
            what="conversation", conversations=(*known, *await self._not_indexed(runs)), runs=runs
        )

    async def user(self, platform: str, user: str, *, workspace: str | None = None) -> Selection:
        """Select what a user asked, wrote or voted, in one workspace or on the whole platform."""
        who: dict[str, SqlValue] = {
            "platform": platform,
            "user": user,
            "workspace": workspace,
            "everywhere": int(workspace is None),
        }
        found = await self._database.read(_OF_USER, who)
        runs = await self._runs(_RUNS_OF_USER, who)
        read = await self._database.read(_READ_FROM_USER, who)
        # These are not in the index: the document says who asked, or a copy of it that was set aside.
        known = {row["id"] for row in found}
        unknown = await self._store.present([one for one in _documents_of(runs) if one not in known])
        known |= {*unknown}
        heard = {row["conversation_id"] for row in read} - known
        return Selection(
            what="user",
            conversations=tuple(row["id"] for row in found if row["asked"] and not row["shared"]),
            shared=(*(row["id"] for row in found if row["asked"] and row["shared"]), *unknown),
            heard=(
                *(row["id"] for row in found if row["wrote"] and not row["asked"]),
                *await self._store.present(sorted(filter(codec.is_id, heard))),
            ),
            read=tuple(row["id"] for row in read),
            voted=tuple(row["id"] for row in found if not (row["asked"] or row["wrote"])),
            votes=sum(row["votes"] for row in found),
            user=user,
            runs=runs,
        )

    async def channel(self, scope: Scope) -> Selection:
        """Select everything of a channel."""
        known = await self._ids(
            "SELECT id FROM conversations WHERE scope = :scope", {"scope": scope.word}
        )
        runs = await self._runs(f"{_RUNS} {_IN_PLACE}", _place(scope))
        return Selection(
            what="channel", conversations=(*known, *await self._not_indexed(runs)), runs=runs
        )

    async def scopes(self) -> dict[Scope, Scope]:
        """Return every channel of which something is kept, with the channel whose settings apply to it.

        For retention, which covers all of them; a private thread's settings are its channel's.
        """
        found = await self._database.read(_SCOPES, {"local": Scope.of(None).platform})
        return {
            Scope(row["platform"], row["workspace"], row["channel"]): Scope(
                row["platform"], row["workspace"], row["parent"] or row["channel"]
            )
            for row in found
        }

    async def older_than(self, scope: Scope, moment: datetime) -> Selection:
        """Select a channel's conversations with no answer since `moment`, and its old failed runs."""
        before = timestamp(moment)
        known = await self._ids(_OLD, {"scope": scope.word, "before": before})
        runs = await self._runs(_OLD_RUNS, {**_place(scope), "before": before})
        return Selection(
            what="retention",
            conversations=(*known, *await self._not_indexed(runs)),
            runs=runs,
            before=before,
        )

    async def forget(self, selection: Selection, by: str) -> None:
        """Delete what was selected and add a line to the audit; `by` is the id of whoever asked for it.

        Raises `StorageError`; it can then be tried again, and the next start does so in any case.
        """
        pending = _Pending(
            what=selection.what,
            by=by,
            conversations=selection.conversations,
            shared=selection.shared,
            heard=selection.heard,
            read=selection.read,
            voted=selection.voted,
            user=selection.user,
            runs=tuple(run.id for run in selection.runs),
            before=selection.before,
        )
        await self._database.write((_BEGIN, (timestamp(self._now()), pending.model_dump_json())))
        await self.finish()

    async def finish(self) -> None:
        """Delete what a crash or a failing disk has left of what is to be forgotten.

        Raises `StorageError` if something still can't be deleted, after deleting the rest.
        """
        failed: StorageError | None = None
        async with self._index.mending:
            for row in await self._database.read(_PENDING):
                try:
                    await self._delete(row["number"], _Pending.model_validate_json(row["selection"]))
                except StorageError as error:
                    failed = error
                except ValidationError:
                    failed = self._database.damaged()
        if failed:
            raise failed

    async def _delete(self, number: int, pending: _Pending) -> None:
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
            }
        )
        shared = [one for one in pending.shared if one not in gone]
        await self._change_briefs(_BRIEFS_ABOUT, shared, _without_history)
        revived = await self._revived(gone, pending.before)
        over = [one for one in gone if one not in revived]
        await self._database.write(*_journal(pending, over, shared), (_DELETED, (number,)))

    async def _revived(self, conversations: Sequence[str], before: str | None) -> set[str]:
        """Return which of these conversations are no longer too old."""
        if before is None:
            return set()
        values: dict[str, SqlValue] = {"before": before, "conversations": listed(conversations)}
        return {row["id"] for row in await self._database.read(_REVIVED, values)}

    async def _without_revived(self, pending: _Pending) -> _Pending:
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
            numbers = [row["number"] for row in await self._database.read(_UNSCRUBBED)]
            if not numbers:
                return
            if await self._database.scrub(large=large):
                await self._database.write((_SCRUBBED, (listed(numbers),)))

    async def _not_indexed(self, runs: Sequence[SelectedRun]) -> tuple[str, ...]:
        """Return the documents of these runs that aren't in the index, because they can't be read."""
        ids = listed(_documents_of(runs))
        found = await self._database.read(_NOT_INDEXED, (ids,))
        return await self._store.present([row["id"] for row in found])

    async def _ids(self, sql: str, values: dict[str, str | None]) -> tuple[str, ...]:
        return tuple(row["id"] for row in await self._database.read(sql, values))

    async def _runs(self, sql: str, values: dict[str, SqlValue]) -> tuple[SelectedRun, ...]:
        rows = await self._database.read(sql, values)
        try:
            return tuple(
                SelectedRun(
                    id=row["id"],
                    conversation_id=row["conversation_id"],
                    origin=Source.model_validate_json(row["origin"]),
                    is_running=row["status"] == "running",
                )
                for row in rows
            )
        except ValidationError:
            raise self._database.damaged() from None


def _documents_of(runs: Sequence[SelectedRun]) -> list[str]:
    return sorted({run.conversation_id for run in runs if codec.is_id(run.conversation_id)})


def _place(scope: Scope) -> dict[str, SqlValue]:
    return {"platform": scope.platform, "workspace": scope.workspace, "channel": scope.channel}


def _without_history(brief: JsonObject) -> JsonObject:
    return {**brief, "history": {}}


def _without_words(brief: JsonObject, user: str | None) -> JsonObject:
    """Return a run's brief without what a user wrote in the thread that was read for it."""
    context = cast("JsonObject | None", brief.get("context"))
    if not context:
        return brief
    messages = cast("Sequence[JsonObject]", context.get("messages", ()))
    kept = [message for message in messages if message.get("author") != user]
    return {**brief, "context": {**context, "messages": kept}}


def _journal(pending: _Pending, gone: Sequence[str], shared: Sequence[str]) -> list[Statement]:
    """Return the statements that clear the journal, also of steps about forgotten context."""
    return [
        # What was paid still counts toward the budgets, of nobody who could be named.
        *(statement for one in (*gone, *pending.runs) for statement in spending.forget(one)),
        *(("DELETE FROM runs WHERE conversation_id = ?", (one,)) for one in gone),
        *(("DELETE FROM runs WHERE id = ?", (run,)) for run in pending.runs),
        *((_FORGET_STEPS, (one,)) for one in shared),
        (_FORGET_STEPS_OF, (listed(pending.read),)),
    ]
