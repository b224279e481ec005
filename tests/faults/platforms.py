"""Both platforms with the real bot, as a case of the fault matrix drives them."""

import asyncio
import itertools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from bot.app import Library, open_lookup
from bot.discord.bot import DiscordBot
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Limits
from bot.service.run_tasks import RunTasks
from bot.slack.bot import SlackAccess, SlackBot, Timing
from council.calls import Ask, Call, Reply
from tests import discord_server, slack_server
from tests.bot.dispatching import runs_of
from tests.bot.shown import blocks_text
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import Clock, DiscordServer, Permission
from tests.faults.virtual_time import VirtualLoop
from tests.library import open_library
from tests.slack_server import SlackServer

Way = Literal["command", "mention", "private", "file"]
"""How a question is asked; `file` is a mention with a file that can't be read."""
QUESTION = "Should we shard now or buy a bigger machine?"
NUMBER = re.compile(r"\(question (\d+)\)")
Event = Literal["card deleted", "thread deleted", "channel deleted", "closed", "hidden", "no threads"]
"""What admins do: `closed` lets the bot read and not post, `hidden` takes its access away."""
CALL_SECONDS = 2.0
"""How long each model's answer takes; a run makes four calls one after the other."""
ALWAYS = 1e9
"""Seconds of a fault that doesn't end."""
THREAD = "POST /channels/{channel_id}/messages/{message_id}/threads"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of the test's own inside it


class Fault(Protocol):
    """A fault, as far as a case uses it."""

    hits: int

    def release(self) -> None: ...  # End the fault


@dataclass
class Office:
    """What a bot is built of, with a folder of its own; it returns a new dispatcher for every start."""

    library: Library
    loop: VirtualLoop
    models: ScriptedCouncil = field(default_factory=ScriptedCouncil)
    answer: Ask | None = None
    """What answers calls in place of `models`, if anything does."""
    limits: Limits = field(default_factory=Limits)
    answered: dict[int, float] = field(default_factory=dict[int, float])
    """When each question's answer was final, by its number."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def ask(self, call: Call) -> Reply:
        """Answer slowly, as a model does."""
        await asyncio.sleep(CALL_SECONDS)
        reply = await self.models.ask(call)
        if call.step.startswith("stage3.") and (asked := NUMBER.search(str(call.messages))):
            self.answered[int(asked[1])] = self.loop.wall()
        return reply

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.loop.wall(), UTC)

    def dispatcher(self) -> Dispatcher:
        runs = runs_of(self.library, self.answer or self.ask, now=self.now)
        return Dispatcher(RunTasks(runs, self.limits, clock=self.loop.time))

    @classmethod
    @asynccontextmanager
    async def open(cls, loop: VirtualLoop, limits: Limits | None = None) -> AsyncGenerator[Self]:
        """Open a folder in memory if possible: no case is about disks."""
        with _folder() as folder:
            async with open_library(folder) as library:
                yield cls(library, loop, limits=limits or Limits())


class Asker(Protocol):
    """Somebody who asks once, and what the platform then shows; times are by its clock."""

    office: Office
    number: int
    user: Any

    def ask(self, way: Way) -> None: ...
    @property
    def here(self) -> Any: ...  # The id of the channel, as faults take it
    def told(self) -> list[float]: ...  # When the asker was told of the answer
    # How often the bot posted the same, at most; deleted messages count, mentions don't
    def alike(self) -> int: ...
    def refused(self) -> str: ...  # What only the asker was told instead, if anything
    # Let an admin do something to the channel, or to what is in it
    def upset(self, event: Event) -> None: ...
    def mend(self) -> None: ...  # Let an admin undo it, where that is possible
    def is_there(self) -> bool: ...  # Whether there is a card

    @property
    def user_id(self) -> str:
        return str(self.user.id)

    def answered(self) -> float:
        return self.office.answered[self.number]


class Platform(Protocol):
    """A platform with the bot on it."""

    name: ClassVar[str]
    office: Office
    server: Any
    _open: AsyncExitStack
    _dispatcher: Dispatcher

    async def start(self) -> None: ...  # Start the bot with what an earlier start left
    # Return a new asker, in a new channel or in that of another
    def asker(self, beside: Asker | None = None) -> Asker: ...
    # Lose the commands that the bot has registered, so that the next start registers them
    def forget_commands(self) -> None: ...
    def refused_requests(self) -> int: ...  # Count the requests over a limit

    async def stop(self) -> None:
        await self._open.aclose()

    async def settled(self) -> None:
        """Wait until no run is under way."""
        await self._dispatcher.tasks.settled()

    def fail(self, target: str, **how: Any) -> Fault:
        return self.server.fail(target, **how)

    @property
    def paid(self) -> int:
        """Count the models' answers so far."""
        return len(self.office.models.finished)

    async def untold(self) -> set[str | None]:
        """Return the askers whose answers are marked untold."""
        runs = await self.office.library.journal.undelivered(self.name.lower())
        return {run.origin.user for run in runs if run.delivery == "untold"}

    def now(self) -> float:
        return self.office.loop.wall()

    def enforce_rate_limits(self) -> None:
        self.server.enforce_rate_limits()

    def forget(self) -> None:
        """Forget what was posted and asked for so far."""
        self.server.forget()


