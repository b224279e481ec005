"""Draw what people see: `python -m pictures` writes docs/pictures/*.png from real runs.

`council run` answers one question on Discord and one on Slack, between fake platforms and a fake
model provider on 127.0.0.1. What the platforms recorded is drawn; nothing is written by hand but
the models' texts (pictures/scenario.py).
"""

import asyncio
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pictures import scenario
from pictures.page import photograph
from pictures.render import NoPicture, Platform, missing, render
from tests.discord_server import DiscordServer, Interaction, User
from tests.discord_server import Message as DiscordMessage
from tests.discord_server import wire as discord_wire
from tests.model_server import Json, ModelServer, Turn
from tests.slack_server import SlackServer

Picture = tuple[Platform, str, str, Sequence[Mapping[str, Any]], Mapping[str, str]]
"""Platform, name, title, messages, and who the ids are."""

COUNCIL = Path(sysconfig.get_path("scripts")) / "council"
OUT = Path(__file__).parent.parent / "docs" / "pictures"
SECONDS = 60.0
WIDTH = 720
THREAD_LENGTH = 2  # messages, so that a picture of a thread stays readable
CHANNEL = "architecture"
# Seconds for answer, review and correction. The last two correct themselves so late that the card
# can be seen with some corrections in.
PACE = {
    scenario.GPT: (1.9, 2.2, 1.4),
    scenario.CLAUDE: (1.3, 1.6, 1.1),
    scenario.GEMINI: (2.4, 1.8, 6.0),
    scenario.GROK: (1.6, 2.6, 6.0),
}
CORRECTED_EARLY = 2
DOLLARS_A_TOKEN = {"prompt": "0.000003", "completion": "0.000015"}


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that the other process does."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - another process does it, which nobody tells of
            await asyncio.sleep(0.01)


@asynccontextmanager
async def council(
    discord: DiscordServer, slack: SlackServer, models: ModelServer
) -> AsyncGenerator[None]:
    """Run `council run` between these servers."""
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            COUNCIL,
            "run",
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "OPENROUTER_BASE_URL": models.base_url,
                "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
                "COUNCIL_MEMBERS": ",".join(scenario.MEMBERS),
                "COUNCIL_CHAIRMAN": scenario.CHAIRMAN,
                "COUNCIL_TITLE_MODEL": scenario.TITLE_MODEL,
                "DISCORD_TOKEN": discord.world.token,
                "DISCORD_API_BASE_URL": discord.url,
                "SLACK_BOT_TOKEN": slack.token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
            },
            stdin=subprocess.DEVNULL,
            stderr=None,
        )
        try:
            await until(lambda: slack.courier.sockets > 0)  # Slack comes last
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def rehearse(models: ModelServer) -> None:
    """Set how long everybody takes in the next run."""
    for member, pace in PACE.items():
        models.script(member, *(Turn(latency=seconds) for seconds in pace))
    models.script(scenario.CHAIRMAN, Turn(latency=3.0))


@asynccontextmanager
async def held(models: ModelServer, card: Callable[[], object]) -> AsyncGenerator[None]:
    """Hold the run where some corrections are in and the card says so."""

    def corrected() -> bool:
        asked = [each for each in models.history if scenario.part(each.request) == "correction"]
        late = sum(each.completed is None for each in asked)
        all_asked = len(asked) % len(scenario.MEMBERS) == 0
        return all_asked and late == len(scenario.MEMBERS) - CORRECTED_EARLY

    await until(corrected)
    models.gate = asyncio.Event()
    shown = f"running, {CORRECTED_EARLY} of {len(scenario.MEMBERS)} done"
    await until(lambda: shown in str(card()) and "corrected" in str(card()))
    yield
    models.gate.set()
    models.gate = None


