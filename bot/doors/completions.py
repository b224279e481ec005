"""Answers to `/v1/chat/completions`, as OpenAI's clients read them.

Sources: https://platform.openai.com/docs/api-reference/chat/object and /chat-streaming; comments in a
stream are those of https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from time import monotonic

import orjson
from aiohttp import web

from bot.arrivals import SECONDS
from bot.doors.chat_request import ChatRequest, read_request
from bot.doors.door import LOOK_SECONDS, Asked, Caller, Door, RunProgress
from bot.doors.rejections import Rejected, rejection
from bot.errors import Unavailable
from bot.view.state import Answered, Failed, RunView
from bot.view.wording import commands
from bot.view.wording import doors as wording
from bot.view.wording.terminal import TINY_MODEL
from council.calls import JsonObject
from council.errors import CouncilError
from council.usage import Usage
from storage.journal.rows import RunRow

KEEP_ALIVE_SECONDS = 10.0
"""After so many seconds without anything else, a stream has a comment."""
DIGITS = 9
"""Of a cost in US dollars: what adds up exactly."""
PACE_SECONDS = 0.05
"""Between two pieces of a streamed text."""


async def complete(door: Door, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """Answer a chat completion. Raises `Rejected` and `Refusal`, before anything is sent."""
    chat = read_request(
        await request.read(),
        request.headers.get("Idempotency-Key"),
        is_repeated=_count(request.headers.get("x-stainless-retry-count", "")) > 0,
    )
    run = await door.ask(caller, await _with_pictures(door, chat))
    reply = _Reply(door, caller, request, chat, run)
    return await (reply.stream() if chat.is_streamed else reply.whole())


async def _with_pictures(door: Door, chat: ChatRequest) -> Asked:
    """Return what is asked, with its pictures read. Raises `Rejected` for one that can't be read."""
    if not chat.pictures:
        return chat.asked
    found = await door.reader.read(chat.pictures)
    for file in found.attachments:
        if file.omitted:
            said = wording.picture_unread(file.name, file.omitted)
            raise Rejected(HTTPStatus.BAD_REQUEST, said, "invalid_image", param="messages")
    files = (*chat.asked.files, *found.attachments)
    return replace(chat.asked, files=files, pictures=found.pictures)


