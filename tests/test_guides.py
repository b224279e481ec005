"""The install guides, followed word by word in a fresh folder against the fake platforms."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.config.configuration import load
from bot.discord.checks import PERMISSIONS
from tests.bot.doctor.scene import BOT_TOKEN, GOOD_KEY, KEY, PRICES
from tests.discord_server import DiscordServer
from tests.launcher import Process, start
from tests.model_server import Json, ModelServer
from tests.slack_server import SlackServer
from tests.test_documents import text
from tests.test_program import COVERAGE, PLAIN
from tests.test_team_chat import QUICK, until

MODELS: list[Json] = [
    {"id": name, "pricing": PRICES}
    for name in ("openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro")
]
ELSEWHERE = ("council init",)
"""Another way to do the same, which `tests/bot/terminal/test_init.py` goes."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)


def steps(page: str, section: str = "") -> Iterator[str]:
    """Yield the commands and variables of the steps in a section, in their order."""
    whole = text(page).partition(f"\n## {section}\n")[2] if section else text(page)
    numbered = re.split(r"\n\n(?![ \d])", whole.partition("\n1. ")[2])[0]
    for word in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", numbered, flags=re.DOTALL)):
        is_command = word.startswith(("council ", "openssl ")) and word not in ELSEWHERE
        if is_command or re.fullmatch(r"[A-Z]+(_[A-Z]+)+(=[\w./-]+)?", word):
            yield word


@dataclass
class Reader:
    """Somebody who does what a guide says, in a folder of their own; only hosts are others."""

    folder: Path
    hosts: dict[str, str]
    tokens: dict[str, str]
    install: Callable[[str], object] = str
    """What the platform does with the file that a command has written."""
    said: dict[str, str] = field(default_factory=dict[str, str])
    serving: Process | None = None

    async def follow(self, page: str, section: str = "") -> None:
        """Do each step; every command but `council run` has to end well."""
        [example] = [block for block in blocks("README.md", "sh") if "OPENROUTER_API_KEY" in block]
        self.dotenv(example.replace("sk-or-\u2026", KEY))
        for step in steps(page, section):
            if step.startswith("openssl "):
                shell = await asyncio.create_subprocess_shell(step, cwd=self.folder)
                assert await shell.wait() == 0
                continue
            if not step.startswith("council "):
                self.dotenv(f"{step}\n" if "=" in step else f"{step}={self.tokens[step]}\n")
                continue
            command, _, file = step.partition(" > ")
            words = command.split()[1:]
            environment = PLAIN | COVERAGE | self.hosts
            process = await start(*words, cwd=self.folder, env=environment, code=QUICK)
            if words == ["run"]:
                self.serving = process
                continue
            out, err = await process.communicate()
            assert process.returncode == 0, f"{step}: {out.decode()}{err.decode()}"
            self.said[step] = out.decode()
            if file:
                self.install(out.decode())

    def dotenv(self, lines: str) -> None:
        """Write on in `.env`, for this user's eyes alone."""
        file = self.folder / ".env"
        with file.open("a") as written:
            written.write(lines)
        file.chmod(0o600)

    async def until_ready(self) -> None:
        """Wait until the program serves."""
        assert self.serving is not None
        assert self.serving.stderr is not None
        lines: list[bytes] = []
        while not lines or b'"ready"' not in lines[-1]:
            lines.append(await self.serving.stderr.readline())
            assert lines[-1], b"".join(lines)

    async def leave(self) -> None:
        if self.serving is not None:
            self.serving.terminate()
            await self.serving.communicate()


async def test_the_guide_for_discord_ends_with_an_answer(tmp_path: Path) -> None:
    """Its invitation asks for the permissions that it lists, and its doctor finds nothing."""
    async with (
        DiscordServer(token=BOT_TOKEN) as discord,
        ModelServer(models=MODELS, key=GOOD_KEY) as models,
    ):
        discord.world.application["bot_public"] = False  # step 2
        guild = discord.guild("Acme", bot_permissions=PERMISSIONS)  # what step 5 opens
        general, ada = discord.channel(guild, "general"), discord.member(guild, "ada")
        hosts = {"OPENROUTER_BASE_URL": models.base_url, "DISCORD_API_BASE_URL": discord.url}
        reader = Reader(tmp_path, hosts, {"DISCORD_TOKEN": BOT_TOKEN})
        try:
            await reader.follow("docs/discord.md")
            await reader.until_ready()
            discord.slash(general, ada, "council", question="Shard or scale up?")
            await until(lambda: len(discord.pings()) == 1)
        finally:
            await reader.leave()
    assert f"permissions={PERMISSIONS}" in reader.said["council invite discord"]
    assert "scope=bot" in reader.said["council invite discord"]
    assert list((tmp_path / "data/conversations").glob("*.json"))


async def test_the_guide_for_slack_ends_with_an_answer(tmp_path: Path) -> None:
    """The app has the scopes of the manifest that was printed, and its doctor finds nothing."""
    async with SlackServer() as slack, ModelServer(models=MODELS, key=GOOD_KEY) as models:
        hosts = {"OPENROUTER_BASE_URL": models.base_url, "SLACK_API_URL": slack.api_url}
        tokens = {"SLACK_BOT_TOKEN": slack.token, "SLACK_APP_TOKEN": slack.app_token}
        bob = slack.add_user("bob")
        room = slack.add_channel("room", bob)
        slack.team.scopes.clear()

        def install(manifest: str) -> None:
            slack.team.scopes.update(json.loads(manifest)["oauth_config"]["scopes"]["bot"])

        reader = Reader(tmp_path, hosts, tokens, install)
        try:
            await reader.follow("docs/slack.md")
            await reader.until_ready()
            await slack.slash(room, bob, "/council", "Shard or scale up?")
            await until(lambda: bool(list((tmp_path / "data/conversations").glob("*.json"))))
            [card] = slack.messages(room)
            await until(lambda: any(post.pinged for post in [card, *slack.thread(room, card.ts)]))
        finally:
            await reader.leave()


@pytest.mark.parametrize("block", blocks("docs/configuration.md", "toml"))
def test_every_example_of_council_toml_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    """As it is written, beside the councils that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("VLLM_API_KEY", "key")
    council = "[profiles.default]\nmembers = ['a/one']\n"
    for part in re.split(r"\n\n(?=\[\[)", block):
        before = "" if "[profiles.default]" in part else council
        after = "\n[profiles.expensive]\nmembers = ['a/one']\n" if "expensive" in part else ""
        (tmp_path / "council.toml").write_text(f"{before}{part}{after}", encoding="utf-8")
        assert load().profiles["default"].members
