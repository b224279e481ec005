"""A collector of traces: OpenTelemetry's protocol over HTTP, on 127.0.0.1."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Received:
    """One span; ids in hexadecimal, times in nanoseconds, `links` as trace and span ids."""

    name: str
    trace: str
    id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    kind: int
    begins: int
    ends: int
    is_error: bool
    message: str
    events: int
    attributes: dict[str, Value]


@dataclass
class Collector:
    """What was sent; `status` is what it answers, and `gate` holds its answers back."""

    url: str = ""
    spans: list[Received] = field(default_factory=list[Received])
    resources: list[dict[str, Value]] = field(default_factory=list[dict[str, Value]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[bytes] = field(default_factory=list[bytes])
    status: int = 200
    gate: asyncio.Event | None = None

    async def take(self, request: web.Request) -> web.Response:
        """Take one export."""
        body = await request.read()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.gate:
            await self.gate.wait()
        if self.status != 200:
            # As some do, it repeats what it was sent.
            return web.Response(status=self.status, text=f"no: {self.headers[-1]}")
        self.bodies.append(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
        for of_resource in ExportTraceServiceRequest.FromString(self.bodies[-1]).resource_spans:
            self.resources.append(
                {each.key: _value(each.value) for each in of_resource.resource.attributes}
            )
            self.spans += [
                Received(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    kind=span.kind,
                    begins=span.start_time_unix_nano,
                    ends=span.end_time_unix_nano,
                    is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                    message=span.status.message,
                    events=len(span.events),
                    attributes={each.key: _value(each.value) for each in span.attributes},
                )
                for of_scope in of_resource.scope_spans
                for span in of_scope.spans
            ]
        return web.Response(body=b"", content_type="application/x-protobuf")

    def runs(self) -> list[Received]:
        """Return the spans of runs, in the order they ended."""
        return [span for span in self.spans if not span.parent]

    def below(self, parent: Received) -> list[Received]:
        """Return the spans right below one, in the order they began."""
        found = [span for span in self.spans if span.parent == parent.id]
        return sorted(found, key=lambda span: (span.begins, span.name))

    async def until(self, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something was received."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.005)


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    assert kind in ("string_value", "int_value", "double_value"), kind
    return getattr(value, kind)


@asynccontextmanager
async def collector() -> AsyncGenerator[Collector]:
    """Listen."""
    told = Collector()
    app = web.Application()
    app.add_routes([web.post("/v1/traces", told.take)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    told.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield told
    finally:
        if told.gate:
            told.gate.set()
        await runner.cleanup()
