"""Discord once more, under simcord: a simulator nobody here wrote, so it shares none of our mistakes.

It replaces discord.py's transport: commands, clicks, threads, permissions and limits are its own.
It connects nothing and ignores nonces; `test_bot` covers those. It opens forms and takes them,
each once.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import discord
import pytest
from simcord import ChannelHandle, Env, GuildHandle, InteractionResult, MemberActor, ResponseMessage

from bot.discord.bot import DiscordBot
from bot.discord.commands import register
from bot.past.lookup import Lookup
from bot.service.dispatcher import Dispatcher
from council.document.conversation import Message, UserMessage
from tests.bot.discord.office import impatient
from tests.bot.service.test_dispatcher import Office, office
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR, ScriptedCouncil

QUESTION = "Shard or scale up?"
ANSWER = "The council's answer, written by chair/man."
LONGEST_CONTENT, LONGEST_EMBED, LONGEST_DESCRIPTION = 2000, 6000, 4096
NUMBERS = [f"word-{number:04}" for number in range(500)]
LONG_ANSWER = "\n\n".join(" ".join(NUMBERS[start : start + 20]) for start in range(0, 500, 20))
"""About 5,000 characters, each word different."""


@dataclass
class Team:
    """A simulated guild with one member, and the bot."""

    env: Env
    guild: GuildHandle
    ada: MemberActor

    async def ask(self, channel: ChannelHandle) -> None:
        """Ask by command; comes back when the bot has nothing left to do."""
        asked = await self.ada.slash(channel, "council", question=QUESTION)
        assert asked.acknowledged
        assert not asked.ephemeral

    def pinged(self, *channels: ChannelHandle) -> list[int]:
        """Return whom messages there notify; `discord.Message` tells only whom they name."""
        sent = self.env.backend.messages
        return [
            user
            for each in channels
            for message in sent[each.id].values()
            for user in message.ping_user_ids
        ]


def client_of(dispatcher: Dispatcher) -> discord.AutoShardedClient:
    """Make a bot and give its client, to be connected by simcord; entering the bot would do it for real."""
    bot = DiscordBot(
        dispatcher,
        cast("Lookup", None),
        token="simulated",  # noqa: S106 - not a secret
        outbox=impatient(),
        edit_seconds=0.0,
        settle_seconds=0.001,
    )
    client, tree = bot._client, bot._tree  # pyright: ignore[reportPrivateUsage] - the bot offers no other transport
    vars(client)["tree"] = tree  # where simcord looks for the commands
    return client


@asynccontextmanager
async def team(dispatcher: Dispatcher) -> AsyncGenerator[Team]:
    """Put the bot into a guild; what it raises unhandled fails the test."""
    client = client_of(dispatcher)
    env = Env(client, shard_count=1)
    await env.start()
    try:
        await register(vars(client)["tree"])  # entering the bot would do it
        guild = env.create_guild()
        yield Team(env, guild, guild.add_member(env.create_user("ada")))
    finally:
        await env.shutdown()
    env.raise_errors()


def posted(channel: ChannelHandle) -> list[discord.Message]:
    """Return a channel's messages without the notice of a new thread, which is the simulator's own."""
    notice = discord.MessageType.thread_created
    return [message for message in channel.history() if message.type is not notice]


def description(card: discord.Message) -> str:
    [embed] = card.embeds
    return embed.description or ""


def text(message: discord.Message | ResponseMessage) -> str:
    """Return all that a message says: its content and its embeds."""
    embedded = (part or "" for embed in message.embeds for part in (embed.title, embed.description))
    return "\n".join(filter(None, (message.content, *embedded)))


def labels(card: discord.Message) -> list[str | None]:
    rows = [row for row in card.components if isinstance(row, discord.ActionRow)]
    return [
        button.label for row in rows for button in row.children if isinstance(button, discord.Button)
    ]


async def test_a_question_becomes_card_thread_answer_and_one_mention(tmp_path: Path) -> None:
    """The channel gets the card alone; the thread a digest, and the asker one ping."""
    async with office(tmp_path, ScriptedCouncil()) as place, team(place.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        await here.ask(general)
        [card], [thread] = posted(general), general.threads
        assert ANSWER in description(card)
        assert labels(card) == FINISHED
        assert thread.name == QUESTION
        assert thread.id == card.id
        digest = {text(message): message for message in thread.history()}
        [ranking] = [said for said in digest if said.startswith("## Ranking\n")]
        assert labels(digest[ranking]) == []
        for name in FOUR:
            [member] = [said for said in digest if said.startswith(f"## {name.rpartition('/')[2]}\n")]
            assert "A better and much longer answer" in member
            assert labels(digest[member]) == ["Open"]
            assert {embed.colour for embed in digest[member].embeds} == {None}
        assert card.embeds[0].colour == discord.Colour.green()
        assert [len(message.attachments) for message in digest.values()] == [0] * (len(FOUR) + 1)
        [told] = [said for said in digest if here.ada.mention in said]
        assert f"{here.ada.mention} The council has answered." in told
        assert here.pinged(general, thread) == [here.ada.id]


async def test_nothing_of_a_long_answer_is_lost_or_refused(tmp_path: Path) -> None:
    """It is cut on the card and whole in the thread, each message within Discord's limits."""
    council = ScriptedCouncil(script={"stage3": LONG_ANSWER})
    async with office(tmp_path, council) as place, team(place.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        await here.ask(general)
        [card], [thread] = posted(general), general.threads
        parts = [part for part in thread.history() if not part.attachments]
        assert all(len(part.content) <= LONGEST_CONTENT for part in parts)
        assert all(sum(map(len, part.embeds)) <= LONGEST_EMBED for part in parts)
        assert len(description(card)) <= LONGEST_DESCRIPTION
        assert all(len(embed) <= LONGEST_EMBED for embed in card.embeds)
        words = " ".join(map(text, parts)).split()
        assert [word for word in words if word in set(NUMBERS)] == NUMBERS


async def opened(reader: MemberActor, card: discord.Message, label: str) -> InteractionResult:
    """Open the form behind a button."""
    form = await reader.click(card, label=label)
    assert form.modal
    return form


def alone(pressed: InteractionResult) -> str:
    """Return what was said to whoever pressed or sent something, which nobody else sees."""
    told = [each for each in (pressed.response, *pressed.followups) if each]
    assert all(each.ephemeral for each in told)
    return "\n".join(dict.fromkeys(map(text, told)))


async def sent(reader: MemberActor, form: InteractionResult, **values: str) -> str:
    """Send a form; return what its sender is told."""
    return alone(await reader.submit_modal(form, dict(values)))


async def messages(place: Office) -> list[Message]:
    [row] = await place.library.index.find_as_operator("")
    return [*(await place.library.store.load(row.id)).messages]


async def questions(place: Office) -> list[str]:
    """Return what was asked in the only conversation, in order."""
    return [each.content for each in await messages(place) if isinstance(each, UserMessage)]


def cards_below(thread: ChannelHandle) -> list[discord.Message]:
    """Return the cards of a thread's follow-ups."""
    return [message for message in thread.history() if "Follow up" in labels(message)]


@pytest.mark.soak
async def test_a_follow_up_is_answered_in_the_same_thread_and_conversation(tmp_path: Path) -> None:
    """Whoever asks it, with a button or a form of before a restart, and below a card of the thread."""
    async with office(tmp_path, ScriptedCouncil()) as before, team(before.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        eve = here.guild.add_member(here.env.create_user("eve"))
        await here.ask(general)
        [card], [thread] = posted(general), general.threads
        address = f"https://discord.com/channels/{here.guild.id}/{thread.id}"
        said = await sent(eve, await opened(eve, card, "Follow up"), text="And in a year?")
        assert said == f"Your follow-up was asked: {address}"
        old = await opened(here.ada, card, "Follow up")
        council = ScriptedCouncil()
        async with office(tmp_path, council) as after:
            await here.env.restart_bot(client_of(after.dispatcher))
            await sent(here.ada, old, text="And in ten?")
            assert ANSWER in council.prompt(f"stage1.1:{FOUR[0]}")
            await sent(eve, await opened(eve, card, "Follow up"), text="And then?")
            last = cards_below(thread)[-1]
            said = await sent(here.ada, await opened(here.ada, last, "Follow up"), text="And at last?")
            assert said == "Your follow-up was asked."
            asked = ["And in a year?", "And in ten?", "And then?", "And at last?"]
            assert await questions(after) == [QUESTION, *asked]
        shown = [text(each) for each in cards_below(thread)]
        assert [sum(question in each for question in asked) for each in shown] == [1] * len(asked)
        assert [each for each in posted(general) if each.id != card.id] == []
        assert [each.id for each in general.threads] == [thread.id]
