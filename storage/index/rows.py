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
    """Read a row of `conversations`, whatever other columns came with it."""
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    return IndexRow(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The text of a conversation that can be searched: its questions, final answers and notes."""

    title: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRow:
    """How one member did in one answer.

    `mean_rank`: 1 is best, `None` if no counted ballot names it. `won` and `changed` are `None` if it
    wasn't ranked or made no correction. `cost` is `None` if a price is unknown; `seconds` is the mean
    of its calls. Of the `objections` to its answer that it replied to, `held` hold.
    """

    member: str
    objections: int
    held: int
    mean_rank: float | None
    won: bool | None
    changed: bool | None
    failed: bool
    cost: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRow:
    """What one reader thought of an answer.

    `profile` is the council that was asked, `chairman` who wrote the answer; `None` where the document
    doesn't say or a member's own answer replaces the chairman's.
    """

    user: str
    helpful: bool
    profile: str | None
    chairman: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRow:
    """How deep an answer went, as its document says (`RunDepth`).

    `saved_cost` is in US dollars, `None` where a price isn't known. `own_judge` says that a member was
    the judge.
    """

    asked: str
    ran: str
    reason: str
    audited: bool
    changed: bool | None
    saved_tokens: int | None
    saved_cost: float | None
    own_judge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """What one answer took, and who asked; `seconds` from start to finish, where the document says."""

    at: str
    user: str | None
    seconds: float | None
    cost: float
    tokens: int
    seats: tuple[SeatRow, ...]
    votes: tuple[VoteRow, ...]
    depth: DepthRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """All that the index keeps of one document.

    `authors` wrote in the threads that were read with its questions.
    """

    scope: Scope
    row: IndexRow
    texts: Texts
    answers: tuple[AnswerRow, ...]
    authors: tuple[str, ...]


def derive(stored: Stored) -> Derived:
    conversation, source = stored.conversation, stored.conversation.source
    begun = _moment(conversation.created_at) or _from_stamp(stored)
    answers = conversation.answers
    asked = [message for message in conversation.messages if isinstance(message, UserMessage)]
    questions = [one.content for one in asked]
    read = [one.context for one in asked if one.context]
    rows = tuple(
        _answer_row(message, begun, asker)
        for message, asker in zip(conversation.messages, conversation.askers, strict=True)
        if isinstance(message, AssistantMessage)
    )
    return Derived(
        scope=Scope.of(source),
        row=IndexRow(
            id=conversation.id,
            title=conversation.title,
            created_at=timestamp(begun),
            updated_at=rows[-1].at if rows else timestamp(begun),
            platform=source.platform if source else None,
            workspace=source.workspace if source else None,
            channel=source.channel if source else None,
            thread=source.thread if source else None,
            message=source.message if source else None,
            user=source.user if source else None,
            exchanges=len(answers),
            question=questions[0][:_QUESTION_LENGTH] if questions else "",
            cost=sum(row.cost for row in rows),
            tokens=sum(row.tokens for row in rows),
            mtime_ns=stored.stamp.mtime_ns,
            size=stored.stamp.size,
        ),
        texts=texts_of(conversation),
        answers=rows,
        authors=tuple({message.author: None for context in read for message in context.messages}),
    )


def texts_of(conversation: Conversation) -> Texts:
    """Return what of a conversation can be searched."""
    asked = (each.content for each in conversation.messages if isinstance(each, UserMessage))
    return Texts(
        title=conversation.title,
        question="\n\n".join(asked),
        answer="\n\n".join(text for answer in conversation.answers for text in _said(answer.stage3)),
    )


def _said(final: Stage3Result) -> Iterable[str]:
    yield final.response
    if notes := final.notes:
        yield from filter(None, (notes.dissent, notes.only, notes.changed, notes.ask))


def _answer_row(answer: AssistantMessage, begun: datetime, asker: str | None) -> AnswerRow:
    started = _moment(answer.started_at)
    finished = _moment(answer.finished_at)
    used = answer.usage.run if answer.usage else Usage()
    if answer.settings and answer.settings.get("example"):
        started = None  # no model was asked, so how long it took tells nothing
    return AnswerRow(
        at=timestamp(finished or begun),
        user=asker,
        seconds=(finished - started).total_seconds() if started and finished else None,
        cost=used.cost,
        tokens=used.tokens,
        seats=tuple(_seats(answer)),
        votes=tuple(_votes(answer)),
        depth=_depth(answer),
    )


def _depth(answer: AssistantMessage) -> DepthRow | None:
    depth = answer.depth
    if depth is None:
        return None
    members = {one.model.partition("#")[0] for one in answer.stage1}
    return DepthRow(
        asked=depth.asked,
        ran=depth.ran,
        reason=depth.reason,
        audited=depth.audited,
        changed=depth.changed,
        saved_tokens=depth.saved.tokens if depth.saved else None,
        saved_cost=depth.saved.cost if depth.saved else None,
        own_judge=depth.judge is not None and depth.judge.model in members,
    )


def _votes(answer: AssistantMessage) -> Iterable[VoteRow]:
    name = answer.settings.get("name") if answer.settings else None
    final = answer.stage3
    by_member = final.source in ("verbatim", "single")
    # Another program's document may hold two of one person: the last one counts, as in ours.
    for vote in {vote.voter: vote for vote in answer.votes}.values():
        yield VoteRow(
            user=vote.voter,
            helpful=vote.helpful,
            profile=name if isinstance(name, str) else _UNNAMED if answer.settings else None,
            chairman=None if by_member else final.model,
        )


def _seats(answer: AssistantMessage) -> Iterable[SeatRow]:
    ranking = answer.aggregate_ranking
    places = {place.model: place for place in ranking.places} if ranking else {}
    winner = next(iter(places), None)
    corrections = {one.model: one for one in answer.stage2_5 or [] if one.fallback is None}
    failed = {one.member for one in answer.failures if one.failure.reason.fault != "council"}
    members = _members(answer)
    calls = _calls(answer, members)
    latencies = answer.usage.latencies if answer.usage else {}
    for member in members:
        rank = places[member].mean_position if member in places else None
        used = [answer.usage.calls[key] for key in calls[member]] if answer.usage else []
        took = [latencies[key] for key in calls[member] if key in latencies]
        replies = (corrections[member].replies if member in corrections else None) or ()
        verdicts = [one.holds for one in replies if one.critic != member]
        yield SeatRow(
            member=member,
            objections=len(verdicts),
            held=sum(verdicts),
            mean_rank=rank,
            won=None if rank is None else member == winner,
            changed=corrections[member].changed if member in corrections else None,
            failed=member in failed,
            cost=None if not used or any(one.unpriced for one in used) else sum(u.cost for u in used),
            seconds=sum(took) / len(took) / 1000 if took else None,
        )


def _members(answer: AssistantMessage) -> list[str]:
    """Return the members of the council: those that answered, then those that failed."""
    answered = [one.model for one in answer.stage1]
    failed = [one.member for one in answer.failures if one.stage == "stage1"]
    return [*dict.fromkeys([*answered, *failed])]


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


def _from_stamp(stored: Stored) -> datetime:
    return datetime.fromtimestamp(stored.stamp.mtime_ns / 1e9, UTC)
