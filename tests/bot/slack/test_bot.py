"""The Slack adapter: the real Bolt app against a Slack on 127.0.0.1, its models played by a script."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.app import Library, open_lookup
from bot.errors import VenueError
from bot.past.lookup import Lookup
from bot.service.admission.channels import Operator
from bot.service.admission.limits import Limits
from bot.service.dispatcher import Dispatcher
from bot.slack.bot import SlackAccess, SlackBot, Timing
from bot.slack.client import granted
from bot.slack.manifest import SHORTCUT
from bot.view.wording.commands import NOT_HERE
from storage.journal.rows import RunRow
from storage.scope import Scope
from tests.bot import dispatching
from tests.bot.inputs.pdfs import lines, pdf
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR, ScriptedCouncil, failure
from tests.library import open_library
from tests.ports import free_port
from tests.slack_server import (
    Channel,
    Delivery,
    Ephemeral,
    HandClock,
    Message,
    SlackServer,
    User,
    payloads,
)
from tests.slack_server.faults import ALWAYS

Json = dict[str, Any]

LONG = "\n".join(f"Reason {number}: writes grow by a tenth each month." for number in range(60))


dispatcher_of = partial(dispatching.dispatcher_of, limits=Limits(runs_per_user=32, runs_per_channel=32))


class Sleeper:
    """Sleeps on its own clock: when nothing else happens, it jumps to the next wake-up."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self._ends: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has advanced by this much."""
        end = self.clock() + seconds
        self._ends.append(end)
        try:
            while self.clock() < end:
                await asyncio.sleep(0.001)
                if end == min(self._ends):
                    self.clock.time = max(self.clock.time, end)
        finally:
            self._ends.remove(end)


def labels(message: Message | Ephemeral) -> list[str]:
    """Return the labels of a message's buttons."""
    return [element["text"]["text"] for element, _ in message.elements()]


@dataclass
class Place:
    """A Slack with the bot in it, and the bot's parts."""

    slack: SlackServer
    council: ScriptedCouncil
    dispatcher: Dispatcher
    library: Library
    bot: SlackBot
    clock: HandClock
    ada: User
    bob: User
    general: Channel

    async def deliver(self, kind: str, message: Message, event: Json, **envelope: object) -> Delivery:
        """Send a message event with some fields replaced."""
        channel = self.slack.world.channels[message.channel]
        told = payloads.message_event(kind, self.slack.team, channel, message) | event
        payload = payloads.event_callback(
            self.slack.world.app_id, self.slack.team, told, self.slack.clock()
        )
        return await self.slack.courier.send("events_api", payload | envelope)

    async def card(self, channel: Channel | None = None) -> Message:
        """Return the bot's one card in a channel, once it is there."""
        place = channel or self.general
        return (await self.slack.until(lambda: self.cards(place)))[0]

    def cards(self, channel: Channel) -> list[Message]:
        """Return what the bot has posted in a channel, outside of threads."""
        return [message for message in self.slack.messages(channel) if message.bot_id]

    def pings(self, channel: Channel | None = None) -> list[frozenset[str]]:
        """Return whom the bot's messages notified, one entry per message."""
        messages = (channel or self.general).messages.values()
        return [message.pinged for message in messages if message.bot_id and message.pinged]

    def told(self, user: User, channel: Channel | None = None) -> list[str]:
        """Return what only this person was shown."""
        return [shown.text for shown in self.slack.ephemerals(channel or self.general, user)]

    async def until_told(self, user: User, channel: Channel | None = None) -> str:
        """Wait for something only this person is shown."""
        return (await self.slack.until(lambda: self.told(user, channel)))[-1]

    async def ask(self, text: str = "Shard or scale up?", user: User | None = None) -> Message:
        """Ask by command and see the run through."""
        delivery = await self.slack.slash(self.general, user or self.ada, "/council", text)
        assert delivery.acked
        await self.dispatcher.tasks.settled()
        return self.cards(self.general)[-1]

    async def run(self, card: Message) -> RunRow:
        """Return the run whose card this is, from the journal."""
        [element, *_] = [element for element, _ in card.elements()]
        found = await self.library.journal.get(element["value"])
        assert found is not None
        return found


def seat(place: Place, **settings: object) -> None:
    """Give the council's profile these settings."""
    operator = place.dispatcher.channels.operator
    changed = operator.profiles["default"].model_copy(update=settings)
    place.dispatcher.reconfigure(replace(operator, profiles={"default": changed}))


def cards_in(place: Place, head: Message) -> list[Message]:
    """Return the finished cards in a thread, oldest first."""
    replies = place.slack.thread(place.general, head.ts)
    return [reply for reply in replies if "Ask again" in labels(reply)]


