"""The answer reaches the asker, whatever Discord, a moderator or the network does meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import discord
import pytest
import pytest_asyncio
from discord.http import Route

from bot.discord.chat import DiscordChat
from bot.discord.client import DiscordTransport, single_attempts
from bot.discord.incoming import Location
from bot.errors import NotAllowed
from bot.service.delivery.chat import Button, Card, File, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import NONCE_SECONDS, Ledger, Mention
from bot.service.delivery.posts import unrecorded as receipt
from bot.service.delivery.venue import Venue
from bot.view.message import Heading, Line, Message, Prose
from bot.view.wording.commands import in_file
from storage.journal.rows import NOT_MENTIONED, RunRow
from tests.bot.discord.office import HELD, Office, impatient
from tests.bot.sample_run import accepted
from tests.discord_server import Channel, DiscordServer, Permission
from tests.discord_server import Message as Shown

SEND = "POST /channels/{channel_id}/messages"
EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"
RESPOND = "POST /interactions/{interaction_id}/{token}/callback"
ANSWER = "The council's answer, written by chair/man."
DONE = "The council has answered."
CHAIR = HELD["Final answer"]


async def held(team: Office) -> Shown:
    """Ask, and let the run wait for its chairman."""
    team.council.held.add(CHAIR)
    card = await team.ask()
    await team.council.until_called(CHAIR)
    return card


async def released(team: Office) -> None:
    """Let the chairman answer, and wait until all is shown."""
    team.council.release(CHAIR)
    await team.dispatcher.tasks.settled()


def told(team: Office) -> list[str]:
    """Return the messages that notified the asker, the only ones that notified anybody."""
    assert {ping.id for ping in team.server.pings()} <= {team.ada.id}
    return [message.content for message in team.server.told(team.ada)]


# ── one failure costs nothing ────────────────────────────────────────────────────────────────


async def test_a_server_error_is_repeated_by_the_outbox_alone(team: Office) -> None:
    """discord.py would sleep for seconds, and hold up what waits behind it."""
    card = await held(team)
    team.server.fail(EDIT, 502, times=3)
    began = asyncio.get_running_loop().time()
    await released(team)
    assert asyncio.get_running_loop().time() - began < 5
    assert ANSWER in card.text


# ── the ladder ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_member", [True, False])
async def test_a_private_threads_answer_is_told_directly_to_its_members_alone(
    server: DiscordServer, team: Office, *, is_member: bool
) -> None:
    """Whoever sees the channel doesn't see the thread."""
    thread = server.thread(team.general, "secret", team.ada, private=True)
    team.council.held.add(CHAIR)
    card = await team.card(server.slash(thread, team.ada, "council", question="Why?"))
    await team.council.until_called(CHAIR)
    if not is_member:
        thread.joined.pop(team.ada.id)
    server.delete_message(card)
    server.fail(SEND, 403, code=50013, channel=thread.id, times=1 << 31)
    team.council.release(CHAIR)
    await asyncio.wait_for(_until_delivered(team), 20)
    direct = server.messages(server.dm(team.ada))
    assert await delivered(team) == (["shown"] if is_member else ["untold"])
    assert [message.content for message in direct] == ([f"<@{team.ada.id}> {DONE}"] if is_member else [])


async def delivered(team: Office) -> list[str | None]:
    rows = await team.library.database.read("SELECT delivery FROM runs")
    return [row["delivery"] for row in rows]


async def _until_delivered(team: Office) -> None:
    while await delivered(team) == [None]:
        await asyncio.sleep(0.01)


async def test_where_the_card_is_refused_the_asker_alone_learns_why(
    server: DiscordServer, team: Office
) -> None:
    """At once: nothing is paid for yet."""
    team.council.held.add(HELD["Answers"])
    server.fail(RESPOND, 404, code=10062, times=2)
    server.fail(SEND, 403, code=50013, channel=team.general.id)
    server.slash(team.general, team.ada, "council", question="Why?")
    [said] = await server.until(lambda: server.messages(server.dm(team.ada)))
    await team.dispatcher.tasks.settled()
    assert (
        said.content
        == "The council can't post here: the bot lacks Send Messages. Your question was cancelled."
    )
    assert server.messages(team.general) == []


