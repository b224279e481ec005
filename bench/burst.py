"""200 commands in a burst beside 200 running councils: how fast is each acknowledged?"""

import asyncio
import sysconfig
import tempfile
from pathlib import Path

from tests.discord_server import DiscordServer
from tests.model_server import ModelServer
from tests.slack_server import SlackServer

COMMANDS = 200
MEMBERS = "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok"
LIMITS = "[limits]\nruns = 1000\nruns_per_channel = 1000\nruns_per_user = 1000\n"


async def acknowledgements() -> tuple[list[float], list[float]]:
    """Return the seconds to each acknowledgement of the second 200 commands, on Discord and on Slack.

    The bot is a process of its own, `council run`; platforms and models are played in this one.
    """
    async with DiscordServer() as discord, SlackServer() as slack, ModelServer() as models:
        with tempfile.TemporaryDirectory() as folder:
            await asyncio.to_thread(Path(folder, "council.toml").write_text, LIMITS)
            models.gate = asyncio.Event()  # every council stays in its first stage
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
                await asyncio.gather(discord.connected(), slack.connected())
                guild = discord.guild("Team")
                ada, bob = discord.member(guild, "ada"), slack.add_user("bob")
                general, room = discord.channel(guild, "general"), slack.add_channel("room", bob)

                async def burst() -> tuple[list[float], list[float]]:
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
            finally:
                process.kill()
                await process.wait()
