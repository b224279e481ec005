"""Response URLs: five answers within half an hour to a command, a shortcut or a click."""

import secrets
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from tests.slack_server.board import Board, read_arguments
from tests.slack_server.files import Meet
from tests.slack_server.rules import Call, Json, Refused
from tests.slack_server.workspace import Ephemeral, Message, Team


@dataclass(slots=True)
class ResponseUrl:
    """A response URL: where its answers go, and how often it was used."""

    team: Team
    channel: str
    user: str
    made_at: float
    message: Message | Ephemeral | None = None
    uses: int = 0


class ResponseUrls:
    """Issues them and receives what is sent to them."""

    def __init__(self, board: Board, calls: list[Call], meet: Meet) -> None:
        self.board = board
        self.world = board.world
        self.calls = calls
        self.meet = meet
        self._urls: dict[str, ResponseUrl] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/response/{key}", self._respond)]

    def new(
        self, team: Team, channel: str, user: str, message: Message | Ephemeral | None = None
    ) -> str:
        """Return a new URL that takes five answers within half an hour."""
        key = secrets.token_hex(12)
        self._urls[key] = ResponseUrl(team, channel, user, self.world.clock(), message)
        return f"{self.world.origin}/response/{key}"

    def forget(self) -> None:
        """Revoke every URL issued so far."""
        self._urls.clear()

    async def _respond(self, request: web.Request) -> web.Response:
        url = self._urls.get(request.match_info["key"])
        now = self.world.clock()
        arguments = await read_arguments(request)
        call = Call("response_url", arguments, url.team.id if url else None, now)
        self.calls.append(call)
        if (broken := await self.meet("response_url", request, call)) is not None:
            return broken
        if url is None or now - url.made_at > self.board.rules.response_url_seconds:
            call.error, call.status = "expired_url", 404
        elif url.uses >= self.board.rules.response_url_uses:
            call.error, call.status = "used_url", 404
        else:
            url.uses += 1
            try:
                self.answer(url.team, url.channel, url.user, arguments, "response_url", url.message)
            except Refused as refusal:
                call.error, call.status = refusal.error, 400
        self.world.changes.happened()
        if call.error:
            return web.json_response({"ok": False, "error": call.error}, status=call.status)
        return web.Response(text="ok")

    def answer(
        self,
        team: Team,
        channel: str,
        user: str,
        arguments: Json,
        via: Literal["response_url", "ack"],
        original: Message | Ephemeral | None = None,
    ) -> None:
        """Carry out an answer to a command or a click: show, post, replace or delete."""
        content = self.board.content(arguments)
        if arguments.get("replace_original") and original is not None:
            self.board.revise(original, content)
        elif arguments.get("response_type") == "in_channel":
            self.board.post(team, self.world.channels[channel], content, arguments.get("thread_ts"))
        else:
            self.board.show(channel, user, content, via, arguments.get("thread_ts"))
