"""Checks while the program starts."""

import asyncio
from pathlib import Path

import pytest
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from bot.app import open_council, open_library
from bot.config.configuration import load
from bot.terminal.ask import tell_unlisted
from tests.model_server import Json, ModelServer

LISTED: list[Json] = [{"id": "openai/gpt-5"}, {"id": "google/gemini-2.5-pro"}, {"id": "x-ai/grok-4"}]
MEMBERS = "openai/gpt5,google/gemini-2.5-pro:nitro,grok-4,a/stranger"


async def logged(
    folder: Path, patch: pytest.MonkeyPatch, models: ModelServer, *, lines: int
) -> list[Json]:
    """Open a council, which logs nothing; return what is logged once the list is there."""
    patch.chdir(folder)
    patch.setenv("OPENROUTER_BASE_URL", models.base_url)
    patch.setenv("COUNCIL_MEMBERS", MEMBERS)
    configuration = load()
    with structlog.testing.capture_logs() as log:
        data = configuration.settings.council_data_dir
        async with open_library(data) as library, open_council(configuration, library):
            assert log == []
            async with asyncio.timeout(10):
                while len(log) < lines:
                    await asyncio.sleep(0.001)
    return [{**line} for line in log]


async def test_models_that_the_provider_lacks_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the likely id; the start doesn't wait for it, and variants count as their model."""
    async with ModelServer(models=LISTED) as models:
        lines = await logged(tmp_path, monkeypatch, models, lines=3)
    assert [(line["event"], line["model"], line["did_you_mean"]) for line in lines] == [
        ("model_not_listed", "openai/gpt5", "openai/gpt-5"),
        ("model_not_listed", "grok-4", "x-ai/grok-4"),
        ("model_not_listed", "a/stranger", None),
    ]
    assert {line["log_level"] for line in lines} == {"warning"}
    assert models.models_asked == 1


def test_a_person_is_told_of_them_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """In the terminal, where a line of a log would be above the answer."""
    tell_unlisted("openai/gpt5", "openai/gpt-5")
    tell_unlisted("a/stranger", None)
    assert capsys.readouterr().err == (
        "The provider doesn't list openai/gpt5. Did you mean openai/gpt-5?\n"
        "The provider doesn't list a/stranger.\n"
    )


async def test_without_a_list_models_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many providers have none."""
    async with ModelServer() as models:
        lines = await logged(tmp_path, monkeypatch, models, lines=1)
    assert [line["event"] for line in lines] == ["model_list_missing"]


async def test_a_list_that_never_comes_delays_neither_start_nor_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled when the program ends."""
    asked = asyncio.Event()

    @web.middleware
    async def hang(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        return await handler(request)

    async with ModelServer(models=LISTED, middlewares=[hang]) as models:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENROUTER_BASE_URL", models.base_url)
        monkeypatch.setenv("COUNCIL_MEMBERS", MEMBERS)
        configuration = load()
        data = configuration.settings.council_data_dir
        async with asyncio.timeout(5):
            async with open_library(data) as library, open_council(configuration, library):
                await asked.wait()
