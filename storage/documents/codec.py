"""A conversation document between its bytes and its model: read, changed, and written.

A document is rewritten from the JSON that was read, not from the model, so that fields of other programs
are kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson
from pydantic import ValidationError

from council.calls import JsonObject
from council.document.conversation import AssistantMessage, Conversation, Source, UserMessage, Vote
from storage.errors import DocumentError

SCHEMA_VERSION = 1
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PROBLEMS_SHOWN = 3
_TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is in its file, and as the council reads it."""

    raw: JsonObject
    conversation: Conversation


def is_id(text: str) -> bool:
    """Whether this is a uuid in its canonical form: lower case, with hyphens."""
    return _ID.fullmatch(text) is not None


def blank(conversation_id: str, *, created_at: str, title: str, source: Source | None) -> Document:
    """Return a document without messages."""
    conversation = Conversation(
        id=conversation_id,
        created_at=created_at,
        title=title,
        messages=[],
        schema_version=SCHEMA_VERSION,
        source=source,
    )
    return Document(conversation.dump(), conversation)


def parse(content: bytes) -> Document:
    """Read a document. Raises `DocumentError` with the reason, which never quotes the text."""
    try:
        raw = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DocumentError(f"it is not JSON: {error}") from error
    try:
        conversation = Conversation.model_validate(raw)
    except ValidationError as error:
        raise DocumentError(f"it is not a conversation document: {_problems(error)}") from error
    return Document(raw, conversation)


def append(document: Document, *messages: UserMessage | AssistantMessage) -> Document:
    """Return the document with messages added at the end, and nothing else changed."""
    earlier = cast("list[object]", document.raw["messages"])
    conversation = document.conversation
    return Document(
        {**document.raw, "messages": [*earlier, *(message.dump() for message in messages)]},
        conversation.model_copy(update={"messages": [*conversation.messages, *messages]}),
    )


def with_vote(document: Document, run_id: str, vote: Vote) -> Document | None:
    """Return the document with somebody's vote on a run's answer, in place of an earlier one of theirs.

    A reason stays until the vote or the reason changes: `None` keeps it, an empty one deletes it.
    `None` is returned where there is no such answer.
    """
    conversation = document.conversation
    found = (
        (place, message)
        for place, message in enumerate(conversation.messages)
        if isinstance(message, AssistantMessage) and message.run_id == run_id
    )
    place, message = next(found, (0, None))
    if message is None:
        return None
    mine = [each for each in message.votes if _voter(each) == _voter(vote)]
    if vote.reason is None and mine and mine[-1].helpful == vote.helpful:
        vote = vote.model_copy(update={"reason": mine[-1].reason})
    others = [each for each in message.votes if _voter(each) != _voter(vote)]
    messages = [*cast("list[object]", document.raw["messages"])]
    messages[place] = _voted(
        messages[place], [*others, vote.model_copy(update={"reason": vote.reason or None})]
    )
    raw = {**document.raw, "messages": messages}
    return Document(raw, Conversation.model_validate(raw))


def _voted(raw: object, votes: Sequence[Vote]) -> object:
    """Return an answer's JSON with these votes and no others."""
    fields = {name: value for name, value in cast("JsonObject", raw).items() if name != "votes"}
    return {**fields, "votes": [each.dump() for each in votes]} if votes else fields


def _voter(vote: Vote) -> tuple[str, str]:
    return vote.platform, vote.voter


def askers(conversation: Conversation) -> list[str | None]:
    """Return for each message who asked the question that it is or answers.

    If an answer doesn't say (`asked_by`), it is whoever began the conversation.
    """
    began = conversation.source.user if conversation.source else None
    asker = began
    found: list[str | None] = []
    for message in reversed(conversation.messages):
        if isinstance(message, AssistantMessage):
            asker = message.asked_by or began
        found.append(asker)
    return found[::-1]


def without(document: Document, user: str) -> Document | None:
    """Return the document without what a user asked, wrote or voted, or `None` if nothing is left.

    The user's questions go with their answers. From the threads that were read with others' questions,
    the user's messages go, and from others' answers the user's votes. If the first question goes, the
    title may be made from it: it becomes the first question that stays.
    """
    conversation = document.conversation
    messages = cast("list[object]", document.raw["messages"])
    kept = [place for place, asker in enumerate(askers(conversation)) if asker != user]
    if not kept:
        return None
    raw = {
        **document.raw,
        "messages": [_unsaid(messages[place], conversation.messages[place], user) for place in kept],
    }
    if kept[0] > 0:
        raw["title"] = next(
            (
                message.content[:_TITLE_LENGTH]
                for place in kept
                if isinstance(message := conversation.messages[place], UserMessage)
            ),
            "",
        )
    source = raw.get("source")
    if isinstance(source, dict) and conversation.source and conversation.source.user == user:
        fields = cast("JsonObject", source)
        raw["source"] = {name: value for name, value in fields.items() if name != "user"}
    return Document(raw, Conversation.model_validate(raw))


def _unsaid(raw: object, message: UserMessage | AssistantMessage, user: str) -> object:
    """Return a message's JSON without the user's vote, or words in the thread that was read with it."""
    if isinstance(message, AssistantMessage):
        left = [vote for vote in message.votes if vote.voter != user]
        return raw if len(left) == len(message.votes) else _voted(raw, left)
    context = message.context
    if context is None or all(each.author != user for each in context.messages):
        return raw
    others = tuple(each for each in context.messages if each.author != user)
    shorter = context.model_copy(update={"messages": others})
    return {**cast("JsonObject", raw), "context": shorter.model_dump(mode="json", exclude_defaults=True)}


def encode(document: Document) -> bytes:
    """Return a document as indented JSON."""
    try:
        return orjson.dumps(document.raw, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        raise DocumentError(f"it can't be written as JSON: {error}") from error


def answer_of(
    stage1: Sequence[object],
    stage2: Sequence[object],
    stage2_5: Sequence[object] | None,
    stage3: object,
) -> AssistantMessage:
    """Return an assistant message made of its stages, which are models or their JSON form."""
    fields: Mapping[str, object] = {
        "role": "assistant",
        "stage1": stage1,
        "stage2": stage2,
        "stage2_5": stage2_5,
        "stage3": stage3,
    }
    try:
        return AssistantMessage.model_validate(fields)
    except ValidationError as error:
        raise DocumentError(f"the answer is not an assistant message: {_problems(error)}") from error


def check(answer: AssistantMessage) -> None:
    """Check a new answer against the contract. Raises `DocumentError` naming the rule it breaks."""
    try:
        answer.check()
    except ValueError as error:
        raise DocumentError(f"the answer breaks the document's contract: {error}") from error


def _problems(error: ValidationError) -> str:
    """Return what is wrong in a document, and where: `messages.1.stage3: Field required`."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}".lstrip(": ") for one in found[:_PROBLEMS_SHOWN]
    ]
    if len(found) > _PROBLEMS_SHOWN:
        shown.append(f"and {len(found) - _PROBLEMS_SHOWN} more")
    return "; ".join(shown)
