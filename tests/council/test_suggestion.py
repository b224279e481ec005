"""Which council a model list suggests, and model servers on this machine, found at their usual ports."""

import asyncio
from time import monotonic

from council.models.costs import ModelListing, Price
from council.suggestion import LocalServer, Suggestion, find_servers, leading, suggest
from tests.model_server import ModelServer
from tests.ports import free_port


def listed(**prices: tuple[float, int]) -> dict[str, ModelListing]:
    """Make a list of models, each with dollars for a million tokens of the reply, and its age."""
    return {
        name.replace("__", "/").replace("_", "-"): ModelListing(
            Price(price / 1e7, price / 1e6), structured=True, created=created
        )
        for name, (price, created) in prices.items()
    }


def bare(*names: str) -> dict[str, ModelListing]:
    return {name: ModelListing(None, structured=False) for name in names}


def test_each_seat_has_another_maker_and_its_newest_main_model() -> None:
    """Small, special and very dear models stay out, and so do those that cost nothing or have no price."""
    listings = listed(
        openai__gpt_5=(10, 5),
        openai__gpt_6=(12, 9),
        openai__gpt_6_mini=(1, 10),
        openai__gpt_6_pro=(120, 11),
        google__gemini_3=(12, 8),
        google__gemini_3_flash_image=(12, 9),
        anthropic__claude_5=(25, 7),
        anthropic__claude_4=(15, 3),
        deepseek__deepseek_v4=(1, 8),
        kind__gift=(0, 12),
    )
    assert suggest(listings) == Suggestion(
        ("openai/gpt-6", "google/gemini-3", "deepseek/deepseek-v4"), "anthropic/claude-5"
    )
    listings = listed(a__one=(1, 1), b__two=(1, 1), c__three=(1, 1), d__four=(1, 1))
    listings["openrouter/auto"] = ModelListing(None, structured=False, created=99)
    assert leading(listings)[-1] == "openrouter/auto"


def test_few_makers_share_the_seats() -> None:
    """The members still differ; embedding models answer nothing, and an id must be one that a file can contain."""
    models = bare("llama3.3:latest", "qwen3:8b", "gemma3", "qwen3:32b")
    suggestion = suggest(models)
    assert suggestion == Suggestion(("qwen3:8b", "llama3.3:latest", "gemma3"), "qwen3:32b")
    assert suggest(bare("qwen3", "gemma-3")) == Suggestion(("qwen3", "gemma-3"), "qwen3")
    models = bare("nomic-embed-text", 'qu"ote', "a,b", "line\nbreak", "qwen3")
    assert suggest(models) == Suggestion(("qwen3",) * 3, "qwen3")
    assert suggest({}) is None


def ids(*ids: str) -> list[dict[str, object]]:
    return [{"id": each, "object": "model"} for each in ids]


async def served(port: int) -> ModelServer:
    """Return a server on this port, with models."""
    return ModelServer(models=ids("llama3.2:latest", "nomic-embed-text", 'bad"id'), port=port)


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
        ModelServer(models=ids("nomic-embed-text"), port=ports[2]),
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
    async with ModelServer(models=ids(*"abcdefgh"), port=port):
        [found] = await find_servers({"Ollama": port})
    assert found.models == ("a", "b", "c", "d")
