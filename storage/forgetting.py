"""Forgetting: what was selected is deleted from documents, index, search text and journal.

Selected is a conversation, everything of a user or of a channel, or what is too old; runs in it are
stopped before. What is to be deleted is written down first, so that the next start finishes what a
killed process has begun (`finish`). Its bytes stay in the database's file, in free pages, old search
segments and the write-ahead log, until `scrub` has run.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from council.document.conversation import timestamp
from council.text.json_objects import JsonObject
from storage.audit import AuditLog
from storage.database import Database, Row, SqlValue, Statement, listed
from storage.documents import codec
from storage.documents.conversations import Conversations
from storage.errors import StorageError
from storage.index.index import Index
from storage.journal import spending
from storage.processes.locks import PLATFORMS
from storage.scope import Scope
from storage.work import COLUMNS, LATEST, Work, WorkList

What = Literal["conversation", "user", "channel", "retention"]

_CONVERSATIONS = "SELECT id FROM conversations WHERE"
_RUNS = "SELECT id, conversation_id, status FROM runs WHERE"
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
_ON_PLATFORM = """
origin ->> 'platform' = :platform
    AND (:everywhere = 1 OR origin ->> 'workspace' IS NOT DISTINCT FROM :workspace)
"""
# Runs of others that read what the user wrote in a thread.
_READ_FROM_USER = f"""
{_RUNS} {_ON_PLATFORM} AND origin ->> 'user' IS DISTINCT FROM :user AND EXISTS (
    SELECT 1 FROM json_each(brief -> 'context' -> 'messages') WHERE value ->> 'author' = :user
)
"""  # noqa: S608 - our own words
# A conversation to which a run is adding is kept for now.
_OLD = """
scope = :scope AND updated_at < :before
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
_OLD_RUNS = f"""
{_IN_PLACE} AND created_at < :before AND status <> 'running'
    AND conversation_id NOT IN (SELECT id FROM conversations WHERE updated_at >= :before)
    AND conversation_id NOT IN (
        SELECT conversation_id FROM runs WHERE created_at >= :before OR status = 'running'
    )
"""  # noqa: S608 - our own words
_NOT_INDEXED = """
SELECT value AS id FROM json_each(?) WHERE value NOT IN (SELECT id FROM conversations)
"""
_TOKENS = "SELECT name FROM tokens WHERE platform = ? AND workspace = ? AND channel = ? ORDER BY name"
_BRIEFS = "SELECT id, brief FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_BRIEFS_ABOUT = "SELECT id, brief FROM runs WHERE conversation_id IN (SELECT value FROM json_each(?))"
_CHANGE_BRIEF = "UPDATE runs SET brief = ? WHERE id = ? AND brief = ?"
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
# Steps about forgotten context go, too; an evaluation of past questions keys each call by the
# conversation that the question began.
_FORGET = (
    f"DELETE FROM runs WHERE {spending.FORGOTTEN}",  # noqa: S608 - our own words
    """
DELETE FROM steps WHERE run_id IN (
    SELECT id FROM runs WHERE status <> 'running' AND (
        conversation_id IN (SELECT value FROM json_each(:shared))
        OR id IN (SELECT value FROM json_each(:read))
    )
)
""",
    """
DELETE FROM steps WHERE run_id IN (SELECT id FROM runs WHERE origin ->> 'platform' = 'evaluation')
    AND EXISTS (
        SELECT 1 FROM json_each(:about)
        WHERE steps.key LIKE value || '/%' OR steps.key LIKE 'pilot/' || value || '/%'
    )
""",
    "DELETE FROM tokens WHERE name IN (SELECT value FROM json_each(:tokens))",
    f"DELETE FROM copies WHERE message IN (SELECT message FROM copies WHERE {_SHOWING})",  # noqa: S608 - our own words
)


class Selection(BaseModel):
    """What somebody wants forgotten: ids, as the database keeps them until all of it is deleted.

    `conversations` are deleted as a whole; from those in `shared`, where others have asked too, only
    the questions of `user` are deleted, with their answers. `heard` are others' conversations, and
    `read` others' runs, for which a thread was read that `user` wrote in: those messages are deleted,
    from shared ones, too. `voted` are others' conversations of which only votes of `user` are deleted.
    Documents that can't be read are not in the index: they are included if the journal knows of them.
    `tokens` are the names of those that open the channel.
    `before` is the age by which retention has selected: what is no longer that old when its turn comes
    is kept. `id` names the list of the bot's messages that are to be deleted, unless they `stay`.
    Two are only for who asks: `running` are the runs that aren't over, and `votes` counts those on
    others' answers, wherever they are.
    """

    model_config = ConfigDict(frozen=True)

    what: What
    conversations: tuple[str, ...]
    runs: tuple[str, ...]
    shared: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    voted: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    user: str | None = None
    before: str | None = None
    by: str = ""
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    stay: bool = False
    running: tuple[str, ...] = Field(default=(), exclude=True)
    votes: int = Field(default=0, exclude=True)

    @property
    def is_empty(self) -> bool:
        conversations = (*self.conversations, *self.shared, *self.heard, *self.voted)
        return not (*conversations, *self.runs, *self.read, *self.tokens)


