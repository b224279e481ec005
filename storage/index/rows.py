"""What the index keeps of a conversation, derived only from its document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from council.document.conversation import AssistantMessage, Conversation, UserMessage, timestamp
from council.document.results import Stage3Result
from council.profile import Profile
from council.usage import Usage
from storage.database import Row
from storage.documents.conversations import Stored
from storage.scope import Scope

Cells = dict[str, Any]
"""A row by column."""

_QUESTION_LENGTH = 200
_UNNAMED = str(Profile.model_fields["name"].default)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """One conversation in the index; times in ISO 8601, UTC.

    `cost` (US dollars) and `tokens` are sums over its answers, `question` is the beginning of the first
    question, `user` asked it. `thread` and `message` (the card) say where it is shown.
    """

    id: str
    title: str
    created_at: str
    updated_at: str
    platform: str | None
    workspace: str | None
    channel: str | None
    thread: str | None
    message: str | None
    user: str | None
    exchanges: int
    question: str
    cost: float
    tokens: int
    mtime_ns: int
    size: int


_COLUMNS = [field.name for field in fields(IndexRow)]


def index_row(row: Row) -> IndexRow:
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    return IndexRow(**values)


TABLES: Mapping[str, Sequence[str]] = {
    "answers": ("position", "scope", "at", "user", "seconds", "cost", "tokens"),
    "seats": (
        *("position", "member", "objections", "held", "mean_rank", "won", "changed", "failed", "cost"),
        "seconds",
    ),
    "votes": ("position", "user", "helpful", "profile", "chairman"),
    "depths": (
        *("position", "asked", "ran", "reason", "audited", "changed", "saved_tokens", "saved_cost"),
        "own_judge",
    ),
    "authors": ("user",),
}
"""What the index keeps of a document beside its row: the columns of each table.

- `answers`: what one took (`seconds` from start to finish, where the document says), and who asked.
- `seats`: how one member did in one. `mean_rank`: 1 is best, NULL if no counted ballot names it. `won`
  and `changed` are NULL if it wasn't ranked or made no correction, `cost` if a price is unknown;
  `seconds` is the mean of its calls. Of the `objections` that it replied to, `held` hold.
- `votes`: what one reader thought of one. `profile` is the council that was asked, `chairman` who wrote
  it; NULL where the document doesn't say or a member's own answer replaces the chairman's.
- `depths`: how deep one went (`RunDepth`). `saved_cost` is in US dollars, NULL where no price is known.
  `own_judge` says that a member was the judge.
- `authors`: who wrote in the threads that were read with its questions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """All that the index keeps of one document."""

    scope: Scope
    row: IndexRow
    texts: Mapping[str, str]
    rows: Mapping[str, Sequence[Cells]]


def derive(stored: Stored) -> Derived:
    conversation, source = stored.conversation, stored.conversation.source
    begun = _moment(conversation.created_at)
    begun = begun or datetime.fromtimestamp(stored.stamp.mtime_ns / 1e9, UTC)
    asked = [message for message in conversation.messages if isinstance(message, UserMessage)]
    rows: dict[str, list[Cells]] = {table: [] for table in TABLES}
    for message, asker in zip(conversation.messages, conversation.askers, strict=True):
        if isinstance(message, AssistantMessage):
            at: Cells = {"position": len(rows["answers"])}
            rows["answers"].append(at | _answer(message, begun, asker))
            rows["seats"] += (at | seat for seat in _seats(message))
            rows["votes"] += (at | vote for vote in _votes(message))
            rows["depths"] += (at | depth for depth in _depths(message))
    read = (message for one in asked if one.context for message in one.context.messages)
    rows["authors"] += ({"user": author} for author in dict.fromkeys(each.author for each in read))
    answers = rows["answers"]
    return Derived(
        scope=Scope.of(source),
        row=IndexRow(
            id=conversation.id,
            title=conversation.title,
            created_at=timestamp(begun),
            updated_at=str(answers[-1]["at"]) if answers else timestamp(begun),
            platform=source.platform if source else None,
            workspace=source.workspace if source else None,
            channel=source.channel if source else None,
            thread=source.thread if source else None,
            message=source.message if source else None,
            user=source.user if source else None,
            exchanges=len(answers),
            question=asked[0].content[:_QUESTION_LENGTH] if asked else "",
            cost=sum(one["cost"] for one in answers),
            tokens=sum(one["tokens"] for one in answers),
            mtime_ns=stored.stamp.mtime_ns,
            size=stored.stamp.size,
        ),
        texts=texts_of(conversation),
        rows=rows,
    )