async def on_discord(discord: DiscordServer, models: ModelServer) -> tuple[list[Picture], str]:
    """Ask on Discord, and record what Ada sees there, with the transcript's page."""
    discord.bot.name = "Council"
    guild = discord.guild("Acme")
    channel, ada = discord.channel(guild, CHANNEL), discord.member(guild, "ada")
    rehearse(models)
    asked = discord.slash(channel, ada, "council", question=scenario.QUESTION)

    def card() -> dict[str, Any]:
        return recorded(discord, asked, asked.message)

    async with held(models, card):
        running = card()
    await until(lambda: "Ask again" in str(card()) and discord.pings())
    if asked.message is None or (thread := asked.message.thread) is None:
        raise NoPicture("No picture: the card has no thread.")
    replies = [discord_wire.message(each, discord.world) for each in discord.messages(thread)]

    page = await transcript(discord, asked.message, ada)
    image = discord.upload("latency.png", b"\x89PNG\r\n\x1a\n", "image/png")
    refused = discord.slash(channel, ada, "council", question=scenario.QUESTION, attachment=image)
    await until(lambda: refused.message is not None)
    error = recorded(discord, refused, refused.message)
    place = f"# {CHANNEL}"
    return [
        ("discord", "running", place, [running], {}),
        ("discord", "answer", place, [card()], {}),
        ("discord", "thread", thread.name, replies[:THREAD_LENGTH], {}),
        ("discord", "error", place, [error], {}),
    ], page


async def transcript(discord: DiscordServer, card: DiscordMessage, reader: User) -> str:
    """Press *Transcript* and give the page that comes."""
    button = next(part for part in card.buttons if part["label"] == "Transcript")
    pressed = discord.click(card, button["custom_id"], reader)
    await until(lambda: pressed.message and pressed.message.attachments)
    return pressed.message.attachments[0].data.decode() if pressed.message else ""


def recorded(
    discord: DiscordServer, asked: Interaction, message: DiscordMessage | None
) -> dict[str, Any]:
    """Return a command's answer with the command's name, which Discord's API has under `interaction`."""
    if message is None:
        return {}
    body = discord_wire.message(message, discord.world)
    name = asked.payload["data"]["name"]
    return body | {"interaction": {**body["interaction_metadata"], "name": name}}


async def on_slack(slack: SlackServer, models: ModelServer) -> list[Picture]:
    """Ask on Slack, and record what Ada sees there."""
    ada = slack.add_user("ada")
    channel = slack.add_channel(CHANNEL, ada)
    names = {slack.team.bot.id: "Council", ada.id: "Ada"}
    rehearse(models)
    await slack.slash(channel, ada, "/council", scenario.QUESTION)

    def card() -> dict[str, Any]:
        return slack.messages(channel)[0].wire() if slack.messages(channel) else {}

    async with held(models, card):
        running = card()
    replies = slack.messages(channel)[0].ts
    await until(
        lambda: (
            "Ask again" in str(card()) and any(each.pinged for each in slack.thread(channel, replies))
        )
    )
    thread = [each.wire() for each in slack.thread(channel, replies)]
    answer = card() | {"latest_reply": thread[-1]["ts"]}

    await slack.slash(channel, ada, "/council", f"--privat {scenario.QUESTION}")
    await until(lambda: slack.ephemerals(channel, ada))
    told = slack.ephemerals(channel, ada)[0]
    error = {
        "user": slack.team.bot.id,
        "bot_id": slack.team.bot_id,
        "ts": told.ts,
        "text": told.text,
        "blocks": told.blocks,
        "is_ephemeral": True,
    }
    place = f"# {CHANNEL}"
    return [
        ("slack", "running", place, [running], names),
        ("slack", "answer", place, [answer], names),
        ("slack", "thread", "Thread", thread[:THREAD_LENGTH], names),
        ("slack", "error", place, [error], names),
    ]


async def record() -> tuple[list[Picture], str]:
    """Hold both runs, one after the other; returns what is to be drawn, and the transcript's page."""
    priced = (*scenario.MEMBERS, scenario.CHAIRMAN, scenario.TITLE_MODEL)
    listed: list[Json] = [{"id": model, "pricing": DOLLARS_A_TOKEN} for model in priced]
    async with (
        DiscordServer() as discord,
        SlackServer() as slack,
        ModelServer(scenario.play, models=listed) as models,
        council(discord, slack, models),
    ):
        pictures, page = await on_discord(discord, models)
        return [*pictures, *await on_slack(slack, models)], page


def main() -> None:
    """Record, then draw."""
    if lack := missing():
        sys.exit(f"No picture: {lack}.")
    OUT.mkdir(parents=True, exist_ok=True)
    pictures, page = asyncio.run(record())
    made = photograph(page, OUT)
    for platform, name, title, messages, names in pictures:
        made.append(OUT / f"{platform}-{name}.png")
        render(platform, messages, made[-1], width=WIDTH, title=title, names=names)
    for out in made:
        print(f"{out.relative_to(OUT.parent.parent)}  {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
