"""How fast commands are acknowledged: 200 in a burst beside 200 running councils, and beside bombs."""

import asyncio
import random
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.discord_server import DiscordServer, Interaction
from tests.model_server import Json, ModelServer, council_member
from tests.slack_server import Delivery, SlackServer

COMMANDS = 200
MEMBERS = "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok"
NO_LIMITS = "[limits]\nruns = 1000\nruns_per_channel = 1000\nruns_per_user = 1000\n"
AT_ONCE = 2
OTHERS, ROUNDS, APART = 5, 10, 0.3
SHORT = "Should we shard?"
CALL_SECONDS = 0.3
TOO_LATE = 3.0
"""The seconds after which Discord takes no acknowledgement."""

Acknowledged = tuple[list[float], list[float]]
"""The seconds to each acknowledgement, on Discord and on Slack."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The platforms and the models, played in this process; the bot is a process of its own."""

    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    process: asyncio.subprocess.Process

    def cpu(self) -> float:
        """Return the CPU seconds that the bot has used, which a busy machine doesn't lengthen."""
        # Linux's clock of another process; https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html
        return time.clock_gettime(~self.process.pid << 3 | 2)


@dataclass(frozen=True, slots=True)
class Waits:
    """What other people's commands waited: seconds on each platform, and the bot's CPU meanwhile."""

    discord: list[float] = field(default_factory=list[float])
    slack: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])


@asynccontextmanager
async def running(models: ModelServer, configuration: str = "") -> AsyncGenerator[Surroundings]:
    """Run `council run` between both platforms and the models."""
    async with AsyncExitStack() as stack:
        discord = await stack.enter_async_context(DiscordServer())
        slack = await stack.enter_async_context(SlackServer())
        await stack.enter_async_context(models)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        await asyncio.to_thread(Path(folder, "council.toml").write_text, configuration)
        process = await asyncio.create_subprocess_exec(
            str(Path(sysconfig.get_path("scripts")) / "council"),
            "run",
            cwd=folder,
            env={
                "OPENROUTER_BASE_URL": models.base_url,
                "OPENROUTER_API_KEY": "none",
                "COUNCIL_MEMBERS": MEMBERS,
                "DISCORD_TOKEN": discord.world.token,
                "DISCORD_API_BASE_URL": discord.url,
                "SLACK_BOT_TOKEN": slack.token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
            },
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.gather(discord.until(lambda: discord.gateway.connected > 0), slack.connected())
            yield Surroundings(discord, slack, models, process)
        finally:
            process.kill()
            await process.wait()


async def acknowledgements() -> Acknowledged:
    """Return how fast the second 200 commands are acknowledged."""
    models = ModelServer()
    models.gate = asyncio.Event()  # every council stays in its first stage
    async with running(models, NO_LIMITS) as around:
        discord, slack = around.discord, around.slack
        guild = discord.guild("Team")
        ada, bob = discord.member(guild, "ada"), slack.add_user("bob")
        general, room = discord.channel(guild, "general"), slack.add_channel("room", bob)

        async def burst() -> Acknowledged:
            asked = [
                discord.slash(general, ada, "council", question=f"Question {number}?")
                for number in range(COMMANDS // 2)
            ]
            typed = [
                slack.slash(room, bob, "/council", f"Question {number}?")
                for number in range(COMMANDS // 2)
            ]
            await asyncio.gather(*(each.acknowledged() for each in asked))
            for each in typed:
                await each
            return (
                [each.acknowledged_after or 0.0 for each in asked],
                [each.latency or 0.0 for each in typed],
            )

        await burst()
        return await burst()


async def beside(texts: Sequence[str]) -> Waits:
    """Return how fast other people's commands are acknowledged while one person asks these questions.

    On each platform, that person asks all of them at once, and every model's answer holds the text as
    well; limits are as they come.
    """

    def answer(request: Json) -> str:
        said, prompt = council_member(request), str(request.get("messages"))
        held = [text for number, text in enumerate(texts) if f"Crafted {number}:" in prompt]
        return f"{said}\n\n{held[0]}" if held and "FINAL RANKING" not in prompt[-400:] else said

    draw = random.Random(1)  # noqa: S311 - a benchmark
    models = ModelServer(answer, latency=lambda: draw.uniform(0.5, 1.5) * CALL_SECONDS)
    async with running(models) as around:
        discord, slack = around.discord, around.slack
        slack.rates.enforced = False  # the platform's rate limits are measured elsewhere
        guild = discord.guild("Team")
        eve, mallory = discord.member(guild, "eve"), slack.add_user("mallory")
        general, room = discord.channel(guild, "general"), slack.add_channel("room", mallory)
        crafted = [f"Crafted {number}:\n\n{text}" for number, text in enumerate(texts)]
        taken: list[Interaction] = []
        mentions: list[Delivery] = []
        for some in (crafted[:AT_ONCE], crafted[AT_ONCE:]):  # the first ones run, the others wait
            taken += [discord.slash(general, eve, "council", question=text) for text in some]
            mentions += [slack.mention(room, mallory, text) for text in some]
            await asyncio.gather(*(each.acknowledged() for each in taken))
            for mention in mentions:
                await mention
            await asyncio.sleep(APART)
        is_refused = any(each.message is None or each.message.ephemeral for each in taken)
        if is_refused or slack.ephemerals(room, mallory):
            sys.exit("a crafted question was refused")
        waits = Waits()

        async def wait(acknowledged: Awaitable[object], seconds: Callable[[], float | None]) -> float:
            began = around.cpu()
            with suppress(TimeoutError):
                await acknowledged
            waits.cpu.append(around.cpu() - began)
            return seconds() or TOO_LATE

        async def ask_on_discord(interaction: Interaction) -> None:
            acknowledged = interaction.acknowledged(TOO_LATE)
            waits.discord.append(await wait(acknowledged, lambda: interaction.acknowledged_after))

        async def ask_on_slack(delivery: Delivery) -> None:
            waits.slack.append(await wait(delivery, lambda: delivery.latency))

        for number in range(ROUNDS):
            people = [discord.member(guild, f"user{number}-{each}") for each in range(OTHERS)]
            users = [slack.add_user(f"user{number}-{each}") for each in range(OTHERS)]
            hall, lounge = (
                discord.channel(guild, f"hall{number}"),
                slack.add_channel(f"l{number}", *users),
            )
            asked = [discord.slash(hall, person, "council", question=SHORT) for person in people]
            typed = [slack.slash(lounge, user, "/council", SHORT) for user in users]
            await asyncio.gather(*map(ask_on_discord, asked), *map(ask_on_slack, typed))
            await asyncio.sleep(APART)
        return waits
