"""A model provider on 127.0.0.1, as OpenRouter and other OpenAI-compatible servers behave.

In a test's own loop:

    async with ModelServer() as provider:
        provider.script("openai/gpt-5", Turn(status=429, headers={"Retry-After": "1"}), Turn("Hello"))
        ...
        assert [exchange.model for exchange in provider.history] == [...]

A model without a script is answered by the responder, by default `council_member`, which plays
every part of a council. As a process of its own: `python -m tests.model_server --port 0` prints
the base URL and serves until it is ended.
"""

import argparse
import asyncio
import math
import random
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, cast

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware

Json = dict[str, object]
Responder = Callable[[Json], str]
Habit = Callable[["Exchange"], "Turn"]

CHARACTERS_PER_TOKEN = 4
DRIP_SECONDS = 0.002
TASK_LENGTH = 400  # characters at a prompt's end that say what is to be done


@dataclass(frozen=True, slots=True)
class Turn:
    """How the server behaves once. The default is a whole, streamed answer by the responder.

    `streamed=False` sends plain JSON though a stream was asked. `finish_reason=None` ends the
    stream cleanly, but early. `cut` breaks the connection in the middle, or sends a chunk that is
    no JSON; `drip` sends the same bytes over and over, an answer never; `stall` falls silent in
    the middle. `body` replaces everything that would be sent, `events` all events of a stream.
    """

    text: str | list[str] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | Json | None = None
    events: Sequence[bytes] | None = None
    streamed: bool = True
    latency: float = 0.0
    finish_reason: str | None = "stop"
    refusal: str | None = None
    usage: Json | Literal["counted"] | None = "counted"
    model: str | None = None
    error: Json | None = None
    comments: int = 0
    cut: Literal["disconnect", "malformed"] | None = None
    drip: bytes | None = None
    stall: bool = False


@dataclass(slots=True)
class Exchange:
    """One request as it arrived, and when (by the loop's clock) its reply was over."""

    path: str
    headers: Mapping[str, str]
    request: Json
    arrived: float
    completed: float | None = None
    abandoned: bool = False

    @property
    def model(self) -> str:
        return str(self.request.get("model"))

    @property
    def prompt(self) -> str:
        """Everything the model was told, joined."""
        messages = cast("list[dict[str, object]]", self.request.get("messages") or [])
        return "\n\n".join(str(message["content"]) for message in messages)


