"""What people see on Slack, recorded from runs."""

from pictures import scenario
from pictures.runs import CHANNEL, Picture, rehearse, rehearse_failures, settled, until
from tests.model_server import ModelServer
from tests.slack_server import Message, SlackServer

PLACE = f"# {CHANNEL}"
THREAD = "Thread"


class OnSlack:
    """Ada, who asks the council in a channel of her team's."""

    def __init__(self, slack: SlackServer, models: ModelServer) -> None:
        self._slack = slack
        self._models = models
        self._ada = slack.add_user("ada")
        self._channel = slack.add_channel(CHANNEL, self._ada)
        self._names = {slack.team.bot.id: "Council", self._ada.id: "Ada"}

    async def record(self) -> list[Picture]:
        """Ask until there are enough answers to count; return what is to be drawn."""
        rehearse(self._models)
        card = await self._answered()
        rehearse_failures(self._models)
        await self._answered()
        await self._answered()
        digest = self._replies(card)[0]
        await self._slack.slash(self._channel, self._ada, "/council-stats", "")
        await settled(lambda: len(self._slack.ephemerals(self._channel, self._ada)))
        stats = [
            {
                "user": self._slack.team.bot.id,
                "bot_id": self._slack.team.bot_id,
                "ts": told.ts,
                "text": told.text,
                "blocks": told.blocks,
                "is_ephemeral": True,
            }
            for told in self._slack.ephemerals(self._channel, self._ada)
        ]
        return [
            Picture("slack", "thread", THREAD, [digest.wire()], self._names).cropped("objection"),
            Picture("slack", "stats", PLACE, stats, self._names),
        ]

    async def _answered(self) -> Message:
        """Ask; return the card once it has its answer, and everything below it."""
        number = len(self._cards())
        await self._slack.slash(self._channel, self._ada, "/council", scenario.MIGRATION.question)
        await until(
            lambda: len(self._cards()) > number and "Ask again" in str(self._cards()[number].wire())
        )
        await settled(lambda: len(self._replies(self._cards()[number])))
        return self._cards()[number]

    def _cards(self) -> list[Message]:
        return self._slack.messages(self._channel)

    def _replies(self, card: Message) -> list[Message]:
        return self._slack.thread(self._channel, card.ts)