@contextmanager
def _folder() -> Generator[Path]:
    folder = Path(
        tempfile.mkdtemp(prefix="faults-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None)
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _most(contents: Iterable[str]) -> int:
    return max(Counter(contents).values(), default=0)


def slack_bot(
    dispatcher: Dispatcher, lookup: Lookup, loop: VirtualLoop, **where: Any
) -> AbstractAsyncContextManager[object]:
    """Return the bot for Slack; `where` is its addresses and tokens."""
    return SlackBot(
        dispatcher, lookup, SlackAccess(**where), timing=Timing(clock=loop.time, now=loop.wall)
    )


def discord_bot(
    dispatcher: Dispatcher, lookup: Lookup, clock: Callable[[], float], **where: Any
) -> AbstractAsyncContextManager[object]:
    """Return the bot for Discord; `where` is its address and token."""
    return DiscordBot(dispatcher, lookup, outbox=Outbox(clock=clock), clock=clock, **where)


class SlackPlatform(Platform):
    """The fake Slack with the bot on it, by Socket Mode."""

    name = "Slack"

    def __init__(self, office: Office, server: SlackServer) -> None:
        self.office = office
        self.server = server
        self._open = AsyncExitStack()
        self._dispatcher = office.dispatcher()

    async def start(self) -> None:
        self._dispatcher = self.office.dispatcher()
        bot = slack_bot(
            self._dispatcher,
            open_lookup(self.office.library),
            self.office.loop,
            bot_token=self.server.token,
            app_token=self.server.app_token,
            api_url=self.server.api_url,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(bot)
            stack.push_async_callback(self._dispatcher.tasks.drain, 0)
            await self.server.connected()
            self._open = stack.pop_all()

    def forget_commands(self) -> None:
        """Do nothing: Slack has them from the app's manifest."""

    def refused_requests(self) -> int:
        return sum(call.status == 429 for call in self.server.requests)

    def asker(self, beside: Asker | None = None) -> "SlackAsker":
        number = next(self.office.numbers)
        user = self.server.add_user(f"user{number}")
        if isinstance(beside, SlackAsker):
            channel = beside.channel
            channel.members.add(user.id)
        else:
            channel = self.server.add_channel(f"channel{number}", user)
        return SlackAsker(self.office, number, self.server, user, channel)

    @classmethod
    @asynccontextmanager
    async def open(cls, loop: VirtualLoop, limits: Limits | None = None) -> AsyncGenerator[Self]:
        """Open the platform; the bot isn't started yet."""
        async with Office.open(loop, limits) as office, SlackServer(loop.wall) as server:
            yield cls(office, server)


@dataclass(slots=True)
class SlackAsker(Asker):
    """Somebody on Slack."""

    office: Office
    number: int
    server: SlackServer
    user: slack_server.User
    channel: slack_server.Channel

    def ask(self, way: Way) -> None:
        server, question = self.server, f"{QUESTION} (question {self.number})"
        match way:
            case "command":
                server.slash(self.channel, self.user, "/council", question)
            case "private":
                text = f"--private {question}"
                server.slash(self.channel, self.user, "/council", text)
            case "mention":
                server.mention(self.channel, self.user, question)
            case "file":
                file = server.add_file("notes.txt", b"The load doubles in May.", self.user)
                server.mention(self.channel, self.user, question, files=[file])

    @property
    def here(self) -> str:
        return self.channel.id

    def told(self) -> list[float]:
        return [message.posted_at for message in self.server.told(self.user)]

    def alike(self) -> int:
        direct = self.server.world.open_im(self.server.team, self.user.id)
        posted = [*self.channel.messages.values(), *direct.messages.values()]
        return _most(self._content(message) for message in posted if message.bot_id)

    def _content(self, message: slack_server.Message) -> str:
        """Return what a message says by now, without a mention above it and buttons below it."""
        shown = [each for each in message.blocks if each["type"] not in ("rich_text", "actions")]
        names = [file.name for file in message.files]
        return f"{blocks_text(shown) or message.text} {names}"

    def refused(self) -> str:
        shown = [entry for entry in self.server.world.ephemerals if entry.user == self.user.id]
        return shown[-1].text if shown else ""

    def upset(self, event: Event) -> None:
        match event:
            case "card deleted":
                self.server.delete_message(self._card())
            case "thread deleted":
                self.server.delete_thread(self._card())
            case "channel deleted":
                self.server.delete_channel(self.channel)
            case "closed":
                self.channel.archived = True
            case "hidden":
                self.channel.kind = "private"
                self.server.kick_bot(self.channel)
            case "no threads":
                error, where = "restricted_action_thread_locked", self.channel.id
                self.server.fail(
                    "chat.postMessage", error, channel=where, in_thread=True, seconds=ALWAYS
                )

    def mend(self) -> None:
        self.channel.archived = False
        self.channel.kind = "public"
        self.server.invite_bot(self.channel)

    def is_there(self) -> bool:
        return any(message.bot_id for message in self.server.messages(self.channel))

    def _card(self) -> slack_server.Message:
        [card, *_] = (message for message in self.server.messages(self.channel) if message.bot_id)
        return card


class DiscordPlatform(Platform):
    """The fake Discord with the bot on it. discord.py knows one Discord in a process, so open only one."""

    name = "Discord"

    def __init__(self, office: Office, server: DiscordServer) -> None:
        self.office = office
        self.server = server
        self.guild = server.guild("The team")
        self._open = AsyncExitStack()
        self._dispatcher = office.dispatcher()

    async def start(self) -> None:
        self._dispatcher = self.office.dispatcher()
        bot = discord_bot(
            self._dispatcher,
            open_lookup(self.office.library),
            self.office.loop.time,
            token=self.server.world.token,
            api_base=self.server.url,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(bot)
            stack.push_async_callback(self._dispatcher.tasks.drain, 0)
            talking = asyncio.create_task(self._keep_talking())
            stack.callback(talking.cancel)
            self._open = stack.pop_all()

    async def _keep_talking(self) -> None:
        """Keep the gateway talking: the client counts heartbeats in real time, silence in virtual time."""
        while True:
            await asyncio.sleep(30)
            self.server.gateway.acknowledge()

    def forget_commands(self) -> None:
        self.server.world.commands.clear()

    def refused_requests(self) -> int:
        return sum(entry.status == 429 for entry in self.server.requests())

    def asker(self, beside: Asker | None = None) -> "DiscordAsker":
        number = next(self.office.numbers)
        user = self.server.member(self.guild, f"user{number}")
        if isinstance(beside, DiscordAsker):
            channel = beside.channel
        else:
            channel = self.server.channel(self.guild, f"channel{number}")
        return DiscordAsker(self.office, number, self.server, user, channel)

    @classmethod
    @asynccontextmanager
    async def open(cls, loop: VirtualLoop, limits: Limits | None = None) -> AsyncGenerator[Self]:
        """Open the platform; the bot isn't started yet."""
        async with Office.open(loop, limits) as office, DiscordServer(clock=Clock(loop.wall)) as server:
            yield cls(office, server)


@dataclass(slots=True)
class DiscordAsker(Asker):
    """Somebody on Discord."""

    office: Office
    number: int
    server: DiscordServer
    user: discord_server.User
    channel: discord_server.Channel

    def ask(self, way: Way) -> None:
        server, question = self.server, f"{QUESTION} (question {self.number})"
        if way in ("mention", "file"):
            server.mention(self.channel, self.user, question)
            return
        options = {"question": question} | ({"private": True} if way == "private" else {})
        server.slash(self.channel, self.user, "council", **options)

    @property
    def here(self) -> int:
        return self.channel.id

    def told(self) -> list[float]:
        return [message.history[0].at for message in self.server.told(self.user)]

    def alike(self) -> int:
        places = {self.channel, self.server.dm(self.user), *self.server.threads(self.channel)}
        posted = (
            message for message in self.server.world.messages.values() if message.channel in places
        )
        return _most(self._content(message) for message in posted if message.author is self.server.bot)

    def _content(self, message: discord_server.Message) -> str:
        """Return what a message says by now, without a mention above it and buttons below it."""
        names = [file.filename for file in message.attachments]
        shown = [part.get("description") for part in message.embeds] or message.content
        return f"{shown} {names}"

    def refused(self) -> str:
        direct = self.server.dm(self.user)
        messages = (message for message in self.server.world.messages.values() if message.content)
        shown = [
            message.content
            for message in messages
            if message.visible_to is self.user
            or (message.channel is direct and message.author is self.server.bot and not message.pinged)
        ]
        return shown[-1] if shown else ""

    def upset(self, event: Event) -> None:
        server = self.server
        match event:
            case "card deleted":
                server.delete_message(self._card())
            case "thread deleted":
                for thread in server.threads(self.channel):
                    server.delete_channel(thread)
            case "channel deleted":
                server.delete_channel(self.channel)
            case "closed":
                denied = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS
                server.overwrite(self.channel, server.bot, deny=denied)
            case "hidden":
                server.hide(self.channel)
            case "no threads":
                server.fail(THREAD, 403, code=50013, channel=self.channel.id, seconds=ALWAYS)

    def mend(self) -> None:
        if self.server.bot.id in self.channel.overwrites:
            self.server.reveal(self.channel)

    def is_there(self) -> bool:
        return bool(self.server.messages(self.channel, by_bot=True))

    def _card(self) -> discord_server.Message:
        return self.server.messages(self.channel, by_bot=True)[0]