# ── nothing is shown twice ───────────────────────────────────────────────────────────────────


@dataclass
class Bench:
    """A venue by itself, whose clock a test moves."""

    server: DiscordServer
    channel: Channel
    client: discord.Client
    run: RunRow
    now: float = 0.0

    def venue(self) -> Venue:
        """Return the run's venue, without a card."""
        transport = DiscordTransport(impatient())
        chat = DiscordChat(self.client, transport, edit_seconds=0, clock=lambda: self.now)
        return Venue.of(chat, self.run)


@pytest_asyncio.fixture
async def alone(server: DiscordServer, quiet: Office) -> AsyncIterator[Bench]:
    """A client that can post, without a gateway connection."""
    Route.BASE = server.url  # put back by `server`
    assert quiet.general.guild is not None
    run = accepted(Location(quiet.general.id, quiet.general.guild.id).source(quiet.ada.id))
    client = discord.Client(intents=discord.Intents.none(), http_trace=single_attempts())
    async with client:
        await client.login(server.world.token)
        yield Bench(server, quiet.general, client, run)


async def nowhere(_: object) -> None:
    """Keep nothing."""


unrecorded = receipt("any", nowhere)


def mention(text: str) -> Mention:
    return Mention(text, nowhere, Ledger(NOT_MENTIONED, nowhere))


def card_of(run: RunRow) -> Card:
    return Card(Message("card", (Line("Working."),)), (Button("stop", run.id),))


async def test_a_post_whose_response_was_lost_long_ago_is_looked_for(alone: Bench) -> None:
    """Its nonce is forgotten by then."""
    lost = alone.server.hold(SEND)
    venue = alone.venue()
    alone.server.fail(SEND, 502, applied=True)
    lost.release()
    posting = asyncio.create_task(venue.post(Part("Ranking"), "ranking.0", unrecorded))
    await alone.server.until(lambda: alone.server.requests(SEND))
    alone.now += NONCE_SECONDS + 1
    alone.server.advance(6 * 60)
    message = await posting
    assert [str(one.id) for one in alone.server.messages(alone.channel)] == [message]


async def test_the_same_words_after_a_retry_are_posted_again(alone: Bench) -> None:
    """Different ones, too: a nonce is drawn from all that is said."""
    venue = alone.venue()
    for said in ("The council could not answer.", DONE):
        await venue.mention(mention(said), link=False)
    assert len(alone.server.messages(alone.channel)) == 2


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("nothing", ""),
        ("the asker is hidden from the channel", "can no longer see"),
        ("the asker has left", "left the server"),
        ("the bot has left", "can't tell"),
    ],
)
async def test_without_a_gateway_a_venue_looks_up_who_sees_the_channel(
    alone: Bench, quiet: Office, what: str, why: str
) -> None:
    """A worker has none: it asks for the server, the channel and the asker, and tells only who sees it."""
    assert alone.channel.guild is not None
    if what == "the asker is hidden from the channel":
        quiet.server.overwrite(alone.channel, quiet.ada, deny=Permission.VIEW_CHANNEL)
    elif what == "the asker has left":
        del alone.channel.guild.members[quiet.ada.id]
    elif what == "the bot has left":
        alone.channel.guild.has_bot = False
    telling = alone.venue().direct(card_of(alone.run), mention(DONE))
    if why:
        with pytest.raises(NotAllowed, match=why):
            await telling
    else:
        await telling
    assert len(alone.server.requests(SEND)) == (0 if why else 1)


# ── a card that can't be edited any more ─────────────────────────────────────────────────────


