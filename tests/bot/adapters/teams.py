"""A team with the bot on each platform, seen alike: what holds on both is written once.

A `Team` is what people do and what they are shown; how its platform has it is in the subclass. Both are
the real clients against the fakes of `tests/discord_server` and `tests/slack_server`.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from typing_extensions import override

from bot.app import Library
from bot.service.admission.access import Access
from bot.service.dispatcher import Dispatcher
from council.document.conversation import AssistantMessage, Conversation, UserMessage, Vote
from tests.bot.discord.office import Office, office
from tests.bot.slack.test_bot import Place, at_work, cards_in, restarted
from tests.bot.slack.test_bot import labels as slack_labels
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer, Interaction
from tests.discord_server import Message as DiscordMessage
from tests.slack_server import Delivery
from tests.slack_server import Message as SlackMessage
from tests.slack_server.modals import View

QUESTION = "Shard or scale up?"

Card = TypeVar("Card")
Form = TypeVar("Form")
Sent = TypeVar("Sent")


class Team(ABC, Generic[Card, Form, Sent]):
    """Ada and Bob, by their ids, in a channel with the bot; `card` is always a finished one."""

    platform: ClassVar[str]
    followed_in_the_thread: ClassVar[str]
    """What is said to whoever follows up from below an earlier follow-up."""

    council: ScriptedCouncil
    library: Library
    ada: str
    bob: str

    @property
    @abstractmethod
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of the bot that is running."""

    @abstractmethod
    async def ask(self, question: str = QUESTION) -> Card:
        """Have Ada ask by command, and wait until everything is shown."""

    @abstractmethod
    def cards(self) -> list[Card]:
        """Return the finished cards in the channel."""

    @abstractmethod
    def below(self, card: Card) -> list[Card]:
        """Return the finished cards in a card's thread."""

    @abstractmethod
    def in_thread(self, card: Card) -> int:
        """Return how many messages a card's thread has."""

    @abstractmethod
    def text(self, card: Card) -> str:
        """Return what a card says."""

    @abstractmethod
    def labels(self, card: Card) -> list[str]:
        """Return the labels of a card's buttons."""

    @abstractmethod
    def asked_by(self, name: str, question: str) -> str:
        """Return how a card names a question and who asked it."""

    @abstractmethod
    def followed(self, card: Card) -> str:
        """Return what is said to whoever follows up in the channel."""

    @abstractmethod
    def newcomers(self, number: int) -> list[str]:
        """Let so many people join the channel."""

    @abstractmethod
    async def press(self, card: Card, label: str, who: str) -> str:
        """Press a button; return what only its presser is told."""

    @abstractmethod
    async def press_together(self, card: Card, label: str, everybody: list[str]) -> None:
        """Have several people press a button at once, each press being delivered again and again."""

    @abstractmethod
    async def open(self, card: Card, label: str, who: str) -> Form:
        """Press a button that opens a form."""

    @abstractmethod
    def filled_in(self, form: Form) -> str:
        """Return the text that a form begins with."""

    @abstractmethod
    def offered(self, form: Form) -> list[tuple[str, bool]]:
        """Return the profiles of a form, and which is chosen."""

    @abstractmethod
    def send(self, form: Form, **values: str) -> Sent:
        """Fill in a form and send it."""

    @abstractmethod
    async def said(self, sent: Sent) -> str:
        """Wait until a form has done its work; return what whoever sent it is told, alone."""

    @abstractmethod
    async def redeliver(self, sent: Sent) -> None:
        """Deliver the same form again."""

    @abstractmethod
    def lose_thread(self, card: Card) -> None:
        """Let a card's thread be gone."""

    @abstractmethod
    async def restart(self) -> None:
        """End the bot's process, and start another over the same storage."""

    @abstractmethod
    def refusals(self) -> list[object]:
        """Return what the platform refused of the bot, or couldn't understand."""

    def deny(self, who: str) -> None:
        """Let somebody ask no more."""
        access = Access.model_validate({"deny": {"users": [who]}})
        self.dispatcher.channels.operator = replace(self.dispatcher.channels.operator, access=access)

    async def conversations(self) -> list[Conversation]:
        """Return all conversations."""
        rows = await self.library.index.find_as_operator("")
        return [await self.library.store.load(row.id) for row in rows]

    async def questions(self) -> list[str]:
        """Return what was asked in the one conversation there is."""
        [one] = await self.conversations()
        return [each.content for each in one.messages if isinstance(each, UserMessage)]

    async def votes(self) -> list[tuple[str, bool, str | None]]:
        """Return the votes on the one answer there is, as its document has them."""
        [one] = await self.conversations()
        [answer] = [each for each in one.messages if isinstance(each, AssistantMessage)]
        votes: list[Vote] = [*answer.votes]
        assert {vote.platform for vote in votes} <= {self.platform}
        return [(vote.voter, vote.helpful, vote.reason) for vote in votes]


