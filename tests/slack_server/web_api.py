"""The Web API: the way of a call under `/api/`, and the methods."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from tests.breaking import break_off, page
from tests.slack_server.board import UPDATED_TEXT_MOST, Board, need, read_arguments
from tests.slack_server.faults import Fault
from tests.slack_server.files import Files
from tests.slack_server.modals import Modals
from tests.slack_server.response_urls import ResponseUrls
from tests.slack_server.rules import Call, Json, Rates, Refused, Rules
from tests.slack_server.workspace import Message, Team, Workspace

READ = {"public": "channels:read", "private": "groups:read", "im": "im:read"}

Handler = Callable[[Team, Json], Json]
CALLED: set[str] = set()
"""The methods that every server of this process was asked for so far."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method's handler, the scopes it needs, and its tier."""

    handle: Handler
    scopes: tuple[str, ...] = ()
    tier: int | None = None


class WebApi:
    """Answers the bot's calls from a workspace, within the rules and rates."""

    def __init__(self, world: Workspace, rules: Rules, rates: Rates) -> None:
        self.world = world
        self.rates = rates
        self.faults: list[Fault] = []
        self.calls: list[Call] = []
        self.board = Board(world, rules)
        self.files = Files(self.board, self.meet)
        self.response_urls = ResponseUrls(self.board, self.calls, self.meet)
        self.modals = Modals(world)
        self.tickets: set[str] = set()
        self._methods = {
            "auth.test": Method(self._auth_test),
            "chat.postMessage": Method(self._post_message, ("chat:write",)),
            "chat.update": Method(self._update, ("chat:write",), 3),
            "chat.delete": Method(self._delete, ("chat:write",), 3),
            "chat.postEphemeral": Method(self._post_ephemeral, ("chat:write",), 4),
            "chat.scheduleMessage": Method(self._schedule, ("chat:write",), 3),
            "chat.scheduledMessages.list": Method(self._scheduled, (), 3),
            "conversations.replies": Method(self._replies, (), 3),
            "conversations.history": Method(self._history, (), 3),
            "conversations.info": Method(self._channel_info, (), 3),
            "conversations.members": Method(self._channel_members, (), 4),
            "conversations.open": Method(self._open, ("im:write",), 3),
            "users.conversations": Method(self._my_channels, (), 3),
            "views.open": Method(self.modals.open, (), 4),
            "usergroups.list": Method(self._groups, ("usergroups:read",), 2),
            "usergroups.users.list": Method(self._group_members, ("usergroups:read",), 2),
            "users.info": Method(self._user_info, ("users:read",), 4),
            "files.delete": Method(self.files.delete, ("files:write",), 3),
            "files.info": Method(self.files.info, ("files:read",), 4),
            "files.getUploadURLExternal": Method(self.files.upload_url, ("files:write",), 4),
            "files.completeUploadExternal": Method(self.files.complete, ("files:write",), 4),
        }

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/api/{method}", self._answer),
            *self.files.routes(),
            *self.response_urls.routes(),
        ]

    # -- the way of a call

    async def _answer(self, request: web.Request) -> web.Response:
        method, arguments = request.match_info["method"], await read_arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or arguments.pop(
            "token", ""
        )
        arguments.pop("token", None)
        call = Call(method, arguments, None, self.world.clock())
        self.calls.append(call)
        CALLED.add(method)
        self.board.post_scheduled()
        headers: dict[str, str] = {}
        try:
            if (fault := self.fault(method, arguments, str(token))) is not None:
                if fault.applied:
                    with suppress(Refused):  # the answer is lost, a refusal as well
                        self._reply(method, arguments, str(token), call, headers)
                if (broken := await self.suffer(fault, request, call)) is not None:
                    return broken
            reply = self._reply(method, arguments, str(token), call, headers)
        except Refused as refusal:
            call.error = refusal.error
            call.status = refusal.extra.pop("status", 200)
            call.retry_after = refusal.extra.pop("retry_after", None)
            reply = {"ok": False, "error": refusal.error, **refusal.extra}
        if call.retry_after is not None:
            headers["Retry-After"] = str(call.retry_after)
        self.world.changes.happened()
        return web.json_response(reply, status=call.status, headers=headers)

    def fault(self, method: str, arguments: Json, token: str = "") -> Fault | None:
        """Find what goes wrong with this call, and count it."""
        now = self.world.clock()
        team = next((team.id for team in self.world.teams.values() if team.token == token), None)
        met = (fault for fault in self.faults if fault.matches(method, arguments, now, team))
        found = next(met, None)
        if found is not None:
            found.meet(now)
        return found

    async def meet(self, method: str, request: web.Request, call: Call) -> web.Response | None:
        """Let something go wrong with what isn't a method: an upload, a download, a response URL."""
        fault = self.fault(method, call.arguments)
        if fault is None:
            return None
        try:
            return await self.suffer(fault, request, call)
        except Refused as refusal:
            call.error, call.status = refusal.error, refusal.extra.get("status", 200)
            after = refusal.extra.get("retry_after")
            headers = {"Retry-After": str(after)} if after is not None else {}
            return web.Response(status=call.status, text=refusal.error, headers=headers)

    async def suffer(self, fault: Fault, request: web.Request, call: Call) -> web.Response | None:
        """Let it go wrong; return what goes out in place of Slack's own answer, if anything does."""
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.breaks is not None:
            broken = await break_off(request, fault.breaks, fault.over)
        elif fault.html:
            broken = page(fault.status)
        elif fault.retry_after is not None:
            raise Refused("ratelimited", status=429, retry_after=fault.retry_after)
        elif fault.refuses:
            raise Refused(fault.error or "internal_error", status=fault.status)
        else:
            return None
        call.status = broken.status
        self.world.changes.happened()
        return broken

    def _reply(
        self, name: str, arguments: Json, token: str, call: Call, headers: dict[str, str]
    ) -> Json:
        if name == "apps.connections.open":
            return self._connect(token)
        team = next((team for team in self.world.teams.values() if team.token == token), None)
        if team is None:
            error = "invalid_auth" if token else "not_authed"
            raise Refused("not_allowed_token_type" if token == self.world.app_token else error)
        if team.revoked is not None:
            raise Refused(team.revoked)
        call.team = team.id
        headers["x-oauth-scopes"] = ",".join(sorted(team.scopes))
        method = self._methods.get(name)
        if method is None:
            raise Refused("unknown_method", req_method=name)
        headers["x-accepted-oauth-scopes"] = ",".join(method.scopes)
        wait = self.rates.wait(team.id, name, method.tier)
        if wait is not None:
            raise Refused("ratelimited", status=429, retry_after=wait)
        need(team, *method.scopes)
        return {"ok": True, **method.handle(team, arguments)}

    def _connect(self, token: str) -> Json:
        if token == self.world.app_token and self.world.app_revoked is not None:
            raise Refused(self.world.app_revoked)
        if token != self.world.app_token:
            bots = {team.token for team in self.world.teams.values()}
            raise Refused("not_allowed_token_type" if token in bots else "invalid_auth")
        ticket = secrets.token_hex(12)
        self.tickets.add(ticket)
        origin = self.world.origin.replace("http://", "ws://", 1)
        return {"ok": True, "url": f"{origin}/link/?ticket={ticket}&app_id={self.world.app_id}"}

    # -- who and where

    def _auth_test(self, team: Team, _: Json) -> Json:
        return {
            "url": f"https://{team.domain}.slack.com/",
            "team": team.name,
            "user": team.bot.name,
            "team_id": team.id,
            "user_id": team.bot.id,
            "bot_id": team.bot_id,
            "is_enterprise_install": False,
        }

    def _user_info(self, team: Team, arguments: Json) -> Json:
        return {"user": self.board.user(team, arguments.get("user")).wire()}

    def _groups(self, team: Team, _: Json) -> Json:
        return {
            "usergroups": [
                {"id": group, "team_id": team.id, "name": handle.title(), "handle": handle}
                for group, handle in team.handles.items()
            ]
        }

    def _group_members(self, team: Team, arguments: Json) -> Json:
        members = team.groups.get(str(arguments.get("usergroup")))
        if members is None:
            raise Refused("no_such_subteam")
        return {"users": sorted(members)}

    def _channel_info(self, team: Team, arguments: Json) -> Json:
        channel = self.board.visible(team, arguments)
        need(team, READ[channel.kind])
        return {"channel": channel.wire(team)}

    def _channel_members(self, team: Team, arguments: Json) -> Json:
        channel = self.board.visible(team, arguments)
        need(team, READ[channel.kind])
        limit, start = int(arguments.get("limit") or 100), int(arguments.get("cursor") or 0)
        people = sorted(channel.members)
        cursor = str(start + limit) if start + limit < len(people) else ""
        return {"members": people[start : start + limit], "response_metadata": {"next_cursor": cursor}}

    def _my_channels(self, team: Team, arguments: Json) -> Json:
        kinds = str(arguments.get("types") or "public_channel").split(",")
        need(team, *(READ[kind.removesuffix("_channel")] for kind in kinds))
        mine = [
            channel.wire(team)
            for channel in self.world.channels.values()
            if f"{channel.kind}_channel" in kinds and team.bot.id in channel.members
        ]
        return {"channels": mine, "response_metadata": {"next_cursor": ""}}

    def _open(self, team: Team, arguments: Json) -> Json:
        users = str(arguments.get("users", "")).split(",")
        channel = self.world.open_im(team, users[0]) if len(users) == 1 else None
        if channel is None:
            raise Refused("not_enough_users")
        return {"channel": channel.wire(team) if arguments.get("return_im") else {"id": channel.id}}

    # -- messages

    def _post_message(self, team: Team, arguments: Json) -> Json:
        channel = self.board.writable(team, arguments)
        content = self.board.content(arguments)
        thread_ts = arguments.get("thread_ts")
        if thread_ts is not None and not channel.has_thread(str(thread_ts)):
            raise Refused("thread_not_found")
        wait = self.rates.wait_to_post(channel.id)
        if wait is not None:
            raise Refused("ratelimited", status=429, retry_after=wait)
        message = self.board.post(team, channel, content, thread_ts)
        return {"channel": channel.id, "ts": message.ts, "message": message.wire()}

    def _schedule(self, team: Team, arguments: Json) -> Json:
        channel = self.board.writable(team, arguments)
        content = self.board.content(arguments)
        taken = self.board.schedule(team, channel, content, arguments.get("post_at"))
        said = {"type": "delayed_message", "bot_id": team.bot_id, "text": content["text"]}
        return {
            "channel": channel.id,
            "scheduled_message_id": taken.id,
            "post_at": taken.post_at,
            "message": said,
        }

    def _scheduled(self, team: Team, arguments: Json) -> Json:
        mine = [each for each in self.world.scheduled if each.team is team]
        limit, start = int(arguments.get("limit") or 100), int(arguments.get("cursor") or 0)
        cursor = str(start + limit) if start + limit < len(mine) else ""
        return {
            "scheduled_messages": [each.wire() for each in mine[start : start + limit]],
            "response_metadata": {"next_cursor": cursor},
        }

    def _own(self, team: Team, arguments: Json, refusal: str) -> Message:
        channel = self.board.visible(team, arguments)
        if channel.archived:
            raise Refused("is_archived")
        message = channel.messages.get(str(arguments.get("ts")))
        if message is None or message.deleted_at is not None:
            raise Refused("message_not_found")
        if message.bot_id != team.bot_id:
            raise Refused(refusal)
        return message

    def _update(self, team: Team, arguments: Json) -> Json:
        message = self._own(team, arguments, "cant_update_message")
        if not {"text", "blocks", "attachments", "markdown_text"} & arguments.keys():
            raise Refused("no_text")
        self.board.revise(message, self.board.content(arguments, UPDATED_TEXT_MOST))
        return {
            "channel": message.channel,
            "ts": message.ts,
            "text": message.text,
            "message": message.wire(),
        }

    def _delete(self, team: Team, arguments: Json) -> Json:
        message = self._own(team, arguments, "cant_delete_message")
        message.deleted_at = self.world.clock()
        return {"channel": message.channel, "ts": message.ts}

    def _post_ephemeral(self, team: Team, arguments: Json) -> Json:
        channel = self.board.writable(team, arguments)
        user = self.board.user(team, arguments.get("user"))
        if user.id not in channel.members:
            raise Refused("user_not_in_channel")
        content = self.board.content(arguments)
        thread_ts = arguments.get("thread_ts")
        shown = self.board.show(channel.id, user.id, content, "chat.postEphemeral", thread_ts)
        return {"message_ts": shown.ts}

    def _replies(self, team: Team, arguments: Json) -> Json:
        channel = self.board.readable(team, arguments)
        first = channel.messages.get(str(arguments.get("ts")))
        if first is None:
            raise Refused("thread_not_found")
        replies = channel.replies(first.ts)
        if first.deleted_at is not None and not replies:
            raise Refused("thread_not_found")
        head = first.wire()
        if first.deleted_at is not None:
            head |= {"subtype": "tombstone", "text": "This message was deleted.", "blocks": []}
        shown = [reply.wire() for reply in replies if _in_range(reply.ts, arguments)]
        return _page([head, *shown], {"limit": 1000, **arguments})

    def _history(self, team: Team, arguments: Json) -> Json:
        channel = self.board.readable(team, arguments)
        there = (m for m in channel.messages.values() if not m.thread_ts and m.deleted_at is None)
        shown = [message.wire() for message in there if _in_range(message.ts, arguments)]
        return _page(shown[::-1], arguments)


def _in_range(ts: str, arguments: Json) -> bool:
    """Tell whether a message is between `oldest` and `latest`; the bounds are in only if `inclusive`."""
    inclusive = str(arguments.get("inclusive", "")).lower() in {"1", "true"}
    oldest, latest = arguments.get("oldest"), arguments.get("latest")
    if inclusive and ts in (oldest, latest):
        return True
    return (not oldest or ts > str(oldest)) and (not latest or ts < str(latest))


def _page(messages: list[Json], arguments: Json) -> Json:
    limit, start = int(arguments.get("limit") or 100), int(arguments.get("cursor") or 0)
    rest = start + limit < len(messages)
    cursor = {"response_metadata": {"next_cursor": str(start + limit)}} if rest else {}
    return {"messages": messages[start : start + limit], "has_more": rest, **cursor}
