"""The fake Discord, proven with the real discord.py client in the same loop."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import discord
import pytest
import pytest_asyncio
import yarl
from discord import app_commands, ui
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.discord_server import Channel, DiscordServer, Guild, Impossible, Message, Permission, User
from tests.pairs import rows

NOBODY = discord.AllowedMentions.none()
QUIET = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


class Stop(ui.DynamicItem[ui.Button[Any]], template=r"stop:(?P<run>\w+)"):
    """A button that a restarted client still answers."""

    def __init__(self, run: str) -> None:
        super().__init__(ui.Button(label="Stop", custom_id=f"stop:{run}"))
        self.run = run

    @classmethod
    async def from_custom_id(
        cls, _: discord.Interaction, __: ui.Item[Any], match: re.Match[str]
    ) -> "Stop":
        """Read the run back out of the button."""
        return cls(match["run"])

    async def callback(self, interaction: discord.Interaction) -> None:
        """Report privately that the run stops."""
        await interaction.response.send_message(f"stopping {self.run}", ephemeral=True)


class Bot(discord.AutoShardedClient):
    """A small council: a command, a button, and a list of the messages that reach it."""

    def __init__(self, intents: discord.Intents = QUIET) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.001, max_messages=None)
        self.tree = app_commands.CommandTree(self)
        self.heard: list[discord.Message] = []
        self.interactions: list[discord.Interaction] = []
        self.add_dynamic_items(Stop)
        self.tree.command(name="council", description="Ask the council")(self.council)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Don't wait five seconds between two identifications."""

    async def on_message(self, message: discord.Message) -> None:
        """Keep what others write."""
        if message.author != self.user:
            self.heard.append(message)

    async def council(
        self, interaction: discord.Interaction, question: str, rounds: app_commands.Range[int, 1, 5] = 1
    ) -> None:
        assert rounds <= 5
        self.interactions.append(interaction)
        view = ui.View(timeout=None)
        view.add_item(Stop("r1"))
        await interaction.response.send_message(embed=discord.Embed(title=question), view=view)


@pytest_asyncio.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """A running fake that discord.py is pointed at."""
    async with DiscordServer() as running:
        running.world.patience = 60  # a busy machine fails no test
        monkeypatch.setattr(Route, "BASE", running.url)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(running.gateway.url))
        yield running


@pytest.fixture
def guild(server: DiscordServer) -> Guild:
    return server.guild("The team")


@pytest.fixture
def ada(server: DiscordServer, guild: Guild) -> User:
    return server.member(guild, "ada")


@pytest.fixture
def general(server: DiscordServer, guild: Guild) -> Channel:
    return server.channel(guild, "general")


@asynccontextmanager
async def running(bot: Bot, server: DiscordServer) -> AsyncGenerator[Bot]:
    """Run the client until the block ends, its commands synced."""
    task = asyncio.create_task(bot.start(server.world.token))
    try:
        waiting = asyncio.create_task(_ready(bot))
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            await task
        await bot.tree.sync()
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(task, return_exceptions=True)


async def _ready(bot: Bot) -> None:
    while not bot.is_ready():
        await asyncio.sleep(0.001)


@pytest_asyncio.fixture
async def bot(server: DiscordServer, general: Channel, ada: User) -> AsyncIterator[Bot]:
    """The client, connected and synced; guild, channel and member exist before it."""
    assert general.guild is not None
    assert ada.id in general.guild.members
    async with running(Bot(), server) as client:
        yield client


async def carded(server: DiscordServer, channel: Channel, user: User) -> Message:
    interaction = await server.slash(channel, user, "council", question="Why?").acknowledged()
    assert interaction.message is not None
    return interaction.message


# ── connecting ───────────────────────────────────────────────────────────────────────────────


async def test_privileged_intents_are_refused_unless_granted(server: DiscordServer) -> None:
    """Asking for message content without having it closes with 4014."""
    intents = discord.Intents(guilds=True, message_content=True)
    with pytest.raises(discord.PrivilegedIntentsRequired):
        async with running(Bot(intents), server):
            pass
    assert server.gateway.refused == [4014]


# ── commands ─────────────────────────────────────────────────────────────────────────────────


