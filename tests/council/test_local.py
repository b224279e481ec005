"""Model servers on this machine, found at their usual ports."""

import asyncio
from time import monotonic

from council.suggestion import LocalServer, find_servers
from tests.model_server import ModelServer
from tests.ports import free_port


def listed(*ids: str) -> list[dict[str, object]]:
    """Return a list of models."""
    return [{"id": each, "object": "model"} for each in ids]


async def served(port: int) -> ModelServer:
    """Return a server on this port, with models."""
    return ModelServer(models=listed("llama3.2:latest", "nomic-embed-text", 'bad"id'), port=port)


async def test_a_server_is_found_with_its_models() -> None:
    """Those that answer questions, and whose ids can be written down; nothing else is asked."""
    port, nobody = free_port(), free_port()
    async with await served(port) as server:
        found = await find_servers({"Ollama": port, "LM Studio": nobody})
    assert found == [LocalServer("Ollama", f"http://127.0.0.1:{port}/v1", ("llama3.2:latest",))]
    assert (server.models_asked, server.history) == (1, [])


async def test_a_server_without_models_is_not_offered() -> None:
    """A page, an empty list, a server of embeddings."""
    ports = [free_port() for _ in range(3)]
    async with (
        ModelServer(port=ports[0]),
        ModelServer(models=[], port=ports[1]),
        ModelServer(models=listed("nomic-embed-text"), port=ports[2]),
    ):
        assert await find_servers(dict(zip("abc", ports, strict=True))) == []


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    """However many there are: they are asked at once."""

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as silent:
        port: int = silent.sockets[0].getsockname()[1]
        began = monotonic()
        assert await find_servers({"a": port, "b": port, "c": port}, seconds=0.1) == []
    assert monotonic() - began < 5


async def test_at_most_a_few_models_are_named() -> None:
    """Some servers have dozens."""
    port = free_port()
    async with ModelServer(models=listed(*"abcdefgh"), port=port):
        [found] = await find_servers({"Ollama": port})
    assert found.models == ("a", "b", "c", "d")
