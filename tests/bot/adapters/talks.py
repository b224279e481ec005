"""People who talk in a thread of their own, on each platform; and the bot, asked there."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from typing_extensions import override

from bot.service.commands import ACTION
from bot.slack.client import SHORTCUT
from tests.bot.adapters.discord_team import DiscordTeam
from tests.bot.adapters.slack_team import SlackTeam
from tests.bot.adapters.teams import AnyTeam
from tests.discord_server import Channel as DiscordChannel
from tests.discord_server import Message as DiscordMessage
from tests.discord_server import posting, wire
from tests.slack_server import Channel as SlackChannel
from tests.slack_server import Message as SlackMessage

MESSAGES = "GET /channels/{channel_id}/messages"
Files = Mapping[str, bytes]
Json = dict[str, Any]

AnyTeamT = TypeVar("AnyTeamT", bound=AnyTeam)
Card = TypeVar("Card")
Thread = TypeVar("Thread")


class Talks(Protocol[AnyTeamT, Thread, Card]):
    """Threads of a team's people."""

    why_unread: ClassVar[str]
    """Why a thread isn't read where nobody has switched that on."""
    hostile: str
    """A message full of mentions and markup."""
    team: AnyTeamT

    def __init__(self, team: AnyTeamT) -> None:
        self.team = team

    def discuss(self, number: int) -> Thread:
        """Let Ada, Bob, Cleo and Dan write so many messages in turn; return their thread."""
        people = [self.team.ada, self.team.bob, self.team.join("cleo"), self.team.join("dan")]
        thread = self.begin("Message 1.")
        for each in range(2, number + 1):
            self.say_in(thread, people[(each - 1) % 4], f"Message {each}.")
        return thread

    def begin(self, text: str) -> Thread: ...  # Let Ada begin a thread in the channel with a message
    # Let Ada write a message where only some people read
    def discuss_secretly(self, text: str) -> Thread: ...
    def thread_of(self, card: Card) -> Thread: ...  # Return the thread below a card
    # Write a message in a thread
    def say_in(self, thread: Thread, who: str, text: str, files: Files | None = None) -> None: ...
    # Let Grafana's bot post a message that looks like this on the wire
    def post_in(self, thread: Thread, content: Json) -> Card: ...
    # Return a message in which one with a file is forwarded
    def with_file(self, content: Json, name: str, data: bytes) -> Json: ...
    # Have Ada mention the bot where she replies to a message or, on Slack, forwards it
    async def ask_by(self, thread: Thread, message: Card, text: str) -> None: ...
    # Return the messages of a thread, without the one that it is below
    def messages_in(self, thread: Thread) -> list[Card]: ...
    # Have Ada or somebody else mention the bot in a thread
    def begin_in(self, thread: Thread, question: str, who: str = "") -> Awaitable[object]: ...
    # Mention the bot in a thread, and return its card when everything is shown
    async def ask_in(self, thread: Thread, question: str, who: str = "") -> Card: ...
    # Use the message action, and return the card when everything is shown
    async def ask_about(self, thread: Thread, message: Card, who: str) -> Card: ...
    def address(self, thread: Thread) -> str: ...  # Return how somebody names a thread to the bot
    # Return the places whose messages the platform was asked for
    def threads_read(self) -> list[str]: ...
    # Return the place that the platform is asked for a thread
    def place(self, thread: Thread) -> str: ...
    # Return everything that is in a thread and in the channel around it
    def shown_in(self, thread: Thread) -> str: ...
    # Return everything that the bot has posted in a thread
    def posted_in(self, thread: Thread) -> str: ...
    def trouble_reading(self) -> None: ...  # Let the platform refuse to return messages for a moment
    def hang_reading(self) -> None: ...  # Let the platform return no messages


AnyTalks = Talks[Any, Any, Any]


