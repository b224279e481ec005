"""What the whole program logs while people ask: no question, answer, option, file name or secret.

Real clients against fake platforms and a provider that quotes what it was asked; much goes wrong.
"""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.discord_server import DiscordServer
from tests.launcher import start
from tests.model_server import Exchange, Json, ModelServer, Turn, begun, council_member
from tests.slack_server import SlackServer
from tests.test_team_chat import servers, until

KEY = "sk-or-v1-5ecre7-0123456789abcdef"
MARKS = ("Markquestion", "Markanswer", "Markoption", "Markfile", "Markcontent", "Marksearch", "Markname")
QUESTION, ANSWER, OPTION, FILE, CONTENT, SEARCH, NAME = MARKS
PROGRAM = """
import logging, os
from bot import cli
from bot.config import logs
from tests.crashes.inside import hurry
configure, level = logs.configure, getattr(logging, os.environ["LEVEL"])
def verbosely(**given):
    configure(**{**given, "level": level})
    logging.getLogger().setLevel(level)
logs.configure = verbosely
hurry()
cli.main()
"""
"""`council`, logging at another level; the libraries too."""


@asynccontextmanager
async def logging_at(
    level: str, folder: Path, discord: DiscordServer, slack: SlackServer, models: ModelServer
) -> AsyncGenerator[list[str]]:
    """Serve both platforms; the list contains what was logged once all is over."""
    environment = {
        "PATH": os.environ["PATH"],
        "OPENROUTER_BASE_URL": models.base_url,
        "OPENROUTER_API_KEY": KEY,
        "COUNCIL_MEMBERS": "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok",
        "COUNCIL_TITLE_MODEL": "openai/gpt-5",
        "COUNCIL_DATA_DIR": str(folder / "data"),
        "DISCORD_TOKEN": discord.world.token,
        "DISCORD_API_BASE_URL": discord.url,
        "SLACK_BOT_TOKEN": slack.token,
        "SLACK_APP_TOKEN": slack.app_token,
        "SLACK_API_URL": slack.api_url,
        "LEVEL": level,
    } | {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    log: list[str] = []
    with (folder / "log").open("wb") as written:
        process = await start(
            "run", cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=written, code=PROGRAM
        )
    try:
        await until(lambda: slack.courier.sockets > 0)
        yield log
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
        log += (folder / "log").read_text().splitlines()


def answer(request: Json) -> str:
    """Answer as a member does, in marked words."""
    return begun(council_member(request), f"{ANSWER} ")


def quoting(exchange: Exchange) -> Turn:
    """Refuse, as providers do that quote what they refuse."""
    return Turn(status=403, body={"error": {"code": 403, "message": f"No: {exchange.prompt}"}})


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_nobodys_words_and_no_secret_are_logged(tmp_path: Path, level: str) -> None:
    """Above DEBUG; at DEBUG no secret is, whatever the libraries log."""
    async with servers() as (discord, slack, _), ModelServer(answer) as models:
        models.always("x-ai/grok", quoting)
        models.script("google/gemini", Turn(body=f"HTTP/1.1 {ANSWER}".encode()))
        guild = discord.guild("Team")
        general, ada = discord.channel(guild, "general"), discord.member(guild, NAME)
        bob = slack.add_user(f"bob-{NAME}")
        room = slack.add_channel("room", bob)
        async with logging_at(level, tmp_path, discord, slack, models) as log:
            file = discord.upload(f"{FILE}.md", CONTENT.encode())
            # The first message into the thread is refused, in words that quote it.
            said = f"Invalid: {ANSWER}"
            discord.fail("POST /channels/{channel_id}/messages", 400, code=50035, message=said)
            discord.slash(general, ada, "council", question=QUESTION, attachment=file)
            # What is told alone gets lost: a wrong option, a wrong flag, a wrong word.
            discord.fail("POST /interactions/{interaction_id}/{token}/callback", 404, code=10062)
            discord.slash(general, ada, "council", question=QUESTION, profile=OPTION)
            discord.mention(general, ada, f"--{OPTION} {QUESTION}")
            discord.slash(general, ada, "council-search", words=SEARCH)
            slack.fail("response_url", status=500, times=9)
            await slack.slash(room, bob, "/council", f"--{OPTION.lower()} {QUESTION}")
            await slack.slash(room, bob, "/council", f"{QUESTION}?")
            await slack.slash(room, bob, "/council-search", SEARCH)
            files = [
                slack.add_file(f"{FILE}.md", CONTENT.encode(), bob),
                slack.add_file(FILE, b"\0", bob),
            ]
            files[0].content = (CONTENT * 2).encode()
            await slack.direct_message(bob, QUESTION, files=files)
            await until(lambda: len(documents(tmp_path)) == 3)
            await until(lambda: bool(discord.pings()))
    text = "\n".join(log)
    secrets = (KEY, discord.world.token, slack.token, slack.app_token)
    assert [secret for secret in secrets if secret in text] == []
    assert "call_failed" in text
    if level == "DEBUG":
        assert QUESTION in text  # so they would be found
        log = [line for line in log if '"level": "debug"' not in line]
        text = "\n".join(log)
    assert [line for line in log if any(mark.lower() in line.lower() for mark in MARKS)] == []
    assert "not_told" in text or "interaction_over" in text
    assert "person_not_told" in text


def documents(folder: Path) -> list[Path]:
    return [*(folder / "data" / "conversations").glob("*.json")]
