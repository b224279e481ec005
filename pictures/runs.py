"""The runs that pictures are taken of: `council run` between fake platforms, and how each run goes."""

import asyncio
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pictures import scenario
from pictures.render import Platform
from tests.discord_server import DiscordServer
from tests.model_server import ModelServer, Turn
from tests.slack_server import SlackServer

COUNCIL = Path(sysconfig.get_path("scripts")) / "council"
SECONDS = 60.0
QUIET_SECONDS = 3.0
CHANNEL = "architecture"
NARROW, LOW = 400, 560
"""Width and height of a picture in the README's row."""
GPT, CLAUDE, GEMINI, GROK = scenario.MEMBERS
# Seconds for answer, review and correction.
PACE: Mapping[str, tuple[float, ...]] = {
    GPT: (1.9, 2.2, 1.4),
    CLAUDE: (1.3, 1.6, 1.1),
    GEMINI: (2.4, 1.8, 6.0),
    GROK: (1.6, 2.6, 6.0),
}
BUSY = Turn(status=429, headers={"Retry-After": "0"})
ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn as `PLATFORM-NAME.png`: messages under a title, up to a height if one is given.

    `names` says who ids are.
    """

    platform: Platform
    name: str
    title: str
    messages: Sequence[Mapping[str, Any]]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    height: int | None = None
    width: int = 720

    def cropped(self, name: str) -> "Picture":
        """Return the picture's beginning, small enough for three in a row."""
        return replace(self, name=name, width=NARROW, height=LOW)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that the other process does."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - another process does it, which nobody tells of
            await asyncio.sleep(0.01)


async def settled(count: Callable[[], int]) -> None:
    """Wait until something has come, and nothing more comes."""
    await until(count)
    seen = 0
    while seen < count():
        seen = count()
        await asyncio.sleep(QUIET_SECONDS)


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
            stderr=sys.stderr,
        )
        try:
            await until(lambda: slack.courier.sockets > 0)  # Slack comes last
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def rehearse(models: ModelServer) -> None:
    """Let everybody do their part in the next run, each at its own pace."""
    for member, pace in PACE.items():
        models.script(member, *(Turn(latency=seconds) for seconds in pace))
    models.script(scenario.CHAIRMAN, Turn(latency=3.0))