class DiscordTalks(Talks[DiscordTeam, DiscordChannel, DiscordMessage]):
    """On Discord, a thread is a channel."""

    why_unread = "an admin hasn't switched that on"

    def __init__(self, team: DiscordTeam) -> None:
        super().__init__(team)
        self._server, self._general = team.server, team.place.general
        self.hostile = f"@everyone <@{team.ada}> <@&1> `[begin x]` ```"

    def _joined(self, thread: DiscordChannel) -> DiscordChannel:
        for user in self.team.people.values():
            thread.joined.setdefault(user.id, "2026-01-20T10:30:00+00:00")
        return thread

    def begin(self, text: str) -> DiscordChannel:
        ada = self.team.people[self.team.ada]
        first = self._server.say(self._general, ada, text)
        return self._joined(self._server.thread(self._general, "An idea", ada, on=first))

    def discuss_secretly(self, text: str) -> DiscordChannel:
        ada = self.team.people[self.team.ada]
        thread = self._joined(self._server.thread(self._general, "A secret", ada, private=True))
        self._server.say(thread, ada, text)
        return thread

    def thread_of(self, card: DiscordMessage) -> DiscordChannel:
        assert card.thread is not None
        return card.thread

    def say_in(self, thread: DiscordChannel, who: str, text: str, files: Files | None = None) -> None:
        self._server.say(thread, self.team.people[who], text, files=dict(files or {}))

    def post_in(self, thread: DiscordChannel, content: Json) -> DiscordMessage:
        bot = self._server.world.add_user("Grafana", bot=True)
        message = posting.post(self._server.world, thread, bot, {"content": "\u2026"}, {}, by="bot")
        message.carries = dict(content)
        return message

    def with_file(self, content: Json, name: str, data: bytes) -> Json:
        [snapshot] = content["message_snapshots"]
        file = wire.attachment(self._server.upload(name, data))
        return content | {
            "message_snapshots": [{"message": snapshot["message"] | {"attachments": [file]}}]
        }

    async def ask_by(self, thread: DiscordChannel, message: DiscordMessage, text: str) -> None:
        ada, said = self.team.people[self.team.ada], f"{self._server.bot.mention} {text}"
        before = len(self._server.messages(thread, by_bot=True))
        self._server.say(thread, ada, said, reply_to=message)
        await self._server.until(lambda: len(self._server.messages(thread, by_bot=True)) > before)
        await self.team.dispatcher.tasks.settled()

    def messages_in(self, thread: DiscordChannel) -> list[DiscordMessage]:
        return self._server.messages(thread)

    def begin_in(self, thread: DiscordChannel, question: str, who: str = "") -> Awaitable[object]:
        before = len(self._server.messages(thread, by_bot=True))
        self._server.mention(thread, self.team.people[who or self.team.ada], question)
        return self._server.until(lambda: len(self._server.messages(thread, by_bot=True)) > before)

    async def ask_in(self, thread: DiscordChannel, question: str, who: str = "") -> DiscordMessage:
        before = len(self._server.messages(thread, by_bot=True))
        await self.begin_in(thread, question, who)
        await self.team.dispatcher.tasks.settled()
        return self._server.messages(thread, by_bot=True)[before]

    @override
    async def ask_about(
        self, thread: DiscordChannel, message: DiscordMessage, who: str
    ) -> DiscordMessage:
        card = await self.team.place.card(self._server.menu(ACTION, message, self.team.people[who]))
        await self.team.dispatcher.tasks.settled()
        return card

    def address(self, thread: DiscordChannel) -> str:
        return f"<#{thread.id}>"

    def threads_read(self) -> list[str]:
        return [call.path.split("/")[-2] for call in self._server.requests(MESSAGES)]

    def place(self, thread: DiscordChannel) -> str:
        return str(thread.id)

    def shown_in(self, thread: DiscordChannel) -> str:
        shown = [*self._server.messages(thread), *self._server.messages(self._general)]
        return str([message.text for message in shown])

    def posted_in(self, thread: DiscordChannel) -> str:
        return str([message.text for message in self._server.messages(thread, by_bot=True)])

    def trouble_reading(self) -> None:
        self._server.fail(MESSAGES, 429, retry_after=0.01)
        self._server.fail(MESSAGES, breaks="reset")
        self._server.fail(MESSAGES, 502)

    def hang_reading(self) -> None:
        self._server.fail(MESSAGES, breaks="hang")