def texts_of(conversation: Conversation) -> dict[str, str]:
    """Return what of a conversation can be searched: its title, questions, final answers and notes."""
    asked = (each.content for each in conversation.messages if isinstance(each, UserMessage))
    said = (text for answer in conversation.answers for text in _said(answer.stage3))
    return {"title": conversation.title, "question": "\n\n".join(asked), "answer": "\n\n".join(said)}


def _said(final: Stage3Result) -> Iterable[str]:
    yield final.response
    if notes := final.notes:
        yield from filter(None, (notes.dissent, notes.only, notes.changed, notes.ask))


def _answer(answer: AssistantMessage, begun: datetime, asker: str | None) -> Cells:
    started, finished = _moment(answer.started_at), _moment(answer.finished_at)
    used = answer.usage.run if answer.usage else Usage()
    if answer.settings and answer.settings.get("example"):
        started = None  # no model was asked, so how long it took tells nothing
    return {
        "at": timestamp(finished or begun),
        "user": asker,
        "seconds": (finished - started).total_seconds() if started and finished else None,
        "cost": used.cost,
        "tokens": used.tokens,
    }


def _depths(answer: AssistantMessage) -> Iterable[Cells]:
    if (depth := answer.depth) is not None:
        members = {one.model.partition("#")[0] for one in answer.stage1}
        yield {
            "asked": depth.asked,
            "ran": depth.ran,
            "reason": depth.reason,
            "audited": int(depth.audited),
            "changed": _flag(depth.changed),
            "saved_tokens": depth.saved.tokens if depth.saved else None,
            "saved_cost": depth.saved.cost if depth.saved else None,
            "own_judge": int(depth.judge is not None and depth.judge.model in members),
        }


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _votes(answer: AssistantMessage) -> Iterable[Cells]:
    name = answer.settings.get("name") if answer.settings else None
    final = answer.stage3
    by_member = final.source in ("verbatim", "single")
    # Another program's document may hold two of one person: the last one counts, as in ours.
    for vote in {vote.voter: vote for vote in answer.votes}.values():
        yield {
            "user": vote.voter,
            "helpful": int(vote.helpful),
            "profile": name if isinstance(name, str) else _UNNAMED if answer.settings else None,
            "chairman": None if by_member else final.model,
        }


def _seats(answer: AssistantMessage) -> Iterable[Cells]:
    ranking = answer.aggregate_ranking
    places = {place.model: place for place in ranking.places} if ranking else {}
    winner = next(iter(places), None)
    corrections = {one.model: one for one in answer.stage2_5 or [] if one.fallback is None}
    failed = {one.member for one in answer.failures if one.failure.reason.fault != "council"}
    silent = (one.member for one in answer.failures if one.stage == "stage1")
    members = [*dict.fromkeys((*(one.model for one in answer.stage1), *silent))]
    calls = _calls(answer, members)
    latencies = answer.usage.latencies if answer.usage else {}
    for member in members:
        rank = places[member].mean_position if member in places else None
        used = [answer.usage.calls[key] for key in calls[member]] if answer.usage else []
        took = [latencies[key] for key in calls[member] if key in latencies]
        replies = (corrections[member].replies if member in corrections else None) or ()
        verdicts = [one.holds for one in replies if one.critic != member]
        is_priced = used and not any(one.unpriced for one in used)
        yield {
            "member": member,
            "objections": len(verdicts),
            "held": sum(verdicts),
            "mean_rank": rank,
            "won": None if rank is None else int(member == winner),
            "changed": _flag(corrections[member].changed) if member in corrections else None,
            "failed": int(member in failed),
            "cost": sum(one.cost for one in used) if is_priced else None,
            "seconds": sum(took) / len(took) / 1000 if took else None,
        }


def _calls(answer: AssistantMessage, members: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the step keys of each member's calls: `stage1.1:{member}`, possibly with a role after it.

    Calls of the chairman and for the title are not the members'.
    """
    calls: dict[str, list[str]] = {member: [] for member in members}
    for key in answer.usage.calls if answer.usage else ():
        step, _, name = key.partition(":")
        if step.startswith(("stage1.", "stage2.", "stage2_5.")):
            # One model's name may be the beginning of another's: `a/one` and `a/one:free`.
            meant = [one for one in members if name == one or name.startswith(f"{one}:")]
            if meant:
                calls[max(meant, key=len)].append(key)
    return calls


def _moment(text: str | None) -> datetime | None:
    """Read a time; other programs may write it in another form, or without a zone (then it is UTC)."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
