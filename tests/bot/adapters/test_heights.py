"""How high a card and the thread below it are, in pictures of what the real clients posted."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.service.channels import Operator
from council.calls import Call
from pictures.render import missing, render
from tests.bot.adapters.discord_team import DiscordTeam
from tests.bot.adapters.slack_team import SlackTeam
from tests.bot.adapters.talks import TALKS
from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import FOUR, Script, failure, labels_in, profile
from tests.council.worth.test_depth import AGREED
from tests.discord_server import wire as discord_wire

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(missing()), reason=f"pictures: {missing()}")]

CARD, THREAD, CHANGE = 1500, 2600, 310
"""The most CSS pixels, 720 wide: of a card, of a thread, and above the end of the first change."""
ROWS = {
    "a first question": (THREAD, 5),
    "a follow-up": (900, 1),
    "quick": (150, 1),
    "auto, skipped": (150, 1),
    "a thread of people's": (900, 1),
    "one member failed": (THREAD, 4),
    "a long answer": (THREAD, 5),
}
"""How high what is below a card is at most, without a long answer's continuation, in how many messages."""
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


def script() -> dict[str, Script]:
    """Return what members say who write at length."""
    said: dict[str, Script] = {"stage2": ballot, "judge": AGREED}
    for number, member in enumerate(FOUR):
        said[f"stage1.1:{member}"] = response(number)
        said[f"stage2_5.1:{member}"] = response(number, corrected=True)
    return said


def wired(team: AnyTeam, messages: Sequence[Any]) -> list[dict[str, Any]]:
    if isinstance(team, DiscordTeam):
        drawn = [discord_wire.message(each, team.server.world) for each in messages]
        used = {"type": 2, "name": "council"}
        return [
            each | {"interaction": each["interaction_metadata"] | used}
            if "interaction_metadata" in each
            else each
            for each in drawn
        ]
    assert isinstance(team, SlackTeam)
    bot = team.place.slack.team.bot.id
    shown = {"user": bot, "bot_id": "B1"}
    return [
        each.wire()
        if hasattr(each, "wire")
        else shown | {"ts": each.ts, "text": "x", "blocks": each.blocks}
        for each in messages
    ]


def height(team: AnyTeam, messages: Sequence[dict[str, Any]], picture: Path) -> float:
    """Draw messages; return how high the picture is, in CSS pixels."""
    names = {team.place.slack.team.bot.id: "Council"} if isinstance(team, SlackTeam) else None
    platform = "slack" if isinstance(team, SlackTeam) else "discord"
    render(platform, messages, picture, width=720, names=names)
    return struct.unpack(">II", picture.read_bytes()[16:24])[1] / 2


async def asked(team: AnyTeam, row: str) -> tuple[Any, list[Any]]:
    """Ask in this way; return the card, and the messages that belong to it below."""
    team.council.script |= script()
    match row:
        case "quick" | "auto, skipped":
            seats = profile(judge_model="judge/model", depth_audit=0.0, depth=row.partition(",")[0])
            team.dispatcher.reconfigure(Operator(profiles={"default": seats}))
        case "one member failed":
            team.council.script[f"stage1.1:{FOUR[2]}"] = failure()
        case "a long answer":
            team.council.script["stage3"] = "\n\n".join(map(response, range(3)))
        case "a thread of people's":
            talks = TALKS[team.platform](team)
            thread = talks.discuss(3)
            card = await talks.ask_in(thread, "What now?", team.ada)
            at = talks.messages_in(thread).index(card)
            return card, talks.messages_in(thread)[at + 1 :]
        case _:
            pass
    card = await team.ask()
    below = team.said_below(card)
    if row == "a follow-up":
        await team.said(team.send(await team.open(card, "Follow up", team.ada), text="And in a year?"))
        [card] = team.below(card)
        [first] = team.cards()
        below = [each for each in team.said_below(first) if each not in (*below, card)]
    return card, below


@pytest.mark.parametrize("row", ROWS)
async def test_a_card_and_its_thread_are_low(team: AnyTeam, row: str, tmp_path: Path) -> None:
    """In few messages: what a first question has more is one of each member."""
    card, below = await asked(team, row)
    most, messages = ROWS[row]
    posted = [each for each in wired(team, below) if any(map(each.get, ("embeds", "content", "text")))]
    continued = 0 if row != "a long answer" else len(posted) - messages
    name = f"{team.platform}-{row.replace(' ', '-')}".replace(",", "").replace("'", "")
    of_card = height(team, wired(team, [card]), tmp_path / f"{name}-card.png")
    of_thread = height(team, posted[continued:], tmp_path / f"{name}-thread.png")
    print(f"{team.platform}, {row}: card {of_card:.0f} px, below {of_thread:.0f} px in {len(posted)}")  # noqa: T201 - read with -s
    assert len(posted) - continued == messages
    assert of_card <= CARD
    assert of_thread <= most


async def test_what_open_shows_begins_with_a_change(team: AnyTeam, tmp_path: Path) -> None:
    """Nothing long is above the first."""
    _, below = await asked(team, "a first question")
    [whole] = wired(team, [await team.look(next(m for m in below if "Open" in team.labels(m)), "Open")])
    if team.platform == "discord":
        text = whole["embeds"][0]["description"]
        until = text[: text.index("~~", text.index("~~") + 2) + 2]
        first = whole | {"embeds": [{**whole["embeds"][0], "description": until}], "components": []}
    else:
        at = next(number for number, block in enumerate(whole["blocks"]) if "~~" in str(block))
        text = whole["blocks"][at]["text"]
        until = {**whole["blocks"][at], "text": text[: text.index("~~", text.index("~~") + 2) + 2]}
        first = whole | {"blocks": [*whole["blocks"][:at], until]}
    change = height(team, [first], tmp_path / "change.png")
    assert change <= CHANGE
