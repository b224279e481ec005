"""The index: what lists and look-ups need of each conversation, derived from its document alone.

It can be made anew at any time. A row carries the stamp of the file version it was derived from,
so a check opens only documents that have changed since.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from council.conversation import AssistantMessage, Source, UserMessage
from storage.atomic import Stamp
from storage.conversations import ConversationStore, Listing, Problem, Stored
from storage.database import Database, Statement

_BATCH = 100  # documents read by one thread call and written by one transaction
_QUESTION_LENGTH = 200

# Two answers to one conversation may reach the index in the wrong order: an older version never
# replaces a newer one, unless it takes the place of the very version a rebuild has found outdated
# (a restored backup is older than its row).
_UPSERT = """
INSERT INTO conversations (
    id, title, created_at, updated_at, platform, workspace, channel, thread, user,
    exchanges, question, cost, tokens, agreement, mtime_ns, size
) VALUES (
    :id, :title, :created_at, :updated_at, :platform, :workspace, :channel, :thread, :user,
    :exchanges, :question, :cost, :tokens, :agreement, :mtime_ns, :size
)
ON CONFLICT (id) DO UPDATE SET
    title = excluded.title, created_at = excluded.created_at, updated_at = excluded.updated_at,
    platform = excluded.platform, workspace = excluded.workspace, channel = excluded.channel,
    thread = excluded.thread, user = excluded.user, exchanges = excluded.exchanges,
    question = excluded.question, cost = excluded.cost, tokens = excluded.tokens,
    agreement = excluded.agreement, mtime_ns = excluded.mtime_ns, size = excluded.size
WHERE (excluded.mtime_ns, excluded.size) >= (mtime_ns, size) OR mtime_ns = :outdated
"""

# An id has no character above f, so this is the range of the prefix, and the key serves it.
_FIND = (
    "SELECT * FROM conversations WHERE id >= :prefix AND id < :prefix || 'g' ORDER BY id LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One conversation in the index.

    `cost` (US dollars) and `tokens` are sums over its answers, `agreement` is the last answer's,
    `question` the beginning of the first question.
    """

    id: str
    title: str
    created_at: str
    updated_at: str
    platform: str | None
    workspace: str | None
    channel: str | None
    thread: str | None
    user: str | None
    exchanges: int
    question: str
    cost: float
    tokens: int
    agreement: str | None
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class IndexReport:
    """How the index compares with the documents.

    `missing` documents have no row, `stale` ones a row of another version, `orphaned` rows no
    readable document. `unreadable` documents are left as they are; `set_aside` are those that a
    write has moved out of its way.
    """

    documents: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    orphaned: tuple[str, ...]
    unreadable: tuple[Problem, ...]
    set_aside: tuple[str, ...]

    @property
    def consistent(self) -> bool:
        """Whether the index says what the documents say."""
        return not (self.missing or self.stale or self.orphaned)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a place's answers came to: how many, and US dollars where prices are known."""

    answers: int
    cost: float


class Index:
    """All conversations, in the database's `conversations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def upsert(self, *stored: Stored) -> None:
        """Bring the rows of these conversations up to date."""
        await self._database.write(*(_upsert(one) for one in stored))

    async def remove(self, *conversation_ids: str) -> None:
        """Forget these conversations' rows."""
        await self._database.write(
            *(("DELETE FROM conversations WHERE id = ?", (one,)) for one in conversation_ids)
        )

    async def find(self, prefix: str, limit: int = 10) -> list[IndexRow]:
        """Give the conversations whose id begins so, at most `limit` of them."""
        rows = await self._database.read(_FIND, {"prefix": prefix.lower(), "limit": limit})
        return [IndexRow(**dict(row)) for row in rows]

    async def spent(self, here: Source) -> Spent:
        """Add up what the answers in this place have cost."""
        [row] = await self._database.read(
            "SELECT coalesce(sum(exchanges), 0) AS answers, coalesce(sum(cost), 0.0) AS cost"
            " FROM conversations WHERE platform IS ? AND workspace IS ? AND channel IS ?",
            (here.platform, here.workspace, here.channel),
        )
        return Spent(row["answers"], row["cost"])

    async def check(self, store: ConversationStore) -> IndexReport:
        """Compare the index with the documents and change nothing."""
        return await self._compare(store, rebuild=False)

    async def rebuild(self, store: ConversationStore) -> IndexReport:
        """Derive every row anew; the report says what was wrong before.

        Each row stays until its new version is in, so others can read and write meanwhile.
        """
        return await self._compare(store, rebuild=True)

    async def _compare(self, store: ConversationStore, *, rebuild: bool) -> IndexReport:
        # Rows first: a conversation that begins in between is in the listing, and not an orphan.
        rows = await self._database.read("SELECT id, mtime_ns, size FROM conversations")
        comparison = _Comparison(await store.listing())
        # A hundred thousand rows would hold up the loop, here and in the report.
        changed = await asyncio.to_thread(comparison.begin, rows, rebuild)
        for batch in _batches(changed):
            upserts = comparison.note(await store.read(batch))
            if rebuild and upserts:
                await self._database.write(*upserts)
        report = await asyncio.to_thread(comparison.report)
        if rebuild:
            for batch in _batches(report.orphaned):
                await self.remove(*batch)
        return report


