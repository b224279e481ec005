"""Discord once more, under simcord: a simulator nobody here wrote, so it shares none of our mistakes.

It replaces discord.py's transport: commands, clicks, threads, permissions and limits are its own.
It connects nothing and ignores nonces; `test_bot` covers those. It opens forms and takes them,
each once.
"""

from collections.abc import AsyncGenerator, Mapping
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
from council.document.conversation import AssistantMessage, Message, UserMessage
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

    def without(self, **permissions: bool) -> ChannelHandle:
        """Make a channel that denies the bot these permissions."""
        assert self.env.bot.user
        denied = discord.PermissionOverwrite(**permissions)
        return self.guild.create_text_channel("small", overwrites={self.env.bot.user: denied})

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
    """Return the text of a card."""
    [embed] = card.embeds
    return embed.description or ""


def text(message: discord.Message | ResponseMessage) -> str:
    """Return all that a message says: its content and its embeds."""
    embedded = (part or "" for embed in message.embeds for part in (embed.title, embed.description))
    return "\n".join(filter(None, (message.content, *embedded)))


def labels(card: discord.Message) -> list[str | None]:
    """Return the labels of a card's buttons."""
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


@pytest.mark.parametrize(
    ("denied", "reason"),
    [
        ({"create_public_threads": False}, "the bot lacks Create Public Threads."),
        ({"send_messages_in_threads": False}, "the bot lacks Send Messages in Threads."),
        # The bot doesn't check this one, so here the refusal is the simulator's.
        ({"read_message_history": False}, "the bot lacks "),
    ],
)
async def test_without_a_thread_the_parts_come_in_place(
    tmp_path: Path, denied: Mapping[str, bool], reason: str
) -> None:
    """The digest says why; the answer and the mention are the same."""
    async with office(tmp_path, ScriptedCouncil()) as place, team(place.dispatcher) as here:
        small = here.without(**denied)
        await here.ask(small)
        card, digest = posted(small)
        assert small.threads == []
        assert f"No thread here: {reason}" in text(digest)
        assert ANSWER in description(card)
        assert {*labels(digest)} == {f"Open {name.rpartition('/')[2]}" for name in FOUR}
        assert here.pinged(small) == [here.ada.id]


async def test_direct_messages_have_no_thread(tmp_path: Path) -> None:
    """The digest comes below the card there."""
    async with office(tmp_path, ScriptedCouncil()) as place, team(place.dispatcher) as here:
        await here.ada.user.slash("council", question=QUESTION)
        direct = here.ada.user.dm_channel
        card, digest = posted(direct)
        assert "No thread here: direct messages have no threads.\n" in text(digest)
        assert ANSWER in description(card)
        assert here.pinged(direct) == [here.ada.id]


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


async def test_the_buttons_of_before_a_restart_still_work(tmp_path: Path) -> None:
    """Another process, another client, another dispatcher over the same storage: the card is the same."""
    async with office(tmp_path, ScriptedCouncil()) as before, team(before.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        await here.ask(general)
        [card] = posted(general)
        async with office(tmp_path, ScriptedCouncil()) as after:
            await here.env.restart_bot(client_of(after.dispatcher))
            pressed = await here.ada.click(card, label="Transcript")
            assert pressed.response
            assert pressed.ephemeral
            page, markdown = pressed.response.attachments
            assert ANSWER in (await page.read()).decode()
            assert ANSWER in (await markdown.read()).decode()
            await here.ada.click(card, label="Ask again")
            assert [ANSWER in description(each) for each in posted(general)] == [True, True]
            assert len(general.threads) == 2


async def test_whoever_presses_open_sees_alone_what_the_thread_leaves_out(tmp_path: Path) -> None:
    """Somebody else than the asker, and before a restart as after it."""
    async with office(tmp_path, ScriptedCouncil()) as before, team(before.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        await here.ask(general)
        [thread] = general.threads
        eve = here.guild.add_member(here.env.create_user("eve"))
        message = next(message for message in thread.history() if "Open" in labels(message))
        first = await eve.click(message, label="Open")
        async with office(tmp_path, ScriptedCouncil()) as after:
            await here.env.restart_bot(client_of(after.dispatcher))
            again = await eve.click(message, label="Open")
        assert first.response
        assert again.response
        assert (first.ephemeral, again.ephemeral) == (True, True)
        name = text(message).partition("\n")[0].removeprefix("## ")
        assert text(first.response).startswith(f"{name}\n")
        assert "### Original response" in text(first.response)
        assert text(again.response) == text(first.response)
        assert here.pinged(general, thread) == [here.ada.id]


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
    """Return the messages of the only conversation."""
    [row] = await place.library.index.find_as_operator("")
    return [*(await place.library.store.load(row.id)).messages]


async def questions(place: Office) -> list[str]:
    """Return what was asked in the only conversation, in order."""
    return [each.content for each in await messages(place) if isinstance(each, UserMessage)]


async def votes(place: Office) -> dict[int, tuple[bool, str | None]]:
    """Return who voted how on the only answer."""
    [answer] = [each for each in await messages(place) if isinstance(each, AssistantMessage)]
    return {int(vote.voter): (vote.helpful, vote.reason) for vote in answer.votes}


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


@pytest.mark.parametrize("label", ["Follow up", "👍 Helpful", "👎 Not helpful"])
async def test_a_copied_card_does_nothing_in_another_channel(tmp_path: Path, label: str) -> None:
    """Nothing is asked or counted, and nothing is said of what is there."""
    async with office(tmp_path, ScriptedCouncil()) as place, team(place.dispatcher) as here:
        general = here.guild.create_text_channel("general")
        elsewhere = here.guild.create_text_channel("elsewhere")
        await here.ask(general)
        [card] = posted(general)
        client = here.env.bot
        channel = client.get_partial_messageable(elsewhere.id, guild_id=here.guild.id)
        await channel.send("look", view=discord.ui.View.from_message(card, timeout=None))
        [copy] = posted(elsewhere)
        mallory = here.guild.add_member(here.env.create_user("mallory"))
        pressed = await mallory.click(copy, label=label)
        assert pressed.modal is None
        assert alone(pressed) == "This run isn't on record here; it may have been deleted."
        assert await questions(place) == [QUESTION]
        assert await votes(place) == {}
