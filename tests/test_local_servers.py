"""A start without a key: a model server on this machine is offered by name, and not used unasked."""

import os
import pty
import tomllib
from pathlib import Path

import pytest

from bot.config.configuration import load
from bot.view.wording.terminal import offer
from council.suggestion import LocalServer
from tests.bot.terminal.test_demo import Watched
from tests.launcher import start
from tests.model_server import Json, ModelServer
from tests.ports import free_port
from tests.test_program import COVERAGE, PLAIN, QUESTION

ONE = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("llama3.2:latest",))
TWO = LocalServer("LM Studio", "http://127.0.0.1:1234/v1", ("qwen/qwen3-8b", "gemma-3"))

SEVERAL: list[Json] = [{"id": "llama3.3:latest"}, {"id": "qwen3:8b"}]

PROGRAM = """
from council import demonstration, suggestion
demonstration.available = lambda: False
suggestion.find_servers.__defaults__ = ({{"Ollama": {port}}}, 60.0)
from bot.cli import main
main()
"""
"""The program where the built-in model isn't installed, looking at one port."""


def test_an_offer_has_the_lines_to_copy() -> None:
    """Several models are several seats."""
    assert offer(TWO, "council.toml") == (
        "There is a model server on this machine, probably LM Studio, with qwen/qwen3-8b and gemma-3. "
        "To ask them, run `council init`, or add this to council.toml:\n\n"
        "[profiles.default]\n"
        "members = [\n"
        '    { model = "qwen/qwen3-8b", endpoint = "http://127.0.0.1:1234/v1" },\n'
        '    { model = "gemma-3", endpoint = "http://127.0.0.1:1234/v1" },\n'
        "]\n"
    )


@pytest.mark.parametrize(("server", "seats"), [(ONE, 3), (TWO, 2)])
def test_the_lines_of_an_offer_are_a_configuration(
    server: LocalServer, seats: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One model takes three seats, each with a persona."""
    monkeypatch.chdir(tmp_path)
    lines = offer(server, "council.toml").partition("\n\n")[2]
    assert tomllib.loads(lines)
    Path("council.toml").write_text(lines, encoding="utf-8")
    profile = load().profiles["default"]
    assert len(profile.members) == seats
    assert {member.model for member in profile.members} == {*server.models}
    assert {member.endpoint for member in profile.seats} == {server.endpoint}


async def at_a_terminal(folder: Path, port: int, typed: str) -> tuple[str, int | None]:
    """Ask at a terminal and type an answer to the offer; return what is shown, and the exit code."""
    ours, theirs = pty.openpty()
    place = {"COUNCIL_DATA_DIR": str(folder / "data"), "TERM": "xterm", "COLUMNS": "200"}
    process = await start(
        *("ask", QUESTION),
        cwd=folder,
        env=PLAIN | COVERAGE | place,
        code=PROGRAM.format(port=port),
        stdin=theirs,
        stdout=theirs,
    )
    os.close(theirs)
    seen = Watched(process, ours)
    question = await seen.until("]:")
    seen.press(typed)
    # The prompt's last blank is on the screen before or after the echo of the key, as it comes.
    shown = f"{question}]:{await seen.rest()}".replace("\r", "")
    code, _ = await seen.ended()
    return shown, code


async def test_at_a_terminal_its_models_are_asked_once_by_enter(tmp_path: Path) -> None:
    """By name; nothing is written, and how to keep them is said last."""
    port = free_port()
    async with ModelServer(models=SEVERAL, port=port) as server:
        shown, code = await at_a_terminal(tmp_path, port, "\n")
    assert shown.startswith("Ask llama3.3 and qwen3:8b on Ollama? [Y/n]:")
    assert code == 0
    assert "tiny" not in shown
    assert shown.endswith("\nTo ask them every time: make init\n")
    assert {call.model for call in server.history} == {"llama3.3:latest", "qwen3:8b"}
    assert not (tmp_path / "council.toml").exists()
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize(
    ("models", "typed", "offer"),
    [
        (SEVERAL, "n\n", "Ask llama3.3 and qwen3:8b on Ollama? [Y/n]:"),
        (
            [{"id": "qwen3:8b"}, {"id": "glm:4-cloud"}],
            "\n",
            "Ask qwen3:8b and glm:4-cloud on Ollama? [y/N]:",
        ),
    ],
)
async def test_models_are_asked_nothing_unless_wanted(
    tmp_path: Path, models: list[Json], typed: str, offer: str
) -> None:
    """Enter means no where one runs elsewhere. The built-in model would answer, if it were installed."""
    port = free_port()
    async with ModelServer(models=models, port=port) as server:
        shown, code = await at_a_terminal(tmp_path, port, typed)
    assert "".join(shown.split()).startswith("".join(offer.split()))
    assert (code, server.history) == (2, [])


@pytest.mark.parametrize("words", [("ask", QUESTION), ("run",)])
async def test_a_start_without_a_key_offers_it_and_asks_it_nothing(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It is the user's to set."""
    port = free_port()
    environment = PLAIN | COVERAGE | {"COUNCIL_DATA_DIR": str(tmp_path / "data")}
    environment |= {"DISCORD_TOKEN": "MTIzNDU2Nzg5MDEyMzQ1Njc4.a.b"} if words == ("run",) else {}
    async with ModelServer(models=[{"id": "llama3.2:latest"}], port=port) as server:
        process = await start(*words, cwd=tmp_path, env=environment, code=PROGRAM.format(port=port))
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    said = err.decode()
    endpoint = f"http://127.0.0.1:{port}/v1"
    assert offer(LocalServer("Ollama", endpoint, ("llama3.2:latest",)), "council.toml") in said
    assert (
        "the built-in demonstration model isn't installed"
        if words[0] == "ask"
        else "No model provider is configured"
    ) in said
    assert (server.models_asked, server.history) == (1, [])
