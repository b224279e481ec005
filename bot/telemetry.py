"""OpenTelemetry: run, stages and model calls as spans, sent to a collector; needs the extra `otel`.

A span has attributes of `Attribute` and no others: never a question, an answer, a title, a person
or a channel. Where OpenTelemetry's conventions for generative AI have a name, it is theirs; the others
begin with `council.`. A run's trace id is derived from its id, so that a run that continues after a
restart stays in its trace, in a span of its own that is linked to the first.

Nothing here waits for the collector: spans that it doesn't take in time are dropped.
"""

import asyncio
import hashlib
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from bot.service.runs.observing import Trace
from council.calls import Call, Outcome, Reply
from council.errors import NoAnswers
from storage.journal.rows import Ended, RunRow

log = structlog.get_logger()

SERVICE = "council"
CLOSING_SECONDS = 2.0
"""How long the end of the process waits until what is left is sent."""
Attribute = Literal[
    "council.run.id",
    "council.stage",
    "council.round",
    "council.status",  # answered, failed, stopped, interrupted
    "council.cost",  # US dollars, where the price is known
    "error.type",  # why it failed: a cause of `council.errors`, or the name of an error there
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.workflow.name",
]
"""What a span may say."""
Attributes = Mapping[Attribute, str | int | float]
INTERRUPTED = "interrupted"
_CUT_OFF = ("stopped", "not_needed")
"""Causes that are nobody's failure."""

Server = Callable[[Call], str]
"""Names the provider that a call is sent to."""


def ids_of(run_id: str) -> tuple[int, int]:
    """Return a run's trace id and the id of its first span.

    They are a digest: a sampler reads the last bits of a trace id as random, which those of a UUID
    aren't.
    """
    digest = hashlib.blake2b(run_id.encode(), digest_size=24).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:])


class _Ids(RandomIdGenerator):
    """Random ids, but for the first span of a trace that says which it wants."""

    def __init__(self) -> None:
        self.trace: int | None = None
        self.span: int | None = None

    def generate_trace_id(self) -> int:
        """Return the trace id that is wanted, once."""
        wanted, self.trace = self.trace, None
        return wanted or super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the span id that is wanted, once."""
        wanted, self.span = self.span, None
        return wanted or super().generate_span_id()


class Exporter(SpanExporter):
    """Sends spans by another exporter; says once when that begins to fail, and once when it ends."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, in a thread of their own."""
        try:
            sent = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - whatever a library raises, it costs only spans
            self._note(failing=True, reason=error)
            return SpanExportResult.FAILURE
        self._note(failing=sent is not SpanExportResult.SUCCESS)
        return sent

    def shutdown(self) -> None:
        """Send nothing more."""
        self._exporter.shutdown()

    def _note(self, *, failing: bool, reason: Exception | None = None) -> None:
        if failing == self._failing:
            return
        self._failing = failing
        if failing:
            log.warning("traces_not_sent", reason=reason)
        else:
            log.info("traces_sent_again")


class Telemetry:
    """Traces runs; a `bot.service.runs.observing.Traces`."""

    def __init__(self, exporter: SpanExporter, server: Server) -> None:
        # Its own words on each failure are many, and may quote what a collector sent back.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._ids = _Ids()
        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or SERVICE})
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(Exporter(exporter)))
        self._tracer = self._provider.get_tracer(SERVICE)
        self._server = server

    @contextmanager
    def __call__(self, run: RunRow) -> Generator[Trace]:
        """Trace a run while it is carried out."""
        trace_id, first = ids_of(run.id)
        links: list[Link] = []
        self._ids.trace, self._ids.span = trace_id, first
        if run.brief.started_at is not None:  # it continues, or is retried
            self._ids.span = None
            flags = TraceFlags(TraceFlags.SAMPLED)
            links = [Link(SpanContext(trace_id, first, is_remote=True, trace_flags=flags))]
        span = self._tracer.start_span(f"invoke_workflow {SERVICE}", context=Context(), links=links)
        _set(
            span,
            {
                "council.run.id": run.id,
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": SERVICE,
            },
        )
        traced = RunTrace(self._tracer, self._server, span, run.id)
        try:
            yield traced
        finally:
            traced.close()

    async def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Send what is left, but don't wait longer than this for the collector."""
        # Not in the event loop's executor, whose threads are waited for, however long they take.
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        ends = time.monotonic() + seconds
        while closing.is_alive() and time.monotonic() < ends:  # noqa: ASYNC110 - it may outlive the loop
            await asyncio.sleep(0.01)
        if closing.is_alive():
            log.warning("traces_left_unsent")


