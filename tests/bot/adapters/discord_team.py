"""A team on Discord: the real client against the fake of `tests/discord_server`."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from typing_extensions import override

from bot.service.commands import ACTION
from bot.service.dispatcher import Dispatcher
from bot.view.wording.discord import HINT
from tests.bot.adapters.teams import QUESTION, Files, Lost, Team
from tests.bot.discord.office import Office, office
from tests.bot.shown import text
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Interaction, Message, Permission
from tests.discord_server.state import Intent, shown

SEND = "POST /channels/{channel_id}/messages"
ROUTES = {
    "edit": "PATCH /channels/{channel_id}/messages/{message_id}",
    "post": SEND,
    "read": "GET /channels/{channel_id}/messages",
}
ALWAYS = 1 << 31


class DiscordTeam(Team[Message, Message, Interaction, Interaction]):
    """A guild."""

    platform = "discord"
    groups = "roles"
    hint = HINT
    followed_in_the_thread = "Your follow-up was asked."
    repeats_lost = False
    inside = "on this server"
    admins = "Somebody with Manage Server, or one of the council's own admins,"
    everyone = "@everyone"
    dated = "R> \u00b7 "
    verbs = ("past:turn", "past:see", "past:share")
    transcript_shown: ClassVar[list[str]] = ["tml", ".md"]
    also_listed = 1

    def __init__(self, place: Office, stack: AsyncExitStack) -> None:
        self.place, self.server, self._running = place, place.server, stack
        self._bot = place.bot
        self.council, self.library = place.council, place.library
        assert place.general.guild is not None
        self.guild = place.general.guild
        self.people = {str(place.ada.id): place.ada}
        self.ada = str(place.ada.id)
        self.bob = self.join("bob")
        self.channel, self.workspace = place.general.mention, str(self.guild.id)
        self.here = f"the server https://discord.com/channels/{self.guild.id}"

    @classmethod
    @asynccontextmanager
    async def open_in(
        cls, folder: Path, council: ScriptedCouncil, *, reads_threads: bool = False
    ) -> AsyncGenerator["DiscordTeam"]:
        privileged = Intent.MESSAGE_CONTENT if reads_threads else Intent(0)
        async with DiscordServer(privileged=privileged) as server, AsyncExitStack() as stack:
            server.world.patience = 60  # a busy machine fails no test
            place = await stack.enter_async_context(office(server, folder, council))
            team = cls(place, await stack.enter_async_context(AsyncExitStack()))
            team._bot = partial(place.bot, reads_messages=reads_threads)
            await team._running.enter_async_context(team._bot())
            yield team

    def join(self, name: str) -> str:
        user = self.server.member(self.guild, name)
        self.people[str(user.id)] = user
        return str(user.id)

    @property
    def dispatcher(self) -> Dispatcher:
        return self.place.dispatcher

    async def ask(self, question: str = QUESTION, **options: str) -> Message:
        return await self.place.asked(question, **options)

    async def begin(self, question: str = QUESTION) -> Message:
        return await self.place.ask(question)

    async def refused(self, question: str = QUESTION, who: str = "") -> str:
        user = self.people[who or self.ada]
        asked = self.server.slash(self.place.general, user, "council", question=question)
        return await self.place.refused(asked)

    async def ask_together(self, times: int) -> int:
        asked = [
            self.server.slash(self.place.general, self.people[self.ada], "council", question="?")
            for _ in range(times)
        ]
        shown = [(await each.acknowledged()).message for each in asked]
        return sum(each is not None and not each.ephemeral for each in shown)

    async def use(
        self, command: str, user: str = "", where: object = None, **options: str | int
    ) -> Message:
        person = self.people[user or self.ada]
        channel = where if isinstance(where, Channel) else self.place.general
        used = self.server.slash(channel, person, f"council-{command}", **options)
        note = (await used.acknowledged()).message
        assert note is not None
        assert note.visible_to is person
        return note

    async def look(self, shown: Message, label: str, who: str = "") -> Message:
        pressed = await self._click(shown, label, who or self.ada).acknowledged()
        message = await self.server.until(lambda: pressed.message)
        assert message is not None
        return message

    async def delete(self, asked: Message, who: str = "") -> str:
        gone = await self.look(asked, "Delete", who)
        await self.server.until(lambda: gone.content.startswith("Deleted"))
        await self.dispatcher.tasks.settled()
        return gone.content

    async def transcript(self, shown: Message) -> list[str]:
        message = await self.look(shown, "Transcript")
        await self.server.until(lambda: message.attachments)
        return [file.filename[-3:] for file in message.attachments]

    def elsewhere(self) -> list[object]:
        other = self.server.guild("Another team")
        ada = self.people[self.ada]
        self.server.join(other, ada)
        return [
            self.server.channel(self.guild, "elsewhere"),
            self.server.channel(other, "general"),
            self.server.dm(ada),
        ]

    def values(self, shown: Message) -> list[str]:
        return [part["custom_id"] for part in shown.buttons]

    async def forge(self, where: Channel, value: str) -> str:
        posted = self.server.say(where, self.server.bot, "look")
        button = {"type": 2, "style": 2, "label": "x", "custom_id": value}
        posted.now.components.append({"type": 1, "components": [button]})
        pressed = await self.server.click(posted, value, self.people[self.ada]).acknowledged()
        shown = pressed.message
        assert shown is not None
        assert shown is not posted
        await self.server.until(lambda: shown.text)
        return shown.text

    async def _shown(self, channel: Channel | None, who: str, text: str, files: Files | None) -> Message:
        assert channel is not None
        before = len(self.server.messages(channel, by_bot=True))
        self.server.say(channel, self.people[who or self.ada], text, files=dict(files or {}))
        await self.server.until(lambda: len(self.server.messages(channel, by_bot=True)) > before)
        await self.dispatcher.tasks.settled()
        return self.server.messages(channel, by_bot=True)[before]

    async def mention(
        self, text: str, who: str = "", below: Message | None = None, files: Files | None = None
    ) -> Message:
        channel = below.thread if below else self.place.general
        return await self._shown(channel, who, f"{self.server.bot.mention} {text}", files)

    async def message(self, text: str, files: Files | None = None) -> Message:
        return await self._shown(self.server.dm(self.people[self.ada]), "", text, files)

    async def act(self, text: str, who: str = "", files: Files | None = None) -> Message:
        ada = self.people[self.ada]
        written = self.server.say(self.place.general, ada, text, files=dict(files or {}))
        card = await self.place.card(self.server.menu(ACTION, written, self.people[who or self.ada]))
        await self.dispatcher.tasks.settled()
        return card

    async def private(self, question: str = QUESTION) -> str:
        ada = self.people[self.ada]
        asked = self.server.slash(self.place.general, ada, "council", question=question, private=True)
        await self.server.until(lambda: asked.message and asked.message.content)
        return await self.place.refused(asked)

    def directly(self, who: str = "") -> list[Message]:
        return self.server.messages(self.server.dm(self.people[who or self.ada]), by_bot=True)

    def privately(self, who: str = "") -> list[Message]:
        reader, general = self.people[who or self.ada], self.place.general
        channels = [general, *self.server.threads(general)]
        posted = (each for channel in channels for each in self.server.messages(channel))
        return [message for message in posted if message.visible_to is reader]

    def notified(self, who: str = "") -> list[Message]:
        told = self.server.told(self.people[who or self.ada])
        return [message for message in told if message.id in message.channel.messages]

    def tells_of(self, shown: Message, card: Message) -> bool:
        return shown is card or shown.content.endswith(f"/{card.id}>)")

    def fail(self, what: str, **fault: Any) -> Lost:
        return self.server.fail(ROUTES.get(what, what), **fault)

    def hide(self, *, direct: bool = False) -> None:
        if direct:
            for what in ("edit", "post"):
                there = self.server.dm(self.people[self.ada]).id
                self.fail(what, status=403, code=50007, channel=there, times=ALWAYS)
        else:
            self.server.hide(self.place.general)

    def remove(self, card: Message) -> None:
        self.server.delete_message(card)

    @override
    def freeze(self, card: Message) -> None:
        self.server.old_edits(0)
        self.server.advance(3700)

    def leave(self, who: str) -> None:
        del self.guild.members[int(who)]

    def cards(self) -> list[Message]:
        posted = self.server.messages(self.place.general, by_bot=True)
        return [message for message in posted if "Follow up" in self.labels(message)]

    def public(self) -> list[Message]:
        posted = self.server.messages(self.place.general, by_bot=True)
        return [message for message in posted if not message.ephemeral]

    def _for_all(self) -> list[Message]:
        channels = [self.place.general, *self.server.threads(self.place.general)]
        posted = (each for channel in channels for each in self.server.messages(channel, by_bot=True))
        return [message for message in posted if not message.ephemeral]

    def left(self) -> list[str]:
        return [message.text for message in self._for_all()]

    def files(self) -> int:
        return sum(len(message.attachments) for message in self._for_all())

    def pings(self) -> list[str]:
        mine = [ping for ping in self.server.pings() if ping.id != self.server.bot.id]
        return [str(ping.id) if ping.kind == "user" else ping.kind for ping in mine]

    def say_below(self, card: Message, who: str, text: str) -> object:
        assert card.thread is not None
        return self.server.say(card.thread, self.people[who], text)

    def said_below(self, card: Message) -> list[object]:
        assert card.thread is not None
        return [*self.server.messages(card.thread)]

    def below(self, card: Message) -> list[Message]:
        assert card.thread is not None
        posted = self.server.messages(card.thread, by_bot=True)
        return [message for message in posted if "Transcript" in self.labels(message)]

    def in_thread(self, card: Message) -> int:
        return len(self.server.messages(card.thread, by_bot=True)) if card.thread else 0

    def text(self, card: Message) -> str:
        return card.text

    def first_text(self, card: Message) -> str:
        return shown(card.history[0])

    def read(self, shown: Message) -> str:
        return shown.text

    def plain(self, shown: Message) -> str:
        return text(shown.text)

    def is_private(self, shown: Message, who: str) -> bool:
        return shown.visible_to is self.people[who]

    def leads_to(self, shown: Message, card: Message) -> bool:
        return f"[Go to it](<https://discord.com/channels/{self.guild.id}/{card.id}>)" in shown.text

    def labels(self, shown: Message) -> list[str]:
        return [part["label"] for part in shown.buttons]

    def name(self, name: str) -> str:
        return name.title()

    def tag(self, who: str) -> str:
        return f"<@{who}>"

    def hidden(self) -> str:
        secret = self.server.channel(self.guild, "layoffs")
        everyone = self.guild.roles[self.guild.id]
        self.server.overwrite(secret, everyone, deny=Permission.VIEW_CHANNEL)
        return secret.mention

    def strong(self, words: str) -> str:
        return f"**{words}**"

    def quoted(self, question: str) -> str:
        return f"> {question}"

    def asked_by(self, name: str, question: str) -> str:
        return f"**{name.capitalize()} asked**: {question}"

    def followed(self, card: Message) -> str:
        assert card.thread is not None
        address = f"https://discord.com/channels/{self.guild.id}/{card.thread.id}"
        return f"Your follow-up was asked: {address}"

    def group(self, member: str) -> tuple[str, str]:
        role = self.server.role(self.guild, "engineers")
        self.guild.members[self.people[member].id].roles.append(role)
        return f"<@&{role.id}>", f"role {role.id}"

    def newcomers(self, number: int) -> list[str]:
        return [self.join(f"reader {each}") for each in range(number)]

    def _click(self, card: Message, label: str, who: str) -> Interaction:
        button = next(part["custom_id"] for part in card.buttons if part["label"] == label)
        return self.server.click(card, button, self.people[who])

    async def press(self, card: Message, label: str, who: str) -> str:
        return await self.place.refused(self._click(card, label, who))

    async def press_amid(self, card: Message, label: str, who: str) -> str:
        return await self.press(card, label, who)

    async def press_together(self, card: Message, label: str, everybody: list[str]) -> None:
        pressed = [self._click(card, label, who) for who in everybody]
        for each in pressed:
            await each.acknowledged()
        for each in pressed:
            self.server.redeliver(each)

    async def press_copied(self, card: Message, where: Channel, label: str) -> str:
        copy = self.server.say(where, self.server.bot, "look")
        copy.now.components.extend(card.now.components)
        return await self.press(copy, label, self.ada)

    def disguise(self, card: Message, action: str, other: str) -> None:
        for part in card.buttons:
            part["custom_id"] = part["custom_id"].replace(f":{action}:", f":{other}:")

    async def open(self, card: Message, label: str, who: str) -> Interaction:
        pressed = await self._click(card, label, who).acknowledged()
        assert pressed.callback == 9
        return pressed

    def filled_in(self, form: Interaction) -> str:
        assert form.response is not None
        return form.response["components"][0]["component"]["value"]

    def offered(self, form: Interaction) -> list[tuple[str, bool]]:
        assert form.response is not None
        options = form.response["components"][2]["component"]["options"]
        return [(one["value"], one.get("default", False)) for one in options]

    def send(self, form: Interaction, **values: str) -> Interaction:
        return self.server.submit(form, files=(), **values)

    async def said(self, sent: Interaction) -> str:
        await sent.acknowledged()
        message = await self.server.until(
            lambda: sent.message if sent.message and sent.message.content else None
        )
        assert message is not None
        assert message.visible_to is sent.user
        await self.dispatcher.tasks.settled()
        return message.text

    async def redeliver(self, sent: Interaction) -> None:
        self.server.redeliver(sent)

    def lose_direct(self, who: str, breaks: Literal["reset", "hang"], *, applied: bool) -> Lost:
        direct = self.server.dm(self.people[who]).id
        return self.server.fail(SEND, breaks=breaks, applied=applied, channel=direct)

    def close_direct(self, who: str) -> None:
        self.people[who].takes_dms = False

    def promote(self, who: str) -> None:
        managers = self.server.role(self.guild, "managers", Permission.MANAGE_GUILD)
        self.guild.members[self.people[who].id].roles.append(managers)

    async def until(self, what: Callable[[], object]) -> None:
        await self.server.until(what)

    def advance(self, seconds: float) -> None:
        self.server.advance(seconds)

    def forbid_deleting(self) -> str:
        general, bot = self.place.general, self.server.bot
        self.server.overwrite(general, bot, deny=Permission.VIEW_CHANNEL)
        return "the bot has no access to this channel"

    def lose_thread(self, card: Message) -> None:
        assert card.thread is not None
        self.server.delete_channel(card.thread)

    async def kill(self) -> None:
        await self.dispatcher.tasks.drain(0)
        await self._running.aclose()

    async def start(self, admins: Collection[str] = ()) -> None:
        operator = self.dispatcher.channels.operator
        await self.place.die(self.listed(*admins))
        self.dispatcher.reconfigure(operator)
        await self._running.enter_async_context(self._bot())

    def refusals(self) -> list[str]:
        return self.server.unhandled()