AnyTeam = Team[Any, Any, Any]


class DiscordTeam(Team[DiscordMessage, Interaction, Interaction]):
    """A guild."""

    platform = "discord"
    followed_in_the_thread = "Your follow-up was asked."

    def __init__(self, place: Office, stack: AsyncExitStack) -> None:
        self._place, self._server, self._running = place, place.server, stack
        self.council, self.library = place.council, place.library
        assert place.general.guild is not None
        self._guild = place.general.guild
        self._people = {str(place.ada.id): place.ada}
        self.ada = str(place.ada.id)
        self.bob = self._join("bob")

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
    async def ask(self, question: str = QUESTION) -> DiscordMessage:
        return await self._place.asked(question)

    @override
    def cards(self) -> list[DiscordMessage]:
        posted = self._server.messages(self._place.general, by_bot=True)
        return [message for message in posted if "Follow up" in self.labels(message)]

    @override
    def below(self, card: DiscordMessage) -> list[DiscordMessage]:
        assert card.thread is not None
        posted = self._server.messages(card.thread, by_bot=True)
        return [message for message in posted if "Follow up" in self.labels(message)]

    @override
    def in_thread(self, card: DiscordMessage) -> int:
        return len(self._server.messages(card.thread, by_bot=True)) if card.thread else 0

    @override
    def text(self, card: DiscordMessage) -> str:
        return card.text

    @override
    def labels(self, card: DiscordMessage) -> list[str]:
        return [part["label"] for part in card.buttons]

    @override
    def asked_by(self, name: str, question: str) -> str:
        return f"**{name.capitalize()} asked**: {question}"

    @override
    def followed(self, card: DiscordMessage) -> str:
        assert card.thread is not None
        address = f"https://discord.com/channels/{self._guild.id}/{card.thread.id}"
        return f"Your follow-up was asked: {address}"

    @override
    def newcomers(self, number: int) -> list[str]:
        return [self._join(f"reader {each}") for each in range(number)]

    def _click(self, card: DiscordMessage, label: str, who: str) -> Interaction:
        button = next(part["custom_id"] for part in card.buttons if part["label"] == label)
        return self._server.click(card, button, self._people[who])

    @override
    async def press(self, card: DiscordMessage, label: str, who: str) -> str:
        return await self._place.refused(self._click(card, label, who))

    @override
    async def press_together(self, card: DiscordMessage, label: str, everybody: list[str]) -> None:
        pressed = [self._click(card, label, who) for who in everybody]
        for each in pressed:
            await each.acknowledged()
        for each in pressed:
            self._server.redeliver(each)

    @override
    async def open(self, card: DiscordMessage, label: str, who: str) -> Interaction:
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
    def lose_thread(self, card: DiscordMessage) -> None:
        assert card.thread is not None
        self._server.delete_channel(card.thread)

    @override
    async def restart(self) -> None:
        await self._running.aclose()
        await self._running.enter_async_context(self._place.bot())

    @override
    def refusals(self) -> list[object]:
        return [*self._server.unhandled()]


@dataclass(frozen=True, slots=True)
class SentForm:
    """A form on its way to the bot."""

    form: View
    delivery: Delivery


ACTIONS = {
    "Follow up": "council_follow",
    "Answer it": "council_answer",
    "Helpful": "council_helpful",
    "Not helpful": "council_unhelpful",
}


