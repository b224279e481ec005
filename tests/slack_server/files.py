"""Files: announced, uploaded, completed, and downloaded with the bot's token."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.slack_server.blocks import checked
from tests.slack_server.board import Board
from tests.slack_server.rules import Call, Json, Refused
from tests.slack_server.workspace import StoredFile, Team

Meet = Callable[[str, web.Request, Call], Awaitable[web.Response | None]]
"""Returns what is sent instead of the answer where a test has set a fault."""

LONGEST_ALT = 1000


class Files:
    """The three steps of an upload, and the private URLs."""

    def __init__(self, board: Board, meet: Meet) -> None:
        self.board = board
        self.meet = meet
        self.world = board.world
        self.downloads: list[str] = []
        """The ids of the files that were handed over, in order."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/upload/v1/{file}", self._upload),
            web.get("/files-pri/{file}/{name}", self._download),
        ]

    def upload_url(self, team: Team, arguments: Json) -> Json:
        """`files.getUploadURLExternal`."""
        if not arguments.get("filename") or not str(arguments.get("length", "")).isdigit():
            raise Refused("invalid_arguments")
        name, length = str(arguments["filename"]), int(arguments["length"])
        alt = str(arguments.get("alt_txt") or "")
        if len(alt) > LONGEST_ALT:
            raise Refused("alt_txt_too_large")
        file = self.new(team, name, length, team.bot.id)
        file.alt_txt = alt
        return {"upload_url": f"{self.world.origin}/upload/v1/{file.id}", "file_id": file.id}

    def new(self, team: Team, name: str, length: int, user: str) -> StoredFile:
        """Announce a file whose content follows."""
        file_id = self.world.new_id("F")
        file = StoredFile(
            file_id, name, team.id, user, length, f"{self.world.origin}/files-pri/{file_id}/{name}"
        )
        self.world.files[file_id] = file
        return file

    async def _upload(self, request: web.Request) -> web.Response:
        file = self.world.files.get(request.match_info["file"])
        content = await request.read()
        call = Call("upload", {"filename": file.name} if file else {}, None, self.world.clock())
        if (broken := await self.meet("upload", request, call)) is not None:
            return broken
        if request.content_type == "multipart/form-data" or file is None:
            return web.Response(status=404 if file is None else 400, text="no file")
        file.content = content
        return web.Response(text=f"OK - {len(content)}")

    def _file(self, team: Team, file_id: Any) -> StoredFile:
        file = self.world.files.get(str(file_id))
        if file is None or file.team != team.id or file.content is None:
            raise Refused("file_not_found")
        return file

    def info(self, team: Team, arguments: Json) -> Json:
        return {"file": self._file(team, arguments.get("file")).wire()}

    def delete(self, team: Team, arguments: Json) -> Json:
        """`files.delete`: the message that shows the file stays, without it."""
        file = self._file(team, arguments.get("file"))
        if file.user != team.bot.id:
            raise Refused("cant_delete_file")
        del self.world.files[file.id]
        for channel in self.world.channels.values():
            for message in channel.messages.values():
                message.files[:] = [each for each in message.files if each is not file]
        return {}

    def complete(self, team: Team, arguments: Json) -> Json:
        """`files.completeUploadExternal`: the files appear in the channels named."""
        wanted: list[Json] = arguments.get("files") or []
        if not wanted or isinstance(wanted, str):
            raise Refused("invalid_arguments")
        files = [self._file(team, item.get("id")) for item in wanted]
        if any(file.length != len(file.content or b"") for file in files):
            raise Refused("invalid_file_length")
        for file, item in zip(files, wanted, strict=True):
            file.title = str(item.get("title", ""))
        names = str(arguments.get("channels") or arguments.get("channel_id") or "")
        for name in filter(None, names.split(",")):
            channel = self.board.writable(team, {"channel": name})
            blocks = arguments.get("blocks")
            content: Json = {"text": str(arguments.get("initial_comment") or ""), "blocks": None}
            if blocks is not None:
                content["blocks"] = checked(blocks, self.board.rules)
            for file in files:
                file.shared_in.append(channel.id)
            shown = self.board.post(team, channel, content, arguments.get("thread_ts"), files)
            for file in files:
                file.shares.setdefault(channel.id, []).append(shown.ts)
        return {"files": [file.wire() for file in files]}

    async def _download(self, request: web.Request) -> web.Response:
        file = self.world.files.get(request.match_info["file"])
        call = Call("download", {"filename": file.name} if file else {}, None, self.world.clock())
        if (broken := await self.meet("download", request, call)) is not None:
            return broken
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        team = next((team for team in self.world.teams.values() if team.token == token), None)
        if file is None or team is None or file.team != team.id or "files:read" not in team.scopes:
            # Slack answers a stranger with its sign-in page and status 200, not with an error.
            return web.Response(
                text="<!DOCTYPE html><title>Sign in | Slack</title>", content_type="text/html"
            )
        self.downloads.append(file.id)
        return web.Response(body=file.content or b"", content_type="text/plain")