@asynccontextmanager
async def at_work(
    folder: Path,
    council: ScriptedCouncil | None = None,
    *,
    without: frozenset[str] = frozenset(),
    scopes: frozenset[str] = frozenset(),
    by_http: bool = False,
    admins: frozenset[str] = frozenset(),
) -> AsyncGenerator[Place]:
    """Start a Slack, a dispatcher over real storage, and the bot between them."""
    clock = HandClock()
    models = council or ScriptedCouncil()
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(SlackServer(clock))
        slack.patience.retry_delays = (0, 0, 0)
        slack.patience.ack_seconds = 30  # a busy machine fails no test
        slack.team.scopes = slack.team.scopes - without | scopes
        ada, bob = slack.add_user("ada"), slack.add_user("bob")
        general = slack.add_channel("general", ada, bob)
        library = await stack.enter_async_context(open_library(folder))
        dispatcher = dispatcher_of(library, models, admins)
        port = free_port()
        if by_http:
            slack.use_http(f"http://127.0.0.1:{port}/slack/events")
        bot = bot_of(slack, dispatcher, library, clock, port if by_http else None)
        await stack.enter_async_context(bot)
        stack.push_async_callback(dispatcher.tasks.drain, 0)
        if not by_http:
            await slack.connected()
        yield Place(slack, models, dispatcher, library, bot, clock, ada, bob, general)


def bot_of(
    slack: SlackServer, dispatcher: Dispatcher, library: Library, clock: HandClock, port: int | None
) -> SlackBot:
    """Return a bot that listens by a socket, or on a port."""
    return SlackBot(
        dispatcher,
        open_lookup(library),
        SlackAccess(
            bot_token=slack.token,
            app_token=None if port else slack.app_token,
            signing_secret=slack.signing_secret if port else None,
            http_port=port,
            api_url=slack.api_url.rstrip("/"),
        ),
        timing=Timing(clock=clock, now=clock, sleep=Sleeper(clock).sleep),
    )


@asynccontextmanager
async def restarted(
    place: Place, admins: frozenset[str] = frozenset(), operator: Operator | None = None
) -> AsyncGenerator[Dispatcher]:
    """End the bot, and start a new one over the same storage."""
    await place.bot.__aexit__(None, None, None)
    dispatcher = dispatcher_of(place.library, place.council, admins)
    if operator:
        dispatcher.reconfigure(operator)
    async with bot_of(place.slack, dispatcher, place.library, place.clock, None):
        await place.slack.connected()
        yield dispatcher
        await dispatcher.tasks.drain(0)


async def whole_responses(place: Place) -> None:
    """Let the thread show whole corrected responses in this channel."""
    here = Scope("slack", place.slack.team.id, place.general.id)
    await place.library.overrides.change(here, {"thread": "full"}, "slack:U1")


