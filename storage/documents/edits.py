"""What is done to a conversation's document: from its old bytes to its new ones, wherever they are kept.

An edit may be tried again from newer bytes, so it changes nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from council.document.conversation import (
    AssistantMessage,
    Conversation,
    Message,
    Source,
    UserMessage,
    Vote,
    timestamp,
)
from council.text.json_objects import JsonObject
from storage.documents import codec
from storage.documents.codec import Document
from storage.documents.foreign import TITLE_LENGTH
from storage.errors import ConversationNotFound, DocumentError

_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Edited:
    """A conversation after an edit: `content` is its new document, `None` where nothing changed.

    `sets_aside` says that the old one can't be read and is to be copied. `drops_copies` says that
    copies that were set aside before are to be deleted.
    """

    conversation: Conversation
    content: bytes | None = None
    sets_aside: bool = False
    drops_copies: bool = False


Edit = Callable[[bytes | None], Edited | None]
"""Takes a document's bytes, `None` if there is none; returns `None` where all of it is to be deleted."""


def read(conversation_id: str, content: bytes, path: Path | None = None) -> Document:
    """Read a document under its id; `path` is its file's, if it has one. Raises `DocumentError`."""
    path = path or Path(f"{conversation_id}.json")
    try:
        document = codec.parse(content)
    except DocumentError as error:
        raise DocumentError(error.reason, path) from error
    if document.conversation.id != conversation_id:
        raise DocumentError("the id in it is not the one in its name", path)
    return document


def adopted(content: bytes) -> Conversation:
    """Read another program's document that is to be kept.

    Raises `DocumentError` if it can't be read, its id is not a uuid, or it has nothing to show.
    """
    conversation = codec.parse(content).conversation
    check_id(conversation.id)
    if not any(message.role != "other" for message in conversation.messages):
        raise DocumentError("it has no messages")
    return conversation


def check_id(conversation_id: str) -> None:
    """Refuse what can't be a conversation's id. Raises `DocumentError`."""
    if not codec.is_id(conversation_id):
        raise DocumentError("the conversation's id is not a uuid in lower case with hyphens")


def exchange(
    conversation_id: str,
    asked: UserMessage,
    answer: AssistantMessage,
    *,
    title: str,
    source: Source | None,
    now: datetime,
) -> Edit:
    """Append a question and its answer, creating the document if there is none.

    Texts of files in its thread aren't kept. Raises `DocumentError` if the answer breaks the contract.
    """
    codec.check(answer)
    if context := asked.context:
        messages = tuple(each.model_copy(update={"files": ()}) for each in context.messages)
        read_with_it = context.model_copy(update={"messages": messages})
        asked = asked.model_copy(update={"context": read_with_it})

    def edit(old: bytes | None) -> Edited:
        sets_aside, document = False, None
        if old is not None:
            try:
                document = read(conversation_id, old)
            except DocumentError:
                sets_aside = True
        if document is None:
            begun = Conversation(
                id=conversation_id,
                created_at=timestamp(now),
                title=title,
                messages=[],
                schema_version=_SCHEMA_VERSION,
                source=source,
            )
            document = Document(begun.dump(), begun)
        elif answer.run_id and answer.run_id in {one.run_id for one in document.conversation.answers}:
            return Edited(document.conversation)
        return _appended(document, asked, answer, sets_aside=sets_aside)

    return edit


def vote(conversation_id: str, run_id: str, vote: Vote, place: Path | str) -> Edit:
    """Put somebody's vote in place of an earlier one of theirs; errors name the `place` of documents.

    A reason stays until the vote or the reason changes: `None` keeps it, an empty one deletes it.
    """

    def is_theirs(other: Vote) -> bool:
        return (other.platform, other.voter) == (vote.platform, vote.voter)

    def edit(old: bytes | None) -> Edited:
        document = _existing(conversation_id, old, place)
        for number, message in enumerate(document.conversation.messages):
            if isinstance(message, AssistantMessage) and message.run_id == run_id:
                before = [each for each in message.votes if is_theirs(each)]
                reason = vote.reason
                if reason is None and before and before[-1].helpful == vote.helpful:
                    reason = before[-1].reason
                cast_ = vote.model_copy(update={"reason": reason or None})
                others = [each for each in message.votes if not is_theirs(each)]
                messages = [*codec.messages_of(document)]
                messages[number] = _voted(messages[number], [*others, cast_])
                return _edited(codec.read({**document.raw, "messages": messages}))
        raise ConversationNotFound(conversation_id, place)

    return edit