class SlackTeam(Team[SlackMessage, View, SentForm]):
    """A workspace."""

    platform = "slack"
    followed_in_the_thread = ""

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self._place, self._stack = place, stack
        self.council, self.library = place.council, place.library
        self._dispatcher = place.dispatcher
        self.ada, self.bob = place.ada.id, place.bob.id
        self._told: dict[str, int] = {}

    @classmethod
    @asynccontextmanager
    async def open_in(
        cls, folder: Path, council: ScriptedCouncil, *, by_http: bool = False
    ) -> AsyncGenerator["SlackTeam"]:
        """Open one over a folder."""
        async with at_work(folder, council, by_http=by_http) as place, AsyncExitStack() as stack:
            yield cls(place, stack)

    @property
    @override
    def dispatcher(self) -> Dispatcher:
        return self._dispatcher

    @override
    async def ask(self, question: str = QUESTION) -> SlackMessage:
        return await self._place.ask(question)

    @override
    def cards(self) -> list[SlackMessage]:
        return self._place.cards(self._place.general)

    @override
    def below(self, card: SlackMessage) -> list[SlackMessage]:
        return cards_in(self._place, card)

    @override
    def in_thread(self, card: SlackMessage) -> int:
        return len(self._place.slack.thread(self._place.general, card.ts))

    @override
    def text(self, card: SlackMessage) -> str:
        return card.text

    @override
    def labels(self, card: SlackMessage) -> list[str]:
        return slack_labels(card)

    @override
    def asked_by(self, name: str, question: str) -> str:
        return f"{name} asked: {question}"

    @override
    def followed(self, card: SlackMessage) -> str:
        return "Your follow-up was asked. The answer appears in the thread."

    @override
    def newcomers(self, number: int) -> list[str]:
        joined = [self._place.slack.add_user(f"reader{each}").id for each in range(number)]
        self._place.general.members.update(joined)
        return joined

    async def _newly_told(self, who: str) -> str:
        await self._dispatcher.tasks.settled()
        told = [shown.text for shown in self._place.slack.ephemerals(self._place.general, who)]
        before, self._told[who] = self._told.get(who, 0), len(told)
        return "\n".join(told[before:])

    @override
    async def press(self, card: SlackMessage, label: str, who: str) -> str:
        assert (await self._place.slack.click(card, ACTIONS[label], who)).acked
        return await self._newly_told(who)

    @override
    async def press_together(self, card: SlackMessage, label: str, everybody: list[str]) -> None:
        pressed = [self._place.slack.click(card, ACTIONS[label], who) for who in everybody]
        for each in pressed:
            await each
            await self._place.slack.redeliver(each)

    @override
    async def open(self, card: SlackMessage, label: str, who: str) -> View:
        await self.press(card, label, who)
        return self._place.slack.form(who)

    @override
    def filled_in(self, form: View) -> str:
        return form.form["blocks"][0]["element"]["initial_value"]

    @override
    def offered(self, form: View) -> list[tuple[str, bool]]:
        select = form.form["blocks"][1]["element"]
        chosen = select["initial_option"]["value"]
        return [(one["value"], one["value"] == chosen) for one in select["options"]]

    @override
    def send(self, form: View, **values: str) -> SentForm:
        form.is_open = True  # its closing may never have reached this client
        return SentForm(form, self._place.slack.submit(form, **values))

    @override
    async def said(self, sent: SentForm) -> str:
        assert (await sent.delivery).acked
        if sent.form.is_open:
            return "\n".join(sent.form.errors.values())
        return await self._newly_told(sent.form.user)

    @override
    async def redeliver(self, sent: SentForm) -> None:
        await self._place.slack.redeliver(sent.delivery)

    @override
    def lose_thread(self, card: SlackMessage) -> None:
        self._place.slack.fail("chat.postMessage", "thread_not_found", in_thread=True)

    @override
    async def restart(self) -> None:
        self._dispatcher = await self._stack.enter_async_context(restarted(self._place))

    @override
    def refusals(self) -> list[object]:
        return [call for call in self._place.slack.requests if call.error]