class TestRun:
    """A run as the channel sees it."""

    async def test_a_command_becomes_a_card_a_thread_an_answer_and_one_mention(
        self, tmp_path: Path
    ) -> None:
        """At least one edit a stage; all of it in order; nobody else is notified."""
        held = {
            f"stage1.1:{FOUR[0]}": "Answers: running, 3 of 4 done",
            f"stage2.1:{FOUR[0]}": "Reviews: running, 3 of 4 done",
            f"stage2_5.1:{FOUR[0]}": "Corrections: running, 3 of 4 done",
            "stage3.1:chair/man:chairman": "Final answer: man is writing",
        }
        council = ScriptedCouncil(held=set(held))
        async with at_work(tmp_path, council) as place:
            delivery = await place.slack.slash(
                place.general, place.ada, "/council", "Shard &amp; scale?"
            )
            assert delivery.acked
            assert delivery.latency is not None
            assert delivery.latency < 3
            card = await place.card()
            assert card.history[0].text.startswith("Shard &amp; scale?\nAsked by ada.")
            assert [element["action_id"] for element, _ in card.elements()] == ["council_stop"]
            for step, said in held.items():
                await council.until_called(step)
                await place.slack.until(lambda said=said: said in card.text)
                council.release(step)
            await place.dispatcher.tasks.settled()

            assert card.text.startswith(
                "ada asked: Shard &amp; scale?\nShard &amp; scale?\n"
                "reviews corrected 4 of 4\n"
                "The council's answer, written by chair/man.\n4 members"
            )
            buttons = [element["action_id"] for element, _ in card.elements()]
            assert labels(card) == FINISHED
            assert buttons[-2:] == ["council_helpful", "council_unhelpful"]
            thread = place.slack.thread(place.general, card.ts)
            replies = [reply.text for reply in thread]
            assert "\nRanking\nAverage vote (1 is best) beside each name. " in replies[0]
            assert labels(thread[0]) == []
            members = [reply for reply in thread if "\nObjections\n" in reply.text]
            assert sorted(reply.text.partition("\nRanked ")[0] for reply in members) == sorted(
                name.rpartition("/")[2] for name in FOUR
            )
            for reply in members:
                assert "Corrected response\nA better and much longer answer" in reply.text
                assert labels(reply) == ["Open"]
            assert [reply for reply in thread if reply.files] == []
            assert len(thread) == 1 + len(FOUR)
            mention = replies[0].partition("\n")[0]
            address = f"https://acme.slack.com/archives/{place.general.id}/p{card.ts.replace('.', '')}"
            assert mention == (f"<@{place.ada.id}> The council has answered. <{address}|See the card>")
            assert place.pings() == [{place.ada.id}]
            assert all(gap >= 3 for gap in card.gaps())
            run = await place.run(card)
            assert run.status == "answered"
            assert (run.origin.message, run.origin.thread) == (card.ts, card.ts)
            assert not any(call.error for call in place.slack.requests)

    @pytest.mark.parametrize("length", [700, 4_000, 12_000])
    async def test_a_full_thread_of_four_members_has_five_messages(
        self, tmp_path: Path, length: int
    ) -> None:
        """The digest, and one a member; each corrected response up to its limit."""
        words = " ".join(f"word{number:04}" for number in range(length // 9))
        async with at_work(tmp_path, ScriptedCouncil(script={"stage2_5": words})) as place:
            await whole_responses(place)
            card = await place.ask()
            replies = [r for r in place.slack.thread(place.general, card.ts) if not r.files]
            assert len(replies) == 1 + len(FOUR)
            whole = "\n".join(str(reply.blocks) for reply in replies)
            shown = [whole.count(word) for word in words.split()]
            assert shown == sorted(shown, reverse=True)
            assert sum(shown) >= len(FOUR) * min(len(shown), 8_500 // 9)
            cut = whole.count("Cut here; the full text is in the transcript.")
            assert cut == (len(FOUR) if 0 in shown else 0)
            assert not any(call.error for call in place.slack.requests)

    async def test_the_thread_shows_the_last_of_two_rounds(self, tmp_path: Path) -> None:
        """Its ranking and its corrections; a long response is cut and says so, the transcript has all."""
        again = {f"stage2_5.2:{name}": f"{name} corrects itself again. {LONG * 6}" for name in FOUR}
        async with at_work(tmp_path, ScriptedCouncil(script={**again})) as place:
            await whole_responses(place)
            seat(place, max_rounds=2)
            card = await place.ask("Shard or scale up?")
            thread = place.slack.thread(place.general, card.ts)
            ranking, *members = thread
            assert "\nRanking, round 2\n" in ranking.text
            assert len(members) == len(FOUR)
            for member in members:
                *_, last = [block for block in member.blocks if block["type"] == "section"]
                assert last["text"]["text"] == "Cut here; the full text is in the transcript."
                assert "corrects itself again." in str(member.blocks)
            await place.slack.click(card, "council_transcript", place.ada)
            await place.dispatcher.tasks.settled()
            file = place.slack.thread(place.general, card.ts)[-1].files[0]
            whole = re.sub("<[^>]+>", "", (file.content or b"").decode())
            assert whole.count(LONG.splitlines()[-1]) >= 6 * len(FOUR)
            assert "2 review rounds, the limit" in str(card.blocks)
            assert not any(call.error for call in place.slack.requests)

    async def test_every_message_has_text_and_unfurls_nothing(self, tmp_path: Path) -> None:
        """Notifications and screen readers get words; a link in an answer draws no preview."""
        async with at_work(tmp_path) as place:
            await place.ask()
            posts = place.slack.calls("chat.postMessage")
            assert len(posts) == 1 + 1 + len(FOUR)
            assert all(post.arguments["text"] for post in posts)
            flags = {(post.arguments["unfurl_links"], post.arguments["unfurl_media"]) for post in posts}
            assert flags <= {("0", "0"), ("false", "false"), (False, False)}
            assert all(call.arguments["text"] for call in place.slack.calls("chat.update"))

    @pytest.mark.parametrize("way", ["command", "mention"])
    async def test_a_redelivery_changes_nothing(self, tmp_path: Path, way: str) -> None:
        """Three more times: one run, one card, one set of calls."""
        async with at_work(tmp_path) as place:
            if way == "command":
                delivery = await place.slack.slash(place.general, place.ada, "/council", "Again?")
            else:
                delivery = await place.slack.mention(place.general, place.ada, "Again?")
            for _ in range(3):
                assert (await place.slack.redeliver(delivery)).in_time
            await place.dispatcher.tasks.settled()
            assert len(place.cards(place.general)) == 1
            assert len(place.council.asked("stage1")) == 4
            assert place.told(place.ada) == []


class TestWaysIn:
    """Commands, mentions, the message action, direct messages."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "There is no question."),
            ("--privte Shard?", "Unknown option --privte. Did you mean --private?"),
            ("x" * 20_001, "The question is longer than 20,000 characters."),
        ],
    )
    async def test_a_question_that_is_not_taken_is_explained_to_the_asker_alone(
        self, tmp_path: Path, text: str, said: str
    ) -> None:
        """Acknowledged in any case, and nothing in the channel."""
        async with at_work(tmp_path) as place:
            assert (await place.slack.slash(place.general, place.ada, "/council", text)).acked
            assert said in await place.until_told(place.ada)
            assert place.slack.messages(place.general) == []

    async def test_flags_change_the_run_and_are_kept_when_it_is_asked_again(
        self, tmp_path: Path
    ) -> None:
        """As a phone writes them: a dash for two hyphens, curly quotes."""
        async with at_work(tmp_path) as place:
            seat(place, depth="quick")
            typed = "\u2014profile \u201cdefault\u201d \u2014depth full Shard?"
            card = await place.ask(typed)
            await place.dispatcher.tasks.settled()
            profile = (await place.run(card)).brief.profile
            assert (profile.name, profile.depth) == ("default", "full")
            assert (await place.slack.click(card, "council_again", place.bob)).acked
            await place.dispatcher.tasks.settled()
            again = place.cards(place.general)[-1]
            assert again is not card
            assert (await place.run(again)).brief.profile == profile

    async def test_help_says_which_models_see_the_question(self, tmp_path: Path) -> None:
        """To whoever asks, alone."""
        async with at_work(tmp_path) as place:
            assert (await place.slack.slash(place.general, place.ada, "/council-help")).acked
            said = await place.until_told(place.ada)
            assert said.startswith("The council\n")
            assert "Who sees it: gpt-5, claude, gemini, grok; chairman man." in said
            assert place.slack.messages(place.general) == []

    @pytest.mark.parametrize("text", ["help", "--help", "\u2014help", " ? ", "--private Help"])
    async def test_a_bare_word_for_help_asks_nothing(self, tmp_path: Path, text: str) -> None:
        """After the command, beside a mention, and in a direct message: to whoever asks, alone."""
        async with at_work(tmp_path) as place:
            assert (await place.slack.slash(place.general, place.ada, "/council", text)).acked
            assert (await place.until_told(place.ada)).startswith("The council\n")
            if "private" not in text:
                await place.slack.mention(place.general, place.bob, text)
                assert (await place.until_told(place.bob)).startswith("The council\n")
            await place.dispatcher.tasks.settled()
            assert (place.cards(place.general), place.council.calls) == ([], [])

    @pytest.mark.parametrize("option", ["rounds", "strategy", "criteria", "mode"])
    async def test_an_option_that_profiles_have_now_is_refused_with_their_names(
        self, tmp_path: Path, option: str
    ) -> None:
        """After the command and beside a mention, to the asker alone; nothing is asked."""
        async with at_work(tmp_path) as place:
            typed = f"\u2014{option} 2 Shard?"
            assert (await place.slack.slash(place.general, place.ada, "/council", typed)).acked
            await place.slack.mention(place.general, place.bob, typed)
            for user in (place.ada, place.bob):
                assert await place.until_told(user) == (
                    f"--{option} belongs to a profile now, in council.toml. This council's profiles: "
                    "default. Choose one with --profile. Nothing was asked."
                )
            assert place.council.calls == []

    async def test_flags_beside_a_mention_count(self, tmp_path: Path) -> None:
        """As after the command; what is wrong with them is told only to the asker."""
        async with at_work(tmp_path) as place:
            seat(place, depth="quick")
            talk = place.slack.post(place.general, place.bob, "Shards, again.")
            await place.slack.mention(
                place.general, place.ada, "\u2014depth full Should we shard?", thread_ts=talk.ts
            )
            await place.dispatcher.tasks.settled()
            [card] = cards_in(place, talk)
            brief = (await place.run(card)).brief
            assert (brief.question, brief.profile.depth) == ("Should we shard?", "full")
            await place.slack.mention(place.general, place.ada, "--private Why?", thread_ts=talk.ts)
            assert await place.until_told(place.ada) == ("--private works only with /council.")

    async def test_a_mention_in_a_runs_thread_continues_its_conversation(self, tmp_path: Path) -> None:
        """Its card and parts come below; earlier question and answer are context."""
        async with at_work(tmp_path) as place:
            first = await place.ask()
            place.council.calls.clear()
            below = len(place.slack.thread(place.general, first.ts))
            await place.slack.mention(place.general, place.bob, "And in a year?", thread_ts=first.ts)
            await place.dispatcher.tasks.settled()
            _, card, digest = place.slack.thread(place.general, first.ts)[below:]
            assert card.history[0].text.startswith("And in a year?\nAsked by bob.")
            assert digest.pinged == {place.bob.id}
            assert {*labels(digest)} == {f"Open {name.rpartition('/')[2]}" for name in FOUR}
            assert len(place.slack.messages(place.general)) == 1
            one, two = await place.run(first), await place.run(card)
            assert one.conversation_id == two.conversation_id
            prompt = place.council.prompt(f"stage1.1:{FOUR[0]}")
            assert "Shard or scale up?" in prompt
            assert "And in a year?" in prompt
            assert place.slack.team.bot.id not in prompt

    async def test_a_mention_in_any_other_thread_is_answered_there(self, tmp_path: Path) -> None:
        """And a second one there follows up on the first."""
        async with at_work(tmp_path) as place:
            talk = place.slack.post(place.general, place.bob, "What do we do?")
            for text in ("Shard?", "When?"):
                await place.slack.mention(place.general, place.ada, text, thread_ts=talk.ts)
                await place.dispatcher.tasks.settled()
            assert place.slack.messages(place.general) == [talk]
            cards = cards_in(place, talk)
            one, two = [await place.run(card) for card in cards]
            assert one.conversation_id == two.conversation_id
            assert place.pings() == [{place.ada.id}, {place.ada.id}]

    async def test_a_mention_without_a_question_gets_a_hint(self, tmp_path: Path) -> None:
        """Shown to that person alone, in the thread, where no command can be given."""
        async with at_work(tmp_path) as place:
            talk = place.slack.post(place.general, place.bob, "What do we do?")
            await place.slack.mention(place.general, place.ada, "", thread_ts=talk.ts)
            assert await place.until_told(place.ada) == (
                "There is no question. Write it after the mention: @council Should we shard now?"
            )
            [shown] = place.slack.ephemerals(place.general, place.ada)
            assert shown.thread_ts == talk.ts

    async def test_the_message_action_takes_the_message_as_the_question(self, tmp_path: Path) -> None:
        """Asked by whoever uses it; below the message if that has a thread."""
        async with at_work(tmp_path) as place:
            message = place.slack.post(
                place.general, place.bob, "Shall we move to <https://x.example|x>?"
            )
            assert (await place.slack.shortcut(SHORTCUT, message, place.ada)).acked
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert "Asked by ada." in card.history[0].text
            run = await place.run(card)
            assert run.brief.question == "Shall we move to x (https://x.example)?"
            assert place.pings() == [{place.ada.id}]

    async def test_files_of_a_message_are_read(self, tmp_path: Path) -> None:
        """What is too large, of no known kind or kept elsewhere is left out, and the card says so."""
        async with at_work(tmp_path) as place:
            slack, ada = place.slack, place.ada
            elsewhere = slack.add_file("else.txt", b"secret", ada)
            elsewhere.url_private = "http://127.0.0.1:9/else.txt"
            files = [
                slack.add_file("plan.pdf", pdf([lines("Load: 3 TB"), lines("Shards: 2")]), ada),
                slack.add_file("note.md", "Größe: 3 TB".encode(), ada),
                slack.add_file("logo.bin", b"\x89\x00\xff", ada),
                slack.add_file("huge.log", b"x" * 200_001, ada),
                elsewhere,
            ]
            message = slack.post(place.general, ada, "Does this plan hold?", files=files)
            await slack.shortcut(SHORTCUT, message, ada)
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert "Read plan.pdf, 2 pages; note.md." in card.text
            assert (
                "Not read: logo.bin (neither text, PDF nor a picture), huge.log (larger than 200 kB), "
                "else.txt (it can't be fetched)."
            ) in card.text
            run = await place.run(card)
            assert [(file.name, file.text) for file in run.brief.attachments[:2]] == [
                ("plan.pdf", "[p. 1]\nLoad: 3 TB\n\n[p. 2]\nShards: 2"),
                ("note.md", "Größe: 3 TB"),
            ]
            assert "[p. 2]\nShards: 2" in place.council.prompt(f"stage1.1:{FOUR[0]}")

    async def test_of_hundreds_of_files_a_few_are_fetched(self, tmp_path: Path) -> None:
        """Nothing beyond the limit is downloaded, and nothing beyond a file's own size."""
        async with at_work(tmp_path) as place:
            slack, ada = place.slack, place.ada
            files = [slack.add_file(f"{number}.md", b"x" * 1000, ada) for number in range(400)]
            files[3].content = b"x" * 1001
            message = slack.post(place.general, ada, "Do these hold?", files=files)
            await slack.shortcut(SHORTCUT, message, ada)
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert (
                "Not read: 3.md (it can't be fetched), 10.md, 11.md, 12.md and 387 more (only 10 files are "
                "read)."
            ) in card.text
            run = await place.run(card)
            assert [file.name for file in run.brief.attachments if not file.is_unread] == [
                f"{number}.md" for number in range(10) if number != 3
            ]
            assert len(slack.api.files.downloads) == 10

    async def test_a_file_alone_is_the_question(self, tmp_path: Path) -> None:
        """One that can't be read is refused before any call, and why is said."""
        async with at_work(tmp_path) as place:
            slack, ada = place.slack, place.ada
            plan = slack.add_file("plan.md", b"3 TB", ada)
            await slack.direct_message(ada, "", files=[plan])
            await place.dispatcher.tasks.settled()
            direct = slack.world.open_im(slack.team, ada.id)
            run = await place.run(place.cards(direct)[0])
            assert run.brief.question == "The question is in plan.md."
            assert [file.text for file in run.brief.attachments] == ["3 TB"]
            calls = len(place.council.calls)
            logo = slack.add_file("logo.bin", b"\x89\x00\xff", ada)
            await slack.shortcut(SHORTCUT, slack.post(place.general, ada, "", files=[logo]), ada)
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert "logo.bin: neither text, PDF nor a picture." in card.text
            assert len(place.council.calls) == calls

    async def test_a_file_behind_slacks_sign_in_page_is_left_out(self, tmp_path: Path) -> None:
        """The page is no attachment."""
        async with at_work(tmp_path) as place:
            place.slack.team.scopes -= {"files:read"}
            plan = place.slack.add_file("plan.md", b"3 TB", place.ada)
            message = place.slack.post(place.general, place.ada, "Well?", files=[plan])
            await place.slack.shortcut(SHORTCUT, message, place.ada)
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert "Not read: plan.md (it can't be fetched)." in card.text
            assert len(place.council.asked("stage1")) == 4

    async def test_a_direct_message_is_a_question(self, tmp_path: Path) -> None:
        """Card, thread and mention stay between the two."""
        async with at_work(tmp_path) as place:
            await place.slack.direct_message(place.ada, "Shard?")
            await place.dispatcher.tasks.settled()
            direct = place.slack.world.open_im(place.slack.team, place.ada.id)
            [card] = place.cards(direct)
            assert "Asked by ada." in card.history[0].text
            assert place.pings(direct) == [{place.ada.id}]
            assert place.slack.messages(place.general) == []

    async def test_what_bots_write_is_no_question(self, tmp_path: Path) -> None:
        """Neither the council's own messages nor another bot's."""
        async with at_work(tmp_path) as place:
            robot = place.slack.add_user("robot")
            direct = place.slack.world.open_im(place.slack.team, robot.id)
            for author, sign in ((place.slack.team.bot, place.slack.team.bot_id), (robot, "B999")):
                message = place.slack.post(direct, author, f"<@{place.slack.team.bot.id}> Shard?")
                for kind in ("message", "app_mention"):
                    await place.deliver(kind, message, {"bot_id": sign})
            edited = place.slack.post(direct, place.ada, "Shard?")
            await place.deliver("message", edited, {"subtype": "message_changed"})
            await place.deliver(
                "message", edited, {"channel": place.general.id, "channel_type": "public"}
            )
            await place.dispatcher.tasks.settled()
            assert place.council.calls == []
            assert place.told(robot, direct) == []

    async def test_a_bots_mention_gets_a_reason_once_an_hour(self, tmp_path: Path) -> None:
        """Below it; a workflow's event names no user. Bots that answer each other soon stop."""
        async with at_work(tmp_path) as place:
            hour = -place.clock() % 3600
            for seconds, is_said in ((hour, True), (60, False), (60, False), (3600, True)):
                place.clock.advance(seconds)
                said = f"<@{place.slack.team.bot.id}> Shard?"
                mention = place.slack.post(place.general, place.bob, said)
                event = {"user": None, "bot_id": "B999", "subtype": "bot_message", "username": "Flow"}
                await place.deliver("app_mention", mention, event)
                await place.dispatcher.tasks.settled()
                said = [reply.text for reply in place.slack.thread(place.general, mention.ts)]
                assert [each[:30] for each in said] == ["Bots and workflows can't ask. "] * is_said
            assert place.council.calls == []
            assert place.pings() == []

    @pytest.mark.parametrize("subtype", ["thread_broadcast", "me_message", "message_share"])
    async def test_a_message_of_another_kind_is_a_question(self, tmp_path: Path, subtype: str) -> None:
        """A forward without a word of one's own, too."""
        async with at_work(tmp_path) as place:
            direct = place.slack.world.open_im(place.slack.team, place.ada.id)
            forward = place.slack.post(direct, place.ada, "")
            forward.attachments = [{"is_share": True, "text": "Should RED-7 go?", "author_name": "bob"}]
            await place.deliver("message", forward, {"subtype": subtype})
            await place.dispatcher.tasks.settled()
            [card] = place.cards(direct)
            assert (await place.run(card)).brief.question == "bob\nShould RED-7 go?"

    async def test_private_runs_happen_in_the_direct_messages(self, tmp_path: Path) -> None:
        """The channel sees nothing; the asker is told where to look."""
        async with at_work(tmp_path) as place:
            delivery = await place.slack.slash(
                place.general, place.ada, "/council", "\u2014private Am I underpaid?"
            )
            assert delivery.acked
            await place.dispatcher.tasks.settled()
            assert place.told(place.ada) == ["The council will answer in your direct messages."]
            assert place.slack.messages(place.general) == []
            direct = place.slack.world.open_im(place.slack.team, place.ada.id)
            [card] = place.cards(direct)
            assert "4 members" in card.text
            assert place.pings(direct) == [{place.ada.id}]


class TestClicks:
    """The buttons below a card."""

    @asynccontextmanager
    async def held(
        self,
        folder: Path,
        without: frozenset[str] = frozenset(),
        admins: frozenset[str] = frozenset(),
    ) -> AsyncGenerator[tuple[Place, Message]]:
        """Yield a run of Ada's that waits for one member's answer."""
        council = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
        async with at_work(folder, council, without=without, admins=admins) as place:
            await place.slack.slash(place.general, place.ada, "/council", "Shard?")
            await council.until_called(f"stage1.1:{FOUR[0]}")
            card = await place.card()
            await place.slack.until(lambda: "3 of 4" in card.text)
            yield place, card

    async def test_without_the_scope_nobody_counts_as_an_admin(self, tmp_path: Path) -> None:
        """Only the asker stops a run."""
        async with self.held(tmp_path, without=frozenset({"users:read"})) as (place, card):
            place.bob.is_admin = True
            assert (await place.slack.click(card, "council_stop", place.bob)).acked
            said = await place.until_told(place.bob)
            assert said == "Only the person who asked, or an admin, can stop this run."
            place.council.release(f"stage1.1:{FOUR[0]}")
            await place.dispatcher.tasks.settled()
            assert "Stopped early" not in card.text

    async def test_a_transcript_comes_as_a_file_into_the_thread(self, tmp_path: Path) -> None:
        """With everything in it, pinging nobody."""
        async with at_work(tmp_path) as place:
            card = await place.ask()
            assert (await place.slack.click(card, "council_transcript", place.bob)).acked
            await place.dispatcher.tasks.settled()
            *_, posted = place.slack.thread(place.general, card.ts)
            assert [file.name.rpartition(".")[2] for file in posted.files] == ["html", "md"]
            for file in posted.files:
                assert file.name.startswith("council-")
                text = re.sub("<[^>]+>", "", (file.content or b"").decode())
                assert "The first answer of openai/gpt-5." in text
            assert place.pings() == [{place.ada.id}]

    async def test_ask_again_begins_a_new_run(self, tmp_path: Path) -> None:
        """With the same question and files, asked by the person who pressed, on a new card."""
        async with at_work(tmp_path) as place:
            notes = place.slack.add_file("plan.md", b"3 TB", place.ada)
            message = place.slack.post(place.general, place.ada, "Does it hold?", files=[notes])
            await place.slack.shortcut(SHORTCUT, message, place.ada)
            await place.dispatcher.tasks.settled()
            [first] = place.cards(place.general)
            click = await place.slack.click(first, "council_again", place.bob)
            await place.slack.redeliver(click)
            await place.dispatcher.tasks.settled()
            _, second = place.cards(place.general)
            one, two = await place.run(first), await place.run(second)
            assert two.brief.question == one.brief.question
            assert two.brief.attachments == one.brief.attachments
            assert two.conversation_id != one.conversation_id
            assert place.pings() == [{place.ada.id}, {place.bob.id}]

    async def test_ask_again_stays_in_the_thread_it_was_asked_in(self, tmp_path: Path) -> None:
        """There it is a follow-up."""
        async with at_work(tmp_path) as place:
            talk = place.slack.post(place.general, place.bob, "What do we do?")
            await place.slack.mention(place.general, place.ada, "Shard?", thread_ts=talk.ts)
            await place.dispatcher.tasks.settled()
            [card] = cards_in(place, talk)
            await place.slack.click(card, "council_again", place.bob)
            await place.dispatcher.tasks.settled()
            assert place.cards(place.general) == []
            cards = cards_in(place, talk)
            one, two = [await place.run(card) for card in cards]
            assert one.conversation_id == two.conversation_id

    @pytest.mark.parametrize("action", ["council_transcript", "council_again"])
    async def test_a_run_is_reached_only_from_its_own_channel(self, tmp_path: Path, action: str) -> None:
        """Neither another channel's run id nor a made-up value opens anything."""
        async with at_work(tmp_path) as place:
            secret = place.slack.add_channel("secret", place.ada)
            await place.slack.slash(secret, place.ada, "/council", "Who goes?")
            await place.dispatcher.tasks.settled()
            run = await place.run(place.cards(secret)[0])
            card = await place.ask()
            calls = len(place.council.calls)
            for value in (run.id, "../../etc/passwd", "' OR 1=1 --"):
                assert (await place.slack.click(card, action, place.bob, value=value)).acked
            await place.dispatcher.tasks.settled()
            assert place.told(place.bob) == [NOT_HERE] * 3
            assert len(place.council.calls) == calls


SAID = "\nOriginal response\nThe first answer of "


def digest(place: Place, card: Message) -> Message:
    """Return the first message of a thread that has *Open* below it."""
    replies = place.slack.thread(place.general, card.ts)
    return next(reply for reply in replies if "Open" in labels(reply))


class TestDetails:
    """The buttons below the thread's messages."""

    async def test_a_run_of_another_channel_is_not_shown(self, tmp_path: Path) -> None:
        """Nor does a made-up value or an unknown member show anything."""
        async with at_work(tmp_path) as place:
            secret = place.slack.add_channel("secret", place.ada)
            await place.slack.slash(secret, place.ada, "/council", "Who goes?")
            await place.dispatcher.tasks.settled()
            hidden = (await place.run(place.cards(secret)[0])).id
            card = await place.ask()
            message, own = digest(place, card), (await place.run(card)).id
            for value in (hidden, f"{hidden}:1", "../../etc/passwd", f"{own}:1000", f"{own}:-1"):
                assert (await place.slack.click(message, "council_open", place.bob, value=value)).acked
            await place.dispatcher.tasks.settled()
            assert place.told(place.bob) == [NOT_HERE] * 5
            await place.slack.click(message, "council_open", place.bob, value=f"{own}:99")
            await place.dispatcher.tasks.settled()
            missing = "This member's answer is not on record."
            assert place.told(place.bob)[-1] == missing

    async def test_where_slack_refuses_the_thread_the_click_is_still_answered(
        self, tmp_path: Path
    ) -> None:
        """Through the click's response URL."""
        async with at_work(tmp_path) as place:
            card = await place.ask()
            place.slack.fail("chat.postEphemeral", "user_not_in_channel", times=ALWAYS)
            await place.slack.click(digest(place, card), "council_open", place.bob)
            await place.dispatcher.tasks.settled()
            [shown] = place.slack.ephemerals(place.general, place.bob)
            assert (shown.via, SAID in shown.text) == ("response_url", True)


async def test_a_long_review_comes_in_full_to_the_person_who_presses(tmp_path: Path) -> None:
    """In as many private messages as it takes."""
    points = "\n\n".join(f"Point {number}: {'this is what matters. ' * 5}" for number in range(90))
    async with at_work(tmp_path, ScriptedCouncil(script={"stage2": points})) as place:
        card = await place.ask()
        await place.slack.click(digest(place, card), "council_open", place.bob)
        await place.dispatcher.tasks.settled()
        shown = place.slack.ephemerals(place.general, place.bob)
        assert len(shown) > 2
        whole = str([each.blocks for each in shown])
        assert [whole.count(f"Point {number}:") for number in (0, 45, 89)] == [len(FOUR) - 1] * 3


class TestRefusals:
    """What Slack doesn't allow, and what breaks."""

    async def test_where_the_bot_is_no_member_only_the_asker_is_told(self, tmp_path: Path) -> None:
        """With what to do about it."""
        async with at_work(tmp_path, without=frozenset({"chat:write.public"})) as place:
            closed = place.slack.add_channel("closed", place.ada, bot=False)
            assert (await place.slack.slash(closed, place.ada, "/council", "Shard?")).acked
            said = await place.until_told(place.ada, closed)
            assert "the bot isn't in this channel; invite it with /invite" in said
            assert place.slack.messages(closed) == []

    @pytest.mark.parametrize(
        ("scope", "act", "said"),
        [
            ("im:write", "private", "That isn't possible: the scope im:write is missing."),
            ("files:write", "transcript", "That isn't possible: the scope files:write is missing."),
            (
                "chat:write",
                "ask",
                "The council can't post here: the scope chat:write is missing. Your question was cancelled.",
            ),
        ],
    )
    async def test_a_missing_scope_is_named_to_the_person_who_needs_it(
        self, tmp_path: Path, scope: str, act: str, said: str
    ) -> None:
        """Nothing else breaks."""
        async with at_work(tmp_path, without=frozenset({scope})) as place:
            match act:
                case "private" | "ask":
                    text = "--private Shard?" if act == "private" else "Shard?"
                    await place.slack.slash(place.general, place.ada, "/council", text)
                case _:
                    await place.slack.click(await place.ask(), "council_transcript", place.ada)
            assert await place.until_told(place.ada) == said
            await place.dispatcher.tasks.settled()

    async def test_slow_direct_messages_refuse_a_private_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise Slack's 3 s would pass."""
        monkeypatch.setattr("bot.slack.replies.LOOKUP_SECONDS", 0.02)
        async with at_work(tmp_path) as place:
            place.slack.fail("conversations.open", delay=0.1)
            assert (await place.slack.slash(place.general, place.ada, "/council", "--private So?")).acked
            assert (await place.until_told(place.ada)).startswith("Slack took too long to open your")
            assert place.council.calls == []

    async def test_somebody_unknown_asks_without_a_name(self, tmp_path: Path) -> None:
        """A failed look-up stops no question."""
        async with at_work(tmp_path) as place:
            place.slack.fail("users.info", "fatal_error")
            await place.slack.mention(place.general, place.ada, "Shard?")
            await place.dispatcher.tasks.settled()
            [card] = place.cards(place.general)
            assert "Asked by" not in card.history[0].text
            assert place.pings() == [{place.ada.id}]

    async def test_an_unreachable_slack_is_reported_in_words(self) -> None:
        """After all attempts."""

        async def lost() -> AsyncSlackResponse:
            raise aiohttp.ClientConnectionError("the address")

        with pytest.raises(VenueError, match=r"^Slack can't be reached$"):
            await granted(lost())

    async def test_a_run_without_an_answer_says_so_in_its_thread(self, tmp_path: Path) -> None:
        """The card says why, and has *Retry* and *Ask again*."""
        council = ScriptedCouncil(script={"stage1": failure("rate_limited")})
        async with at_work(tmp_path, council) as place:
            card = await place.ask()
            assert "No member of the council answered." in card.text
            assert [element["action_id"] for element, _ in card.elements()] == [
                "council_retry",
                "council_over",
            ]
            [mention] = place.slack.thread(place.general, card.ts)
            assert mention.pinged == {place.ada.id}
            assert "could not answer" in mention.text

    @pytest.mark.parametrize("wrong", ["bot_token", "app_token"])
    async def test_a_wrong_token_ends_the_start(self, tmp_path: Path, wrong: str) -> None:
        """With a reason, without endless attempts."""
        async with at_work(tmp_path) as place:
            tokens: dict[str, Any] = {
                "bot_token": place.slack.token,
                "app_token": place.slack.app_token,
                wrong: "xoxb-no",
            }
            access = SlackAccess(**tokens, api_url=place.slack.api_url)
            bot = SlackBot(place.dispatcher, open_lookup(place.library), access)
            with pytest.raises(VenueError, match="Slack doesn't accept the token"):
                await bot.__aenter__()

    def test_a_server_without_a_secret_is_refused(self) -> None:
        """It would accept anybody's requests."""
        access = SlackAccess(bot_token="xoxb-1", http_port=3000)  # noqa: S106 - no real token
        with pytest.raises(ValueError, match="signing_secret"):
            SlackBot(cast("Dispatcher", None), cast("Lookup", None), access)


class TestHttp:
    """The same listeners behind signed requests."""

    async def test_command_mention_action_and_click_come_signed(self, tmp_path: Path) -> None:
        """One run each, and the transcript."""
        async with at_work(tmp_path, by_http=True) as place:
            card = await place.ask()
            assert (await place.slack.mention(place.general, place.ada, "Shard?")).acked
            message = place.slack.post(place.general, place.bob, "Shard now?")
            assert (await place.slack.shortcut(SHORTCUT, message, place.ada)).acked
            assert (await place.slack.click(card, "council_transcript", place.ada)).acked
            await place.dispatcher.tasks.settled()
            assert len(place.cards(place.general)) == 3
            assert place.slack.thread(place.general, card.ts)[-1].files
            assert place.slack.calls("apps.connections.open") == []

    async def test_an_unsigned_request_starts_nothing(self, tmp_path: Path) -> None:
        """Nor does a stale one."""
        async with at_work(tmp_path, by_http=True) as place:
            assert place.slack.courier.endpoint
            place.slack.courier.endpoint.signing_secret = "another"  # noqa: S105 - a wrong one
            forged = await place.slack.slash(place.general, place.ada, "/council", "Shard?")
            place.slack.courier.endpoint.signing_secret = place.slack.signing_secret
            place.slack.courier.endpoint.skew = -301
            stale = await place.slack.slash(place.general, place.ada, "/council", "Shard?")
            assert [forged.attempts[0].status, stale.attempts[0].status] == [401, 401]
            assert place.council.calls == []
