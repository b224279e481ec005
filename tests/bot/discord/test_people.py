"""On Discord, people, roles, channels and emoji have their names in a question."""

import asyncio
from types import SimpleNamespace
from typing import cast

import discord
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.discord.incoming import MOST_NAMES, Names
from council.document.conversation import UserMessage
from tests.bot.discord.office import Office

MEMBER = "GET /guilds/{guild_id}/members/{user_id}"


async def questions(team: Office) -> list[str]:
    """Return what was asked, in any order."""
    found = [await team.library.store.load(one) for one in await team.documents()]
    return [each.content for one in found for each in one.messages if isinstance(each, UserMessage)]


async def test_a_mentions_names_come_with_it(team: Office) -> None:
    """Nobody is asked for them; a command's are looked up, as Discord sends none with its text."""
    assert team.general.guild is not None
    bob = team.server.member(team.general.guild, "bob")
    await team.mentioned(team.general, f"Is {bob.mention} right?")
    assert team.server.requests(MEMBER) == []
    await team.asked(f"Is {bob.mention} right <:ship:77>?")
    assert {*await questions(team)} == {"Is @Bob right?", "Is @Bob right :ship:?"}
    assert len(team.server.requests(MEMBER)) == 1


async def test_who_cannot_be_looked_up_is_a_colleague(team: Office) -> None:
    """Somebody who has left, or more people than are asked for."""
    await team.asked(f"Ask <@{1 << 60}> and <@!{1 << 61}>?")
    assert await questions(team) == ["Ask a colleague and a colleague?"]
    people = " ".join(f"<@{(1 << 60) + number}>" for number in range(MOST_NAMES + 3))
    before = len(team.server.requests(MEMBER))
    await team.asked(people)
    assert len(team.server.requests(MEMBER)) == before + MOST_NAMES


async def test_a_slow_look_up_stops_no_question(team: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord waits three seconds."""
    monkeypatch.setattr("bot.discord.incoming.NAME_SECONDS", 0.02)

    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(discord.Guild, "fetch_member", hangs)
    assert team.general.guild is not None
    bob = team.server.member(team.general.guild, "bob")
    await team.asked(f"Is <@{bob.id}> right?")
    assert await questions(team) == ["Is a colleague right?"]


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("<@1> and <@!1>", "and"),
        ("<@2>, <@3>", "@Bob B., a colleague"),
        ("<@&9> <#9> </council:5> <:a_b:6>", "a group a channel /council :a_b:"),
        ("<t:1764494100:R> <https://x.example> a < b > c <@x>", "<t:1764494100:R> <https://x.example> a < b > c <@x>"),
    ],
)  # fmt: skip
def test_a_text_is_read_without_a_server(typed: str, read: str) -> None:
    """In direct messages."""
    assert names().plain(typed) == read


@given(st.text("<>@!&#:/a12 ", max_size=40))
def test_no_id_of_a_mention_is_left(text: str) -> None:
    """Whatever somebody types around it."""
    assert "<@7>" not in names().plain(f"{text}<@7>{text}")


def names() -> Names:
    """Return names of a place without a server; the bot is 1."""
    unknown: dict[int, discord.User] = {}
    client = SimpleNamespace(user=SimpleNamespace(id=1), get_user=unknown.get)
    return Names(cast("discord.Client", client), None, {2: "Bob  B.\n"})
