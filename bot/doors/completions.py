"""`/v1/chat/completions`: a request read as a question, and its answer as OpenAI's clients read it.

The last message is the question, earlier turns come before it, and system text is data beside it. What
would change the answer and isn't offered is refused; fields that wouldn't are ignored. Sources:
https://platform.openai.com/docs/api-reference/chat/create, /chat/object and /chat-streaming, and
/docs/guides/error-codes. What clients send again by themselves,
and the header that keeps them from it: `_should_retry` in `openai/_base_client.py`. Others go by the
status alone (`isRetryable` of `@ai-sdk/provider`, `async_caller.js` of `@langchain/core`).
"""

import asyncio
import base64
import hashlib
import select
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import groupby
from time import monotonic
from typing import Annotated, Any, Literal

import orjson
from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from bot.doors.door import LOOK_SECONDS, Caller, Changes, Door, Inquiry, OtherRequest, RunProgress
from bot.errors import NoProfile, OverBudget, OverLimit, Refusal, Unavailable, UsageError
from bot.http_server import NO_ROUTE, SECONDS, RequestRefusal
from bot.inputs.files import MOST_TOGETHER, FileContent
from bot.service.dispatcher import LONGEST_QUESTION
from bot.service.limits import dollars_in
from bot.view.message import escaped
from bot.view.run import Answered, Failed, RunView
from bot.view.wording import card, commands
from bot.view.wording import doors as wording
from bot.view.wording.terminal import TINY_MODEL
from council.brief import Attachment, History, Turn
from council.calls import JsonObject
from council.document.results import ChairNotes
from council.errors import CouncilError
from council.text import clip
from council.usage import Usage
from storage.journal.rows import RunRow

