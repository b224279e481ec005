"""What is to be forgotten: a conversation, everything of a user or of a channel, or what is too old."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from council.document.conversation import timestamp
from storage.database import Database, SqlValue, listed
from storage.documents import codec
from storage.documents.conversations import Documents
from storage.scope import Scope

What = Literal["conversation", "user", "channel", "retention"]

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
_OLD_RUNS = f"""
{_RUNS} {_IN_PLACE} AND created_at < :before AND status <> 'running'
    AND conversation_id NOT IN (SELECT id FROM conversations WHERE updated_at >= :before)
    AND conversation_id NOT IN (
        SELECT conversation_id FROM runs WHERE created_at >= :before OR status = 'running'
    )
"""  # noqa: S608 - our own words
_NOT_INDEXED = """
SELECT value AS id FROM json_each(?) WHERE value NOT IN (SELECT id FROM conversations)
"""
_TOKENS = "SELECT name FROM tokens WHERE platform = ? AND workspace = ? AND channel = ? ORDER BY name"


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
        return not (
            self.conversations
            or self.runs
            or self.shared
            or self.heard
            or self.read
            or self.voted
            or self.tokens
        )


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs in the journal, and the documents they are about."""

    ids: tuple[str, ...]
    running: tuple[str, ...]
    documents: tuple[str, ...]


class Selections:
    """Looks for what is to be forgotten, and changes nothing. Every method may raise `StorageError`."""

    def __init__(self, database: Database, store: Documents) -> None:
        self._database = database
        self._store = store

    async def conversation(self, scope: Scope, conversation_id: str) -> Selection:
        """Select a conversation by its whole id; nothing if this scope has none."""
        place = {**_place(scope), "id": conversation_id}
        runs = await self._runs(f"{_RUNS} conversation_id = :id AND {_IN_PLACE}", place)
        known = await self._ids(
            "SELECT id FROM conversations WHERE id = :id AND scope = :scope",
            {"id": conversation_id, "scope": scope.word},
        )
        return Selection(
            what="conversation",
            conversations=(*known, *await self._not_indexed(runs)),
            runs=runs.ids,
            running=runs.running,
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
        unknown = await self._store.present([one for one in runs.documents if one not in known])
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
            runs=runs.ids,
            running=runs.running,
        )

    async def channel(self, scope: Scope) -> Selection:
        known = await self._ids(
            "SELECT id FROM conversations WHERE scope = :scope", {"scope": scope.word}
        )
        runs = await self._runs(f"{_RUNS} {_IN_PLACE}", _place(scope))
        return Selection(
            what="channel",
            conversations=(*known, *await self._not_indexed(runs)),
            runs=runs.ids,
            tokens=await self._tokens(scope),
            running=runs.running,
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
            runs=runs.ids,
            running=runs.running,
            before=before,
        )

    async def _tokens(self, scope: Scope) -> tuple[str, ...]:
        place = (scope.platform, scope.workspace or "", scope.channel or "")
        return tuple(row["name"] for row in await self._database.read(_TOKENS, place))

    async def _not_indexed(self, runs: _Runs) -> tuple[str, ...]:
        """Return the documents of these runs that aren't in the index, because they can't be read."""
        ids = listed(runs.documents)
        found = await self._database.read(_NOT_INDEXED, (ids,))
        return await self._store.present([row["id"] for row in found])

    async def _ids(self, sql: str, values: dict[str, str | None]) -> tuple[str, ...]:
        return tuple(row["id"] for row in await self._database.read(sql, values))

    async def _runs(self, sql: str, values: dict[str, SqlValue]) -> _Runs:
        rows = await self._database.read(sql, values)
        about = {row["conversation_id"] for row in rows}
        return _Runs(
            tuple(row["id"] for row in rows),
            tuple(row["id"] for row in rows if row["status"] == "running"),
            tuple(sorted(filter(codec.is_id, about))),
        )


def _place(scope: Scope) -> dict[str, SqlValue]:
    return {"platform": scope.platform, "workspace": scope.workspace, "channel": scope.channel}
