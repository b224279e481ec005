"""On Discord, people, roles, channels and emoji have their names in a question."""

import asyncio
from types import SimpleNamespace
from typing import cast

import discord
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.discord.incoming import MOST_NAMES, Names
from bot.service.commands import ACTION
from council.document.conversation import UserMessage
from tests.bot.discord.office import Office
from tests.bot.shown import text
from tests.council.scripted import FOUR
from tests.discord_server import Permission, User

FIRST = f"stage1.1:{FOUR[0]}"
MEMBER = "GET /guilds/{guild_id}/members/{user_id}"


HOSTILE_NAMES = [
    *("everyone", "here", "<@1>", "<@&1>", "||b||", "# h", "**Bo** _b_", "`rm -rf`"),
    *("[x](https://evil.example)", "<t:1:R>", "~~x~~"),
]


async def questions(team: Office) -> list[str]:
    """Return what was asked, in any order."""
    found = [await team.library.store.load(one) for one in await team.documents()]
    return [each.content for one in found for each in one.messages if isinstance(each, UserMessage)]


def bob_of(team: Office) -> User:
    """Return another member."""
    assert team.general.guild is not None
    return team.server.member(team.general.guild, "bob")


def about(team: Office, bob: User) -> str:
    """Return a question that mentions what can be mentioned."""
    server, guild = team.server, team.general.guild
    assert guild is not None
    oncall = server.role(guild, "oncall")
    launch, secret = server.channel(guild, "launch"), server.channel(guild, "layoffs")
    server.overwrite(secret, guild.roles[guild.id], deny=Permission.VIEW_CHANNEL)
    return f"Should <@{bob.id}> or <@&{oncall.id}> post <:ship:77> in <#{launch.id}> or <#{secret.id}>?"


SAID = "Should @Bob or @oncall post :ship: in #launch or a channel?"


class TestNames:
    """What a question mentions."""

    async def test_a_commands_names_reach_the_card_and_the_models(self, team: Office) -> None:
        """Looked up, as Discord sends none with a command's text; a hidden channel's isn't told."""
        card = await team.asked(about(team, bob_of(team)))
        assert f"**Ada asked**: {SAID}" in card.text
        assert "<@" not in card.text
        assert SAID in team.council.prompt(FIRST)
        assert len(team.server.requests(MEMBER)) == 1

    async def test_a_mentions_names_come_with_it(self, team: Office) -> None:
        """Nobody is asked for them."""
        await team.mentioned(team.general, about(team, bob_of(team)))
        assert await questions(team) == [SAID]
        assert team.server.requests(MEMBER) == []

    async def test_the_action_on_a_message_has_them_too(self, team: Office) -> None:
        """As they come with the message."""
        message = team.server.say(team.general, team.ada, about(team, bob_of(team)))
        await team.card(team.server.menu(ACTION, message, team.ada))
        await team.dispatcher.tasks.settled()
        assert await questions(team) == [SAID]

    async def test_names_that_look_like_markup_stay_names(self, team: Office) -> None:
        """They ping nobody, link nowhere and have no style, wherever the question is shown."""
        assert team.general.guild is not None
        people = [team.server.member(team.general.guild, name) for name in HOSTILE_NAMES]
        await team.mentioned(team.general, " ".join(f"<@{each.id}>" for each in people))
        await team.dispatcher.tasks.settled()
        [said] = await questions(team)
        assert said == " ".join(f"@{name.title()}" for name in HOSTILE_NAMES)
        assert said in team.council.prompt(FIRST)
        card, *_ = team.server.messages(team.general, by_bot=True)
        assert text(card.text).startswith(f"Ada asked: {said}")
        assert {(ping.kind, ping.id) for ping in team.server.pings()} == {("user", team.ada.id)}

    async def test_who_cannot_be_looked_up_is_a_colleague(self, team: Office) -> None:
        """Somebody who has left, or more people than are asked for."""
        await team.asked(f"Ask <@{1 << 60}> and <@!{1 << 61}>?")
        assert await questions(team) == ["Ask a colleague and a colleague?"]
        people = " ".join(f"<@{(1 << 60) + number}>" for number in range(MOST_NAMES + 3))
        before = len(team.server.requests(MEMBER))
        await team.asked(people)
        assert len(team.server.requests(MEMBER)) == before + MOST_NAMES

    async def test_a_slow_look_up_stops_no_question(
        self, team: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Discord waits three seconds."""
        monkeypatch.setattr("bot.discord.incoming.NAME_SECONDS", 0.02)

        async def hangs(*_: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(discord.Guild, "fetch_member", hangs)
        await team.asked(f"Is <@{bob_of(team).id}> right?")
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
