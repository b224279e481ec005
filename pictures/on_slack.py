"""What people see on Slack, recorded from runs."""

from pictures import scenario
from pictures.runs import CHANNEL, Picture, rehearse, settled, until
from tests.model_server import ModelServer
from tests.slack_server import Message, SlackServer

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
        """Ask; return what is to be drawn."""
        rehearse(self._models)
        digest = self._replies(await self._answered())[0]
        return [Picture("slack", "thread", THREAD, [digest.wire()], self._names).cropped("objection")]

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
