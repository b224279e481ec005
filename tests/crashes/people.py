"""People who ask on a fake Discord and a fake Slack, and what they see."""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.discord_server import Channel as DiscordChannel
from tests.discord_server import DiscordServer, Guild
from tests.discord_server import Message as DiscordMessage
from tests.discord_server import User as DiscordUser
from tests.slack_server import Channel as SlackChannel
from tests.slack_server import Message as SlackMessage
from tests.slack_server import SlackServer
from tests.slack_server import User as SlackUser


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that a platform shows: everything a person reads, and whom it notified."""

    text: str
    pings: int


@dataclass(eq=False, slots=True, kw_only=True)
class Asked:
    """A question that somebody asked, and where its messages are to be read.

    `cards` are those messages of the bot in the channel that show the question, `thread` the ones
    below them. `taken` says whether the asker was told that the question is taken; `press` presses the
    button with this label on the newest card; `forget` has all deleted that the asker asked.
    """

    text: str
    platform: str
    cards: Callable[[], list[Posted]]
    thread: Callable[[], list[Posted]]
    taken: Callable[[], bool]
    press: Callable[[str], object]
    forget: Callable[[], Awaitable[object]]


@dataclass(eq=False, slots=True)
class People:
    """Somebody on each platform, who asks in a new channel each time."""

    discord: DiscordServer
    slack: SlackServer
    asked: list[Asked] = field(default_factory=list[Asked])
    _rooms: "itertools.count[int]" = field(default_factory=itertools.count)
    _guild: Guild | None = None

    def ask(self, each: int = 1) -> list[Asked]:
        """Ask this many questions at once on each platform: one person each, in one new channel."""
        return [*self.ask_on_discord(each), *self.ask_on_slack(each)]

    def ask_on_discord(self, questions: int = 1) -> list[Asked]:
        """Ask this many questions at once on Discord, in a new channel."""
        number = next(self._rooms)
        if self._guild is None:
            self._guild = self.discord.guild("Team")
        channel = self.discord.channel(self._guild, f"room-{number}")
        ada = self.discord.member(self._guild, "ada")
        asked = [
            self._by_command(channel, ada, f"Question {number}.{each} of Ada")
            for each in range(questions)
        ]
        self.asked += asked
        return asked

    def _by_command(self, channel: DiscordChannel, ada: DiscordUser, text: str) -> Asked:
        interaction = self.discord.slash(channel, ada, "council", question=text)

        def own() -> list[DiscordMessage]:
            return [card for card in self.discord.messages(channel, by_bot=True) if text in card.text]

        def said(message: DiscordMessage) -> Posted:
            return Posted(f"{message.text}\n{message.buttons}", len(message.pinged))

        def thread() -> list[Posted]:
            below = [card.thread for card in own() if card.thread]
            return [said(each) for place in below for each in self.discord.messages(place, by_bot=True)]

        def press(label: str) -> object:
            card = own()[-1]
            [button] = [each for each in card.buttons if each["label"] == label]
            return self.discord.click(card, button["custom_id"], ada)

        async def forget() -> object:
            typed = self.discord.slash(channel, ada, "council-forget", what="me")
            asks = (await typed.acknowledged()).message
            assert asks is not None
            [button] = [each for each in asks.buttons if each["label"] == "Delete"]
            return self.discord.click(asks, button["custom_id"], ada)

        return Asked(
            text=text,
            platform="discord",
            cards=lambda: [said(card) for card in own()],
            thread=thread,
            taken=lambda: interaction.message is not None,
            press=press,
            forget=forget,
        )

    def ask_on_slack(self, questions: int = 1) -> list[Asked]:
        """Ask this many questions at once on Slack, in a new channel."""
        number = next(self._rooms)
        bob = self.slack.add_user("bob")
        room = self.slack.add_channel(f"room-{number}", bob)
        asked = [
            self._by_slash(room, bob, f"Question {number}.{each} of Bob") for each in range(questions)
        ]
        self.asked += asked
        return asked

    def _by_slash(self, room: SlackChannel, bob: SlackUser, text: str) -> Asked:
        delivery = self.slack.slash(room, bob, "/council", text)

        def own() -> list[SlackMessage]:
            return [card for card in self.slack.messages(room) if text in f"{card.text}{card.blocks}"]

        def said(message: SlackMessage) -> Posted:
            return Posted(f"{message.text}\n{message.blocks}", len(message.pinged))

        def press(label: str) -> object:
            card = own()[-1]
            [button] = [each for each, _ in card.elements() if each["text"]["text"] == label]
            return self.slack.click(card, button["action_id"], bob)

        async def forget() -> object:
            await self.slack.slash(room, bob, "/council-forget", "me")
            asks = (await self.slack.until(lambda: self.slack.ephemerals(room, bob)))[-1]
            [button] = [each for each, _ in asks.elements() if each["text"]["text"] == "Delete"]
            return self.slack.click(asks, button["action_id"], bob)

        return Asked(
            text=text,
            platform="slack",
            cards=lambda: [said(card) for card in own()],
            thread=lambda: [said(each) for card in own() for each in self.slack.thread(room, card.ts)],
            taken=lambda: delivery.acked,
            press=press,
            forget=forget,
        )
