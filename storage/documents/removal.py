"""What is left of a conversation document when a person's words are removed."""

from typing import cast

from council.document.conversation import AssistantMessage, Message, UserMessage
from council.text.json_objects import JsonObject
from storage.documents import codec
from storage.documents.codec import Document
from storage.documents.foreign import TITLE_LENGTH
from storage.documents.votes import without_votes_of


def without(document: Document, user: str) -> Document | None:
    """Return the document without what a user asked, wrote or voted, or `None` if nothing is left.

    The user's questions go with their answers. From the threads that were read with others' questions,
    the user's messages go, and from others' answers the user's votes. If the first question goes, the
    title may be made from it: it becomes the first question that stays.
    """
    conversation = document.conversation
    messages = codec.messages_of(document)
    kept = [place for place, asker in enumerate(conversation.askers) if asker != user]
    if not kept:
        return None
    raw = {
        **document.raw,
        "messages": [_unsaid(messages[place], conversation.messages[place], user) for place in kept],
    }
    if kept[0] > 0:
        raw["title"] = next(
            (
                message.content[:TITLE_LENGTH]
                for place in kept
                if isinstance(message := conversation.messages[place], UserMessage)
            ),
            "",
        )
    source = raw.get("source")
    if isinstance(source, dict) and conversation.source and conversation.source.user == user:
        fields = cast("JsonObject", source)
        raw["source"] = {name: value for name, value in fields.items() if name != "user"}
    return codec.read(raw)


def _unsaid(raw: object, message: Message, user: str) -> object:
    """Return a message's JSON without the user's vote, or words in the thread that was read with it."""
    if isinstance(message, AssistantMessage):
        return without_votes_of(raw, message, user)
    context = message.context if isinstance(message, UserMessage) else None
    if context is None or all(each.author != user for each in context.messages):
        return raw
    others = tuple(each for each in context.messages if each.author != user)
    shorter = context.model_copy(update={"messages": others})
    return {**cast("JsonObject", raw), "context": shorter.model_dump(mode="json", exclude_defaults=True)}
