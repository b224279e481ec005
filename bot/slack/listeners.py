"""What the bot does with one workspace's commands, mentions, clicks and forms.

Everything is acknowledged after it is done or written down, within Slack's 3 s: Bolt runs each
listener before it answers, and keeps no reference to later work, so that is the dispatcher's.
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.actions import Action, Actions, Incoming, Payload, past
from bot.errors import Refusal
from bot.service.accept import Question
from bot.service.commands import ASK, COMMANDS, Command, RunOptions, Typed, given, parse, parse_message
from bot.service.delivery.chat import LABELS, Button, Part, Spot
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Post, Poster, unrecorded
from bot.slack.chat import ephemerally, is_direct
from bot.slack.client import SHORTCUT, Json
from bot.slack.incoming import SAID, installed_in, plain, words
from bot.slack.replies import PRESSED, SlackPlaces, SlackReply, direct, privately, verb, why_not
from bot.slack.text import FIRST, FOLLOW_UP, WHY, OpenedModal, action_id, submitted
from bot.view.wording.commands import NO_QUESTION, NO_TEXT, NOT_HERE
from council.brief import Discussion

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SlackQuestions:
    """Turns what people send in one workspace into questions; `me` is the bot's user there.

    A question that can't be accepted raises `Refusal`.
    """

    actions: Actions
    locations: SlackPlaces
    me: str

    async def ask(self, command: Json, reply: SlackReply) -> None:
        """Ask what follows `/council`: here or, if it is to be private, in direct messages."""
        here, channel = reply.here, command["channel_id"]
        is_private = parse(plain(command["text"])).is_private
        text, standing, where = await asyncio.gather(
            self.locations.reader.typed(command["text"]),
            self.locations.standing_of(here),
            direct(self.locations.client, str(here.user)) if is_private else asyncio.sleep(0, channel),
        )
        typed = parse(text)
        question = Question(
            text=typed.question,
            source=here.model_copy(update={"channel": where}),
            entry_key=command["trigger_id"],
            standing=standing,
            asker=command["user_name"],
            options=RunOptions.read(typed.given),
            asked_in=here if is_private else None,
        )
        if await self.actions.ask(question, reply) and where != channel:
            await reply.say("The council will answer in your direct messages.")

    async def ask_about(
        self, message: Json, key: str, nothing: str, context: Discussion, reply: SlackReply
    ) -> None:
        """Ask all that a message says, with its files; answer `nothing` to an empty one.

        Options count in what somebody writes to the bot, not in a message that a shortcut picks: only
        that comes with the asker's name.
        """
        here = reply.here

        async def name() -> str:
            return reply.name or (await self.locations.reader.person(str(here.user))).name

        text, *rest = words(message)
        files, text, shown, called, standing = await asyncio.gather(
            self.locations.reader.files(message),
            self.locations.reader.typed(text, self.me),
            self.locations.reader.typed("\n".join(rest), self.me),
            name(),
            self.locations.standing_of(here),
        )
        typed = Typed(text, {}) if reply.name else parse_message(text)
        asked = "\n\n".join(filter(None, (typed.question, shown)))
        if not asked and not files:
            raise Refusal(nothing)
        question = Question(
            text=asked,
            source=here,
            entry_key=key,
            standing=standing,
            asker=called,
            sent=files,
            context=None if here.thread is None or is_direct(here) else context,
            options=RunOptions.read(typed.given),
        )
        await self.actions.ask(question, reply)


Next = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class SlackListeners:
    """The listeners of the bot in one workspace; `me` is what `auth.test` says about it."""

    actions: Actions
    locations: SlackPlaces
    questions: SlackQuestions
    me: Json
    now: Callable[[], float] = field(default=time.time, kw_only=True)
    strangers: set[str] = field(default_factory=set[str], kw_only=True)

    def app(self, signing_secret: str) -> AsyncApp:
        """Return the Bolt app that verifies what comes by HTTP, and passes it to the listeners."""
        me = self.me

        async def authorize() -> AuthorizeResult:
            # Without it, Bolt asks auth.test itself, in a burst once for each delivery.
            return AuthorizeResult(
                enterprise_id=me.get("enterprise_id"),
                team_id=me["team_id"],
                bot_user_id=me["user_id"],
                bot_id=me.get("bot_id"),
                bot_token=self.locations.client.token,
            )

        app = AsyncApp(
            name="council",
            # At start Bolt warns of settings in the environment that it doesn't use here.
            logger=quiet_logger(),
            client=AsyncWebClient(
                base_url=self.locations.client.base_url, session=self.locations.client.session
            ),
            signing_secret=signing_secret,
            authorize=authorize,
            process_before_response=True,
        )
        app.use(self._only_ours)
        app.command(f"/{ASK.name}")(self._on_ask)
        for command in COMMANDS:
            if command is not ASK:
                app.command(f"/{command.name}")(self._on_command(command))
        app.action(PRESSED)(self._on_past_click)
        app.shortcut(SHORTCUT)(self._on_shortcut)
        app.event("app_mention")(self._on_event)
        app.event("message")(self._on_event)
        app.action(re.compile(rf"^{action_id('')}({'|'.join(LABELS)})(_\d+)?$"))(self._on_click)
        app.view(WHY)(self._on_form)
        app.view(FOLLOW_UP)(self._on_form)
        return app

    async def _only_ours(self, body: Json, next_: Next) -> BoltResponse | None:
        """Pass on only what is for this installation; only acknowledge the rest."""
        if installed_in(body, {self.questions.me: self.locations.chat.team}):
            await next_()
            return None
        team: Json = body.get("team") or {}
        stranger = str(body.get("team_id") or team.get("id"))
        if stranger not in self.strangers:
            self.strangers.add(stranger)
            log.warning("slack_installation_unknown", workspace=stranger)
        return BoltResponse(status=HTTPStatus.OK)

    async def _on_ask(self, ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        reply = self._commanded(command, respond)
        await reply.attempt(self.questions.ask(command, reply))
        await ack()

    def _on_command(self, named: Command) -> Callable[..., Awaitable[None]]:
        async def listener(ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
            reply = self._commanded(command, respond)
            await reply.attempt(self._command(named, str(command["text"]), reply))
            await ack()

        return listener

    def _commanded(self, command: Json, respond: AsyncRespond) -> SlackReply:
        return SlackReply(
            locations=self.locations,
            here=self.locations.source(command["channel_id"], command["user_id"]),
            tell=privately(respond),
            respond=respond,
            name=command["user_name"],
        )

    async def _command(self, command: Command, text: str, reply: SlackReply) -> None:
        await self._act(command.name, Payload(given=given(command, text, plain)), reply)

    async def _act(self, action: Action, about: Payload, reply: SlackReply, key: str = "") -> None:
        incoming = Incoming(
            actor=self.locations.actor(reply.here, reply.name),
            place=reply.here,
            action=action,
            payload=about,
            key=key,
            now=f"{self.now():.6f}",
        )
        await self.actions.handle(incoming, reply)

    async def _on_shortcut(self, ack: AsyncAck, respond: AsyncRespond, body: Json) -> None:
        who, message = body["user"], body["message"]
        reply = SlackReply(
            locations=self.locations,
            here=self.locations.source(body["channel"]["id"], who["id"], message.get("thread_ts")),
            tell=privately(respond),
            respond=respond,
            name=who["name"],
        )
        context = Discussion(until=str(body["action_ts"]), question=message["ts"])
        key = body["trigger_id"]
        await reply.attempt(self.questions.ask_about(message, key, NO_TEXT, context, reply))
        await ack()

    async def _on_event(self, event: Json) -> None:
        """Take a mention or a direct message as a question; tell bots and workflows that they can't ask.

        A message is known by its channel and time: Slack may send it again as another event, of another
        kind, or edited.
        """
        if event.get("subtype") not in SAID:
            return
        if event["type"] == "message" and event.get("channel_type") != "im":
            return
        if event.get("bot_id") or not event.get("user"):
            hour = f"slack/{event['channel']}/{event.get('bot_id')}/{float(event['ts']) // 3600}"
            if event["type"] == "app_mention" and await self.actions.is_first(hour):  # it may answer
                self.locations.tasks.spawn(self._refuse_bot(event))
            return
        here = self.locations.source(event["channel"], event["user"], event.get("thread_ts"))
        reply = SlackReply(
            locations=self.locations, here=here, tell=ephemerally(self.locations.client, here)
        )
        nothing = "There is no question. Write it after the mention: @council Should we shard now?"
        if event["type"] == "message":
            nothing = NO_QUESTION
        context = Discussion(until=event["ts"])
        key = f"message {self.locations.chat.team} {event['channel']} {event['ts']}"
        await reply.attempt(self.questions.ask_about(event, key, nothing, context, reply))

    async def _refuse_bot(self, event: Json) -> None:
        poster = Poster(self.locations.chat, f"mention {event['ts']}")
        said = Part(
            "Bots and workflows can't ask. Somebody may choose Ask the council in this message's menu."
        )
        post = Post(key="bot", part=said, urgency=Urgency.THREAD)
        where = Spot(str(event["channel"]), str(event.get("thread_ts") or event["ts"]))
        await why_not(poster.post(post, where, unrecorded("bot")))

    async def _on_click(self, ack: AsyncAck, respond: AsyncRespond, body: Json, action: Json) -> None:
        card = body["container"]
        thread = card.get("thread_ts")
        # A card with replies is the head of its own thread; its buttons are pressed in the channel.
        reply = self._pressed(body, respond, None if thread == card["message_ts"] else thread)
        await self._press(body, reply, lambda: _button(action))
        await ack()

    async def _on_past_click(
        self, ack: AsyncAck, respond: AsyncRespond, body: Json, action: Json
    ) -> None:
        reply = replace(self._pressed(body, respond), message=None)
        about = Payload(about=str(action["value"]))
        await self._press(body, reply, lambda: (past(verb(action["action_id"])), about))
        await ack()

    def _pressed(self, body: Json, respond: AsyncRespond, thread: str | None = None) -> SlackReply:
        who, shown = body["user"], body["container"]
        return SlackReply(
            locations=self.locations,
            here=self.locations.source(shown["channel_id"], who["id"], thread),
            tell=privately(respond),
            respond=respond,
            trigger=body["trigger_id"],
            name=who["name"],
            message=shown["message_ts"],
            is_ephemeral=bool(shown.get("is_ephemeral")),
        )

    async def _press(
        self, body: Json, reply: SlackReply, read: Callable[[], tuple[Action, Payload]]
    ) -> None:
        async def press() -> None:
            action, about = read()
            await self._act(action, about, reply, key=body["trigger_id"])

        if await self.actions.is_first(f"slack/{body['trigger_id']}"):
            await reply.attempt(press())

    async def _on_form(self, ack: AsyncAck, body: Json, view: Json) -> None:
        """Handle a submitted form; show errors in it, so that nothing written is lost."""
        if said := await why_not(self._submit(body["user"], view)):
            await ack(response_action="errors", errors={FIRST[view["callback_id"]]: said})
        else:
            await ack()

    async def _submit(self, who: Json, view: Json) -> None:
        about = OpenedModal.read(view)
        here = self.locations.source(about.channel, who["id"], about.thread)
        reply = SlackReply(
            locations=self.locations,
            here=here,
            tell=ephemerally(self.locations.client, here),
            name=who["name"],
        )
        action, given = submitted(view)
        await self._act(action, Payload(run_id=about.run_id, given=given), reply, key=view["id"])


def _button(action: Json) -> tuple[Action, Payload]:
    try:
        kind = str(action["action_id"]).removeprefix(action_id("")).partition("_")[0]
        button = Button.read(kind, str(action["value"]))
    except ValueError as error:
        raise Refusal(NOT_HERE) from error
    return button.action, Payload(run_id=button.run_id, seat=button.seat)


def quiet_logger() -> logging.Logger:
    """Return the logger for Bolt, which at start warns of settings that aren't used here."""
    logger = logging.getLogger("council.slack")
    logger.setLevel(logging.ERROR)
    return logger
