"""Health checks and metrics over HTTP, for a process manager and for Prometheus.

Nothing here names a person, a channel or a text. Paths: `/livez`, `/readyz`, `/metrics`.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import accumulate

import structlog
from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.adapters import Health
from bot.http_server import serving
from bot.service.delivery.outbox import Urgency
from bot.service.metrics import Durations, Metrics
from storage.errors import StorageError
from storage.journal.rows import BUDGETED, ENDED, Budgeted
from storage.journal.spending import Spending

log = structlog.get_logger()

LAG_SECONDS = 0.5
"""How often the event loop's lag is measured."""
MOST_CONNECTIONS = 32
"""How many may ask at the same time; unfinished requests to Slack's port take none of these."""
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Status:
    """Answers health checks and shows metrics."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        disable_created_metrics()
        self._health = health
        self._registry = CollectorRegistry()
        self._counts = _Counts(health, metrics)
        self._spending = Spending(health.database)
        self._registry.register(self._counts)
        self._lag = Histogram(
            "council_event_loop_lag_seconds",
            "How late the event loop was.",
            buckets=LAGS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)

    @asynccontextmanager
    async def serve(self, host: str, port: int) -> AsyncGenerator[int]:
        """Listen; yield the port. Raises `OSError`."""
        pages = {"/livez": self._livez, "/readyz": self._readyz, "/metrics": self._metrics}
        routes = {(method, path): page for path, page in pages.items() for method in ("GET", "HEAD")}
        measuring = asyncio.create_task(self._measure())
        try:
            async with serving(routes, host, port, most=MOST_CONNECTIONS) as listening:
                yield listening
        finally:
            measuring.cancel()
            await asyncio.gather(measuring, return_exceptions=True)

    async def exposition(self) -> bytes:
        self._counts.connected = await self._health.connected()
        try:
            self._counts.spending = await self._spending.largest(datetime.now(UTC))
        except StorageError:  # everything else is shown all the same
            log.exception("budgets_not_read")
            self._counts.spending = {}
        return generate_latest(self._registry)

    async def _livez(self, _: web.BaseRequest) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        if troubles := await self._health.troubles():
            text = "".join(f"{trouble}\n" for trouble in troubles)
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=text)
        return web.Response(text="ready\n")

    async def _metrics(self, _: web.BaseRequest) -> web.Response:
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return web.Response(body=await self.exposition(), headers=headers)

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_SECONDS
            await asyncio.sleep(LAG_SECONDS)
            self._lag.observe(max(0.0, loop.time() - due))


class _Counts(Collector):
    """Reads what is counted, and what is under way, when it is asked for; also what is still zero."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        self._health = health
        self._metrics_of = metrics
        self.connected: Mapping[str, bool] = {}
        self.spending: Mapping[Budgeted, tuple[float, float]] = {}

    def collect(self) -> Iterator[Metric]:
        yield from self._outboxes()
        yield from self._runs()
        yield from self._calls()
        largest = (
            ((*budget, state), dollars)
            for budget, found in self.spending.items()
            for state, dollars in zip(("reserved", "spent"), found, strict=True)
        )
        what = "What the one that counts most toward a budget has reserved and spent."
        yield _family(GaugeMetricFamily, "budget_dollars", what, "scope period state", largest)
        warned = ((each, self._metrics_of.budgets_nearly_used[each]) for each in BUDGETED)
        what = "Budgets of which 80 % was reserved or spent."
        yield _family(CounterMetricFamily, "budgets_nearly_used", what, "scope period", warned)
        connected = (((name.lower(),), is_so) for name, is_so in self.connected.items())
        what = "Whether a platform is connected."
        yield _family(GaugeMetricFamily, "connected", what, "platform", connected)

    def _outboxes(self) -> Iterator[Metric]:
        counts, waiting = self._metrics_of, dict[tuple[str, str], int]()
        for platform, count in counts.waiting.items():
            by_urgency = count()
            waiting |= {(platform, each.name.lower()): by_urgency[each.name.lower()] for each in Urgency}
        late = ((key, counts.sent_late[key]) for key in waiting)
        what = "Posts and edits that wait."
        yield _family(GaugeMetricFamily, "outbox_waiting", what, "platform urgency", waiting.items())
        what = "Posts and edits that waited long behind more urgent ones."
        yield _family(CounterMetricFamily, "outbox_sent_late", what, "platform urgency", late)
        for name, what, found in (
            ("outbox_rate_limited", "Refusals by a rate limit.", counts.rate_limited),
            (
                "outbox_held_seconds",
                "Seconds that requests were held back to keep a rate limit.",
                counts.held_seconds,
            ),
            ("card_edits", "Edits of cards.", counts.edits),
            (
                "card_changes_coalesced",
                "Changes of cards that shared an edit with a later one.",
                counts.coalesced,
            ),
        ):
            rows = (((platform,), found[platform]) for platform in counts.waiting)
            yield _family(CounterMetricFamily, name, what, "platform", rows)

    def _runs(self) -> Iterator[Metric]:
        runs = self._health.dispatcher.tasks.run_counts() if self._health.dispatcher else None
        for name, what, count in (
            ("under_way", "Runs that have their turn.", runs.running if runs else 0),
            ("queued", "Runs that wait for their turn.", runs.queued if runs else 0),
            ("untold", "Runs whose asker couldn't be notified yet.", runs.undelivered if runs else 0),
        ):
            yield GaugeMetricFamily(f"council_runs_{name}", what, value=count)
        ended = (((outcome,), self._metrics_of.runs_ended[outcome]) for outcome in ENDED)
        yield _family(CounterMetricFamily, "runs_ended", "Runs that ended.", "outcome", ended)
        stages = (((stage,), durations) for stage, durations in self._metrics_of.stages.items())
        yield _times("stage_seconds", "How long stages took.", "stage", stages)
        what = "How long after its document a conversation was indexed."
        yield _times("index_lag_seconds", what, "", [((), self._metrics_of.index_lag)])

    def _calls(self) -> Iterator[Metric]:
        counts = self._metrics_of
        what = "Model calls, retries not counted."
        yield _family(CounterMetricFamily, "calls", what, "model outcome", counts.calls.items())
        times = (((model,), durations) for model, durations in counts.call_times.items())
        yield _times("call_seconds", "How long answered model calls took.", "model", times)
        what, tokens = "Tokens of model calls.", counts.tokens.items()
        yield _family(CounterMetricFamily, "tokens", what, "model kind", tokens)
        cost = (((model,), dollars) for model, dollars in counts.cost.items())
        what = "Cost of model calls whose price is known."
        yield _family(CounterMetricFamily, "cost_dollars", what, "model", cost)


def _family(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    what: str,
    labels: str,
    rows: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    family = kind(f"council_{name}", what, labels=labels.split())
    for values, number in rows:
        family.add_metric([*values], number)
    return family


def _times(name: str, what: str, labels: str, rows: Iterable[tuple[Sequence[str], Durations]]) -> Metric:
    family = HistogramMetricFamily(f"council_{name}", what, labels=labels.split())
    for values, durations in rows:
        bounds = [*map(str, durations.bounds), "+Inf"]
        counts = [float(count) for count in accumulate(durations.counts)]
        family.add_metric([*values], [*zip(bounds, counts, strict=True)], durations.seconds)
    return family
