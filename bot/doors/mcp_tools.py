"""The Model Context Protocol: what an agent can ask of its council, and how its requests come by HTTP.

An agent reads the tools' descriptions at every turn, so they are short. What models and people have
written is returned as data, under `untrusted`. Source: https://modelcontextprotocol.io/specification
Over HTTP each request stands alone: no session is kept that a restart would lose. The SDK answers as an
ASGI application; https://asgi.readthedocs.io/en/latest/specs/www.html says how it is called.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

import orjson
from aiohttp import web
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, Field, ValidationError, create_model

from bot.doors.completions import DIGITS, LONGEST_KEY, Serve, parted, profile_of, stage_of
from bot.doors.door import Caller, Door, Inquiry, RunProgress
from bot.errors import Refusal
from bot.http_server import SECONDS
from bot.past.pages import Answer, Sheet, read
from bot.render.markdown import render
from bot.service.commands import OVERRIDABLE, SEARCH, SHOW, choices, optional
from bot.service.limits import Dollars
from bot.view.wording import doors as wording
from bot.view.wording.terminal import TINY_MODEL
from council.calls import JsonObject
from council.errors import CouncilError
from storage.journal.rows import RunRow

AT_ONCE_SECONDS = 1.5
"""How long `council_ask` takes with an answer that is there by then; OpenAI's Agents SDK gives up at 5 s
(`client_session_timeout_seconds`), other clients after about a minute."""
MOST_WAIT = 45.0
PROGRESS_SECONDS = 5.0
"""Between two notifications of a run's progress."""

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Notifies an agent of progress: how far, of how much, in words."""


class _Arguments(BaseModel, hide_input_in_errors=True, coerce_numbers_to_str=True):
    """A tool's arguments; n8n and others send some of their own."""


Text = Annotated[str, Field(min_length=1)]
"""What Python reads as text and is none has no length, so it is refused."""


class _Ask(create_model("_Overrides", __base__=_Arguments, **optional(OVERRIDABLE))):
    question: Text
    max_cost: Dollars
    profile: Text | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)] | None = None


class _Result(_Arguments):
    id: Text
    wait_seconds: Annotated[float, Field(ge=0, le=MOST_WAIT)] = MOST_WAIT


class _Search(_Arguments):
    words: Text


class _Show(_Arguments):
    id: Text


class _Estimate(_Arguments):
    question: Text
    profile: Text | None = None


_TEXT: JsonObject = {"type": "string"}


def _tool(name: str, said: str, required: tuple[str, ...], **properties: JsonObject) -> types.Tool:
    schema: JsonObject = {"type": "object", "properties": properties, "required": [*required]}
    return types.Tool(name=name, description=said, input_schema=schema)


