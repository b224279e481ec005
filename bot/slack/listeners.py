"""What the bot does with one workspace's commands, mentions, clicks and forms.

Everything is acknowledged after it is done or written down, within Slack's 3 s: Bolt runs each
listener before it answers, and keeps no reference to later work, so that is the dispatcher's.
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import Refusal, VenueError
from bot.past import chart
from bot.past.lookup import Lookup
from bot.past.pages import Sheet
from bot.service.admission.permissions import depends_on_admin
from bot.service.commands import (
    ASK,
    CONFIG,
    FORGET,
    HELP,
    PAST,
    Command,
    argument,
    parse_options,
    person,
)
from bot.service.delivery.receipts import unrecorded
from bot.service.delivery.venue import LABELS, Button, File
from bot.service.dispatcher import Click, Dispatcher
from bot.slack import modals
from bot.slack import past as slack_past
from bot.slack.asking import Asking, standing
from bot.slack.card import action_id
from bot.slack.client import Json, granted
from bot.slack.incoming import Reader, installed_in
from bot.slack.manifest import SHORTCUT
from bot.slack.notices import Tell, ephemerally, line, privately
from bot.slack.typed import plain
from bot.slack.venue import SlackVenue
from bot.slack.workspace import Workspace
from bot.view.wording.platforms import slack as wording
from bot.view.wording.service.access import NOT_HERE
from bot.view.wording.service.delivery import TRANSCRIPT
from bot.view.wording.service.failures import UNEXPECTED
from bot.view.wording.service.replies import NO_QUESTION, NO_TEXT
from bot.view.wording.statistics import PICTURE
from council.brief import Discussion
from council.document.conversation import Source
from storage.journal.journal import RunRow

log = structlog.get_logger()

Next = Callable[[], Awaitable[object]]

CLICKS_REMEMBERED = 1000


class Listeners:
    """The listeners of the bot in one workspace; `me` is what `auth.test` says about it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        client: AsyncWebClient,
        workspace: Workspace,
        reader: Reader,
        me: Json,
        asking: Asking,
    ) -> None:
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._client = client
        self._workspace = workspace
        self._reader = reader
        self._introduction = me
        self._me = str(me["user_id"])
        self._team = workspace.team
        self._asking = asking
        self._link = slack_past.linked(workspace)
        self._clicks: deque[str] = deque(maxlen=CLICKS_REMEMBERED)
        self._strangers: set[str] = set()

    def app(self, signing_secret: str) -> AsyncApp:
        """Return the Bolt app that verifies what comes by HTTP, and passes it to the listeners."""
        me = self._introduction

        async def authorize() -> AuthorizeResult:
            # Without it, Bolt asks auth.test itself, in a burst once for each delivery.
            return AuthorizeResult(
                enterprise_id=me.get("enterprise_id"),
                team_id=me["team_id"],
                bot_user_id=me["user_id"],
                bot_id=me.get("bot_id"),
                bot_token=self._client.token,
            )

        app = AsyncApp(
            name="council",
            # At start Bolt warns of settings in the environment that it doesn't use here.
            logger=quiet_logger(),
            client=AsyncWebClient(base_url=self._client.base_url, session=self._client.session),
            signing_secret=signing_secret,
            authorize=authorize,
            process_before_response=True,
        )
        app.use(self._only_ours)
        app.command(f"/{ASK.name}")(self._on_ask)
        app.command(f"/{HELP.name}")(self._on_help)
        app.command(f"/{CONFIG.name}")(self._on_config)
        for past in PAST:
            app.command(f"/{past.name}")(self._on_past(past))
        app.command(f"/{FORGET.name}")(self._on_forget)
        app.action(slack_past.PRESSED)(self._on_past_click)
        app.shortcut(SHORTCUT)(self._on_shortcut)
        app.event("app_mention")(self._on_event)
        app.event("message")(self._on_event)
        for action in LABELS:
            app.action(action_id(action))(self._on_click)
        app.view(modals.WHY)(self._on_form)
        app.view(modals.FOLLOW_UP)(self._on_form)
        return app

    async def _only_ours(self, body: Json, next_: Next) -> BoltResponse | None:
        """Pass on only what is for this installation; only acknowledge the rest."""
        if installed_in(body, {self._me: self._team}):
            await next_()
            return None
        team: Json = body.get("team") or {}
        stranger = str(body.get("team_id") or team.get("id"))
        if stranger not in self._strangers:
            self._strangers.add(stranger)
            log.warning("slack_installation_unknown", workspace=stranger)
        return BoltResponse(status=HTTPStatus.OK)

    async def _on_ask(self, ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        tell = privately(respond)
        await self._attempt(tell, self._asking.ask(command, tell))
        await ack()

    async def _on_help(self, ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        await self._attempt(privately(respond), self._help(command, respond))
        await ack()

    async def _help(self, command: Json, respond: AsyncRespond) -> None:
        here = self._asking.source(command["channel_id"], command["user_id"])
        self._reply(respond, Sheet(await self._dispatcher.help(here)))

    async def _on_config(self, ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        await self._attempt(privately(respond), self._configure(command, respond))
        await ack()

    async def _configure(self, command: Json, respond: AsyncRespond) -> None:
        who = self._asking.source(command["channel_id"], command["user_id"])
        given = parse_options(CONFIG, command["text"])
        is_admin = await self._may(who)
        shown = await self._dispatcher.configure(given, who, standing(who), is_admin=is_admin)
        self._reply(respond, Sheet(shown))

    def _reply(self, respond: AsyncRespond, sheet: Sheet) -> None:
        """Show somebody the reply to a command, in the background."""
        self._dispatcher.tasks.spawn(slack_past.show(respond, sheet))

    def _on_past(self, past: Command) -> Callable[..., Awaitable[None]]:
        async def listener(ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
            await self._attempt(privately(respond), self._look_up(past, command, respond))
            await ack()

        return listener

    async def _look_up(self, past: Command, command: Json, respond: AsyncRespond) -> None:
        here = self._asking.source(command["channel_id"], command["user_id"])
        given = argument(past, plain(command["text"]))
        self._reply(respond, await self._lookup.answer(past, given, here, self._link))

    async def _on_forget(self, ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        await self._attempt(privately(respond), self._ask_to_forget(command, respond))
        await ack()

    async def _ask_to_forget(self, command: Json, respond: AsyncRespond) -> None:
        who = self._asking.source(command["channel_id"], command["user_id"])
        text = command["text"]
        given = argument(FORGET, text if person(text) else plain(text))
        is_admin = await self._may(who)
        sheet = await self._lookup.ask_to_forget(given, who, is_admin=is_admin)
        self._reply(respond, sheet)

    async def _forget(self, about: str, who: Source, tell: Tell) -> None:
        is_admin = await self._may(who)
        said = await self._lookup.forget(about, who, self._dispatcher.tasks.halt, is_admin=is_admin)
        self._dispatcher.tasks.spawn(self._lookup.scrub())
        await tell(line(said))

    async def _may(self, who: Source) -> bool:
        person = await self._reader.person(str(who.user))
        return self._dispatcher.admins.include(who, by_platform=person.is_admin)

    async def _on_past_click(
        self, ack: AsyncAck, respond: AsyncRespond, body: Json, action: Json
    ) -> None:
        if await self._is_new(body):
            await self._attempt(privately(respond), self._turn(body, action, respond))
        await ack()

    async def _turn(self, body: Json, action: Json, respond: AsyncRespond) -> None:
        """Show what a button below past answers opens, if it belongs to this channel."""
        who, shown, about = body["user"], body["container"], str(action["value"])
        here = self._asking.source(shown["channel_id"], who["id"])
        verb = slack_past.verb(action["action_id"])
        tell = privately(respond)
        if verb == "forget":
            self._dispatcher.tasks.spawn(self._attempt(tell, self._forget(about, here, tell)))
            return
        if verb == "transcript":
            self._dispatcher.tasks.spawn(self._attempt(tell, self._send_directly(about, here, tell)))
            return
        sheet = await self._lookup.press(about, here, self._link, verb)
        if verb == "share":
            self._dispatcher.tasks.spawn(
                self._attempt(tell, self._share(sheet, here, who["name"], respond, tell))
            )
        else:
            turned = verb == "turn" and bool(shown.get("is_ephemeral"))
            self._dispatcher.tasks.spawn(self._show(respond, sheet, turned=turned))

    async def _show(self, respond: AsyncRespond, sheet: Sheet, *, turned: bool) -> None:
        await slack_past.show(respond, sheet, turned=turned)

    async def _share(
        self, sheet: Sheet, here: Source, by: str, respond: AsyncRespond, tell: Tell
    ) -> None:
        """Show the whole channel what one person saw, with its picture if it has one."""
        await slack_past.share(respond, sheet, by)
        if picture := await chart.drawn(sheet.chart):
            venue = SlackVenue(self._workspace, str(here.user), tell, here)
            await venue.attach(PICTURE, unrecorded("picture"), File(chart.PICTURE, picture))

    async def _send_directly(self, conversation_id: str, here: Source, tell: Tell) -> None:
        """Send a transcript directly: a message that only one person sees can't have a file."""
        files = await self._lookup.transcript(conversation_id, here)
        direct = here.model_copy(update={"channel": await self._asking.direct(str(here.user))})
        venue = SlackVenue(self._workspace, str(here.user), tell, direct)
        await venue.attach(TRANSCRIPT, unrecorded("transcript"), *files)
        await tell(line(wording.IN_DIRECT))

    async def _on_shortcut(self, ack: AsyncAck, respond: AsyncRespond, body: Json) -> None:
        tell = privately(respond)
        who, message = body["user"], body["message"]
        here = self._asking.source(body["channel"]["id"], who["id"], message.get("thread_ts"))
        context = Discussion(until=str(body["action_ts"]), question=message["ts"])
        reading = self._asking.ask_about(
            message, here, body["trigger_id"], who["name"], NO_TEXT, tell, context
        )
        await self._attempt(tell, reading)
        await ack()

    async def _on_event(self, event: Json) -> None:
        """Take a mention or a direct message as a question; ignore what bots write.

        A message is known by its channel and time: Slack may send it again as another event, of another
        kind, or edited.
        """
        by_person = event.get("user") and not event.get("bot_id")
        if not by_person or event.get("subtype") not in (None, "file_share"):
            return
        if event["type"] == "message" and event.get("channel_type") != "im":
            return
        here = self._asking.source(event["channel"], event["user"], event.get("thread_ts"))
        tell = ephemerally(self._client, here)
        nothing = NO_QUESTION if event["type"] == "message" else wording.NOT_AFTER_MENTION
        context = Discussion(until=event["ts"])
        key = f"message {self._team} {event['channel']} {event['ts']}"
        await self._attempt(tell, self._asking.ask_about(event, here, key, None, nothing, tell, context))

    async def _on_click(self, ack: AsyncAck, respond: AsyncRespond, body: Json, action: Json) -> None:
        if await self._is_new(body):  # a second press of Stop means something else
            tell = privately(respond)
            await self._attempt(tell, self._click(body, action, tell))
        await ack()

    async def _is_new(self, body: Json) -> bool:
        """Return whether a click is delivered for the first time."""
        trigger = body["trigger_id"]
        if trigger in self._clicks:
            return False
        self._clicks.append(trigger)
        return await self._dispatcher.is_first(f"slack/{trigger}")

    async def _click(self, body: Json, action: Json, tell: Tell) -> None:
        who, card = body["user"], body["container"]
        thread = card.get("thread_ts")
        here = self._asking.source(card["channel_id"], who["id"], thread)
        button = _button(action)
        click = Click(button.run_id, here)
        run = await self._dispatcher.run_of(click, button.permission)
        # A card with replies is the head of its own thread; its buttons are pressed in the channel.
        own = thread == card["message_ts"]
        match button.action:
            case "stop":
                if depends_on_admin("stop", here, run.origin.user):
                    click = replace(click, is_admin=(await self._reader.person(who["id"])).is_admin)
                stopped = await self._dispatcher.stop(click, run.origin.user)
                self._dispatcher.tasks.spawn(tell(line(stopped)))
            case "retry":
                standing = await self._asking.standing_of(here)
                said = await self._dispatcher.retry(click, standing, self._asking.venue_of)
                self._dispatcher.tasks.spawn(tell(line(said)))
            case "transcript":
                below = here.model_copy(update={"thread": thread or card["message_ts"]})
                venue = SlackVenue(self._workspace, who["id"], tell, below)
                self._dispatcher.tasks.spawn(self._attempt(tell, self._give_transcript(run, venue)))
            case "votes" | "changes" | "reviews":
                shown = await self._dispatcher.detail(run, button.action, button.seat)
                # What a response URL shows to one person alone appears below the channel, not here.
                tell_here = ephemerally(self._client, here, otherwise=tell) if thread else tell
                self._dispatcher.tasks.spawn(tell_here(shown))
            case "follow" | "answer":
                names = await self._dispatcher.profile_names(here)
                answers = button.action == "answer"
                form = await self._dispatcher.follow_ups.form(run, here, names, answers=answers)
                about = modals.Opened(run.id, str(here.channel), None if own else thread)
                await self._show_form(body, modals.follow_up(form, about))
            case "helpful":
                said = await self._dispatcher.votes.cast(run, here, helpful=True)
                self._dispatcher.tasks.spawn(tell(line(said)))
            case "unhelpful":
                said = await self._dispatcher.votes.cast(run, here, helpful=False)
                try:
                    about = modals.Opened(run.id, str(here.channel), None if own else thread)
                    await self._show_form(body, modals.why(about))
                except VenueError as error:  # the vote counts without a reason
                    log.info("form_not_shown", reason=error)
                    self._dispatcher.tasks.spawn(tell(line(said)))
            case "again":
                place = here.model_copy(update={"thread": None}) if own else here
                await self._asking.ask_again(run, place, body["trigger_id"], who["name"], tell)

    async def _show_form(self, body: Json, form: Json) -> None:
        """Show somebody a form within the 3 s for which their click counts."""
        await granted(self._client.views_open(trigger_id=body["trigger_id"], view=form))

    async def _on_form(self, ack: AsyncAck, body: Json, view: Json) -> None:
        """Handle a submitted form; show errors in it, so that nothing written is lost."""
        try:
            about = modals.Opened.read(view)
            here = self._asking.source(about.channel, body["user"]["id"], about.thread)
            run = await self._dispatcher.run_of(Click(about.run_id, here))
            if view["callback_id"] == modals.WHY:
                await self._give_reason(run, here, modals.reason(view))
            else:
                await self._asking.follow_up(run, here, body["user"]["name"], view)
        except Refusal as error:
            said = str(error)
        except Exception:
            number = uuid.uuid4().hex[:8]
            log.exception("slack_listener_failed", id=number)
            said = UNEXPECTED.format(number)
        else:
            await ack()
            return
        await ack(response_action="errors", errors={modals.FIRST[view["callback_id"]]: said})

    async def _give_reason(self, run: RunRow, here: Source, reason: str) -> None:
        said = await self._dispatcher.votes.cast(run, here, helpful=False, reason=reason)
        self._dispatcher.tasks.spawn(ephemerally(self._client, here)(line(said)))

    async def _give_transcript(self, run: RunRow, venue: SlackVenue) -> None:
        await venue.attach(TRANSCRIPT, unrecorded("transcript"), *await self._dispatcher.transcript(run))

    async def _attempt(self, tell: Tell, work: Coroutine[Any, Any, object]) -> None:
        """Do what somebody asked for; tell only them why it can't be done."""
        try:
            await work
        except Refusal as error:
            said = str(error)
        except VenueError as error:
            said = wording.impossible(str(error))
        except Exception:
            number = uuid.uuid4().hex[:8]
            log.exception("slack_listener_failed", id=number)
            said = UNEXPECTED.format(number)
        else:
            return
        self._dispatcher.tasks.spawn(tell(line(said)))


def _button(action: Json) -> Button:
    try:
        return Button.read(str(action["action_id"]).removeprefix(action_id("")), str(action["value"]))
    except ValueError as error:
        raise Refusal(NOT_HERE) from error


def quiet_logger() -> logging.Logger:
    """Return the logger for Bolt, which at start warns of settings that aren't used here."""
    logger = logging.getLogger("council.slack")
    logger.setLevel(logging.ERROR)
    return logger
