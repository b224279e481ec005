"""What every store of conversations does: an exchange is stored completely, once, in order."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from council.document.conversation import AssistantMessage, Source, UserMessage
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, DocumentError
from tests.storage.examples import NOW, answer, new_id
from tests.stores import Home

Opened = Callable[[], AbstractAsyncContextManager[Conversations]]
"""Opens the same conversations each time, as one process after the other does."""

SOURCE = Source(platform="slack", workspace="W", channel="C", thread="T", message="M", user="U")


@pytest.fixture
def opened(home: Home) -> Opened:
    """Return the opener of new conversations, for each store."""

    @asynccontextmanager
    async def conversations() -> AsyncGenerator[Conversations]:
        async with home.open() as stores:
            yield stores.documents

    return conversations


async def ask(
    conversations: Conversations,
    conversation_id: str,
    question: str = "Capital of France?",
    run_id: str | None = None,
) -> None:
    """Save a question with its answer."""
    given = answer().model_copy(update={"run_id": run_id})
    await conversations.add_exchange(
        conversation_id, question, given, title=question, source=SOURCE, now=NOW
    )


async def test_an_exchange_comes_back_in_the_next_process(opened: Opened) -> None:
    """With the title and the source of the first question."""
    conversation_id = new_id()
    async with opened() as conversations:
        await ask(conversations, conversation_id)
        await ask(conversations, conversation_id, "And of Italy?")
    async with opened() as conversations:
        conversation = await conversations.load(conversation_id)
    assert (conversation.title, conversation.source) == ("Capital of France?", SOURCE)
    asked = [one.content for one in conversation.messages if isinstance(one, UserMessage)]
    assert asked == ["Capital of France?", "And of Italy?"]
    assert [one for one in conversation.messages if isinstance(one, AssistantMessage)] == [answer()] * 2


async def test_a_runs_answer_is_added_once(opened: Opened) -> None:
    """A run that continues after a crash finds its saved answer."""
    conversation_id = new_id()
    async with opened() as conversations:
        await ask(conversations, conversation_id, run_id="run-1")
    async with opened() as conversations:
        await ask(conversations, conversation_id, run_id="run-1")
        await ask(conversations, conversation_id, "And of Italy?", run_id="run-2")
        messages = (await conversations.load(conversation_id)).messages
    assert [message.role for message in messages] == ["user", "assistant"] * 2


async def test_concurrent_exchanges_are_all_kept(opened: Opened) -> None:
    """Every question is directly before its answer."""
    conversation_id = new_id()
    async with opened() as conversations:
        await asyncio.gather(
            *(ask(conversations, conversation_id, str(n), run_id=f"run-{n}") for n in range(20))
        )
        messages = (await conversations.load(conversation_id)).messages
    pairs = zip(messages[::2], messages[1::2], strict=True)
    said = {
        (asked.content, told.run_id)
        for asked, told in pairs
        if isinstance(asked, UserMessage) and isinstance(told, AssistantMessage)
    }
    assert said == {(str(n), f"run-{n}") for n in range(20)}


async def test_an_answer_that_breaks_the_contract_is_not_written(opened: Opened) -> None:
    """Nor is its question."""
    conversation_id = new_id()
    broken = answer().model_copy(update={"stage1": []})
    async with opened() as conversations:
        with pytest.raises(DocumentError):
            await conversations.add_exchange(
                conversation_id, "Why?", broken, title="Why?", source=SOURCE, now=NOW
            )
        with pytest.raises(ConversationNotFound):
            await conversations.load(conversation_id)
