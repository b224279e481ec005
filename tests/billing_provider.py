"""A provider that keeps its own bill, by its own rules: what it generated is owed, whoever hears of it.

Tokens are billed at the list price of the model that was asked, for the prompt and for everything that
was generated, hidden thoughts included, up to the moment at which the connection was closed, or to the
reply's end, which many providers write all the same:
https://openrouter.ai/docs/api-reference/streaming#stream-cancellation. Requests refused by their status
cost nothing. With the customer's own key, the upstream provider's bill counts.

Nothing here knows how the program counts.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, cast

import orjson
from aiohttp import web

Kind = Literal[
    "counted",
    "counted, no cost",
    "no usage",
    "thoughts, no usage",
    "hidden thoughts, no usage",
    "own key",
    "own key, no upstream cost",
    "absurd cost",
    "stream ends early",
    "reset after text",
    "reset before any answer",
    "stalls",
    "cut, and billed whole",
    "thinks until it is cut off",
    "silent until it is cut off",
    "plain body",
    "plain body, cut",
    "refused",
]
KINDS: tuple[tuple[Kind, int], ...] = (
    ("counted", 30),
    ("counted, no cost", 6),
    ("no usage", 6),
    ("thoughts, no usage", 5),
    ("hidden thoughts, no usage", 5),
    ("own key", 5),
    ("own key, no upstream cost", 5),
    ("absurd cost", 2),
    ("stream ends early", 5),
    ("reset after text", 5),
    ("reset before any answer", 2),
    ("stalls", 3),
    ("cut, and billed whole", 5),
    ("thinks until it is cut off", 3),
    ("silent until it is cut off", 2),
    ("plain body", 4),
    ("plain body, cut", 3),
    ("refused", 5),
)
"""What the provider does, and how often of a hundred."""
WORD = "abc "
"""One token."""
MOST_TOKENS = 2_000
THINKER = "lab/thinker"
PRICES: Mapping[str, tuple[float, float]] = {
    "lab/plain": (0.000_002, 0.000_010),
    THINKER: (0.000_003, 0.000_015),
    "lab/small": (0.000_000_5, 0.000_002),
    "lab/chair": (0.000_003, 0.000_012),
}
"""US dollars for one token of the prompt, and for one that is generated."""


@dataclass
class Bill:
    """What is owed for one request."""

    kind: str
    model: str
    prompt: int
    generated: int = 0

    @property
    def dollars(self) -> float:
        if self.kind == "refused":
            return 0.0
        prompt, completion = PRICES[self.model]
        return self.prompt * prompt + self.generated * completion


@dataclass
class BillingProvider:
    """Plays each request as chance decides, and writes the bill; `on_bill` hears of each change."""

    chance: random.Random
    bills: list[Bill] = field(default_factory=list[Bill])
    open: list[Bill] = field(default_factory=list[Bill])
    on_bill: Callable[[], None] = lambda: None
    base_url: str = ""
    _runner: web.AppRunner | None = None

    @property
    def dollars(self) -> float:
        return sum(bill.dollars for bill in self.bills)

    def by_kind(self) -> dict[str, tuple[int, float]]:
        """Return how many requests there were of each kind, and what they cost."""
        calls: Counter[str] = Counter()
        dollars: Counter[str] = Counter()
        for bill in self.bills:
            calls[bill.kind] += 1
            dollars[bill.kind] += bill.dollars  # pyright: ignore[reportArgumentType] - dollars
        return {kind: (calls[kind], float(dollars[kind])) for kind in calls}

    def killed(self) -> None:
        """Note that the customer's process was killed: what is under way was for nobody."""
        for bill in self.open:
            bill.kind = "killed"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/api/v1/chat/completions", self._complete)
        app.router.add_get("/api/v1/models", self._list)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/api/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _list(self, _: web.Request) -> web.Response:
        models = [
            {
                "id": model,
                "pricing": {"prompt": f"{prompt:.9f}", "completion": f"{completion:.9f}"},
                "supported_parameters": ["max_tokens", *(["reasoning"] if model == THINKER else [])],
                "context_length": 200_000,
            }
            for model, (prompt, completion) in PRICES.items()
        ]
        return web.json_response({"data": models})

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        request = orjson.loads(await http.read())
        model = cast("str", request["model"])
        kinds, weights = [kind for kind, _ in KINDS], [weight for _, weight in KINDS]
        kind: str = self.chance.choices(kinds, weights)[0]
        prompt = sum(-(-len(each["content"]) // 4) for each in request["messages"])
        bill = Bill(kind, model, prompt)
        self.bills.append(bill)
        self.open.append(bill)
        try:
            return await self._play(http, bill, kind)
        except ConnectionError:  # nobody listens any more
            return web.Response()
        finally:
            self.open.remove(bill)
            self.on_bill()

    async def _play(self, http: web.Request, bill: Bill, kind: str) -> web.StreamResponse:
        length = self.chance.randrange(20, MOST_TOKENS - 10)
        await asyncio.sleep(self.chance.random() * 0.01)
        match kind:
            case "refused":
                return web.json_response({"error": {"message": "busy", "code": 429}}, status=429)
            case "silent until it is cut off" | "reset before any answer":
                bill.generated = length
                if kind.startswith("silent"):
                    await asyncio.Event().wait()
                return self._reset(http)
            case "plain body" | "plain body, cut":
                return await self._body(http, bill, kind, length)
            case _:
                return await self._stream(http, bill, kind, length)

    async def _body(self, http: web.Request, bill: Bill, kind: str, length: int) -> web.StreamResponse:
        bill.generated = length
        message = {"content": WORD * length}
        whole = orjson.dumps(
            {"model": bill.model, "choices": [{"message": message, "finish_reason": "stop"}]}
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json", "x-kind": kind})
        await response.prepare(http)
        if kind == "plain body":
            await response.write(whole)
            await response.write_eof()
            return response
        await response.write(whole[:-10])
        await asyncio.sleep(0.01)
        return self._reset(http, response)

    async def _stream(self, http: web.Request, bill: Bill, kind: str, length: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "x-kind": kind})
        await response.prepare(http)
        thoughts = length // 2 if "thoughts" in kind or kind.startswith("thinks") else 0
        if kind == "thoughts, no usage":
            await self._send(response, bill, {"reasoning": WORD * thoughts}, thoughts)
        else:  # generated, and not shown
            bill.generated += thoughts
        if kind.startswith("thinks"):
            await response.write(b": thinking\n\n")
            await asyncio.Event().wait()
        left = length - thoughts
        if kind == "cut, and billed whole":
            await self._send(response, bill, {"content": WORD * (left // 3)}, left)
            await asyncio.Event().wait()
        for part in (left // 3, left // 3, left - 2 * (left // 3)):
            await self._send(response, bill, {"content": WORD * part}, part)
            await asyncio.sleep(0)
            if kind == "stalls":
                await asyncio.Event().wait()
            if kind == "reset after text" and bill.generated > left // 2:
                await asyncio.sleep(0.01)
                return self._reset(http, response)
        if kind == "stream ends early":
            await response.write_eof()
            return response
        finish: dict[str, object] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        await response.write(b"data: " + orjson.dumps(finish) + b"\n\n")
        if usage := self._usage(bill, kind):
            chunk: dict[str, object] = {"choices": [], "usage": usage}
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _send(
        self, response: web.StreamResponse, bill: Bill, delta: Mapping[str, str], tokens: int
    ) -> None:
        bill.generated += tokens
        chunk = {"model": bill.model, "choices": [{"delta": delta}]}
        await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")

    @staticmethod
    def _usage(bill: Bill, kind: str) -> dict[str, object]:
        counted = {"prompt_tokens": bill.prompt, "completion_tokens": bill.generated}
        match kind:
            case "counted":
                return {**counted, "cost": bill.dollars, "is_byok": False}
            case "counted, no cost":
                return {**counted}
            case "own key":
                details = {"upstream_inference_cost": bill.dollars}
                return {**counted, "cost": 0, "is_byok": True, "cost_details": details}
            case "own key, no upstream cost":
                return {**counted, "cost": 0, "is_byok": True}
            case "absurd cost":
                return {**counted, "cost": 2e10}
            case _:
                return {}

    @staticmethod
    def _reset(http: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
        if http.transport is not None:
            http.transport.abort()
        return response or web.Response()
