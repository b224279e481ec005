"""Health checks and metrics over HTTP, for a process manager and for Prometheus.

Nothing here names a person, a channel or a text. Paths: `/livez`, `/readyz`, `/metrics`.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
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
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from bot.health import Health
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
        """Return all metrics as Prometheus reads them."""
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
    """Reads what is counted, and what is under way, when it is asked for."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        self._health = health
        self._metrics_of = metrics
        self.connected: Mapping[str, bool] = {}
        self.spending: Mapping[Budgeted, tuple[float, float]] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, including those that are still zero."""
        yield from self._outboxes()
        yield from self._runs()
        yield from self._calls()
        yield from self._budgets()
        connected = GaugeMetricFamily(
            "council_connected", "Whether a platform is connected.", labels=["platform"]
        )
        for platform, is_connected in self.connected.items():
            connected.add_metric([platform.lower()], is_connected)
        yield connected

    def _outboxes(self) -> Iterator[Metric]:
        counts = self._metrics_of
        waiting = GaugeMetricFamily(
            "council_outbox_waiting", "Posts and edits that wait.", labels=["platform", "urgency"]
        )
        late = CounterMetricFamily(
            "council_outbox_sent_late",
            "Posts and edits that waited long behind more urgent ones.",
            labels=["platform", "urgency"],
        )
        limited = CounterMetricFamily(
            "council_outbox_rate_limited", "Refusals by a rate limit.", labels=["platform"]
        )
        held = CounterMetricFamily(
            "council_outbox_held_seconds",
            "Seconds that requests were held back to keep a rate limit.",
            labels=["platform"],
        )
        edits = CounterMetricFamily("council_card_edits", "Edits of cards.", labels=["platform"])
        coalesced = CounterMetricFamily(
            "council_card_changes_coalesced",
            "Changes of cards that shared an edit with a later one.",
            labels=["platform"],
        )
        for platform, count in counts.waiting.items():
            by_urgency = count()
            for urgency in (each.name.lower() for each in Urgency):
                waiting.add_metric([platform, urgency], by_urgency[urgency])
                late.add_metric([platform, urgency], counts.sent_late[platform, urgency])
            limited.add_metric([platform], counts.rate_limited[platform])
            held.add_metric([platform], counts.held_seconds[platform])
            edits.add_metric([platform], counts.edits[platform])
            coalesced.add_metric([platform], counts.coalesced[platform])
        yield from (waiting, late, limited, held, edits, coalesced)

    def _runs(self) -> Iterator[Metric]:
        runs = self._health.dispatcher.tasks.run_counts() if self._health.dispatcher else None
        for name, what, count in (
            ("under_way", "Runs that have their turn.", runs.running if runs else 0),
            ("queued", "Runs that wait for their turn.", runs.queued if runs else 0),
            ("untold", "Runs whose asker couldn't be told yet.", runs.undelivered if runs else 0),
        ):
            yield GaugeMetricFamily(f"council_runs_{name}", what, value=count)
        ended = CounterMetricFamily("council_runs_ended", "Runs that ended.", labels=["outcome"])
        for outcome in ENDED:
            ended.add_metric([outcome], self._metrics_of.runs_ended[outcome])
        yield ended
        stages = HistogramMetricFamily(
            "council_stage_seconds", "How long stages took.", labels=["stage"]
        )
        for stage, durations in self._metrics_of.stages.items():
            _add(stages, [stage], durations)
        yield stages
        lag = HistogramMetricFamily(
            "council_index_lag_seconds", "How long after its document a conversation was indexed."
        )
        _add(lag, [], self._metrics_of.index_lag)
        yield lag

    def _budgets(self) -> Iterator[Metric]:
        largest = GaugeMetricFamily(
            "council_budget_dollars",
            "What whoever counts most toward a budget has reserved and spent.",
            labels=["scope", "period", "state"],
        )
        for (scope, period), (reserved, spent) in self.spending.items():
            largest.add_metric([scope, period, "reserved"], reserved)
            largest.add_metric([scope, period, "spent"], spent)
        yield largest
        nearly_used = CounterMetricFamily(
            "council_budgets_nearly_used",
            "Budgets of which 80 % was reserved or spent.",
            labels=["scope", "period"],
        )
        for scope, period in BUDGETED:
            number = self._metrics_of.budgets_nearly_used[scope, period]
            nearly_used.add_metric([scope, period], number)
        yield nearly_used

    def _calls(self) -> Iterator[Metric]:
        counts = self._metrics_of
        calls = CounterMetricFamily(
            "council_calls", "Model calls, retries not counted.", labels=["model", "outcome"]
        )
        for labels, number in counts.calls.items():
            calls.add_metric(labels, number)
        times = HistogramMetricFamily(
            "council_call_seconds", "How long answered model calls took.", labels=["model"]
        )
        for model, durations in counts.call_times.items():
            _add(times, [model], durations)
        tokens = CounterMetricFamily(
            "council_tokens", "Tokens of model calls.", labels=["model", "kind"]
        )
        for labels, number in counts.tokens.items():
            tokens.add_metric(labels, number)
        cost = CounterMetricFamily(
            "council_cost_dollars", "Cost of model calls whose price is known.", labels=["model"]
        )
        for model, dollars in counts.cost.items():
            cost.add_metric([model], dollars)
        yield from (calls, times, tokens, cost)


def _add(family: HistogramMetricFamily, labels: list[str], durations: Durations) -> None:
    bounds = [*map(str, durations.bounds), "+Inf"]
    counts = [float(count) for count in accumulate(durations.counts)]
    family.add_metric(labels, [*zip(bounds, counts, strict=True)], durations.seconds)
