"""A channel of 10,000 conversations is forgotten: every message of the bot goes, within the platforms' limits."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from bot.app import Library
from council.document.conversation import Source
from storage.database import Statement
from storage.scope import Scope
from tests.bot.discord.office import office
from tests.bot.slack.test_bot import Place, at_work, restarted
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer
from tests.slack_server.rules import TIERS

pytestmark = pytest.mark.soak

CONVERSATIONS = 10_000
PARTS = 2
_RUN = """
INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at, delivery)
VALUES (?, ?, ?, ?, '{}', 'answered', '2026-01-20T10:30:00Z', 'shown')
"""
_POST = "INSERT INTO posts (run_id, key, digest, message, posted_at) VALUES (?, ?, '', ?, '2026-01-20')"


async def keep(library: Library, shown: Iterable[tuple[Source, Sequence[str]]]) -> None:
    """Keep runs that have been shown: where, and as which messages below the card."""
    statements: list[Statement] = []
    for origin, parts in shown:
        run, origin_text = str(uuid.uuid4()), json.dumps(origin.dump())
        statements.append((_RUN, (run, run, str(uuid.uuid4()), origin_text)))
        statements += [(_POST, (run, f"part.{number}", part)) for number, part in enumerate(parts)]
    await library.database.write(*statements)


async def forget(library: Library, here: Scope) -> tuple[str, float]:
    """Forget a channel; return the list of its messages, and the seconds that took."""
    selection = await library.forgetting.select.channel(here)
    began = time.perf_counter()
    await library.forgetting.forget(selection, by="admin")
    return selection.id, time.perf_counter() - began


def there(place: Place) -> int:
    """Count the bot's messages in the channel and its threads."""
    messages = place.general.messages.values()
    return sum(bool(message.bot_id) and message.deleted_at is None for message in messages)


async def test_on_slack(tmp_path: Path) -> None:
    """At most 50 calls a minute, none refused, and a start that goes on where the last one ended."""
    async with at_work(tmp_path) as place:
        board, team, general = place.slack.api.board, place.slack.team, place.general
        shown: list[tuple[Source, Sequence[str]]] = []
        for _ in range(CONVERSATIONS):
            card = board.post(team, general, {"text": "card", "blocks": None}, None).ts
            parts = [
                board.post(team, general, {"text": "part", "blocks": None}, card).ts
                for _ in range(PARTS)
            ]
            origin = Source(
                platform="slack", workspace=team.id, channel=general.id, message=card, thread=card
            )
            shown.append((origin, parts))
        await keep(place.library, shown)
        first = there(place)
        assert first == CONVERSATIONS * (1 + PARTS)
        place.slack.enforce_rate_limits()
        began = place.clock()
        forgetting, seconds = await forget(place.library, Scope("slack", team.id, general.id))
        left = await place.dispatcher.retracted("slack", forgetting)
        assert left
        assert left.waiting > first / 2
        while there(place) > first * 0.9:
            await place.dispatcher.retracted("slack", forgetting)
        async with restarted(place) as again:
            while (await again.work.settled("slack", forgetting, 60)).waiting:
                pass
        calls = place.slack.calls("chat.delete")
        assert there(place) == 0
        assert {call.status for call in calls} == {200}
        assert place.slack.busiest_minute("chat.delete") <= TIERS[3]
        assert len(calls) <= first + 1
        hours = (place.clock() - began) / 3600
        print(f"Slack: {first:,} messages listed in {seconds:.1f} s, deleted in {hours:.1f} h")  # noqa: T201 - what the test is for, read with -s


async def test_on_discord(tmp_path: Path) -> None:
    """One request for each message, whose threads lose their names."""
    async with DiscordServer() as server, office(server, tmp_path, ScriptedCouncil()) as team:
        guild = team.general.guild
        assert guild is not None
        shown: list[tuple[Source, Sequence[str]]] = []
        cards = [server.say(team.general, server.bot, "card") for _ in range(CONVERSATIONS)]
        for card in cards:
            thread = server.thread(team.general, "Shard?", server.bot, on=card)
            part = server.say(thread, server.bot, "part")
            origin = Source(
                platform="discord",
                workspace=str(guild.id),
                channel=str(team.general.id),
                message=str(card.id),
                thread=str(card.id),
            )
            shown.append((origin, [str(part.id)]))
        await keep(team.library, shown)
        here = Scope("discord", str(guild.id), str(team.general.id))
        async with team.bot():
            began = time.perf_counter()
            forgetting, seconds = await forget(team.library, here)
            while (await team.dispatcher.work.settled("discord", forgetting, 60)).waiting:
                pass
            took = time.perf_counter() - began
        assert server.messages(team.general, by_bot=True) == []
        route = "DELETE /channels/{channel_id}/messages/{message_id}"
        paths = Counter(each.path for each in server.requests(route))
        assert max(paths.values()) == 1
        assert len(paths) == 2 * CONVERSATIONS
        names = {card.thread.name for card in cards if card.thread}
        assert names == {"Deleted"}
        print(f"Discord: {len(paths):,} messages listed in {seconds:.1f} s, deleted in {took:.0f} s")  # noqa: T201 - what the test is for, read with -s


async def test_within_discords_limits(tmp_path: Path) -> None:
    """As many a second as Discord takes, and none that it refuses."""
    async with DiscordServer() as server, office(server, tmp_path, ScriptedCouncil()) as team:
        guild = team.general.guild
        assert guild is not None
        cards = [server.say(team.general, server.bot, "card") for _ in range(60)]
        origins = [
            Source(
                platform="discord",
                workspace=str(guild.id),
                channel=str(team.general.id),
                message=str(card.id),
            )
            for card in cards
        ]
        await keep(team.library, [(origin, []) for origin in origins])
        async with team.bot():
            server.enforce_rate_limits()
            here = Scope("discord", str(guild.id), str(team.general.id))
            forgetting, _ = await forget(team.library, here)
            while (await team.dispatcher.work.settled("discord", forgetting, 60)).waiting:
                pass
        route = "DELETE /channels/{channel_id}/messages/{message_id}"
        assert {each.status for each in server.requests(route)} == {204}