class _Comparison:
    """What a check or a rebuild finds out on its way."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._indexed: dict[str, Stamp] = {}
        self._readable: set[str] = set()
        self._missing: list[str] = []
        self._stale: list[str] = []
        self._unreadable = [*listing.misnamed]

    def begin(self, rows: Sequence[sqlite3.Row], everything: bool) -> list[str]:
        """Name the documents to read: everything, or those that their row's stamp doesn't vouch for."""
        self._indexed = {row["id"]: Stamp(row["mtime_ns"], row["size"]) for row in rows}
        documents = self._listing.documents
        changed = [one for one in documents if everything or self._indexed.get(one) != documents[one]]
        self._readable = documents.keys() - set(changed)
        return changed

    def note(self, found: Sequence[Stored | Problem]) -> list[Statement]:
        """Take down how these documents differ from their rows, and give what would mend it."""
        upserts: list[Statement] = []
        for one in found:
            if isinstance(one, Problem):
                self._unreadable.append(one)
                continue
            conversation_id = one.conversation.id
            version = self._indexed.get(conversation_id)
            self._readable.add(conversation_id)
            if version is None:
                self._missing.append(conversation_id)
            elif version != one.stamp:
                self._stale.append(conversation_id)
            upserts.append(_upsert(one, outdated=version.mtime_ns if version else None))
        return upserts

    def report(self) -> IndexReport:
        """Sum up, each list in order."""
        return IndexReport(
            documents=len(self._readable),
            missing=tuple(sorted(self._missing)),
            stale=tuple(sorted(self._stale)),
            orphaned=tuple(sorted(self._indexed.keys() - self._readable)),
            unreadable=tuple(sorted(self._unreadable, key=lambda problem: problem.name)),
            set_aside=tuple(sorted(self._listing.set_aside)),
        )


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))


def _upsert(stored: Stored, outdated: int | None = None) -> Statement:
    return _UPSERT, {**asdict(row_of(stored)), "outdated": outdated}


def row_of(stored: Stored) -> IndexRow:
    """Derive a conversation's row from its document."""
    conversation, source = stored.conversation, stored.conversation.source
    answers = [message for message in conversation.messages if isinstance(message, AssistantMessage)]
    questions = (one.content for one in conversation.messages if isinstance(one, UserMessage))
    used = [answer.usage.run for answer in answers if answer.usage]
    last_ranking = answers[-1].aggregate_ranking if answers else None
    finished: Sequence[str] = [answer.finished_at for answer in answers if answer.finished_at]
    return IndexRow(
        id=conversation.id,
        title=conversation.title,
        created_at=conversation.created_at,
        updated_at=finished[-1] if finished else conversation.created_at,
        platform=source.platform if source else None,
        workspace=source.workspace if source else None,
        channel=source.channel if source else None,
        thread=source.thread if source else None,
        user=source.user if source else None,
        exchanges=len(answers),
        question=next(questions, "")[:_QUESTION_LENGTH],
        cost=sum(usage.cost for usage in used),
        tokens=sum(usage.tokens for usage in used),
        agreement=last_ranking.agreement_word if last_ranking else None,
        mtime_ns=stored.stamp.mtime_ns,
        size=stored.stamp.size,
    )