@dataclass(slots=True)
class RunTrace:
    """The spans of one run: its own, its stages', its calls'."""

    tracer: Tracer
    server: Server
    span: Span
    run_id: str
    _stages: dict[str, Span] = field(default_factory=dict[str, Span])
    _calls: dict[str, tuple[Span, int | None]] = field(
        default_factory=dict[str, tuple[Span, int | None]]
    )
    _status: str = INTERRUPTED
    _tokens: tuple[int, int] = (0, 0)
    _cost: float = 0.0

    def called(self, call: Call) -> None:
        """Begin a call's span."""
        self._calls[call.step] = self._begin(call), None

    def returned(self, call: Call) -> None:
        """Note when a call returned; its span ends then, once its outcome is known."""
        if begun := self._calls.get(call.step):
            self._calls[call.step] = begun[0], time.time_ns()

    def recorded(self, call: Call, outcome: Outcome) -> None:
        """End a call's span with what came of it."""
        if (begun := self._calls.pop(call.step, None)) is None:  # cut off before it began
            return
        span, ended_at = begun
        if isinstance(outcome, Reply):
            _set(span, {"council.status": "answered"})
            _set(span, {"gen_ai.response.model": outcome.answered_by or call.member.model})
        else:
            is_fault = outcome.cause not in _CUT_OFF
            _set(span, {"council.status": "failed" if is_fault else "stopped"})
            _fail(span, outcome.cause, is_fault=is_fault)
        if used := outcome.usage:
            _set(span, {"gen_ai.usage.input_tokens": used.prompt_tokens})
            _set(span, {"gen_ai.usage.output_tokens": used.completion_tokens})
            if not used.unpriced:
                _set(span, {"council.cost": used.cost})
            read, written = self._tokens
            self._tokens = read + used.prompt_tokens, written + used.completion_tokens
            self._cost += used.cost
        span.end(ended_at)

    def completed(self, stage: str, number: int) -> None:
        """End a stage's span."""
        if span := self._stages.get(f"{stage}.{number}"):
            span.end()

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Record how the run ended."""
        self._status = status
        if error is not None:
            shared = error.cause if isinstance(error, NoAnswers) else None
            why = shared or type(error).__name__
            _fail(self.span, why, is_fault=status == "failed")

    def close(self) -> None:
        """End every span: what has no outcome by now was interrupted."""
        for span, ended_at in self._calls.values():
            _set(span, {"council.status": INTERRUPTED})
            span.end(ended_at)
        for span in self._stages.values():
            if span.is_recording():
                span.end()
        read, written = self._tokens
        _set(
            self.span,
            {
                "council.status": self._status,
                "council.cost": self._cost,
                "gen_ai.usage.input_tokens": read,
                "gen_ai.usage.output_tokens": written,
            },
        )
        self.span.end()

    def _begin(self, call: Call) -> Span:
        place, _, _ = call.step.partition(":")
        stage, _, number = place.partition(".")
        parent = self.span
        where: Attributes = {}
        if number:  # a title belongs to no stage
            where = {"council.stage": stage, "council.round": int(number)}
            if place not in self._stages:
                self._stages[place] = self._start(stage, self.span, where)
            parent = self._stages[place]
        model = call.member.model
        span = self._start(f"chat {model}", parent, where, SpanKind.CLIENT)
        _set(
            span,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self.server(call),
                "gen_ai.request.model": model,
            },
        )
        return span

    def _start(
        self, name: str, parent: Span, where: Attributes, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        context = set_span_in_context(parent, Context())
        span = self.tracer.start_span(name, context=context, kind=kind)
        _set(span, where)
        _set(span, {"council.run.id": self.run_id})
        return span


def _set(span: Span, attributes: Attributes) -> None:
    for name, value in attributes.items():
        span.set_attribute(name, value)


def _fail(span: Span, why: str, *, is_fault: bool) -> None:
    _set(span, {"error.type": why})
    if is_fault:
        span.set_status(StatusCode.ERROR)


@asynccontextmanager
async def open_telemetry(given: Mapping[str, str], server: Server) -> AsyncGenerator[Telemetry | None]:
    """Trace runs for the collector that the variables name; `None` if they can't be used.

    `given` are the variables `OTEL_…` of every source; OpenTelemetry itself reads only the environment.
    """
    for name, value in given.items():
        os.environ.setdefault(name.upper(), value)
    try:
        telemetry = Telemetry(OTLPSpanExporter(), server)
    except Exception as error:  # noqa: BLE001 - whatever a variable holds, runs don't depend on it
        log.warning("traces_not_sent", reason=error)
        yield None
        return
    try:
        yield telemetry
    finally:
        await telemetry.close()