class SlackTalks(Talks[SlackTeam, SlackMessage, SlackMessage]):
    """On Slack, a thread is named by its first message."""

    why_unread = "the scopes channels:history and groups:history are missing"

    def __init__(self, team: SlackTeam) -> None:
        super().__init__(team)
        self._slack, self._general = team.place.slack, team.place.general
        words = "Hello <!channel> <@{0}> @everyone <!here> `<@{0}>` [x](https://x.example) <!subteam^S1>"
        self.hostile = words.format(team.ada)

    def _channel(self, thread: SlackMessage) -> SlackChannel:
        return self._slack.world.channels[thread.channel]

    def begin(self, text: str) -> SlackMessage:
        return self._slack.post(self._general, self.team.ada, text)

    def discuss_secretly(self, text: str) -> SlackMessage:
        place = self.team.place
        secret = self._slack.add_channel("secret", place.ada, place.bob, kind="private")
        return self._slack.post(secret, place.ada, text)

    def thread_of(self, card: SlackMessage) -> SlackMessage:
        return card

    def say_in(self, thread: SlackMessage, who: str, text: str, files: Files | None = None) -> None:
        user = self._slack.world.users[who]
        sent = [self._slack.add_file(name, content, user) for name, content in (files or {}).items()]
        self._slack.post(self._channel(thread), user, text, thread_ts=thread.ts, files=sent)

    def post_in(self, thread: SlackMessage, content: Json) -> SlackMessage:
        bot = self._slack.add_user("Grafana")
        message = self._slack.post(self._channel(thread), bot, content["text"], thread_ts=thread.ts)
        message.blocks, message.attachments = content.get("blocks", []), content.get("attachments", [])
        return message

    def with_file(self, content: Json, name: str, data: bytes) -> Json:
        [shared] = content["attachments"]
        file = self._slack.add_file(name, data, self.team.place.bob).wire()
        return content | {"attachments": [shared | {"files": [file]}]}

    async def ask_by(self, thread: SlackMessage, message: SlackMessage, text: str) -> None:
        said = f"<@{self._slack.team.bot.id}> {text}"
        mention = self._slack.post(self._channel(thread), self.team.ada, said, thread_ts=thread.ts)
        mention.attachments = [
            {"is_share": True, "text": message.text, "attachments": message.attachments}
            | {"message_blocks": [{"message": {"blocks": message.blocks}}]}
        ]
        await self.team.place.deliver("app_mention", mention, {})
        await self.team.dispatcher.tasks.settled()

    def messages_in(self, thread: SlackMessage) -> list[SlackMessage]:
        return self._slack.thread(self._channel(thread), thread.ts)

    def begin_in(self, thread: SlackMessage, question: str, who: str = "") -> Awaitable[object]:
        asker = who or self.team.ada
        return self._slack.mention(self._channel(thread), asker, question, thread_ts=thread.ts)

    async def ask_in(self, thread: SlackMessage, question: str, who: str = "") -> SlackMessage:
        await self.begin_in(thread, question, who)
        return await self._card_in(thread)

    async def _card_in(self, thread: SlackMessage) -> SlackMessage:
        await self.team.dispatcher.tasks.settled()
        shown = reversed(self.messages_in(thread))
        return next(each for each in shown if "Ask again" in self.team.labels(each))

    async def ask_about(self, thread: SlackMessage, message: SlackMessage, who: str) -> SlackMessage:
        await self._slack.shortcut(SHORTCUT, message, who)
        return await self._card_in(thread)

    def address(self, thread: SlackMessage) -> str:
        return thread.ts

    def threads_read(self) -> list[str]:
        return [call.arguments["channel"] for call in self._slack.calls("conversations.replies")]

    def place(self, thread: SlackMessage) -> str:
        return thread.channel

    def shown_in(self, thread: SlackMessage) -> str:
        return str([each.text for each in self._channel(thread).messages.values()])

    def posted_in(self, thread: SlackMessage) -> str:
        posted = [each for each in self._channel(thread).messages.values() if each.bot_id]
        return str([(each.blocks, each.text) for each in posted])

    def trouble_reading(self) -> None:
        self._slack.fail("conversations.replies", retry_after=1)
        self._slack.fail("conversations.replies", breaks="reset")

    def hang_reading(self) -> None:
        self._slack.fail("conversations.replies", breaks="hang")


TALKS: dict[str, Callable[[Any], AnyTalks]] = {"discord": DiscordTalks, "slack": SlackTalks}
"""By platform."""