async def test_the_next_start_edits_the_newest_card(alone: Bench) -> None:
    """What belongs below it still comes into the thread of the first one."""
    venue, card = alone.venue(), card_of(alone.run)
    first = await venue.post_card(lambda: card, unrecorded)
    start = alone.client.http.start_thread_with_message
    await start(alone.channel.id, int(first), name="Why?", auto_archive_duration=1440)
    alone.server.old_edits(0)
    alone.server.advance(3700)
    moved: list[str] = []

    async def keep(message: str) -> None:
        moved.append(message)

    await venue.edit_card(lambda: card, lambda: Urgency.PROGRESS, keep)
    origin = alone.run.origin.model_copy(update={"message": first, "thread": first, "card": moved[0]})
    alone.run = replace(alone.run, origin=origin)
    again, done = alone.venue(), Card(Message("card", (Line("Done."),)))
    assert await again.pick_up(frozenset(), unrecorded)
    await again.edit_card(lambda: done, lambda: Urgency.ANSWER, unrecorded)
    old, new = alone.server.messages(alone.channel)
    assert [str(old.id), str(new.id)] == [first, *moved]
    assert ("Done." in old.text, "Done." in new.text) == (False, True)
    assert old.thread is not None
    await again.post(Part("Ranking"), "ranking.0", unrecorded)
    assert [message.text for message in alone.server.messages(old.thread)] == ["Ranking"]


def digest(size: int, start: int = 0) -> Message:
    """Return a member's message of about this many characters."""
    words = " ".join(f"word{number}" for number in range(start, start + size // 8))
    return Message("member:x", (Heading("x/y"), Line("Ranked 1st of 2."), Prose(words)), bounded=True)


@pytest.mark.parametrize("size", [300, 5_000, 20_000])
async def test_a_part_that_a_crash_left_unrecorded_is_found_by_its_embeds(
    alone: Bench, size: int
) -> None:
    """The next start takes it over with its buttons; a part with other words is posted."""
    buttons = (Button("changes", alone.run.id, 1), Button("reviews", alone.run.id, 1))
    before = alone.venue()
    parts = [replace(part, buttons=buttons) for part in await before.parts(digest(size))]
    first = [
        await before.post(part, f"member:x.{number}", unrecorded) for number, part in enumerate(parts)
    ]
    alone.now += NONCE_SECONDS + 1
    alone.server.advance(6 * 60)
    after = alone.venue()
    assert not await after.pick_up(frozenset(), unrecorded)
    kept: list[str] = []

    async def sent(message: str) -> None:
        kept.append(message)

    for number, part in enumerate(parts):
        await after.post(part, f"member:x.{number}", receipt("any", sent))
    assert kept == first
    assert len(alone.server.messages(alone.channel)) == len(parts)
    [other, *_] = await after.parts(digest(size, start=1))
    await after.post(other, "member:y.0", receipt("any", sent))
    assert kept[-1] not in first
    assert len(alone.server.messages(alone.channel)) == len(parts) + 1


async def test_a_message_that_says_the_same_as_a_known_one_is_posted_again(alone: Bench) -> None:
    """What is on record is not taken for another part, though it has the same embeds."""
    before = alone.venue()
    [part] = await before.parts(digest(300))
    known = await before.post(part, "member:x.0", unrecorded)
    alone.server.advance(6 * 60)
    after = alone.venue()
    await after.pick_up(frozenset({known}), unrecorded)
    again = await after.post(part, "member:z.0", unrecorded)
    assert again != known
    assert len(alone.server.messages(alone.channel)) == 2


async def test_parts_with_the_same_embeds_posted_at_once_are_two(alone: Bench) -> None:
    """Their nonces are drawn from their keys, too."""
    venue = alone.venue()
    [part] = await venue.parts(digest(300))
    ids = {await venue.post(part, key, unrecorded) for key in ("member:x.0", "member:z.0")}
    assert len(ids) == 2


NOTE = in_file("the thread is locked", with_answer=False)


async def test_of_two_runs_in_one_place_each_has_its_own_transcript(alone: Bench) -> None:
    """The same words introduce both; where a kill left them unrecorded, they are told by their names."""
    ours, theirs = (File(f"council-{name}.html", "<!doctype html>") for name in ("ours", "theirs"))
    other = await alone.venue().attach(NOTE, unrecorded, theirs)
    posted = list[str]()
    for _ in range(2):  # killed before it was posted, then before that was recorded
        alone.now += NONCE_SECONDS + 1
        alone.server.advance(6 * 60)
        venue = alone.venue()
        await venue.pick_up(frozenset(), unrecorded)
        posted.append(await venue.attach(NOTE, unrecorded, ours))
    assert posted[0] == posted[1] != other
    shown = alone.server.messages(alone.channel)
    assert [file.filename for message in shown for file in message.attachments] == [
        theirs.name,
        ours.name,
    ]
