"""What is done to a conversation's document: from its old bytes to its new ones, wherever they are kept.

An edit may be tried again from newer bytes, so it changes nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from council.brief import Discussion
from council.document.conversation import (
    AssistantMessage,
    Conversation,
    FileRecord,
    LinkRecord,
    Source,
    UserMessage,
    Vote,
    timestamp,
)
from storage.documents import codec
from storage.documents.codec import Document
from storage.documents.removal import without
from storage.documents.votes import with_vote
from storage.errors import ConversationNotFound, DocumentError


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


def asked(
    question: str,
    context: Discussion | None,
    files: Sequence[FileRecord] = (),
    links: Sequence[LinkRecord] = (),
) -> UserMessage:
    """Return a question as it is stored, with what was read beside it; texts of files aren't kept."""
    return UserMessage(
        role="user",
        content=question,
        context=context and _kept(context),
        files=[*files],
        links=[*links],
    )


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

    Raises `DocumentError` if the answer breaks the contract.
    """
    codec.check(answer)

    def edit(old: bytes | None) -> Edited:
        sets_aside, document = False, None
        if old is not None:
            try:
                document = read(conversation_id, old)
            except DocumentError:
                sets_aside = True
        if document is None:
            document = codec.blank(
                conversation_id, created_at=timestamp(now), title=title, source=source
            )
        elif _holds(document.conversation, answer):
            return Edited(document.conversation)
        return _edited(codec.append(document, asked, answer), sets_aside=sets_aside)

    return edit


def vote(conversation_id: str, run_id: str, cast: Vote, place: Path | str) -> Edit:
    """Put somebody's vote in place of an earlier one of theirs; errors name the `place` of documents."""

    def edit(old: bytes | None) -> Edited:
        voted = with_vote(_existing(conversation_id, old, place), run_id, cast)
        if voted is None:
            raise ConversationNotFound(conversation_id, place)
        return _edited(voted)

    return edit


def response(
    conversation_id: str,
    stage1: Sequence[object],
    stage2: Sequence[object],
    stage2_5: Sequence[object] | None,
    stage3: object,
    place: Path | str,
) -> Edit:
    """Append an answer to a question that is already stored."""
    answer = codec.answer_of(stage1, stage2, stage2_5, stage3)
    codec.check(answer)

    def edit(old: bytes | None) -> Edited:
        document = _existing(conversation_id, old, place)
        messages = document.conversation.messages
        if not messages or messages[-1].role != "user":
            where = _file(place, conversation_id)
            raise DocumentError("it has no question that waits for an answer", where)
        return _edited(codec.append(document, answer))

    return edit


def cut(conversation_id: str, user: str) -> Edit:
    """Delete what a user asked, wrote and voted, with all of it that can't be read."""

    def edit(old: bytes | None) -> Edited | None:
        if old is None:
            return None
        try:
            left = without(read(conversation_id, old), user)
        except DocumentError:
            return None
        return None if left is None else _edited(left, drops_copies=True)

    return edit


def _existing(conversation_id: str, old: bytes | None, place: Path | str) -> Document:
    if old is None:
        raise ConversationNotFound(conversation_id, place)
    return read(conversation_id, old, _file(place, conversation_id))


def _file(place: Path | str, conversation_id: str) -> Path | None:
    return place / f"{conversation_id}.json" if isinstance(place, Path) else None


def _edited(document: Document, *, sets_aside: bool = False, drops_copies: bool = False) -> Edited:
    return Edited(document.conversation, codec.encode(document), sets_aside, drops_copies)


def _kept(context: Discussion) -> Discussion:
    messages = tuple(each.model_copy(update={"files": ()}) for each in context.messages)
    return context.model_copy(update={"messages": messages})


def _holds(conversation: Conversation, answer: AssistantMessage) -> bool:
    return answer.run_id is not None and answer.run_id in (
        message.run_id for message in conversation.answers
    )
