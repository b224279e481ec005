"""A team on Discord: the real client against the fake of `tests/discord_server`."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import ClassVar, Literal

from typing_extensions import override

from bot.service.dispatcher import Dispatcher
from tests.bot.adapters.teams import QUESTION, Lost, Team
from tests.bot.discord.office import Office, office
from tests.bot.shown import text
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Interaction, Message, Permission
from tests.discord_server.state import shown

SEND = "POST /channels/{channel_id}/messages"


class DiscordTeam(Team[Message, Message, Interaction, Interaction]):
    """A guild."""

    platform = "discord"
    followed_in_the_thread = "Your follow-up was asked."
    repeats_lost = False
    inside = "on this server"
    dated = "R> \u00b7 "
    verbs = ("past:turn", "past:see", "past:share")
    transcript_shown: ClassVar[list[str]] = ["tml", ".md"]
    also_listed = 1

    def __init__(self, place: Office, stack: AsyncExitStack) -> None:
        self._place, self._server, self._running = place, place.server, stack
        self.council, self.library = place.council, place.library
        assert place.general.guild is not None
        self._guild = place.general.guild
        self._people = {str(place.ada.id): place.ada}
        self.ada = str(place.ada.id)
        self.bob = self._join("bob")
        self.channel = place.general.mention
        self.here = f"the server https://discord.com/channels/{self._guild.id}"

    @classmethod
    @asynccontextmanager
    async def open_in(cls, folder: Path, council: ScriptedCouncil) -> AsyncGenerator["DiscordTeam"]:
        """Open one over a folder."""
        async with DiscordServer() as server, AsyncExitStack() as stack:
            server.world.patience = 60  # a busy machine fails no test
            place = await stack.enter_async_context(office(server, folder, council))
            team = cls(place, await stack.enter_async_context(AsyncExitStack()))
            await team._running.enter_async_context(place.bot())
            yield team

    def _join(self, name: str) -> str:
        user = self._server.member(self._guild, name)
        self._people[str(user.id)] = user
        return str(user.id)

    @property
    @override
    def dispatcher(self) -> Dispatcher:
        return self._place.dispatcher

    @override
    async def ask(self, question: str = QUESTION) -> Message:
        return await self._place.asked(question)

    @override
    async def begin(self, question: str = QUESTION) -> Message:
        return await self._place.ask(question)

    @override
    async def refused(self, question: str = QUESTION, who: str = "") -> str:
        user = self._people[who or self.ada]
        asked = self._server.slash(self._place.general, user, "council", question=question)
        return await self._place.refused(asked)

    @override
    async def ask_together(self, times: int) -> int:
        asked = [
            self._server.slash(self._place.general, self._people[self.ada], "council", question="?")
            for _ in range(times)
        ]
        shown = [(await each.acknowledged()).message for each in asked]
        return sum(each is not None and not each.ephemeral for each in shown)

    @override
    async def use(
        self, command: str, who: str = "", where: object = None, **options: str | int
    ) -> Message:
        user = self._people[who or self.ada]
        channel = where if isinstance(where, Channel) else self._place.general
        used = self._server.slash(channel, user, f"council-{command}", **options)
        note = (await used.acknowledged()).message
        assert note is not None
        assert note.visible_to is user
        return note

    @override
    async def look(self, shown: Message, label: str, who: str = "") -> Message:
        pressed = await self._click(shown, label, who or self.ada).acknowledged()
        message = await self._server.until(lambda: pressed.message)
        assert message is not None
        return message

    @override
    async def delete(self, asked: Message, who: str = "") -> str:
        gone = await self.look(asked, "Delete", who)
        await self._server.until(lambda: gone.content.startswith("Deleted"))
        await self.dispatcher.tasks.settled()
        return gone.content

    @override
    async def transcript(self, shown: Message) -> list[str]:
        message = await self.look(shown, "Transcript")
        await self._server.until(lambda: message.attachments)
        return [file.filename[-3:] for file in message.attachments]

    @override
    def elsewhere(self) -> list[object]:
        other = self._server.guild("Another team")
        ada = self._people[self.ada]
        self._server.join(other, ada)
        return [
            self._server.channel(self._guild, "elsewhere"),
            self._server.channel(other, "general"),
            self._server.dm(ada),
        ]

    @override
    def values(self, shown: Message) -> list[str]:
        return [part["custom_id"] for part in shown.buttons]

    @override
    async def forge(self, where: Channel, value: str) -> str:
        posted = self._server.say(where, self._server.bot, "look")
        button = {"type": 2, "style": 2, "label": "x", "custom_id": value}
        posted.now.components.append({"type": 1, "components": [button]})
        pressed = await self._server.click(posted, value, self._people[self.ada]).acknowledged()
        shown = pressed.message
        assert shown is not None
        assert shown is not posted
        await self._server.until(lambda: shown.text)
        return shown.text

    @override
    def cards(self) -> list[Message]:
        posted = self._server.messages(self._place.general, by_bot=True)
        return [message for message in posted if "Follow up" in self.labels(message)]

    @override
    def public(self) -> list[Message]:
        posted = self._server.messages(self._place.general, by_bot=True)
        return [message for message in posted if not message.ephemeral]

    def _for_all(self) -> list[Message]:
        channels = [self._place.general, *self._server.threads(self._place.general)]
        posted = (each for channel in channels for each in self._server.messages(channel, by_bot=True))
        return [message for message in posted if not message.ephemeral]

    @override
    def left(self) -> list[str]:
        return [message.text for message in self._for_all()]

    @override
    def files(self) -> int:
        return sum(len(message.attachments) for message in self._for_all())

    @override
    def pings(self) -> list[object]:
        return [*self._server.pings()]

    @override
    def say_below(self, card: Message, who: str, text: str) -> object:
        assert card.thread is not None
        return self._server.say(card.thread, self._people[who], text)

    @override
    def said_below(self, card: Message) -> list[object]:
        assert card.thread is not None
        return [*self._server.messages(card.thread)]

    @override
    def below(self, card: Message) -> list[Message]:
        assert card.thread is not None
        posted = self._server.messages(card.thread, by_bot=True)
        return [message for message in posted if "Follow up" in self.labels(message)]

    @override
    def in_thread(self, card: Message) -> int:
        return len(self._server.messages(card.thread, by_bot=True)) if card.thread else 0

    @override
    def text(self, card: Message) -> str:
        return card.text

    @override
    def first_text(self, card: Message) -> str:
        return shown(card.history[0])

    @override
    def read(self, shown: Message) -> str:
        return shown.text

    @override
    def plain(self, shown: Message) -> str:
        return text(shown.text)

    @override
    def is_private(self, shown: Message, who: str) -> bool:
        return shown.visible_to is self._people[who]

    @override
    def leads_to(self, shown: Message, card: Message) -> bool:
        return f"[Open](<https://discord.com/channels/{self._guild.id}/{card.id}>)" in shown.text

    @override
    def labels(self, shown: Message) -> list[str]:
        return [part["label"] for part in shown.buttons]

    @override
    def name(self, name: str) -> str:
        return name.capitalize()

    @override
    def mention(self, who: str) -> str:
        return f"<@{who}>"

    @override
    def strong(self, words: str) -> str:
        return f"**{words}**"

    @override
    def quoted(self, question: str) -> str:
        return f"> {question}"

    @override
    def asked_by(self, name: str, question: str) -> str:
        return f"**{name.capitalize()} asked**: {question}"

    @override
    def followed(self, card: Message) -> str:
        assert card.thread is not None
        address = f"https://discord.com/channels/{self._guild.id}/{card.thread.id}"
        return f"Your follow-up was asked: {address}"

    @override
    def newcomers(self, number: int) -> list[str]:
        return [self._join(f"reader {each}") for each in range(number)]

    def _click(self, card: Message, label: str, who: str) -> Interaction:
        button = next(part["custom_id"] for part in card.buttons if part["label"] == label)
        return self._server.click(card, button, self._people[who])

    @override
    async def press(self, card: Message, label: str, who: str) -> str:
        return await self._place.refused(self._click(card, label, who))

    @override
    async def press_together(self, card: Message, label: str, everybody: list[str]) -> None:
        pressed = [self._click(card, label, who) for who in everybody]
        for each in pressed:
            await each.acknowledged()
        for each in pressed:
            self._server.redeliver(each)

    @override
    async def open(self, card: Message, label: str, who: str) -> Interaction:
        pressed = await self._click(card, label, who).acknowledged()
        assert pressed.callback == 9
        return pressed

    @override
    def filled_in(self, form: Interaction) -> str:
        assert form.response is not None
        return form.response["components"][0]["component"]["value"]

    @override
    def offered(self, form: Interaction) -> list[tuple[str, bool]]:
        assert form.response is not None
        options = form.response["components"][2]["component"]["options"]
        return [(one["value"], one.get("default", False)) for one in options]

    @override
    def send(self, form: Interaction, **values: str) -> Interaction:
        return self._server.submit(form, files=(), **values)

    @override
    async def said(self, sent: Interaction) -> str:
        await sent.acknowledged()
        message = await self._server.until(
            lambda: sent.message if sent.message and sent.message.content else None
        )
        assert message is not None
        assert message.visible_to is sent.user
        await self.dispatcher.tasks.settled()
        return message.text

    @override
    async def redeliver(self, sent: Interaction) -> None:
        self._server.redeliver(sent)

    @override
    def told_directly(self, who: str) -> list[str]:
        direct = self._server.dm(self._people[who])
        return [message.text for message in self._server.messages(direct, by_bot=True)]

    @override
    def lose_direct(self, who: str, breaks: Literal["reset", "hang"], *, applied: bool) -> Lost:
        direct = self._server.dm(self._people[who]).id
        return self._server.fail(SEND, breaks=breaks, applied=applied, channel=direct)

    @override
    def close_direct(self, who: str) -> None:
        self._people[who].takes_dms = False

    @override
    def promote(self, who: str) -> None:
        managers = self._server.role(self._guild, "managers", Permission.MANAGE_GUILD)
        self._guild.members[self._people[who].id].roles.append(managers)

    @override
    async def until(self, what: Callable[[], object]) -> None:
        await self._server.until(what)

    @override
    def advance(self, seconds: float) -> None:
        self._server.advance(seconds)

    @override
    def forbid_deleting(self) -> str:
        general, bot = self._place.general, self._server.bot
        self._server.overwrite(general, bot, deny=Permission.VIEW_CHANNEL)
        return "the bot has no access to this channel"

    @override
    def lose_thread(self, card: Message) -> None:
        assert card.thread is not None
        self._server.delete_channel(card.thread)

    @override
    async def kill(self) -> None:
        await self.dispatcher.tasks.drain(0)
        await self._running.aclose()

    @override
    async def start(self, admins: Collection[str] = ()) -> None:
        operator = self.dispatcher.channels.operator
        await self._place.die(self.listed(*admins))
        self.dispatcher.reconfigure(operator)
        await self._running.enter_async_context(self._place.bot())

    @override
    def refusals(self) -> list[str]:
        return self._server.unhandled()