@dataclass(slots=True)
class _Reply:
    """The answer to one request; others may wait for the same run."""

    door: Door
    caller: Caller
    request: web.BaseRequest
    chat: ChatRequest
    run: RunRow
    sent_at: float = 0.0
    told: str = ""
    text: str = ""

    async def whole(self) -> web.StreamResponse:
        """Wait for the answer; a client that leaves may end its run."""
        with self.door.following(self.run.id) as changes:
            while not (progress := await self.door.progress(self.run.id, self.caller)).is_over:
                self._check_left()
                if self._is_gone():
                    break
                await changes.wait(LOOK_SECONDS)
        if not progress.is_over:
            await self._cancel()
            return web.Response()  # nobody reads it
        view = _answered(progress)
        message = {"role": "assistant", "content": _content(view), "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish_reason(view),
        }
        body = {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": usage(view.usage),
            "council": about(progress),
        }
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def stream(self) -> web.StreamResponse:
        """Send the stages as comments and the chairman's text as it comes; then how it ended."""
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",  # a proxy would keep the comments back
            }
        )
        response.force_close()
        try:
            async with asyncio.timeout(SECONDS):
                await response.prepare(self.request)
            await self._send(response, _event(self._chunk({"role": "assistant", "content": ""})))
            await self._follow(response)
            async with asyncio.timeout(SECONDS):
                await response.write_eof()
        except (ConnectionError, TimeoutError):  # it left, or takes nothing any more
            if self.request.transport is not None:
                self.request.transport.abort()
            await self._cancel()
        return response

    async def _follow(self, response: web.StreamResponse) -> None:
        with self.door.following(self.run.id) as changes:
            while True:
                view, progress = self.door.dispatcher.showing.view_of(self.run.id), None
                if view is None or view.is_over:
                    try:
                        progress = await self.door.progress(self.run.id, self.caller)
                        self._check_left()
                    except CouncilError as error:
                        await self._send(response, _event(rejection(error).body))
                        return
                    view = progress.view
                if view:
                    await self._tell(response, view)
                if progress and progress.is_over:
                    await self._end(response, progress)
                    return
                if monotonic() - self.sent_at >= KEEP_ALIVE_SECONDS:
                    await self._send(response, _comment(wording.KEEP_ALIVE))
                await changes.wait(LOOK_SECONDS)
                await asyncio.sleep(PACE_SECONDS)

    async def _tell(self, response: web.StreamResponse, view: RunView) -> None:
        """Send what is new: how far the stages are, and what the chairman has written."""
        if (told := stage_of(view)) != self.told:
            self.told = told
            await self._send(response, _comment(told))
        text = _content(view) if view.final and view.is_over else view.text
        if not text or text == self.text:
            return
        new = text.removeprefix(self.text)
        if self.text and not text.startswith(self.text):
            new = f"\n\n{wording.CHAIRMAN_AGAIN}\n\n{text}"
        self.text = text
        await self._send(response, _event(self._chunk({"content": new})))

    async def _end(self, response: web.StreamResponse, progress: RunProgress) -> None:
        try:
            view = _answered(progress)
        except Rejected as error:
            await self._send(response, _event(error.body))
            return
        last = {**self._chunk({}, _finish_reason(view)), "council": about(progress)}
        await self._send(response, _event(last))
        if self.chat.includes_usage:
            sums: JsonObject = {
                **self._head("chat.completion.chunk"),
                "choices": [],
                "usage": usage(view.usage),
            }
            await self._send(response, _event(sums))
        await self._send(response, b"data: [DONE]\n\n")

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        """Send something that must be taken in time, as the port demands of every answer."""
        async with asyncio.timeout(SECONDS):
            await response.write(data)
        self.sent_at = monotonic()

    async def _cancel(self) -> None:
        """End the run if its client has left and wants that, unless another still waits for it."""
        if self.chat.cancels and not self.door.is_followed(self.run.id):
            await self.door.cancel(self.run.id)

    def _is_gone(self) -> bool:
        transport = self.request.transport
        return transport is None or transport.is_closing()

    def _check_left(self) -> None:
        """Raise `Unavailable` if the run continues only after a restart."""
        if self.door.is_left(self.run.id):
            raise Unavailable(commands.RESTARTING)

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
    """Return the view of a run that has an answer. Raises `Rejected`."""
    view = progress.view
    if view is not None and view.final is not None and view.error is None:
        return view
    error = view.error if view else progress.run.error
    said = error.message if error else wording.NO_ANSWER
    raise Rejected(HTTPStatus.BAD_GATEWAY, said, "no_answer")


def _content(view: RunView) -> str:
    return view.final.response if view.final else ""


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
    """Return what else is known of an answer: its run, whose words it is, and the chairman's notes."""
    final = progress.view.final if progress.view else None
    said: JsonObject = {"run": progress.run.id, "conversation": progress.run.conversation_id}
    if progress.view and progress.view.demonstration:
        said["note"] = TINY_MODEL
    if final:
        said["source"] = final.source
        if final.notes:
            said["notes"] = final.notes.dump()
    return said


def stage_of(view: RunView) -> str:
    """Return how far a run is, in a few words."""
    running = [stage for stage in view.stages if stage.progress == "running"]
    if not running:
        return wording.QUEUED if not any(stage.started for stage in view.stages) else ""
    stage = running[-1]
    members = stage.members or tuple(seat.name for seat in view.seats)
    if stage.stage == "stage3":
        return wording.STAGES[stage.stage]
    names = [seat for seat in view.seats if seat.name in members]
    done = sum(isinstance(seat.state(stage.stage), Answered | Failed) for seat in names)
    return wording.stage(wording.STAGES[stage.stage], done, len(names))


def _event(data: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _comment(text: str) -> bytes:
    return f": {text}\n\n".encode() if text else b": \n\n"


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