TOOLS = (
    _tool(
        "council_ask",
        "Ask this team's council: several models answer and review each other, and a chairman "
        "concludes. It takes minutes and costs money. Returns a run's id within 2 s; council_result has "
        "the answer.",
        ("question", "max_cost"),
        question=_TEXT,
        max_cost={"type": "number", "description": "The most that it may cost, in US dollars."},
        profile=_TEXT,
        **{key: JsonObject(type="string", enum=[*choices(key)]) for key in OVERRIDABLE},
        idempotency_key={"type": "string", "description": "The same key returns the same run."},
    ),
    _tool(
        "council_result",
        "State, stage, answer and cost of a run. A run takes minutes: call this again until there is an "
        "answer or an error.",
        ("id",),
        id=_TEXT,
        wait_seconds={
            "type": "number",
            "maximum": MOST_WAIT,
            "description": "How long this call waits for the end, 45 unless given; below your client's "
            "own limit for a call (3 where that is 5).",
        },
    ),
    _tool("council_search", "Search this channel's past answers.", ("words",), words=_TEXT),
    _tool("council_show", "Show a past answer by its run's or conversation's id.", ("id",), id=_TEXT),
    _tool(
        "council_estimate",
        "What a question may cost in US dollars. Asks no model.",
        ("question",),
        question=_TEXT,
        profile=_TEXT,
    ),
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Does what the tools say, through a door."""

    door: Door
    caller_of: Callable[[ServerRequestContext[Any, Any]], Caller]

    def server(self) -> Server[Any]:
        return Server(
            "council", version=version("council-bot"), on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[*TOOLS])

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tools: Mapping[str, Callable[[Caller, JsonObject], Awaitable[JsonObject]]] = {
            "council_ask": self._ask,
            "council_result": partial(self._result, context.session.report_progress),
            "council_search": self._search,
            "council_show": self._show,
            "council_estimate": self._estimate,
        }
        tool = tools.get(params.name)
        if tool is None:
            named = ", ".join(tools)
            return _refusal(f"There is no tool {params.name[:60]!r}. There are {named}.")
        # Many clients send what is optional as null or empty.
        given = {
            key: value for key, value in (params.arguments or {}).items() if value not in (None, "")
        }
        try:
            said = await tool(self.caller_of(context), given)
        except ValidationError as error:
            first = error.errors()[0]
            return _refusal(wording.unreadable(".".join(map(str, first["loc"])), first["msg"]))
        except CouncilError as error:
            return _refusal(str(error))
        text = types.TextContent(type="text", text=orjson.dumps(said).decode())
        return types.CallToolResult(content=[text], structured_content=said)

    async def _ask(self, caller: Caller, given: JsonObject) -> JsonObject:
        by = asyncio.get_running_loop().time() + AT_ONCE_SECONDS
        wanted = _Ask.model_validate(given)
        question, files = parted(wanted.question)
        run = await self.door.ask(
            caller,
            Inquiry(
                text=question,
                profile=wanted.profile and profile_of(wanted.profile),
                max_cost=wanted.max_cost,
                own=wanted.model_dump(include={*OVERRIDABLE}, exclude_none=True),
                files=files,
                key=wanted.idempotency_key,
            ),
        )
        left = by - asyncio.get_running_loop().time()
        return _described(await self.door.until_over(run.id, caller, left))

    async def _result(self, report: Report, caller: Caller, given: JsonObject) -> JsonObject:
        """Wait for a run's end; notifications meanwhile restart the idle clock of Claude Code."""
        wanted = _Result.model_validate(given)
        clock = asyncio.get_running_loop().time
        begun = clock()
        while True:
            left = begun + wanted.wait_seconds - clock()
            progress = await self.door.until_over(wanted.id, caller, min(left, PROGRESS_SECONDS))
            if progress.is_over or left <= PROGRESS_SECONDS:
                return _described(progress)
            stage = stage_of(progress.view) if progress.view else ""
            await report(clock() - begun, None, stage or _state(progress))

    async def _search(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Search.model_validate(given)
        return _read(await self.door.look_up(caller, SEARCH, {"words": wanted.words}))

    async def _show(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Show.model_validate(given)
        with suppress(Refusal):  # then it is a conversation's, or the beginning of one's
            run = await self.door.dispatcher.run(wanted.id, caller.place)
            wanted.id = run.conversation_id
        return _read(await self.door.look_up(caller, SHOW, {"answer": wanted.id}))

    async def _estimate(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Estimate.model_validate(given)
        question, files = parted(wanted.question)
        profile = wanted.profile and profile_of(wanted.profile)
        asked = Inquiry(text=question, profile=profile, files=files)
        found, usual = await self.door.estimate(caller, asked)
        return {
            "usual_cost": None if usual is None else round(usual, DIGITS),
            "cost": round(found.cost, DIGITS),
            "calls": found.calls,
            "tokens": found.tokens,
            "unpriced_calls": found.unpriced,
        }


def _described(progress: RunProgress) -> JsonObject:
    run, view = progress.run, progress.view
    used = view.usage if view else None
    said: JsonObject = {
        "id": run.id,
        "conversation": run.conversation_id,
        "state": _state(progress),
        "stage": stage_of(view) if view and not progress.is_over else None,
        "cost": "unknown" if used is None or used.unpriced else round(used.cost, DIGITS),
        "link": link(run),
    }
    error = view.error if view else run.error
    if error:
        said["error"] = error.message
    if view and view.final and view.is_over and not view.error:
        final = view.final
        said["source"] = final.source
        if view.profile.demonstration:
            said["note"] = TINY_MODEL
        notes = final.notes.dump() if final.notes else {}
        said["untrusted"] = {
            "answer": final.response,
            "dissent": notes.pop("dissent", []),
            "notes": notes,
        }
        said["about"] = wording.UNTRUSTED
    return said


def _state(progress: RunProgress) -> str:
    view = progress.view
    if view is None or progress.run.is_over:
        return progress.run.status
    if view.is_over:
        return "failed" if view.error else "answered"
    is_waiting = view.position is not None or not any(stage.started for stage in view.stages)
    return "waiting" if is_waiting else "running"


def link(run: RunRow) -> str | None:
    where = run.origin
    if where.platform != "discord" or where.message is None:
        return None
    return f"https://discord.com/channels/{where.workspace}/{where.channel}/{where.message}"


def _read(sheet: Sheet) -> JsonObject:
    looks = [read(choice.about) for choice in sheet.choices if choice.verb == "see"]
    ids = [look.conversation_id for look in looks if isinstance(look, Answer)]
    return {"ids": ids, "untrusted": {"text": render(sheet.message)}, "about": wording.UNTRUSTED}


def _refusal(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)], is_error=True)


Message = MutableMapping[str, Any]


@asynccontextmanager
async def open_mcp(door: Door) -> AsyncGenerator[Serve]:

    def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
        request: Any = context.request
        return request.scope["state"]["caller"]

    server = Tools(door, caller_of).server()
    whole = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    streamed = StreamableHTTPSessionManager(server, stateless=True)

    async def serve(caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        # Notifications have room in a stream alone, which simple clients don't read.
        accepted = request.headers.get("Accept", "")
        wants_progress = b'"progressToken"' in body and "text/event-stream" in accepted
        exchange = _Exchange(caller, request, body)
        manager = streamed if wants_progress else whole
        await manager.handle_request(exchange.scope, exchange.receive, exchange.send)
        return exchange.response

    is_open, ended = asyncio.Event(), asyncio.Event()

    async def keep_open() -> None:
        async with whole.run(), streamed.run():
            is_open.set()
            await ended.wait()

    # Its task group has to be left by the task that entered it, which ours needn't be.
    keeping = asyncio.create_task(keep_open())
    await is_open.wait()
    try:
        yield serve
    finally:
        ended.set()
        await keeping


class _Exchange:
    """One request as an ASGI application takes it, and its response."""

    def __init__(self, caller: Caller, request: web.BaseRequest, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self.response = web.StreamResponse(status=500)
        self.scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.path.encode(),
            "root_path": "",
            "query_string": request.query_string.encode(),
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "server": None,
            "client": None,
            "state": {"caller": caller},
        }

    async def receive(self) -> Message:
        """Return the body, then that the client has left, once it has."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while (transport := self._request.transport) is not None and not transport.is_closing():  # noqa: ASYNC110 - aiohttp tells nobody
            await asyncio.sleep(1.0)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                if message["type"] == "http.response.start":
                    self.response.set_status(message["status"])
                    for name, value in message.get("headers", ()):
                        if name.lower() != b"connection":
                            self.response.headers[name.decode("latin-1")] = value.decode("latin-1")
                    self.response.force_close()
                    await self.response.prepare(self._request)
                    return
                await self.response.write(message.get("body", b""))
                if not message.get("more_body", False):
                    await self.response.write_eof()
        except (ConnectionError, TimeoutError):  # it left, or takes nothing any more
            if self._request.transport is not None:
                self._request.transport.abort()