async def test_what_no_client_would_send_is_refused_to_the_test(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """Unknown commands and options, missing and mistyped values are the test's mistakes."""
    assert bot.is_ready()
    for name, options in (
        ("nothing", {}),
        ("council", {}),
        ("council", {"question": 3}),
        ("council", {"question": "Why?", "rounds": 9}),
        ("council", {"question": "Why?", "colour": "red"}),
        ("council", {"question": "x" * 6001}),
    ):
        with pytest.raises(Impossible):
            server.slash(general, ada, name, **options)


async def test_ephemeral_messages_are_out_of_the_bot_tokens_reach(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """They can't be read or edited with it: 10008."""
    card = await carded(server, general, ada)
    pressed = await server.click(card, "stop:r1", ada).acknowledged()
    note = pressed.message
    assert note is not None
    assert note.visible_to is ada
    channel = bot.get_partial_messageable(general.id)
    with pytest.raises(discord.NotFound) as caught:
        await channel.get_partial_message(note.id).edit(content="no")
    assert caught.value.code == 10008


# ── messages ─────────────────────────────────────────────────────────────────────────────────


async def test_mentions_and_direct_messages_carry_their_content(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """Other messages come empty to a bot without the privileged intent."""
    server.say(general, ada, "just talking")
    server.mention(general, ada, "what now?")
    server.say(server.dm(ada), ada, "between us")
    while len(bot.heard) < 3:
        await asyncio.sleep(0.001)
    assert [message.content for message in bot.heard] == [
        "",
        f"<@{server.bot.id}> what now?",
        "between us",
    ]
    assert [server.bot.id in [user.id for user in message.mentions] for message in bot.heard] == [
        False,
        True,
        False,
    ]


async def test_a_reply_to_a_command_response_comes_without_content(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """It mentions the one who gave the command, a reply to an ordinary message the bot."""
    card = await carded(server, general, ada)
    server.say(general, ada, "go on", reply_to=card)
    posted = await bot.get_partial_messageable(general.id).send("hello")
    server.say(general, ada, "hi", reply_to=server.world.messages[posted.id])
    while len(bot.heard) < 2:
        await asyncio.sleep(0.001)
    assert [message.content for message in bot.heard] == ["", "hi"]


async def test_an_enforced_nonce_posts_once(server: DiscordServer, bot: Bot, general: Channel) -> None:
    """The same nonce gives the first message again, until it is forgotten."""
    channel = bot.get_partial_messageable(general.id)
    first = await channel.send("part 1", nonce="r1:1")
    again = await channel.send("part 1", nonce="r1:1")
    assert first.id == again.id
    assert len(server.messages(general)) == 1
    server.advance(5 * 60 + 1)
    assert (await channel.send("part 1", nonce="r1:1")).id != first.id
    with pytest.raises(discord.HTTPException) as caught:
        await channel.send("x", nonce="n" * 26)
    assert caught.value.code == 50035


@pytest.mark.parametrize(
    ("text", "allowed", "pinged"),
    [
        ("<@{ada}> @everyone @here <@&{team}>", None, {"user", "everyone", "here", "role"}),
        ("<@{ada}> @everyone @here <@&{team}>", NOBODY, set[str]()),
        ("<@{ada}> @everyone", discord.AllowedMentions(everyone=False, roles=False), {"user"}),
        ("`<@{ada}>`", None, {"user"}),
    ],
)
async def test_posts_and_edits_record_whom_they_ping(
    server: DiscordServer,
    bot: Bot,
    general: Channel,
    ada: User,
    text: str,
    allowed: discord.AllowedMentions | None,
    pinged: set[str],
) -> None:
    """Without `allowed_mentions` an edit pings as a post does."""
    assert general.guild is not None
    team = server.role(general.guild, "team", mentionable=True)
    text = text.format(ada=ada.id, team=team.id)
    channel = bot.get_partial_messageable(general.id)
    rules: Any = {} if allowed is None else {"allowed_mentions": allowed}
    plain = await channel.send(text, **rules)
    assert {ping.kind for ping in server.pings()} == pinged
    await channel.get_partial_message(plain.id).edit(content=text, **rules)
    assert len(server.pings()) == 2 * len(pinged)
    assert {ping.on for ping in server.pings()} == ({"post", "edit"} if pinged else set())


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def _row(*children: dict[str, Any]) -> dict[str, Any]:
    return {"type": 1, "components": list(children)}


def _buttons(*custom_ids: str) -> ui.View:
    view = ui.View()
    for custom_id in custom_ids:
        view.add_item(ui.Button(label="b", custom_id=custom_id))
    return view


@rows(
    "message",
    [
        {"content": "x" * 2001},
        {"content": "🙂" * 1001},
        {"embed": discord.Embed(description="x" * 4097)},
        {"embed": discord.Embed(title="x" * 257)},
        {"embeds": [discord.Embed(description="x" * 3001)] * 2},
        {"view": _buttons("same", "same")},
        {"view": ui.View().add_item(ui.Button(label="x" * 81, custom_id="b"))},
    ],
)
async def test_what_is_too_large_is_refused(
    server: DiscordServer, bot: Bot, general: Channel, message: dict[str, Any]
) -> None:
    """With 400 and 50035, naming the field."""
    with pytest.raises(discord.HTTPException) as caught:
        await bot.get_partial_messageable(general.id).send(**message)
    assert (caught.value.status, caught.value.code) == (400, 50035)
    assert server.messages(general) == []


@rows(
    "body",
    [
        {"components": [{"type": 10, "content": "x"}]},
        {"components": [_row({"type": 2, "style": 1, "label": "b", "custom_id": "x" * 101})]},
        {"components": [_row(*[{"type": 2, "style": 1, "label": "b", "custom_id": "x"}] * 6)]},
        {"components": [_row({"type": 3, "custom_id": "x", "options": []})]},
        {"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["1"]}},
    ],
)
async def test_what_the_library_would_not_send_is_refused_too(
    server: DiscordServer, general: Channel, body: dict[str, Any]
) -> None:
    """The limits are the server's, not discord.py's."""
    headers = {"Authorization": f"Bot {server.world.token}"}
    url = f"{server.url}/channels/{general.id}/messages"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=body, headers=headers) as response,
    ):
        refused = await response.json()
    assert (response.status, refused["code"]) == (400, 50035)
    assert "errors" in refused


async def test_an_empty_message_is_refused(bot: Bot, general: Channel) -> None:
    """White space is trimmed away first: 50006."""
    with pytest.raises(discord.HTTPException) as caught:
        await bot.get_partial_messageable(general.id).send(" \n ")
    assert caught.value.code == 50006


async def test_files_are_kept_and_measured(server: DiscordServer, bot: Bot, general: Channel) -> None:
    """A file comes back as it was sent; one over 10 MiB is refused with 40005."""
    import io

    channel = bot.get_partial_messageable(general.id)
    sent = await channel.send("here", file=discord.File(io.BytesIO(b"# Hi"), "transcript.md"))
    assert await sent.attachments[0].read() == b"# Hi"
    kept = await sent.edit(content="still here")
    assert [file.filename for file in kept.attachments] == ["transcript.md"]
    with pytest.raises(discord.HTTPException) as caught:
        await channel.send(file=discord.File(io.BytesIO(b"x" * (10 * 1024 * 1024 + 1)), "big.md"))
    assert (caught.value.status, caught.value.code) == (413, 40005)
    assert len(server.messages(general)) == 1


# ── access ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (Permission.VIEW_CHANNEL, 50001),
        (Permission.SEND_MESSAGES, 50013),
        (Permission.EMBED_LINKS, 50013),
    ],
)
async def test_missing_permissions_refuse(
    server: DiscordServer, bot: Bot, general: Channel, denied: Permission, code: int
) -> None:
    """Not seeing the channel is 50001, not being allowed to write is 50013."""
    server.overwrite(general, server.bot, deny=denied)
    with pytest.raises(discord.Forbidden) as caught:
        await bot.get_partial_messageable(general.id).send(embed=discord.Embed(title="x"))
    assert caught.value.code == code


async def test_what_is_gone_is_unknown(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """A deleted message is 10008, a deleted channel 10003; somebody else's message 50005."""
    theirs = server.say(general, ada, "mine")
    channel = bot.get_partial_messageable(general.id)
    with pytest.raises(discord.Forbidden) as foreign:
        await channel.get_partial_message(theirs.id).edit(content="no")
    sent = await channel.send("here")
    server.delete_message(server.world.messages[sent.id])
    with pytest.raises(discord.NotFound) as message:
        await sent.edit(content="where?")
    server.delete_channel(general)
    with pytest.raises(discord.NotFound) as place:
        await channel.send("here")
    codes = [caught.value.code for caught in (foreign, message, place)]
    assert codes == [50005, 10008, 10003]


# ── threads ──────────────────────────────────────────────────────────────────────────────────


def _text_channel(bot: Bot, channel: Channel) -> discord.TextChannel:
    found = bot.get_channel(channel.id)
    assert isinstance(found, discord.TextChannel)
    return found


async def test_a_message_gets_one_thread(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """It has the message's id; a second one is refused with 160004."""
    card = await carded(server, general, ada)
    message = await _text_channel(bot, general).fetch_message(card.id)
    thread = await message.create_thread(name="Why?")
    await thread.send("part 1")
    [opened] = server.threads(general)
    assert (opened.id, opened.name) == (card.id, "Why?")
    assert [entry.content for entry in server.messages(opened)] == ["part 1"]
    with pytest.raises(discord.HTTPException) as caught:
        await message.create_thread(name="again")
    assert caught.value.code == 160004


async def test_threads_are_refused_where_they_cannot_be(
    server: DiscordServer, bot: Bot, guild: Guild, general: Channel, ada: User
) -> None:
    """Inside threads, in forum posts and direct messages 50024; 50013 where not allowed."""
    forum = server.channel(guild, "ideas", "forum")
    inside = server.thread(general, "a thread", ada)
    post = server.thread(forum, "a post", ada)
    for place in (inside, post, server.dm(ada)):
        said = server.say(place, ada, "hello")
        with pytest.raises(discord.HTTPException) as caught:
            await bot.http.start_thread_with_message(
                place.id, said.id, name="no", auto_archive_duration=1440, rate_limit_per_user=None
            )
        assert caught.value.code == 50024
    card = await carded(server, general, ada)
    message = await _text_channel(bot, general).fetch_message(card.id)
    server.overwrite(general, server.bot, deny=Permission.CREATE_PUBLIC_THREADS)
    with pytest.raises(discord.Forbidden) as denied:
        await message.create_thread(name="no")
    assert denied.value.code == 50013


async def test_sending_reopens_an_archived_thread_and_editing_does_not(
    server: DiscordServer, bot: Bot, general: Channel, ada: User
) -> None:
    """Editing in it is 50083; sending into a locked one 160005."""
    thread = server.thread(general, "a thread", ada)
    place = bot.get_partial_messageable(thread.id)
    sent = await place.send("one")
    server.archive(thread)
    with pytest.raises(discord.HTTPException) as caught:
        await sent.edit(content="two")
    assert caught.value.code == 50083
    await place.send("two")
    assert not thread.archived
    await sent.edit(content="one, again")
    server.archive(thread, locked=True)
    with pytest.raises(discord.Forbidden) as locked:
        await place.send("three")
    assert locked.value.code == 160005


# ── rate limits and failures ─────────────────────────────────────────────────────────────────


async def test_the_rate_limits_of_discord_can_be_enforced(
    server: DiscordServer, guild: Guild, general: Channel
) -> None:
    """Five posts in five seconds per channel, fifty requests a second in all, with Discord's headers."""
    server.enforce_rate_limits()
    headers = {"Authorization": f"Bot {server.world.token}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def post(channel: Channel) -> aiohttp.ClientResponse:
            url = f"{server.url}/channels/{channel.id}/messages"
            async with session.post(url, json={"content": "x"}) as answer:
                await answer.read()
                return answer

        answers = [await post(general) for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [429]
        assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == [*"43210", "0"]
        assert 4 < float(answers[-1].headers["X-RateLimit-Reset-After"]) <= 5
        rooms = [server.channel(guild, f"room-{number}") for number in range(45)]
        assert [(await post(room)).status for room in rooms].count(429) == 1
        server.advance(5)
        assert (await post(general)).status == 200
