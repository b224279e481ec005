"""How high the thread below a card is, in pictures of what the real clients posted."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route

from council.calls import Call
from pictures.render import Platform, missing, render
from tests.bot.discord.office import office
from tests.bot.slack.test_bot import at_work
from tests.council.scripted import FOUR, Script, ScriptedCouncil, labels_in
from tests.discord_server import DiscordServer
from tests.discord_server import wire as discord_wire

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(bool(missing()), reason=f"pictures: {missing()}"),
]

THREAD, CHANGE = 3350, 300
"""The most CSS pixels of a thread (2,600 is the aim), and above the end of the first change, 720 pixels wide."""
LENGTH = 4000
SENTENCES = (
    "Move the nightly batch jobs one team at a time, and keep cron for the jobs that nobody has touched.",
    "A worker that dies in the middle of a step resumes at the last completed activity.",
    "The price is one more stateful service: somebody has to own its database, its upgrades, its alarms.",
    "Measure how many runs failed silently in the last quarter before you decide; otherwise it is taste.",
    "Retries with exponential back-off cover most of what breaks today, in forty lines of shell.",
    "Keep the job's parameters in one place, and let the scheduler refuse to start a job without an owner.",
    "Rehearse the rollback: a job must be able to run from cron again within ten minutes.",
)
CODE = "```python\nfor job in jobs:\n    if job.failed():\n        retry(job, attempts=3)\n```"
CHANGES = (
    ("one team at a time", "two teams at a time, the reporting team first"),
    ("forty lines of shell", "sixty lines of Python with tests"),
    ("attempts=3", "attempts=5, backoff=2.0"),
)
OBJECTIONS = (
    (
        "It never says who owns the new service at night, and a scheduler without an owner fails in exactly "
        "the way that cron fails today, only with a larger blast radius and a database that nobody knows."
    ),
    (
        "The claim that no report is ever sent twice is wrong: an activity that has sent the mail and dies "
        "before it completes is run again, so that the sending itself has to be idempotent, too."
    ),
    (
        "It gives no number for the cost of running the service for a year, although the question asks for a "
        "decision between two options whose main difference is what they cost."
    ),
)


def response(number: int, *, corrected: bool = False) -> str:
    """Return an answer of 4,000 characters with a list and code, before or after its correction."""
    parts = [f"**Recommendation {number + 1}: move in steps.**"]
    at = number
    while len("\n\n".join(parts)) < LENGTH:
        parts.append(" ".join(SENTENCES[(at + each) % len(SENTENCES)] for each in range(3)))
        at += 3
        if len(parts) == 4:
            parts += [CODE, "- First, list the owners.\n- Then move what pages most."]
    text = "\n\n".join(parts)
    for before, after in CHANGES if corrected else ():
        text = text.replace(before, after)
    return text


def ballot(call: Call) -> str:
    """Review what the prompt shows: three long objections to each answer."""
    labels = labels_in(call)
    grades = ("high", "medium", "low")
    reviews = [
        {
            "label": label,
            "strengths": ["It has clear steps."],
            "critiques": [
                {"text": OBJECTIONS[(place + each) % 3], "severity": grade}
                for each, grade in enumerate(grades)
            ],
        }
        for place, label in enumerate(labels)
    ]
    return json.dumps({"reviews": reviews, "ranking": labels})


def council() -> ScriptedCouncil:
    """Return a council whose members write at length."""
    script: dict[str, Script] = {"stage2": ballot}
    for number, member in enumerate(FOUR):
        script[f"stage1.1:{member}"] = response(number)
        script[f"stage2_5.1:{member}"] = response(number, corrected=True)
    return ScriptedCouncil(script=script)


def height(
    platform: Platform,
    messages: Sequence[Mapping[str, Any]],
    folder: Path,
    names: Mapping[str, str] | None = None,
) -> float:
    """Draw messages; return how high the picture is, in CSS pixels."""
    picture = folder / "drawn.png"
    render(platform, messages, picture, width=720, names=names)
    return struct.unpack(">II", picture.read_bytes()[16:24])[1] / 2


async def test_on_discord(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Five messages; the first embed of the changes begins with one."""
    monkeypatch.setattr(Route, "BASE", Route.BASE)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", DiscordWebSocket.DEFAULT_GATEWAY)
    monkeypatch.setattr("discord.shard.DiscordWebSocket", DiscordWebSocket)
    async with DiscordServer() as server, office(server, tmp_path, council()) as team, team.bot():
        card = await team.asked()
        assert card.thread is not None
        posted = [each for each in server.messages(card.thread, by_bot=True) if each.now.embeds]
        best = next(each for each in posted if each.buttons)
        [press] = [part["custom_id"] for part in best.buttons]
        shown = (await server.click(best, press, team.ada).acknowledged()).message
        assert shown is not None
        whole = discord_wire.message(shown, server.world)
    digest = [discord_wire.message(each, server.world) for each in posted]
    found = height("discord", digest, tmp_path)
    text = whole["embeds"][0]["description"]
    until_change = text[: text.index("~~", text.index("~~") + 2) + 2]
    first = whole | {"embeds": [{**whole["embeds"][0], "description": until_change}], "components": []}
    change = height("discord", [first], tmp_path)
    print(f"Discord: thread {found:.0f} px, first change {change:.0f} px")  # noqa: T201 - what the test is for, read with -s
    assert len(digest) == 5
    assert found <= THREAD
    assert change <= CHANGE


async def test_on_slack(tmp_path: Path) -> None:
    """The same five messages."""
    async with at_work(tmp_path, council()) as place:
        card = await place.ask()
        posted = [each for each in place.slack.thread(place.general, card.ts) if each.blocks]
        names = {place.slack.team.bot.id: "Council"}
        best = next(each for each in posted if '"Open"' in str(each.blocks).replace("'", '"'))
        [press] = [
            element["action_id"] for element, _ in best.elements() if element["text"]["text"] == "Open"
        ]
        await place.slack.click(best, press, place.ada)
        await place.dispatcher.tasks.settled()
        told = place.slack.ephemerals(place.general, place.ada)[0]
    found = height("slack", [each.wire() for each in posted], tmp_path, names)
    at = next(number for number, block in enumerate(told.blocks) if "~~" in str(block))
    text = told.blocks[at]["text"]
    until_change = {**told.blocks[at], "text": text[: text.index("~~", text.index("~~") + 2) + 2]}
    first = {"user": place.slack.team.bot.id, "bot_id": "B1", "ts": told.ts, "text": "x"}
    change = height("slack", [first | {"blocks": [*told.blocks[:at], until_change]}], tmp_path, names)
    print(f"Slack: thread {found:.0f} px, first change {change:.0f} px")  # noqa: T201 - what the test is for, read with -s
    assert len(posted) == 5
    assert found <= THREAD
    assert change <= CHANGE