PREFIX, PLAIN = "council/", ":plain"
"""What a model's name begins with, before a profile's; and ends with where only the answer is wanted."""
LONGEST_KEY = 200
SYSTEM = "system message"
MESSAGE = "message"
HEAD, TAIL = 1_000, 3_000
"""Characters at both ends of a long message that make its question."""
Serve = Callable[[Caller, web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request of a known caller."""
KEEP_ALIVE_SECONDS = 10.0
"""After so many seconds without anything else, a reply has an empty delta, or white space."""
STATUS_SECONDS = 1.0
"""How long an unstreamed reply may still have a status that says how its run ended."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Of every reply: a proxy would keep back what keeps it alive."""
DIGITS = 9
"""Of a cost in US dollars: what adds up exactly."""
AGAIN_SECONDS = 5
"""When to try again what is over a limit, or came while the council restarts."""
_TYPES: Mapping[HTTPStatus, str] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.PAYMENT_REQUIRED: "insufficient_quota",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.BAD_GATEWAY: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}


class Rejection(CouncilError):
    """A request isn't answered; the message says why, `code` for programs, `param` names the field."""

    def __init__(self, status: HTTPStatus, message: str, code: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    @property
    def body(self) -> JsonObject:
        return {
            "error": {
                "message": str(self),
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }

    @property
    def response(self) -> web.Response:
        """The whole response; only what helps a second time is asked for a second time."""
        again = self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
        headers = {"x-should-retry": "true" if again else "false"}
        if again:
            headers["Retry-After"] = str(AGAIN_SECONDS)
        if self.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        body = orjson.dumps(self.body)
        return web.Response(
            status=self.status, body=body, content_type="application/json", headers=headers
        )


def rejection(error: CouncilError) -> Rejection:
    if isinstance(error, Rejection):
        return error
    for kind, status, code in (
        (OtherRequest, HTTPStatus.CONFLICT, "idempotency_key_reused"),
        (OverBudget, HTTPStatus.PAYMENT_REQUIRED, "over_budget"),
        (OverLimit, HTTPStatus.TOO_MANY_REQUESTS, "over_limit"),
        (NoProfile, HTTPStatus.NOT_FOUND, "model_not_found"),
        (UsageError, HTTPStatus.BAD_REQUEST, "invalid_request"),
        (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
        (Refusal, HTTPStatus.FORBIDDEN, "not_allowed"),
    ):
        if isinstance(error, kind):
            return Rejection(status, str(error), code)
    return Rejection(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The council can't read or write its data at the moment.",
        "unavailable",
    )


def refused(error: RequestRefusal) -> web.Response:
    said = {
        "too_large": "The request is too large: it may have 54 MB, and 1 MiB without a valid token.",
        NO_ROUTE: "There is no such address here. There are /v1/models, /v1/chat/completions and /mcp.",
    }.get(error.cause, "This isn't a whole HTTP request.")
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if error.cause == "too_large" else error.status
    return Rejection(status, said, error.cause).response


class ContentPart(BaseModel):
    """One part of a message's content; many clients write a picture's address without its object."""

    type: str
    text: str | None = None
    image_url: str | dict[str, Any] | None = None


class ChatTurn(BaseModel):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[Any] | None = None


class ChatBody(BaseModel, hide_input_in_errors=True):
    """What is read of the body."""

    model: str
    messages: Annotated[list[ChatTurn], Field(min_length=1)]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None
    response_format: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None
    modalities: list[str] | None = None
    metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A question, and how its answer is sent back; `model` as the client wrote it.

    `pictures` came with the question and aren't read yet.
    """

    asked: Inquiry
    pictures: tuple[FileContent, ...]
    model: str
    is_streamed: bool
    includes_usage: bool
    has_notes: bool
    cancels: bool


def read_request(body: bytes, key: str | None) -> ChatRequest:
    """Read a request with the idempotency key of its header. Raises `Rejection`."""
    try:
        read = ChatBody.model_validate_json(body)
    except ValidationError as error:
        where = clip(".".join(map(str, error.errors()[0]["loc"])), 100)
        raise _invalid(wording.unreadable(where, error.errors()[0]["msg"]), where or None) from None
    _check_offered(read)
    said = [turn for turn in read.messages if turn.role not in ("system", "developer")]
    if not said or said[-1].role != "user":
        raise _invalid("The last message must be the user's: it is the question.", "messages")
    text, material = parted(_text(said[-1], picture=""))
    pictures = tuple(_pictures(said[-1]))
    if not (text or pictures):
        raise _invalid("There is no question in the last message.", "messages")
    system = [_text(turn) for turn in read.messages if turn.role in ("system", "developer")]
    files = (Attachment(name=SYSTEM, text=each) for each in system if each.strip())
    metadata = read.metadata or {}
    limit = metadata.get("max_cost")
    dollars = None if limit is None else dollars_in(limit)
    if limit is not None and not dollars:
        raise _invalid(
            f'{clip(limit, 60)!r} is no amount. Write US dollars above 0 as text, such as "0.50".',
            "metadata.max_cost",
        )
    key = key or metadata.get("idempotency_key")
    # What isn't UTF-8 in a header arrives as single surrogates.
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise _invalid(
            f"An idempotency key is a line of 1 to {LONGEST_KEY} characters, in UTF-8.",
            "idempotency_key",
        )
    return ChatRequest(
        asked=Inquiry(
            text=text,
            profile=profile_of(read.model),
            max_cost=dollars,
            # Prompts repeat as many of them as have room.
            history=History(turns=tuple(_turns(said[:-1]))[-50:]),
            files=(*material, *files),
            key=key,
        ),
        pictures=pictures,
        model=read.model,
        is_streamed=bool(read.stream),
        includes_usage=(read.stream_options or {}).get("include_usage") is True,
        has_notes=metadata.get("notes") != "false" and not read.model.casefold().endswith(PLAIN),
        cancels=metadata.get("cancel_on_disconnect") == "true",
    )


def parted(text: str) -> tuple[str, tuple[Attachment, ...]]:
    """Return a message's question, and the whole message as a file where it is too long for one.

    A front end puts what it found before the question, a person pastes it behind: both ends are the
    question. Raises `Rejection` for more than is read with a question.
    """
    text = text.strip()
    if len(text) <= LONGEST_QUESTION:
        return text, ()
    if len(text) > MOST_TOGETHER:
        said = wording.too_long(MOST_TOGETHER)
        raise Rejection(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, "too_long", param="messages")
    head, tail = text[:HEAD], text[-TAIL:]
    head = head[: head.rfind("\n") + 1] or head  # whole lines, where there are any
    tail = tail[tail.find("\n") + 1 :]
    cut = f"[\u2026 The whole text is in the file \u201c{MESSAGE}\u201d. \u2026]"
    question = f"{head.rstrip()}\n\n{cut}\n\n{tail}"
    return question, (Attachment(name=MESSAGE, text=text),)


def profile_of(model: str) -> str | None:
    """Return the profile that a model's name names; `None` for the channel's, or the token's."""
    named = model[: -len(PLAIN)] if model.casefold().endswith(PLAIN) else model
    if named.casefold() == PREFIX.rstrip("/"):
        return None
    return named[len(PREFIX) :] if named.casefold().startswith(PREFIX) else named


def _check_offered(body: ChatBody) -> None:
    form = {"type": "text"} if body.response_format is None else body.response_format
    for is_wrong, said, field_name in (
        (body.tools and body.tool_choice != "none", wording.NO_TOOLS, "tools"),
        (body.functions and body.function_call != "none", wording.NO_TOOLS, "functions"),
        (
            form.get("type") != "text",
            'A council answers in prose: leave out response_format, or send {"type": "text"}.',
            "response_format",
        ),
        (body.audio or "audio" in (body.modalities or ()), "A council has no audio.", "modalities"),
        (body.n not in (None, 1), "A council gives one answer: n must be 1.", "n"),
    ):
        if is_wrong:
            raise _invalid(said, field_name)


def _text(turn: ChatTurn, picture: str = "(a picture)") -> str:
    """Return a message's text. Raises `Rejection` for a user's parts that can't be read."""
    if not isinstance(turn.content, list):
        return turn.content or ""
    for part in turn.content:
        if turn.role == "user" and part.type not in ("text", "image_url"):
            raise _invalid(
                f"Parts of the type {clip(part.type, 60)!r} can't be read here. Send text.", "messages"
            )
    said = (picture if part.type == "image_url" else part.text for part in turn.content)
    return "\n".join(filter(None, said))


def _pictures(turn: ChatTurn) -> Iterator[FileContent]:
    """Return the pictures of a message. Raises `Rejection` for one that isn't in the request itself."""
    parts = turn.content if isinstance(turn.content, list) else []
    for number, part in enumerate((each for each in parts if each.type == "image_url"), 1):
        given = part.image_url
        address = str(given.get("url") if isinstance(given, dict) else given)
        kind, _, data = address.partition(",")
        is_here = kind.lower().startswith("data:image/") and kind.lower().endswith(";base64")
        try:
            content = base64.b64decode("".join(data.split()), validate=True) if is_here else b""
        except ValueError:
            content = b""
        if not content:
            raise _invalid(
                "A picture has to be in the request itself, as data:image/png;base64,\u2026", "messages"
            )
        yield FileContent(f"picture {number}", content)


def _turns(messages: Sequence[ChatTurn]) -> Iterator[Turn]:
    """Pair what was asked with what was answered; messages of one role in a row are joined."""
    asked = ""
    said = (turn for turn in messages if turn.role in ("user", "assistant"))
    for role, turns in groupby(said, key=lambda turn: turn.role):
        text = "\n\n".join(filter(None, map(_text, turns)))
        if role == "user":
            asked = text
        elif text:
            yield Turn(question=asked, answer=text)
            asked = ""
    if asked:
        yield Turn(question=asked, answer=None)


def _invalid(message: str, param: str | None) -> Rejection:
    return Rejection(HTTPStatus.BAD_REQUEST, message, "invalid_request", param=param)


async def complete(door: Door, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """Answer a chat completion. Raises `Rejection` and `Refusal`, before anything is sent."""
    body = await request.read()
    # Pictures take longer to unpack than others should wait.
    chat = await asyncio.to_thread(read_request, body, request.headers.get("Idempotency-Key"))
    found = await door.reader.read(chat.pictures)
    for file in found.attachments:
        if file.omitted:
            said = f"The {file.name} isn't read: {file.omitted}."
            raise Rejection(HTTPStatus.BAD_REQUEST, said, "invalid_image", param="messages")
    asked = replace(
        chat.asked,
        files=(*chat.asked.files, *found.attachments),
        pictures=found.pictures,
        body=await asyncio.to_thread(_digest, body),
    )
    async with door.asking(caller, asked, partial(_is_gone, request)) as (run, changes):
        return await _Reply(door, caller, request, chat, run, changes).send()


def _is_gone(request: web.BaseRequest) -> bool:
    """Return whether a client has closed its connection, by what the kernel knows, not yet the loop."""
    transport = request.transport
    if transport is None or transport.is_closing():
        return True
    looking = select.poll()
    looking.register(transport.get_extra_info("socket"), getattr(select, "POLLRDHUP", 0))
    return bool(looking.poll(0))


def _digest(body: bytes) -> str:
    """Return what is the same for the same JSON, whatever the order of its fields."""
    with suppress(ValueError):  # such as NaN, which Python's clients write
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()


@dataclass(slots=True)
class _Reply:
    """The answer to one request; others may wait for the same run."""

    door: Door
    caller: Caller
    request: web.BaseRequest
    chat: ChatRequest
    run: RunRow
    changes: Changes
    response: web.StreamResponse = field(default_factory=lambda: web.StreamResponse(headers=HEADERS))
    sent_at: float = field(default_factory=monotonic)
    stage: str = ""
    text: str = ""

    async def send(self) -> web.StreamResponse:
        """Send the answer as it comes, or whole; a client that leaves may end its run.

        Raises `CouncilError` before anything is sent.
        """
        self.response.force_close()
        try:
            await (self._stream() if self.chat.is_streamed else self._whole())
        except (ConnectionError, TimeoutError):  # it left, or takes nothing any more
            self.changes.is_whole = False
            if self.request.transport is not None:
                self.request.transport.abort()
            if self.chat.cancels and not self.door.is_followed(self.run.id):
                await self.door.cancel(self.run.id)
        return self.response

    async def _whole(self) -> None:
        """Wait for the answer, and send white space meanwhile, which JSON allows before a value.

        A run that fails at once has its status. Once there are headers, its error stands in place of the
        answer, as OpenRouter's does (https://openrouter.ai/docs/api-reference/errors): no client asks
        again for that. A reply that breaks off is asked for again, as one that is left to a restart
        should be.
        """

        async def wait(view: RunView | None) -> None:
            del view
            if self.response.prepared:
                await self._keep_alive(b" ")
            elif monotonic() - self.sent_at >= STATUS_SECONDS:
                await self._open("application/json")

        is_answer = True
        try:
            view = _answered(progress := await self._until_over(wait))
            message = {"role": "assistant", "content": self._content(view), "refusal": None}
            choice = {"message": message, "logprobs": None, "finish_reason": _finish_reason(view)}
            body = {
                **self._head("chat.completion"),
                "choices": [{"index": 0, **choice}],
                "usage": usage(view.usage),
                "council": about(progress),
            }
        except CouncilError as error:
            rejected = rejection(error)
            if not self.response.prepared:
                raise
            if rejected.status is HTTPStatus.SERVICE_UNAVAILABLE:
                raise ConnectionAbortedError from error
            body, is_answer = rejected.body, False
        if not self.response.prepared:
            await self._open("application/json")
        await self._end(orjson.dumps(body), is_answer=is_answer)

    async def _stream(self) -> None:
        await self._open("text/event-stream")
        await self._send(_event(self._chunk({"role": "assistant", "content": ""})))
        try:
            view = _answered(progress := await self._until_over(self._tell))
            await self._tell(view)
        except CouncilError as error:
            await self._end(_event(rejection(error).body), is_answer=False)
            return
        last = {**self._chunk({}, _finish_reason(view)), "council": about(progress)}
        await self._send(_event(last))
        if self.chat.includes_usage:
            head = self._head("chat.completion.chunk")
            await self._send(_event({**head, "choices": [], "usage": usage(view.usage)}))
        await self._end(b"data: [DONE]\n\n")

    async def _until_over(self, tell: Callable[[RunView | None], Awaitable[None]]) -> RunProgress:
        """Tell what is seen of the run until it is over. Raises `CouncilError` and `ConnectionError`."""
        while not self.changes.is_gone():
            # Asked first: a run that ends meanwhile is answered.
            tasks = self.door.dispatcher.tasks
            is_left = tasks.is_draining and self.run.id not in tasks  # to the next start
            view, progress = tasks.view_of(self.run.id), None
            if view is None or view.is_over:
                progress = await self.door.progress(self.run.id, self.caller)
                view = progress.view
            if progress and progress.is_over:
                return progress
            if is_left:
                raise Unavailable(commands.RESTARTING)
            await tell(view)
            await self.changes.wait(LOOK_SECONDS)
            await asyncio.sleep(0.05)  # between two pieces of a streamed text
        raise ConnectionResetError

    async def _tell(self, view: RunView | None) -> None:
        """Send what is new: how far the stages are, and what the chairman has written.

        Front ends fold what comes as `reasoning_content` before the text: Open WebUI
        (`process_chat_response` in `utils/middleware.py`), LibreChat (`getReasoningKey`).
        """
        over = view if view and view.final and view.is_over else None
        text = self._content(over) if over else view.text if view else ""
        if view and not text and (stage := stage_of(view)) not in ("", self.stage):
            self.stage = stage
            await self._send(_event(self._chunk({"reasoning_content": f"- {stage}\n"})))
        if text and text != self.text:
            new = text.removeprefix(self.text)
            if self.text and not text.startswith(self.text):
                new = f"\n\n[The chairman began again:]\n\n{text}"
            self.text = text
            await self._send(_event(self._chunk({"content": new})))
        # langchain-openai ends a stream that has no chunk for two minutes; comments are none to it.
        await self._keep_alive(_event(self._chunk({})))

    async def _open(self, content_type: str) -> None:
        self.response.content_type = content_type
        async with asyncio.timeout(SECONDS):
            await self.response.prepare(self.request)
        self.sent_at = monotonic()

    async def _keep_alive(self, nothing: bytes) -> None:
        if monotonic() - self.sent_at >= KEEP_ALIVE_SECONDS:
            await self._send(nothing)

    async def _send(self, data: bytes) -> None:
        """Write something that must be taken in time, as the port demands of every answer."""
        async with asyncio.timeout(SECONDS):
            await self.response.write(data)
        self.sent_at = monotonic()

    async def _end(self, last: bytes, *, is_answer: bool = True) -> None:
        # Looked up before it is written: a client that has read it closes its connection, too.
        self.changes.is_whole = is_answer and not self.changes.is_gone()
        await self._send(last)
        async with asyncio.timeout(SECONDS):
            await self.response.write_eof()

    def _content(self, view: RunView) -> str:
        if (final := view.final) is None:
            return ""
        notes = (final.notes if self.chat.has_notes else None) or ChairNotes()
        heads = card.DISSENT, card.ONLY, card.CHANGED, card.ASK
        texts = notes.dissent, notes.only, notes.changed, notes.ask
        said = ((head, " ".join(text.split())) for head, text in zip(heads, texts, strict=True) if text)
        below = "".join(f"\n- **{head}:** {text}" for head, text in said)
        return f"{final.response}\n\n---\n{below}" if below else final.response

    def _head(self, kind: str) -> JsonObject:
        created = int(datetime.fromisoformat(self.run.created_at).timestamp())
        return {
            "id": f"chatcmpl-{self.run.id}",
            "object": kind,
            "created": created,
            "model": self.chat.model,
        }

    def _chunk(self, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}


def _answered(progress: RunProgress) -> RunView:
    """Return the view of a run that has an answer. Raises `Rejection`."""
    view = progress.view
    if view is not None and view.final is not None and view.error is None:
        return view
    error = view.error if view else progress.run.error
    said = error.message if error else wording.NO_ANSWER
    raise Rejection(HTTPStatus.BAD_GATEWAY, said, "no_answer")


def _finish_reason(view: RunView) -> str:
    return "length" if view.final and view.final.truncated else "stop"


def usage(used: Usage | None) -> JsonObject:
    """Return a run's totals; `cost` is in US dollars, `None` where a call's price isn't known."""
    if used is None:
        return {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": None}
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.tokens,
        "cost": None if used.unpriced else round(used.cost, DIGITS),
    }


def about(progress: RunProgress) -> JsonObject:
    final = progress.view.final if progress.view else None
    said: JsonObject = {"run": progress.run.id, "conversation": progress.run.conversation_id}
    if progress.view and progress.view.profile.demonstration:
        said["note"] = TINY_MODEL
    if final:
        said["source"] = final.source
        if final.notes:
            said["notes"] = final.notes.dump()
    return said


def stage_of(view: RunView) -> str:
    running = [stage for stage in view.stages if stage.progress == "running"]
    if not running:
        return "waiting" if not any(stage.started for stage in view.stages) else ""
    stage = running[-1]
    members = stage.members or tuple(seat.name for seat in view.seats)
    if stage.stage == "stage3":
        return wording.STAGES[stage.stage]
    names = [seat for seat in view.seats if seat.name in members]
    done = sum(isinstance(seat.state(stage.stage), Answered | Failed) for seat in names)
    return f"{wording.STAGES[stage.stage]} {done}/{len(names)}"


def _event(data: JsonObject) -> bytes:
    return f"data: {escaped(orjson.dumps(data).decode())}\n\n".encode()  # some end a line at U+2028
