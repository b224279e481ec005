"""The dashboard, the alerts and Prometheus itself agree with what `/metrics` shows."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.service.delivery.outbox import Outbox
from council.events import STAGES
from tests.bot.test_status import Served, connected, served
from tests.ports import free_port

ROOT = Path(__file__).parent.parent
DEPLOY, DOCS = ROOT / "deploy", ROOT / "docs"
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="Prometheus isn't installed (apt-get install prometheus)",
)
SECONDS = 60.0  # for a busy machine; it takes a few


def fill(page: Served) -> None:
    """Count one of everything, so that no metric is without a sample."""
    counts = page.metrics
    for platform in ("discord", "slack"):
        Outbox(platform, metrics=counts)
        counts.edited(platform, 3)
    counts.calls["a/one", "answered"] += 1
    counts.calls["a/one", "deadline"] += 1
    counts.tokens["a/one", "prompt"] += 10
    counts.cost["a/one"] += 0.5
    counts.call_times["a/one"].add(2.5)
    counts.index_lag.add(0.002)
    for stage in STAGES:
        counts.stages[stage].add(4.0)


def panels() -> list[dict[str, Any]]:
    return json.loads((DEPLOY / "grafana.json").read_text())["panels"]


def queries() -> Iterator[str]:
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m")


async def shown(folder: Path) -> dict[str, set[str]]:
    """Return the samples that `/metrics` shows, each with its labels."""
    async with served(folder) as page:
        fill(page)
        page.health.platforms["Slack"] = connected(True)
        _, text = await page.get("/metrics")
    samples: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        samples.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return samples


async def test_every_metric_of_dashboard_and_alerts_is_shown(tmp_path: Path) -> None:
    """With the labels by which they group."""
    samples = await shown(tmp_path)
    asked = [*queries(), (DEPLOY / "alerts.yml").read_text()]
    names = {name for text in asked for name in re.findall(r"\b(?:council|process)_\w+", text)}
    assert names <= samples.keys()
    for query in queries():
        [name] = re.findall(r"\b(?:council|process)_\w+", query)
        grouped = {
            label.strip() for labels in re.findall(r"by \((.*?)\)", query) for label in labels.split(",")
        }
        assert grouped <= samples[name], query


async def test_every_metric_that_a_document_names_is_shown(tmp_path: Path) -> None:
    """A histogram by its own name, too."""
    samples = await shown(tmp_path)
    known = samples.keys() | {name.removesuffix("_bucket") for name in samples}
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        # A tool of the MCP server is followed by its parameters.
        named = set(re.findall(r"`(council_[a-z_]+)(?!\w|\()", page.read_text(encoding="utf-8")))
        assert named <= known, page


async def test_every_metric_is_on_the_dashboard(tmp_path: Path) -> None:
    """But what only one query at a time would need."""
    samples = await shown(tmp_path)
    ours = {re.sub(r"_(bucket|count|sum)$", "_bucket", name) for name in samples}
    drawn = {name for query in queries() for name in re.findall(r"\bcouncil_\w+", query)}
    assert {name for name in ours if name.startswith("council_")} == drawn


def test_panels_have_numbers_and_places_of_their_own() -> None:
    """None covers another."""
    assert len({panel["id"] for panel in panels()}) == len(panels())
    cells = [
        (x, y)
        for panel in panels()
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24


@needs_prometheus
class TestPrometheus:
    """Debian's Prometheus reads it all."""

    @pytest.mark.parametrize(
        "words",
        [
            ("check", "rules", "alerts.yml"),
            ("test", "rules", "alerts_test.yml"),
            ("check", "config", "prometheus.yml"),
        ],
    )
    def test_promtool_finds_no_fault(self, words: tuple[str, ...]) -> None:
        """Rules, what they do in time, and the scrape configuration."""
        ended = subprocess.run(  # noqa: S603 - our own words
            ["promtool", *words],  # noqa: S607 - found on the path
            cwd=DEPLOY,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "SUCCESS" in ended.stdout + ended.stderr

    async def test_metrics_pass_promtools_lint(self, tmp_path: Path) -> None:
        """Names, units and help texts are as Prometheus wants them."""
        async with served(tmp_path) as page:
            fill(page)
            _, text = await page.get("/metrics")
        linting = await asyncio.create_subprocess_exec(
            *("promtool", "check", "metrics"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = await linting.communicate(text.encode())
        assert (linting.returncode, out.decode()) == (0, "")

    @pytest.mark.soak
    async def test_it_scrapes_them_and_answers_every_query(self, tmp_path: Path) -> None:
        """With a number for each of the dashboard's; no rule fails, and no alert fires."""
        async with served(tmp_path / "data") as page:
            fill(page)

            async def is_connected() -> bool:
                return True

            page.health.platforms["Slack"] = is_connected
            (tmp_path / "alerts.yml").write_bytes((DEPLOY / "alerts.yml").read_bytes())
            configuration = (DEPLOY / "prometheus.yml").read_text()
            target = page.url.removeprefix("http://")
            (tmp_path / "prometheus.yml").write_text(
                configuration.replace("127.0.0.1:9464", target).replace("15s", "100ms")
            )
            url = f"http://127.0.0.1:{(port := free_port())}"
            prometheus = await asyncio.create_subprocess_exec(
                "prometheus",
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'series'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                await self.answers(page, url)
            finally:
                prometheus.kill()
                await prometheus.wait()

    async def answers(self, page: Served, url: str) -> None:
        """Ask every query until each has a number."""

        async def value(query: str) -> float | None:
            try:
                async with page.session.get(f"{url}/api/v1/query", params={"query": query}) as answer:
                    said = await answer.json()
            except aiohttp.ClientError:  # it is starting
                return None
            assert said["status"] == "success", said
            return float(said["data"]["result"][0]["value"][1]) if said["data"]["result"] else None

        async with asyncio.timeout(SECONDS):
            while await value("count_over_time(council_connected[1m]) > 3") is None:
                await asyncio.sleep(0.05)
            page.metrics.cost["a/one"] += 0.25
            while await value("council_cost_dollars_total") != 0.75:
                await asyncio.sleep(0.05)
            for query in queries():
                assert await value(query) is not None, query
        assert await value('council_connected{platform="slack"}') == 1
        assert await value("council_call_seconds_sum") == 2.5
        assert await value("ALERTS") is None
        async with page.session.get(f"{url}/api/v1/rules") as answer:
            [group] = (await answer.json())["data"]["groups"]
        assert [rule["name"] for rule in group["rules"]] == [
            "CouncilDisconnected",
            "CouncilAskersUntold",
            "CouncilAnswersWait",
        ]
