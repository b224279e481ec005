"""Votes in a conversation document: one per person and answer."""

from collections.abc import Sequence
from typing import cast

from council.document.conversation import AssistantMessage, Vote
from council.text.json_objects import JsonObject
from storage.documents import codec
from storage.documents.codec import Document


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
    messages = [*codec.messages_of(document)]
    messages[place] = _voted(
        messages[place], [*others, vote.model_copy(update={"reason": vote.reason or None})]
    )
    return codec.read({**document.raw, "messages": messages})


def _voted(raw: object, votes: Sequence[Vote]) -> object:
    """Return an answer's JSON with these votes and no others."""
    fields = {name: value for name, value in cast("JsonObject", raw).items() if name != "votes"}
    return {**fields, "votes": [each.dump() for each in votes]} if votes else fields


def _voter(vote: Vote) -> tuple[str, str]:
    return vote.platform, vote.voter


def without_votes_of(raw: object, message: AssistantMessage, user: str) -> object:
    """Return an answer's JSON without the votes of a user."""
    left = [vote for vote in message.votes if vote.voter != user]
    return raw if len(left) == len(message.votes) else _voted(raw, left)
