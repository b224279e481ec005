"""A model client at a fake provider and its calls, as the tests of this folder open and make them."""

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import pytest

from council.calls import Call, ChatMessage
from council.errors import Failure, ModelError
from council.models.client import ModelClient, Retries
from council.profile import Member
from tests.council.scripted import as_called
from tests.model_server import ModelServer
from tests.passing_time import Rest

MODEL = "openai/gpt-5"
QUESTION: tuple[ChatMessage, ...] = ({"role": "user", "content": "Why is it?"},)
KEY = "sk-or-v1-0123456789abcdef"
OF_A_CALL = {field.name for field in fields(Call)}

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - jitter, not a secret


def quick(rest: Rest | None = None, max_attempts: int = 4) -> Retries:
    """Return retries whose waits are short and take no time."""
    return Retries(max_attempts, 0.01, chance(1), rest or Rest())


@asynccontextmanager
async def opened(
    provider: ModelServer, rest: Rest | None = None, **settings: Any
) -> AsyncGenerator[ModelClient]:
    """Open a client for this provider whose waits take no time."""
    options: dict[str, Any] = {
        "base_url": provider.base_url,
        "api_key": KEY,
        "dialect": "openrouter",
        "retries": quick(rest),
        **settings,
    }
    async with ModelClient(as_called, **options) as client:
        yield client


def call(
    model: str = MODEL,
    *messages: ChatMessage,
    on_text: Callable[[str], None] | None = None,
    on_retry: Callable[[Failure, float], None] | None = None,
    **settings: Any,
) -> Call:
    """Make a call; settings that a call doesn't have are its member's."""
    own = {name: value for name, value in settings.items() if name in OF_A_CALL}
    member = {name: value for name, value in settings.items() if name not in OF_A_CALL}
    made: dict[str, Any] = {
        "step": "stage1:1:a",
        "member": Member.model_validate({"model": model, **member}),
        "prompt": lambda: messages or QUESTION,
        "deadline": 5.0,
        "on_text": on_text,
        "on_retry": on_retry,
        **own,
    }
    return Call(**made)


async def failure(client: ModelClient, asked: Call) -> Failure:
    with pytest.raises(ModelError) as caught:
        await client.ask(asked)
    return caught.value.failure


def failed(read: Callable[[], object]) -> Failure:
    with pytest.raises(ModelError) as caught:
        read()
    return caught.value.failure


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def served(answer: Serve, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """Serve bytes on 127.0.0.1; yield the address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    # Not `async with`: since Python 3.12 that waits for connections, which the client keeps for a minute.
    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    finally:
        server.close()
