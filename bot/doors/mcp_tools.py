"""The tools of the Model Context Protocol: what an agent can ask of its council.

An agent reads the descriptions at every turn, so they are short. What models and people have written is
returned as data, under `untrusted`. Source: https://modelcontextprotocol.io/specification
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal

import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.doors.chat_request import LONGEST_KEY
from bot.doors.completions import DIGITS, stage_of
from bot.doors.door import Asked, Caller, Door, RunProgress
from bot.past.buttons import Answer, read
from bot.past.pages import Sheet
from bot.render.markdown import render
from bot.service.commands import SEARCH, SHOW
from bot.view.wording import doors as wording
from bot.view.wording.terminal import TINY_MODEL
from council.calls import JsonObject
from council.errors import CouncilError
from storage.journal.rows import RunRow

AT_ONCE_SECONDS = 5.0
"""How long `council_ask` waits for an answer; clients give up after about a minute."""
MOST_WAIT = 45.0

CallerOf = Callable[[ServerRequestContext[Any, Any]], Caller]
"""Returns whoever makes a request."""


class _Arguments(BaseModel):
    """A tool's arguments; others are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class _Ask(_Arguments):
    question: Annotated[str, Field(min_length=1)]
    max_cost: Annotated[float, Field(gt=0, le=1_000_000)]
    profile: str | None = None
    depth: Literal["quick", "auto", "full"] | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)] | None = None


class _Result(_Arguments):
    id: str
    wait_seconds: Annotated[float, Field(ge=0, le=MOST_WAIT)] = MOST_WAIT


class _Search(_Arguments):
    words: str


class _Show(_Arguments):
    id: str


class _Estimate(_Arguments):
    question: Annotated[str, Field(min_length=1)]
    profile: str | None = None


_TEXT: JsonObject = {"type": "string"}


def _tool(name: str, said: str, required: tuple[str, ...], **properties: JsonObject) -> Tool:
    schema: JsonObject = {"type": "object", "properties": properties, "required": [*required]}
    return Tool(name=name, description=said, input_schema=schema)


TOOLS = (
    _tool(
        "council_ask",
        wording.TOOL_ASK,
        ("question", "max_cost"),
        question=_TEXT,
        max_cost={"type": "number", "description": wording.ARGUMENT_MAX_COST},
        profile=_TEXT,
        depth={"enum": ["quick", "auto", "full"]},
        idempotency_key={"type": "string", "description": wording.ARGUMENT_KEY},
    ),
    _tool(
        "council_result",
        wording.TOOL_RESULT,
        ("id",),
        id=_TEXT,
        wait_seconds={"type": "number", "maximum": MOST_WAIT},
    ),
    _tool("council_search", wording.TOOL_SEARCH, ("words",), words=_TEXT),
    _tool("council_show", wording.TOOL_SHOW, ("id",), id=_TEXT),
    _tool("council_estimate", wording.TOOL_ESTIMATE, ("question",), question=_TEXT, profile=_TEXT),
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Does what the tools say, through a door."""

    door: Door
    caller_of: CallerOf

    def server(self) -> Server[Any]:
        """Return a server of the SDK's that offers them."""
        return Server(
            "council", version=version("council-bot"), on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(
        self, context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del context, params
        return ListToolsResult(tools=[*TOOLS])

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tools: Mapping[str, Callable[[Caller, JsonObject], Awaitable[JsonObject]]] = {
            "council_ask": self._ask,
            "council_result": self._result,
            "council_search": self._search,
            "council_show": self._show,
            "council_estimate": self._estimate,
        }
        tool = tools.get(params.name)
        if tool is None:
            return _refused(wording.no_tool(params.name[:60], tools))
        try:
            said = await tool(self.caller_of(context), params.arguments or {})
        except ValidationError as error:
            first = error.errors()[0]
            return _refused(wording.unreadable(".".join(map(str, first["loc"])), first["msg"]))
        except CouncilError as error:
            return _refused(str(error))
        text = TextContent(type="text", text=orjson.dumps(said).decode())
        return CallToolResult(content=[text], structured_content=said)

    async def _ask(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Ask.model_validate(given)
        run = await self.door.ask(
            caller,
            Asked(
                text=wanted.question,
                profile=wanted.profile,
                max_cost=wanted.max_cost,
                depth=wanted.depth,
                key=wanted.idempotency_key,
            ),
        )
        return _told(await self.door.until_over(run.id, caller, AT_ONCE_SECONDS))

    async def _result(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Result.model_validate(given)
        return _told(await self.door.until_over(wanted.id, caller, wanted.wait_seconds))

    async def _search(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Search.model_validate(given)
        return _read(await self.door.look_up(caller, SEARCH, {"words": wanted.words}))

    async def _show(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Show.model_validate(given)
        return _read(await self.door.look_up(caller, SHOW, {"answer": wanted.id}))

    async def _estimate(self, caller: Caller, given: JsonObject) -> JsonObject:
        wanted = _Estimate.model_validate(given)
        found = await self.door.estimate(caller, Asked(text=wanted.question, profile=wanted.profile))
        return {
            "cost": round(found.cost, DIGITS),
            "calls": found.calls,
            "tokens": found.tokens,
            "unpriced_calls": found.unpriced,
        }


def _told(progress: RunProgress) -> JsonObject:
    """Return how far a run is, and its answer with what the chairman noted, if there is one."""
    run, view = progress.run, progress.view
    said: JsonObject = {
        "id": run.id,
        "state": _state(progress),
        "stage": stage_of(view) if view and not progress.is_over else None,
        "cost": _cost(progress),
        "link": link(run),
    }
    error = view.error if view else run.error
    if error:
        said["error"] = error.message
    if view and view.final and view.is_over and not view.error:
        final = view.final
        said["source"] = final.source
        if view.demonstration:
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


def _cost(progress: RunProgress) -> float | str:
    """Return what a run has cost by now, in US dollars, where every price is known."""
    used = progress.view.usage if progress.view else None
    return wording.UNKNOWN if used is None or used.unpriced else round(used.cost, DIGITS)


def link(run: RunRow) -> str | None:
    """Return the address of a run's card, which a program's run doesn't have."""
    where = run.origin
    if where.platform != "discord" or where.message is None:
        return None
    return f"https://discord.com/channels/{where.workspace}/{where.channel}/{where.message}"


def _read(sheet: Sheet) -> JsonObject:
    """Return past answers as text, with the ids of those that can be shown."""
    looks = [read(choice.about) for choice in sheet.choices if choice.verb == "see"]
    ids = [look.conversation_id for look in looks if isinstance(look, Answer)]
    return {"ids": ids, "untrusted": {"text": render(sheet.message)}, "about": wording.UNTRUSTED}


def _refused(said: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)
