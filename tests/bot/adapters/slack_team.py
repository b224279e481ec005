"""A team on Slack: the real Bolt app against the fake of `tests/slack_server`."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from typing_extensions import override

from bot.service.dispatcher import Dispatcher
from bot.slack.client import SHORTCUT, THREADS
from tests.bot.adapters.teams import QUESTION, Files, Lost, Team
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work, cards_in, labels, restarted
from tests.breaking import ALWAYS
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import Channel, Delivery, Ephemeral, Message
from tests.slack_server.modals import View
from tests.slack_server.workspace import StoredFile

METHODS = {"edit": "chat.update", "post": "chat.postMessage", "read": "conversations.replies"}


@dataclass(frozen=True, slots=True)
class SentForm:
    """A form on its way to the bot."""

    form: View
    delivery: Delivery


class SlackTeam(Team[Message, Ephemeral, View, SentForm]):
    """A workspace."""

    platform = "slack"
    groups = "groups"
    hint = "There is no question. Write it after the mention: @council Should we shard now?"
    followed_in_the_thread = ""
    repeats_lost = True
    inside = "in this workspace"
    admins = "A workspace admin, or one of the council's own admins,"
    everyone = "everyone"
    dated = "\n"
    verbs = ("turn", "see", "share")
    transcript_shown: ClassVar[list[str]] = [
        "The transcript is in your direct messages with the council."
    ]
    also_listed = 0

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self.place, self._running = place, stack
        self.council, self.library = place.council, place.library
        self.ada, self.bob = place.ada.id, place.bob.id
        self._told: dict[str, int] = {}
        self.channel, self.workspace = f"<#{place.general.id}>", place.slack.team.id
        self.here = "this workspace"

    @classmethod
    @asynccontextmanager
    async def open_in(
        cls,
        folder: Path,
        council: ScriptedCouncil,
        *,
        by_http: bool = False,
        reads_threads: bool = False,
    ) -> AsyncGenerator["SlackTeam"]:
        scopes = frozenset(THREADS if reads_threads else ())
        at_this = at_work(folder, council, by_http=by_http, scopes=scopes)
        async with at_this as place, AsyncExitStack() as stack:
            yield cls(place, stack)

    @property
    def dispatcher(self) -> Dispatcher:
        return self.place.dispatcher

    async def ask(self, question: str = QUESTION, **options: str) -> Message:
        flags = "".join(f"--{name} {value} " for name, value in options.items())
        return await self.place.ask(f"{flags}{question}")

    async def begin(self, question: str = QUESTION) -> Message:
        before = len(self.cards())
        await self.place.slack.slash(self.place.general, self.ada, "/council", question)
        await self.place.slack.until(lambda: len(self.cards()) > before)
        return self.cards()[-1]

    async def refused(self, question: str = QUESTION, who: str = "") -> str:
        return (await self._command("/council", question, who or self.ada)).text

    async def ask_together(self, times: int) -> int:
        def shown() -> tuple[int, int]:
            return len(self.cards()), len(self.place.told(self.place.ada))

        cards, told = shown()
        asked = [
            self.place.slack.slash(self.place.general, self.ada, "/council", "?") for _ in range(times)
        ]
        for each in asked:
            await each
        await self.place.slack.until(lambda: sum(shown()) == cards + told + times)
        return len(self.cards()) - cards

    async def use(
        self, command: str, user: str = "", where: object = None, **options: str | int
    ) -> Ephemeral:
        flags = command == "config"
        words = [f"--{name} {value}" if flags else f"{value}" for name, value in options.items()]
        channel = where if isinstance(where, Channel) else self.place.general
        return await self._command(f"/council-{command}", " ".join(words), user or self.ada, channel)

    async def _command(
        self, command: str, text: str, who: str, channel: Channel | None = None
    ) -> Ephemeral:
        slack, place = self.place.slack, channel or self.place.general
        before = len(slack.ephemerals(place, who))
        assert (await slack.slash(place, who, command, text)).acked
        await slack.until(lambda: len(slack.ephemerals(place, who)) > before)
        return slack.ephemerals(place, who)[-1]

    async def look(self, shown: Message | Ephemeral, label: str, who: str = "") -> Message | Ephemeral:
        told = self.place.slack.ephemerals(self.place.general, who or self.ada)
        public = self.public()
        assert (await self._click(shown, label, who or self.ada)).acked
        await self.dispatcher.tasks.settled()
        private = self.place.slack.ephemerals(self.place.general, who or self.ada)
        new = [*private[len(told) :], *self.public()[len(public) :]]
        return new[0] if new else shown

    async def delete(self, asked: Ephemeral, who: str = "") -> str:
        await self.look(asked, "Delete", who)
        return self.place.slack.ephemerals(self.place.general, asked.user)[-1].text

    async def transcript(self, shown: Message | Ephemeral) -> list[str]:
        return [(await self.look(shown, "Transcript")).text]

    def elsewhere(self) -> list[object]:
        return [self.place.slack.add_channel("elsewhere", self.place.ada)]

    def values(self, shown: Message | Ephemeral) -> list[str]:
        return [element["value"] for element, _ in shown.elements()]

    async def forge(self, where: Channel, value: str) -> str:
        own = await self.use("history")
        share = self._action(own, "Share here")
        note = Ephemeral(where.id, self.ada, own.text, own.blocks, own.at, own.ts, own.via)

        def shown() -> list[Message | Ephemeral]:
            private = self.place.slack.ephemerals(where, self.ada)
            return [*private, *self.place.slack.messages(where)]

        before = shown()
        assert (await self.place.slack.click(note, share, self.ada, value=value)).acked
        await self.dispatcher.tasks.settled()
        return "\n".join(self.read(each) + each.text for each in shown() if each not in before)

    def _files(self, files: Files | None) -> list[StoredFile]:
        ada = self.place.ada
        return [self.place.slack.add_file(name, data, ada) for name, data in (files or {}).items()]

    async def _shown(
        self, channel: Channel, who: str, act: Callable[[], Delivery]
    ) -> Message | Ephemeral:
        def shown() -> list[Message | Ephemeral]:
            posted = [each for each in channel.messages.values() if each.bot_id]
            return [*posted, *self.place.slack.ephemerals(channel, who or self.ada)]

        before = {*map(id, shown())}
        assert (await act()).acked
        await self.place.slack.until(lambda: len(shown()) > len(before))
        await self.dispatcher.tasks.settled()
        return next(each for each in shown() if id(each) not in before)

    async def mention(
        self, text: str, who: str = "", below: Message | None = None, files: Files | None = None
    ) -> Message | Ephemeral:
        general, sent, ts = self.place.general, self._files(files), below.ts if below else None
        user, mention = who or self.ada, self.place.slack.mention
        return await self._shown(general, who, lambda: mention(general, user, text, ts, sent))

    async def message(self, text: str, files: Files | None = None) -> Message | Ephemeral:
        slack, sent = self.place.slack, self._files(files)
        direct = slack.world.open_im(slack.team, self.ada)
        return await self._shown(direct, "", lambda: slack.direct_message(self.ada, text, files=sent))

    async def act(self, text: str, who: str = "", files: Files | None = None) -> Message:
        written = self.place.slack.post(self.place.general, self.ada, text, files=self._files(files))
        assert (await self.place.slack.shortcut(SHORTCUT, written, who or self.ada)).acked
        await self.dispatcher.tasks.settled()
        return self.cards()[-1]

    async def private(self, question: str = QUESTION) -> str:
        return (await self._command("/council", f"--private {question}", self.ada)).text

    def directly(self, who: str = "") -> list[Message]:
        slack = self.place.slack
        direct = slack.world.open_im(slack.team, who or self.ada)
        posted = [message for message in slack.messages(direct) if message.bot_id]
        return [each for one in posted for each in (one, *slack.thread(direct, one.ts))]

    def privately(self, who: str = "") -> list[Ephemeral]:
        return self.place.slack.ephemerals(self.place.general, who or self.ada)

    def notified(self, who: str = "") -> list[Message]:
        told = self.place.slack.told(who or self.ada)
        return [message for message in told if message.deleted_at is None]

    def tells_of(self, shown: Message, card: Message) -> bool:
        return shown is card or shown.thread_ts == card.ts

    def fail(self, what: str, **fault: Any) -> Lost:
        return self.place.slack.fail(METHODS.get(what, what), **fault)

    def hide(self, *, direct: bool = False) -> None:
        slack, where = self.place.slack, self.place.general
        if direct:
            where = slack.world.open_im(slack.team, self.ada)
        else:
            slack.kick_bot(where)
            slack.team.scopes -= {"chat:write.public"}
        for what in ("edit", "post"):
            self.fail(what, error="channel_not_found", channel=where.id, times=ALWAYS)

    def remove(self, card: Message) -> None:
        self.place.slack.delete_thread(card)

    @override
    def freeze(self, card: Message) -> None:
        self.fail("edit", error="invalid_blocks", times=ALWAYS)

    def leave(self, who: str) -> None:
        self.place.general.members.discard(who)

    def cards(self) -> list[Message]:
        return self.place.cards(self.place.general)

    def public(self) -> list[Message]:
        return self.place.cards(self.place.general)

    def left(self) -> list[str]:
        messages = self.place.general.messages.values()
        return [each.text for each in messages if each.bot_id and each.deleted_at is None]

    def files(self) -> int:
        return len(self.place.slack.world.files)

    def pings(self) -> list[str]:
        return [who for pinged in self.place.pings() for who in sorted(pinged)]

    def say_below(self, card: Message, who: str, text: str) -> object:
        return self.place.slack.post(self.place.general, who, text, thread_ts=card.ts)

    def said_below(self, card: Message) -> list[object]:
        return [*self.place.slack.thread(self.place.general, card.ts)]

    def below(self, card: Message) -> list[Message]:
        return cards_in(self.place, card)

    def in_thread(self, card: Message) -> int:
        return len(self.place.slack.thread(self.place.general, card.ts))

    def text(self, card: Message | Ephemeral) -> str:
        return card.text

    def first_text(self, card: Message) -> str:
        return card.history[0].text

    def read(self, shown: Message | Ephemeral) -> str:
        return blocks_text(shown.blocks) or shown.text

    def plain(self, shown: Message | Ephemeral) -> str:
        return self.read(shown)

    def is_private(self, shown: Message | Ephemeral, who: str) -> bool:
        return isinstance(shown, Ephemeral) and shown.user == who

    def leads_to(self, shown: Ephemeral, card: Message) -> bool:
        return f"/archives/{self.place.general.id}/p{card.ts.replace('.', '')}" in str(shown.blocks)

    def labels(self, shown: Message | Ephemeral) -> list[str]:
        return labels(shown)

    def name(self, name: str) -> str:
        return name

    def tag(self, who: str) -> str:
        return f"<@{who}|somebody>"

    def hidden(self) -> str:
        return f"<#{self.place.slack.add_channel('layoffs', self.place.bob, kind='private').id}|>"

    def strong(self, words: str) -> str:
        return words

    def quoted(self, question: str) -> str:
        return question

    def asked_by(self, name: str, question: str) -> str:
        return f"{name} asked: {question}"

    @override
    def followed(self, card: Message) -> str:
        return "Your follow-up was asked. The answer appears in the thread."

    def join(self, name: str) -> str:
        joined = self.place.slack.add_user(name).id
        self.place.general.members.add(joined)
        return joined

    def group(self, member: str) -> tuple[str, str]:
        self.place.slack.team.groups["S0000001"] = {member}
        self.place.slack.team.handles["S0000001"] = "engineers"
        return "<!subteam^S0000001|@the team>", "user group S0000001"

    def newcomers(self, number: int) -> list[str]:
        return [self.join(f"reader{each}") for each in range(number)]

    async def _newly_told(self, who: str) -> str:
        await self.dispatcher.tasks.settled()
        told = [shown.text for shown in self.place.slack.ephemerals(self.place.general, who)]
        before, self._told[who] = self._told.get(who, 0), len(told)
        return "\n".join(told[before:])

    @staticmethod
    def _action(shown: Message | Ephemeral, label: str) -> str:
        found = (each for each, _ in shown.elements() if each["text"]["text"] == label)
        return next(found)["action_id"]

    def _click(self, shown: Message | Ephemeral, label: str, who: str) -> Delivery:
        return self.place.slack.click(shown, self._action(shown, label), who)

    async def press(self, card: Message | Ephemeral, label: str, who: str) -> str:
        assert (await self._click(card, label, who)).acked
        return await self._newly_told(who)

    async def press_amid(self, card: Message, label: str, who: str) -> str:
        shown = self.place.slack.ephemerals
        before = len(shown(self.place.general, who))
        assert (await self._click(card, label, who)).acked
        await self.place.slack.until(lambda: len(shown(self.place.general, who)) > before)
        return shown(self.place.general, who)[-1].text

    async def press_together(self, card: Message | Ephemeral, label: str, everybody: list[str]) -> None:
        pressed = [self._click(card, label, who) for who in everybody]
        for each in pressed:
            await each
            await self.place.slack.redeliver(each)

    async def press_copied(self, card: Message, where: Channel, label: str) -> str:
        copy = self.place.slack.post(where, self.place.slack.team.bot, "look")
        copy.blocks = card.blocks
        assert (await self._click(copy, label, self.ada)).acked
        await self.dispatcher.tasks.settled()
        return self.place.slack.ephemerals(where, self.ada)[-1].text

    def disguise(self, card: Message, action: str, other: str) -> None:
        for element, _ in card.elements():
            element["action_id"] = element["action_id"].replace(f"council_{action}", f"council_{other}")

    async def open(self, card: Message, label: str, who: str) -> View:
        await self.press(card, label, who)
        return self.place.slack.form(who)

    def filled_in(self, form: View) -> str:
        return form.form["blocks"][0]["element"]["initial_value"]

    def offered(self, form: View) -> list[tuple[str, bool]]:
        select = form.form["blocks"][1]["element"]
        chosen = select["initial_option"]["value"]
        return [(one["value"], one["value"] == chosen) for one in select["options"]]

    def send(self, form: View, **values: str) -> SentForm:
        form.is_open = True  # its closing may never have reached this client
        return SentForm(form, self.place.slack.submit(form, **values))

    async def said(self, sent: SentForm) -> str:
        assert (await sent.delivery).acked
        if sent.form.is_open:
            return "\n".join(sent.form.errors.values())
        return await self._newly_told(sent.form.user)

    async def redeliver(self, sent: SentForm) -> None:
        await self.place.slack.redeliver(sent.delivery)

    def lose_direct(self, who: str, breaks: Literal["reset", "hang"], *, applied: bool) -> Lost:
        direct = self.place.slack.world.open_im(self.place.slack.team, who).id
        return self.place.slack.fail("chat.postMessage", breaks=breaks, applied=applied, channel=direct)

    def close_direct(self, who: str) -> None:
        self.place.slack.fail("conversations.open", "missing_scope", times=ALWAYS, user=who)

    def promote(self, who: str) -> None:
        self.place.slack.world.users[who].is_admin = True

    async def until(self, what: Callable[[], object]) -> None:
        await self.place.slack.until(what)

    def advance(self, seconds: float) -> None:
        self.place.clock.advance(seconds)

    def forbid_deleting(self) -> str:
        error = "compliance_exports_prevent_deletion"
        self.place.slack.fail("chat.delete", error=error, times=ALWAYS)
        return "the workspace's compliance exports forbid deleting"

    @override
    def lose_thread(self, card: Message) -> None:
        self.place.slack.fail("chat.postMessage", "thread_not_found", in_thread=True)

    async def kill(self) -> None:
        await self.dispatcher.tasks.drain(0)
        await self.place.bot.__aexit__(None, None, None)
        await self._running.aclose()

    async def start(self, admins: Collection[str] = ()) -> None:
        again = restarted(self.place, self.listed(*admins), self.dispatcher.channels.operator)
        self.place.dispatcher = await self._running.enter_async_context(again)

    def refusals(self) -> list[str]:
        return [call.error for call in self.place.slack.requests if call.error]
