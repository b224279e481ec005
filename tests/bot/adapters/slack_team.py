"""A team on Slack: the real Bolt app against the fake of `tests/slack_server`."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from typing_extensions import override

from bot.service.dispatcher import Dispatcher
from tests.bot.adapters.teams import QUESTION, Lost, Team
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work, cards_in, labels, restarted
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import Delivery, Ephemeral, Message
from tests.slack_server.faults import ALWAYS
from tests.slack_server.modals import View


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


class SlackTeam(Team[Message, Ephemeral, View, SentForm]):
    """A workspace."""

    platform = "slack"
    followed_in_the_thread = ""
    repeats_lost = True

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self._place, self._running = place, stack
        self.council, self.library = place.council, place.library
        self.ada, self.bob = place.ada.id, place.bob.id
        self._told: dict[str, int] = {}
        self.channel = f"<#{place.general.id}>"
        self.here = "this workspace"

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
        return self._place.dispatcher

    @override
    async def ask(self, question: str = QUESTION) -> Message:
        return await self._place.ask(question)

    @override
    async def begin(self, question: str = QUESTION) -> Message:
        before = len(self.cards())
        await self._place.slack.slash(self._place.general, self.ada, "/council", question)
        await self._place.slack.until(lambda: len(self.cards()) > before)
        return self.cards()[-1]

    @override
    async def refused(self, question: str = QUESTION, who: str = "") -> str:
        return (await self._command("/council", question, who or self.ada)).text

    @override
    async def ask_together(self, times: int) -> int:
        def shown() -> tuple[int, int]:
            return len(self.cards()), len(self._place.told(self._place.ada))

        cards, told = shown()
        asked = [
            self._place.slack.slash(self._place.general, self.ada, "/council", "?") for _ in range(times)
        ]
        for each in asked:
            await each
        await self._place.slack.until(lambda: sum(shown()) == cards + told + times)
        return len(self.cards()) - cards

    @override
    async def use(self, command: str, who: str = "", **options: str | int) -> Ephemeral:
        flags = command == "config"
        words = [f"--{name} {value}" if flags else f"{value}" for name, value in options.items()]
        return await self._command(f"/council-{command}", " ".join(words), who or self.ada)

    async def _command(self, command: str, text: str, who: str) -> Ephemeral:
        slack, channel = self._place.slack, self._place.general
        before = len(slack.ephemerals(channel, who))
        assert (await slack.slash(channel, who, command, text)).acked
        await slack.until(lambda: len(slack.ephemerals(channel, who)) > before)
        return slack.ephemerals(channel, who)[-1]

    @override
    def cards(self) -> list[Message]:
        return self._place.cards(self._place.general)

    @override
    def below(self, card: Message) -> list[Message]:
        return cards_in(self._place, card)

    @override
    def in_thread(self, card: Message) -> int:
        return len(self._place.slack.thread(self._place.general, card.ts))

    @override
    def text(self, card: Message) -> str:
        return card.text

    @override
    def first_text(self, card: Message) -> str:
        return card.history[0].text

    @override
    def read(self, shown: Message | Ephemeral) -> str:
        return blocks_text(shown.blocks) or shown.text

    @override
    def labels(self, shown: Message | Ephemeral) -> list[str]:
        return labels(shown)

    @override
    def name(self, name: str) -> str:
        return name

    @override
    def quoted(self, question: str) -> str:
        return question

    @override
    def asked_by(self, name: str, question: str) -> str:
        return f"{name} asked: {question}"

    @override
    def followed(self, card: Message) -> str:
        return "Your follow-up was asked. The answer appears in the thread."

    @override
    def newcomers(self, number: int) -> list[str]:
        joined = [self._place.slack.add_user(f"reader{each}").id for each in range(number)]
        self._place.general.members.update(joined)
        return joined

    async def _newly_told(self, who: str) -> str:
        await self.dispatcher.tasks.settled()
        told = [shown.text for shown in self._place.slack.ephemerals(self._place.general, who)]
        before, self._told[who] = self._told.get(who, 0), len(told)
        return "\n".join(told[before:])

    @override
    async def press(self, card: Message, label: str, who: str) -> str:
        assert (await self._place.slack.click(card, ACTIONS[label], who)).acked
        return await self._newly_told(who)

    @override
    async def press_together(self, card: Message, label: str, everybody: list[str]) -> None:
        pressed = [self._place.slack.click(card, ACTIONS[label], who) for who in everybody]
        for each in pressed:
            await each
            await self._place.slack.redeliver(each)

    @override
    async def open(self, card: Message, label: str, who: str) -> View:
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
    def told_directly(self, who: str) -> list[str]:
        direct = self._place.slack.world.open_im(self._place.slack.team, who)
        return [message.text for message in self._place.slack.messages(direct) if message.bot_id]

    @override
    def lose_direct(self, who: str, breaks: Literal["reset", "hang"], *, applied: bool) -> Lost:
        direct = self._place.slack.world.open_im(self._place.slack.team, who).id
        return self._place.slack.fail("chat.postMessage", breaks=breaks, applied=applied, channel=direct)

    @override
    def close_direct(self, who: str) -> None:
        self._place.slack.fail("conversations.open", "missing_scope", times=ALWAYS, user=who)

    @override
    def promote(self, who: str) -> None:
        self._place.slack.world.users[who].is_admin = True

    @override
    async def until(self, what: Callable[[], object]) -> None:
        await self._place.slack.until(what)

    @override
    def advance(self, seconds: float) -> None:
        self._place.clock.advance(seconds)

    @override
    def lose_thread(self, card: Message) -> None:
        self._place.slack.fail("chat.postMessage", "thread_not_found", in_thread=True)

    @override
    async def kill(self) -> None:
        await self.dispatcher.tasks.drain(0)
        await self._place.bot.__aexit__(None, None, None)
        await self._running.aclose()

    @override
    async def start(self, admins: Collection[str] = ()) -> None:
        again = restarted(self._place, self.listed(*admins), self.dispatcher.channels.operator)
        self._place.dispatcher = await self._running.enter_async_context(again)

    @override
    def refusals(self) -> list[object]:
        return [call for call in self._place.slack.requests if call.error]