class ModelServer:
    """A scriptable provider with a memory of what it was asked.

    `latency` gives the seconds before each reply; `models` is the model list and `key` what it says of
    the key, each `None` for a server that has none; a habit answers for the list as for calls. While a
    `gate` is set here and closed, replies wait behind it. Every request passes through `middlewares`, the
    first one outermost. `path` is where the API begins.
    """

    def __init__(
        self,
        responder: Responder | None = None,
        *,
        latency: Callable[[], float] | None = None,
        models: Sequence[Json] | Habit | None = None,
        key: Json | None = None,
        path: str = "/api/v1",
        port: int = 0,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self.history: list[Exchange] = []
        self.models = models
        self.key = key
        self.models_asked = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate: asyncio.Event | None = None
        self.url = ""
        self._responder = responder or council_member
        self._latency = latency
        self._scripts: defaultdict[str, deque[Turn]] = defaultdict(deque)
        self._habits: dict[str, Turn | Habit] = {}
        self._path = path
        self._port = port
        self._middlewares = middlewares
        self._transports: set[asyncio.Transport] = set()
        self._runner: web.AppRunner | None = None

    def script(self, model: str, *turns: Turn) -> None:
        """Queue what the next calls of a model get, `*` for any model; then comes its habit."""
        self._scripts[model].extend(turns)

    def always(self, model: str, turn: Turn | Habit) -> None:
        """Let every unscripted call of a model (`*`: of any) go the same way, or as it deserves."""
        self._habits[model] = turn

    @property
    def base_url(self) -> str:
        """The address as `OPENROUTER_BASE_URL` has it."""
        return f"{self.url}{self._path}"

    @property
    def connections(self) -> int:
        """How many connections calls have come through so far."""
        return len(self._transports)

    @property
    def open_connections(self) -> int:
        sockets = (transport.get_extra_info("socket") for transport in self._transports)
        return sum(socket.fileno() != -1 for socket in sockets)

    def hang_up(self) -> None:
        """Close every connection, as servers do with those that stay idle."""
        for transport in self._transports:
            transport.close()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20, middlewares=self._middlewares)
        for prefix in {self._path, "/v1"}:
            app.router.add_post(f"{prefix}/chat/completions", self._complete)
            app.router.add_get(f"{prefix}/models", self._list)
            app.router.add_get(f"{prefix}/key", self._key)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=4096)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _list(self, http: web.Request) -> web.StreamResponse:
        self.models_asked += 1
        if callable(self.models):
            now = asyncio.get_running_loop().time()
            return await self._reply(
                http, {"stream": True}, self.models(Exchange(http.path, http.headers, {}, now))
            )
        return _page(None if self.models is None else list(self.models))

    async def _key(self, _: web.Request) -> web.Response:
        return _page(self.key)

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        request = cast("Json", orjson.loads(await http.read()))
        exchange = Exchange(http.path, http.headers, request, asyncio.get_running_loop().time())
        self.history.append(exchange)
        if http.transport is not None:
            self._transports.add(http.transport)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        turn = self._turn(exchange)
        try:
            if delay := turn.latency or (self._latency() if self._latency else 0.0):
                await asyncio.sleep(delay)
            if self.gate is not None:
                await self.gate.wait()
            return await self._reply(http, request, turn)
        except (asyncio.CancelledError, ConnectionError):
            exchange.abandoned = True
            raise
        finally:
            self.in_flight -= 1
            exchange.completed = asyncio.get_running_loop().time()

    def _turn(self, exchange: Exchange) -> Turn:
        for name in (exchange.model, "*"):
            if self._scripts[name]:
                return self._scripts[name].popleft()
            if habit := self._habits.get(name):
                return habit if isinstance(habit, Turn) else habit(exchange)
        return Turn()

    async def _reply(self, http: web.Request, request: Json, turn: Turn) -> web.StreamResponse:
        if turn.drip is not None:
            return await self._drip(http, turn)
        body = turn.body
        if body is None and turn.status != web.HTTPOk.status_code:
            body = {"error": {"message": f"scripted {turn.status}", "code": turn.status}}
        text = "" if turn.events is not None else turn.text
        if text is None:
            text = self._responder(request)
        usage = _counted(request, text) if turn.usage == "counted" else turn.usage
        if body is None and not (turn.streamed and request.get("stream")):
            body = _whole(request, turn, text, usage)
        if body is not None:
            return _fixed(replace(turn, body=body))
        return await self._stream(http, request, turn, text, usage)

    async def _stream(
        self, http: web.Request, request: Json, turn: Turn, text: str | list[str], usage: Json | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **turn.headers})
        await response.prepare(http)
        sent = turn.events if turn.events is not None else list(_events(request, turn, text, usage))
        if turn.cut is None and not turn.stall:
            await response.write(b"".join(sent))
            await response.write_eof()
            return response
        await response.write(b"".join(sent[: len(sent) // 2]))
        if turn.stall:
            await asyncio.Event().wait()
        if turn.cut == "malformed":
            await response.write(b'data: {"choices": [{"delta": {"con\n\n')
            await response.write_eof()
        elif http.transport is not None:
            http.transport.close()
        return response

    async def _drip(self, http: web.Request, turn: Turn) -> web.StreamResponse:
        kind = "text/event-stream" if turn.streamed else "application/json"
        response = web.StreamResponse(status=turn.status, headers={"Content-Type": kind, **turn.headers})
        await response.prepare(http)
        while True:
            await response.write(turn.drip or b"")
            await asyncio.sleep(DRIP_SECONDS)


def _page(data: object) -> web.Response:
    if data is None:
        return web.json_response({"error": {"message": "no such page", "code": 404}}, status=404)
    return web.json_response({"data": data})


def _fixed(turn: Turn) -> web.Response:
    content = turn.body if isinstance(turn.body, bytes) else orjson.dumps(turn.body)
    headers = {"Content-Type": "application/json", **turn.headers}
    return web.Response(status=turn.status, body=content, headers=headers)


def _events(request: Json, turn: Turn, text: str | list[str], usage: Json | None) -> Iterator[bytes]:
    def event(*choices: Json, **more: object) -> bytes:
        named = {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "model": turn.model or request.get("model"),
        }
        return b"data: " + orjson.dumps({**named, "choices": choices, **more}) + b"\n\n"

    def choice(finish_reason: str | None = None, **delta: object) -> Json:
        return {"index": 0, "delta": delta, "finish_reason": finish_reason}

    yield from [b": OPENROUTER PROCESSING\n\n"] * turn.comments
    pieces = re.findall(r"\s*\S+\s*", text) if isinstance(text, str) else text
    refusal = {} if turn.refusal is None else {"refusal": turn.refusal}
    yield event(choice(role="assistant", content="", **refusal))
    for piece in pieces:
        yield event(choice(content=piece))
    if turn.error is not None:
        yield event(choice("error", content=""), error=turn.error)
        return
    if turn.finish_reason is None:
        return
    yield event(choice(turn.finish_reason, content=""))
    if usage is not None and cast("Json", request.get("stream_options") or {}).get("include_usage"):
        yield event(usage=usage)
    yield b"data: [DONE]\n\n"


def _whole(request: Json, turn: Turn, text: str | list[str], usage: Json | None) -> Json:
    if turn.error is not None:
        return {"error": turn.error}
    message: Json = {"role": "assistant", "content": "".join(text)}
    if turn.refusal is not None:
        message["refusal"] = turn.refusal
    return {
        "id": "gen-1",
        "object": "chat.completion",
        "model": turn.model or request.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": turn.finish_reason}],
        **({} if usage is None else {"usage": usage}),
    }


def _counted(request: Json, text: str | list[str]) -> Json:
    messages = cast("list[Json]", request.get("messages") or [])
    prompt = sum(len(str(message["content"])) for message in messages) // CHARACTERS_PER_TOKEN
    completion = math.ceil(sum(map(len, text)) / CHARACTERS_PER_TOKEN)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


# What the models say ------------------------------------------------------------------------------


def council_member(request: Json) -> str:
    """Play any part of a council: answer, review, correct, conclude, find a title.

    What is asked for is at a prompt's end: a `FINAL RANKING:` gets a ballot over the labels
    that the prompt names, in the alphabet's order. A JSON schema gets an instance of it.
    """
    messages = cast("list[Json]", request.get("messages") or [])
    prompt = "\n\n".join(str(message["content"]) for message in messages)
    labels = sorted(set(re.findall(r"\bResponse [A-Z]\b", prompt)))
    form = cast("Json", request.get("response_format") or {})
    if form.get("type") == "json_schema":
        schema = cast("Json", cast("Json", form["json_schema"])["schema"])
        made = cast("Json", instance(schema, labels))
        return orjson.dumps(mended(made, request) if "replies" in made else made).decode()
    model = request.get("model")
    task = prompt[-TASK_LENGTH:]
    if "REFINED RESPONSE" in task or "corrected answer" in task:
        return corrected(prompt, f"{model} holds, having read its peers, that it depends on the load.")
    if "FINAL RANKING" in task and len(labels) > 1:
        reviews = "\n".join(f"{label}: clear, but short on reasons." for label in labels)
        places = "\n".join(f"{place}. {label}" for place, label in enumerate(labels, start=1))
        return f"{reviews}\n\nFINAL RANKING:\n{places}"
    if "final answer" in task or "then the notes" in task:
        return f"{model} concludes that it depends on the load, and says on which."
    if "title" in task:
        return "It depends on the load"
    return f"{model} thinks that it depends on the load."


def corrected(prompt: str, answer: str) -> str:
    """Write a corrected answer in the form that a prompt asks for, below the mark that it gives."""
    marks = re.findall(r"this mark alone:\n\n(\w+)\n", prompt)
    return f"1. holds: it was checked.\n\n{marks[-1]}\n\n{answer}" if marks else answer


def mended(made: Json, request: Json) -> Json:
    """Return a reply by the schema of corrections, of an author who finds that the objection holds."""
    first = {"objection": 1, "holds": True, "reason": "It was checked."}
    text = f"{request.get('model')} holds, having read its peers, that it depends on the load."
    return {"replies": [first], "answer": made["answer"] if isinstance(made["answer"], dict) else text}


def begun(said: str, words: str) -> str:
    """Begin a reply with these words: where it is a correction, the answer below its mark."""
    return re.sub(
        r"\A(?:1\. holds: [^\n]*\n\n\w+\n\n)?", lambda form: f"{form[0]}{words}", said, count=1
    )


def instance(schema: Json, labels: Sequence[str], root: Json | None = None, name: str = "") -> object:
    """Make the simplest value that a JSON schema allows; labels where labels are meant."""
    root = root or schema
    if isinstance(reference := schema.get("$ref"), str):
        target: Json = root
        for part in reference.removeprefix("#/").split("/"):
            target = cast("Json", target[part])
        return instance(target, labels, root, name)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return instance(cast("list[Json]", schema[choice])[0], labels, root, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return cast("list[object]", schema["enum"])[0]
    match schema.get("type"):
        case "object":
            properties = cast("dict[str, Json]", schema.get("properties") or {})
            return {key: instance(value, labels, root, key) for key, value in properties.items()}
        case "array":
            return list(_items(schema, labels, root, name))
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null" | ["string", "null"]:
            return None
        case _:
            return labels[0] if labels and "label" in name else "clear, but short on reasons"


def _items(schema: Json, labels: Sequence[str], root: Json, name: str) -> Iterator[object]:
    items = cast("Json", schema.get("items") or {})
    if isinstance(reference := items.get("$ref"), str):
        items = cast("Json", cast("Json", root["$defs"])[reference.rpartition("/")[2]])
    if "rank" in name:
        yield from cast("list[object]", items.get("enum") or list(labels))
        return
    properties = cast("dict[str, Json]", items.get("properties") or {})
    if (label := next((key for key in properties if "label" in key), None)) is None:
        yield from [instance(items, labels, root, name)] * cast("int", schema.get("minItems", 1))
        return
    for value in cast("list[object]", properties[label].get("enum") or list(labels)):
        yield {**cast("Json", instance(items, labels, root, name)), label: value}


# As a process of its own --------------------------------------------------------------------------


def log_normal(median: float, sigma: float, seed: int) -> Callable[[], float]:
    """Return seeded latencies in seconds, as long-tailed as real providers'."""
    source = random.Random(seed)  # noqa: S311 - latencies, not secrets
    return lambda: median * math.exp(source.gauss(0.0, sigma))


async def _serve(port: int, latency: Callable[[], float]) -> None:
    async with ModelServer(latency=latency, port=port) as server:
        print(server.base_url, flush=True)  # noqa: T201 - the parent process reads it
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="median seconds before a reply")
    parser.add_argument("--sigma", type=float, default=0.0, help="spread of log-normal latencies")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    asyncio.run(_serve(options.port, log_normal(options.latency, options.sigma, options.seed)))


if __name__ == "__main__":
    main()