def _voted(raw: object, votes: Sequence[Vote]) -> object:
    """Return an answer's JSON with these votes and no others."""
    fields = {name: value for name, value in cast("JsonObject", raw).items() if name != "votes"}
    return {**fields, "votes": [each.dump() for each in votes]} if votes else fields


def response(conversation_id: str, answer: AssistantMessage, place: Path | str) -> Edit:
    """Append an answer to a question that is already stored."""
    codec.check(answer)

    def edit(old: bytes | None) -> Edited:
        document = _existing(conversation_id, old, place)
        messages = document.conversation.messages
        if not messages or messages[-1].role != "user":
            where = file(place, conversation_id)
            raise DocumentError("it has no question that waits for an answer", where)
        return _appended(document, answer)

    return edit


def cut(conversation_id: str, user: str) -> Edit:
    """Delete what a user asked, wrote and voted, with all of it that can't be read.

    The user's questions go with their answers. From the threads that were read with others' questions,
    the user's messages go, and from others' answers the user's votes. If the first question goes, the
    title may be made from it: it becomes the first question that stays.
    """

    def edit(old: bytes | None) -> Edited | None:
        try:
            left = None if old is None else _without(read(conversation_id, old), user)
        except DocumentError:
            return None
        return None if left is None else _edited(left, drops_copies=True)

    return edit


def _without(document: Document, user: str) -> Document | None:
    conversation = document.conversation
    messages = codec.messages_of(document)
    asked = zip(conversation.messages, conversation.askers, strict=True)
    kept = [(place, message) for place, (message, asker) in enumerate(asked) if asker != user]
    if not kept:
        return None
    left = {
        **document.raw,
        "messages": [_unsaid(messages[place], message, user) for place, message in kept],
    }
    if kept[0][0] > 0:
        questions = (message.content for _, message in kept if isinstance(message, UserMessage))
        left["title"] = next(questions, "")[:TITLE_LENGTH]
    source = left.get("source")
    if isinstance(source, dict) and conversation.source and conversation.source.user == user:
        fields = cast("JsonObject", source)
        left["source"] = {name: value for name, value in fields.items() if name != "user"}
    return codec.read(left)


def _unsaid(raw: object, message: Message, user: str) -> object:
    """Return a message's JSON without the user's vote, or words in the thread that was read with it."""
    if isinstance(message, AssistantMessage):
        others = [vote for vote in message.votes if vote.voter != user]
        return raw if len(others) == len(message.votes) else _voted(raw, others)
    context = message.context if isinstance(message, UserMessage) else None
    if context is None or all(each.author != user for each in context.messages):
        return raw
    said = tuple(each for each in context.messages if each.author != user)
    shorter = context.model_copy(update={"messages": said})
    return {**cast("JsonObject", raw), "context": shorter.model_dump(mode="json", exclude_defaults=True)}


def _existing(conversation_id: str, old: bytes | None, place: Path | str) -> Document:
    if old is None:
        raise ConversationNotFound(conversation_id, place)
    return read(conversation_id, old, file(place, conversation_id))


def file(place: Path | str, conversation_id: str) -> Path | None:
    """Return a document's file, where it has one."""
    return place / f"{conversation_id}.json" if isinstance(place, Path) else None


def _appended(
    document: Document, *messages: UserMessage | AssistantMessage, sets_aside: bool = False
) -> Edited:
    conversation = document.conversation
    raw = [*codec.messages_of(document), *(message.dump() for message in messages)]
    longer = conversation.model_copy(update={"messages": [*conversation.messages, *messages]})
    return _edited(Document({**document.raw, "messages": raw}, longer), sets_aside=sets_aside)


def _edited(document: Document, *, sets_aside: bool = False, drops_copies: bool = False) -> Edited:
    return Edited(document.conversation, codec.written(document.raw), sets_aside, drops_copies)