class Selections:
    """Looks for what is to be forgotten, and changes nothing. Every method may raise `StorageError`."""

    def __init__(self, database: Database, store: Conversations) -> None:
        self._database = database
        self._store = store

    async def conversation(self, scope: Scope, conversation_id: str) -> Selection:
        """Select a conversation by its whole id; nothing if this scope has none."""
        its_runs = f"conversation_id = :id AND {_IN_PLACE}"
        own = "id = :id AND scope = :scope"
        return await self._select("conversation", own, its_runs, scope, {"id": conversation_id})

    async def user(self, platform: str, user: str, *, workspace: str | None = None) -> Selection:
        """Select what a user asked, wrote or voted, in one workspace or on the whole platform."""
        who: dict[str, SqlValue] = {
            "platform": platform,
            "user": user,
            "workspace": workspace,
            "everywhere": int(workspace is None),
        }
        found = await self._database.read(_OF_USER, who)
        runs = await self._database.read(f"{_RUNS} {_ON_PLATFORM} AND origin ->> 'user' = :user", who)
        read = await self._database.read(_READ_FROM_USER, who)
        # These are not in the index: the document says who asked, or a copy of it that was set aside.
        known = {row["id"] for row in found}
        unknown = await self._present({*_about(runs)} - known)
        return Selection(
            what="user",
            conversations=tuple(row["id"] for row in found if row["asked"] and not row["shared"]),
            shared=(*(row["id"] for row in found if row["asked"] and row["shared"]), *unknown),
            heard=(
                *(row["id"] for row in found if row["wrote"] and not row["asked"]),
                *await self._present({*_about(read)} - known - {*unknown}),
            ),
            read=tuple(row["id"] for row in read),
            voted=tuple(row["id"] for row in found if not (row["asked"] or row["wrote"])),
            votes=sum(row["votes"] for row in found),
            user=user,
            **_runs(runs),
        )

    async def channel(self, scope: Scope) -> Selection:
        place = (scope.platform, scope.workspace or "", scope.channel or "")
        tokens = tuple(row["name"] for row in await self._database.read(_TOKENS, place))
        return await self._select("channel", "scope = :scope", _IN_PLACE, scope, {}, tokens=tokens)

    async def older_than(self, scope: Scope, moment: datetime) -> Selection:
        """Select a channel's conversations with no answer since `moment`, and its old failed runs."""
        before = timestamp(moment)
        age = {"before": before}
        return await self._select("retention", _OLD, _OLD_RUNS, scope, age, before=before)

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

    async def _select(
        self,
        what: What,
        conversations: str,
        runs: str,
        scope: Scope,
        given: Mapping[str, SqlValue],
        **more: Any,  # noqa: ANN401 - a selection's other fields
    ) -> Selection:
        """Select by two conditions, with the documents of these runs that can't be read."""
        values = {
            "scope": scope.word,
            "platform": scope.platform,
            "workspace": scope.workspace,
            "channel": scope.channel,
            **given,
        }
        known = await self._database.read(f"{_CONVERSATIONS} {conversations}", values)
        found = await self._database.read(f"{_RUNS} {runs}", values)
        missing = await self._database.read(_NOT_INDEXED, (listed(_about(found)),))
        unreadable = await self._present({row["id"] for row in missing})
        ids = (*(row["id"] for row in known), *unreadable)
        return Selection(what=what, conversations=ids, **_runs(found), **more)

    async def _present(self, conversations: set[str]) -> tuple[str, ...]:
        return await self._store.present(sorted(conversations))


def _about(runs: Sequence[Row]) -> list[str]:
    return sorted({row["conversation_id"] for row in runs if codec.is_id(row["conversation_id"])})


def _runs(found: Sequence[Row]) -> dict[str, Any]:
    return {
        "runs": tuple(row["id"] for row in found),
        "running": tuple(row["id"] for row in found if row["status"] == "running"),
    }


class Forgetting:
    """Forgets what `select` returns; the audit keeps a line for each, without content."""

    def __init__(
        self,
        work: WorkList,
        store: Conversations,
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
        for _, key in await self._work.keys("forget", by=LATEST):
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
        """Return the statements that clear the journal.

        Unless they stay, messages are listed before: those of its runs, of all runs about what is `gone`
        if not only one person's are meant, and copies of what that and the `shared` conversations say.
        """
        values: dict[str, SqlValue] = {
            "forgetting": pending.id,
            "platforms": listed(PLATFORMS),
            "runs": listed(pending.runs),
            "conversations": listed(gone),
            "shared": listed(shared),
            "about": listed((*gone, *shared)),
            "read": listed(pending.read),
            "tokens": listed(pending.tokens),
            "own": int(pending.what == "user"),
            "since": timestamp(self._now()),
        }
        listing = () if pending.stay else (*_MESSAGES, _RETRACT_COPIES)
        return [(statement, values) for statement in (*listing, *spending.FORGET, *_FORGET)]

    async def _revived(self, conversations: Sequence[str], before: str | None) -> set[str]:
        if before is None:
            return set()
        values: dict[str, SqlValue] = {"before": before, "conversations": listed(conversations)}
        return {row["id"] for row in await self._database.read(_REVIVED, values)}

    async def _without_revived(self, pending: Selection) -> Selection:
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
                try:
                    brief: JsonObject = orjson.loads(row["brief"])
                except orjson.JSONDecodeError:
                    raise self._database.damaged() from None
                if (changed := change(brief)) != brief:
                    after = orjson.dumps(changed).decode()
                    changes.append((_CHANGE_BRIEF, (after, row["id"], row["brief"])))
            if not changes:
                return
            await self._database.write(*changes)

    async def scrub(self, *, large: bool = False) -> None:
        """Overwrite what forgetting has left in the database, if anything and as far as it can.

        Without `large`, what can't be used for long meanwhile is left to the next retention pass.
        """
        async with self._scrubbing:
            # What is forgotten from now on is left to the next time.
            keys = await self._work.keys("scrub", by=LATEST)
            if keys and await self._database.scrub(large=large):
                await self._database.write(*((_SCRUBBED, (key,)) for _, key in keys))


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
