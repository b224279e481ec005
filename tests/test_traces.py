"""Traces: what a collector receives of runs, and what runs notice of a collector (nothing)."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from bot.service.runs.observing import Observer
from bot.service.runs.runs import Runs
from bot.telemetry import CLOSING_SECONDS, Attribute, Telemetry, ids_of
from council.calls import Call
from council.cancel import Stop
from storage.journal.rows import RunRow
from tests.bot.service.runs.test_runs import opened, question
from tests.collector import Collector, Received, collector
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.slack_server import SlackServer
from tests.test_interrupted import CHAIR, killed_in_stage_3
from tests.test_program import MEMBERS, QUESTION, Program, asked
from tests.test_serving import SECONDS, configured, finished

ALLOWED = {*get_args(Attribute)}
CALLS = {"stage1": 4, "stage2": 4, "stage2_5": 4, "stage3": 1}


def of_openrouter(call: Call) -> str:
    """Return where every call goes: OpenRouter."""
    del call
    return "openrouter"


@asynccontextmanager
async def traced(
    folder: Path, council: ScriptedCouncil
) -> AsyncGenerator[tuple[Runs, Collector, Telemetry]]:
    """Open runs whose traces a collector takes; they are all sent at the end."""
    async with collector() as told, opened(folder, council) as (runs, _):
        telemetry = Telemetry(OTLPSpanExporter(f"{told.url}/v1/traces"), of_openrouter)
        runs.observer = Observer(runs.observer.metrics, telemetry)
        try:
            yield runs, told, telemetry
        finally:
            await telemetry.close()


def assert_within(span: Received, parent: Received) -> None:
    """One span is in the time of another."""
    assert parent.begins <= span.begins <= span.ends <= parent.ends


class TestRuns:
    """What is told of a run."""

    async def test_an_answered_run_is_a_tree_of_stages_and_calls(self, tmp_path: Path) -> None:
        """Run, stages and calls, each with its times; no word of what was said is anywhere."""
        council = ScriptedCouncil()
        seats = profile(title_model="a/title")
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question(seats=seats))).run
            await runs.carry_out(run, council.events.append)
            await telemetry.close()
        [top] = told.runs()
        assert top.name == "invoke_workflow council"
        assert top.attributes == {
            "council.run.id": run.id,
            "council.status": "answered",
            "council.cost": pytest.approx(0.014),
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "council",
            "gen_ai.usage.input_tokens": 140,
            "gen_ai.usage.output_tokens": 70,
        }
        below = told.below(top)
        stages = [span for span in below if span.name in CALLS]
        assert [stage.name for stage in stages] == [*CALLS]
        assert [span.name for span in below if span not in stages] == ["chat a/title"]
        for stage in stages:
            assert stage.attributes == {
                "council.run.id": run.id,
                "council.stage": stage.name,
                "council.round": 1,
            }
            assert_within(stage, top)
            calls = told.below(stage)
            assert len(calls) == CALLS[stage.name]
            for call in calls:
                assert_within(call, stage)
                assert call.kind == 3  # a client's
                model = call.attributes["gen_ai.request.model"]
                assert call.name == f"chat {model}"
                assert call.attributes == {
                    "council.run.id": run.id,
                    "council.stage": stage.name,
                    "council.round": 1,
                    "council.status": "answered",
                    "council.cost": 0.001,
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openrouter",
                    "gen_ai.request.model": model,
                    "gen_ai.response.model": model,
                    "gen_ai.usage.input_tokens": 10,
                    "gen_ai.usage.output_tokens": 5,
                }
        assert len(told.spans) == 1 + 4 + 13 + 1
        assert {span.trace for span in told.spans} == {f"{ids_of(run.id)[0]:032x}"}
        assert {span.is_error for span in told.spans} == {False}
        assert {resource["service.name"] for resource in told.resources} == {"council"}

    async def test_a_failed_member_says_why(self, tmp_path: Path) -> None:
        """By its cause, not by the provider's words; the run is answered without it."""
        council = ScriptedCouncil(
            script={"stage1.1:x-ai/grok": failure("rate_limited", "Ada's question was refused")}
        )
        async with traced(tmp_path, council) as (runs, told, telemetry):
            await runs.carry_out((await runs.recorder.record(*question())).run, council.events.append)
            await telemetry.close()
        [failed] = [span for span in told.spans if span.is_error]
        assert failed.name == "chat x-ai/grok"
        assert failed.attributes["council.status"] == "failed"
        assert failed.attributes["error.type"] == "rate_limited"
        assert failed.message == ""
        assert failed.events == 0
        assert told.runs()[0].attributes["council.status"] == "answered"
        assert b"Ada" not in b"".join(told.bodies)

    async def test_a_run_without_an_answer_has_failed(self, tmp_path: Path) -> None:
        """So has every call; a retry is another span of the same trace, linked to the first."""
        council = ScriptedCouncil(script={"stage1": failure("unavailable")})
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question())).run
            await runs.carry_out(run, council.events.append)
            reopened = await runs.recorder.reopen(run, run.origin)
            assert reopened
            council.script.clear()
            await runs.carry_out(reopened, council.events.append)
            await telemetry.close()
        first, second = told.runs()
        assert (first.is_error, first.attributes["error.type"]) == (True, "unavailable")
        assert first.attributes["council.status"] == "failed"
        assert Counter(span.attributes.get("error.type") for span in told.spans)["unavailable"] == 1 + 4
        assert (second.is_error, second.attributes["council.status"]) == (False, "answered")
        assert second.trace == first.trace
        assert first.links == ()
        assert second.links == ((first.trace, first.id),)

    async def test_stop_ends_calls_that_are_nobodys_failure(self, tmp_path: Path) -> None:
        """What was stopped says so; with enough answers, the run still has one."""
        council = ScriptedCouncil(held={"stage1.1:x-ai/grok"})
        stop = Stop()
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question())).run
            going = asyncio.create_task(runs.carry_out(run, council.events.append, stop))
            await council.until_called(*(f"stage1.1:{name}" for name in FOUR))
            while len(council.finished) < 3:
                await asyncio.sleep(0.001)
            stop.press()
            await going
            await telemetry.close()
        [stopped] = [span for span in told.spans if span.attributes.get("error.type") == "stopped"]
        assert stopped.name == "chat x-ai/grok"
        assert stopped.attributes["council.status"] == "stopped"
        assert told.runs()[0].attributes["council.status"] == "answered"
        assert not any(span.is_error for span in told.spans)

    async def test_stop_before_there_is_enough_ends_the_run(self, tmp_path: Path) -> None:
        """As stopped, which is no fault."""
        council = ScriptedCouncil(held={f"stage1.1:{name}" for name in FOUR})
        stop = Stop()
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question())).run
            going = asyncio.create_task(runs.carry_out(run, council.events.append, stop))
            await council.until_called(*council.held)
            stop.press()
            await going
            await telemetry.close()
        [top] = told.runs()
        assert top.attributes["council.status"] == "stopped"
        assert top.attributes["error.type"] == "RunStopped"
        assert not any(span.is_error for span in told.spans)

    async def test_a_run_cut_off_by_the_end_of_the_process_is_interrupted(self, tmp_path: Path) -> None:
        """So are its calls."""
        council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question())).run
            going = asyncio.create_task(runs.carry_out(run, council.events.append))
            await council.until_called(*council.held)
            going.cancel()
            await asyncio.wait({going})
            await telemetry.close()
        [top] = told.runs()
        assert top.attributes["council.status"] == "interrupted"
        [call] = [span for span in told.spans if span.name == "chat chair/man"]
        assert call.attributes["council.status"] == "interrupted"
        assert {span.parent for span in told.spans} <= {span.id for span in told.spans} | {""}

    async def test_a_run_that_is_only_shown_again_is_not_traced(self, tmp_path: Path) -> None:
        """It asks nobody."""
        council = ScriptedCouncil()
        async with traced(tmp_path, council) as (runs, told, telemetry):
            run = (await runs.recorder.record(*question())).run
            await runs.carry_out(run, council.events.append)
            over: RunRow = replace(run, status="answered")
            await runs.carry_out(over, council.events.append)
            await telemetry.close()
        assert len(told.runs()) == 1

    async def test_nothing_is_said_but_what_is_allowed(self, tmp_path: Path) -> None:
        """No question, answer, title, asker or channel."""
        council = ScriptedCouncil(script={"stage2.1:x-ai/grok": failure("lost")})
        seats = profile(title_model="a/title", max_rounds=2)
        async with traced(tmp_path, council) as (runs, told, telemetry):
            typed, _ = question()
            # Two bytes of an id would be found by chance among those of a trace.
            source = typed.source.model_copy(update={"user": "U0ASKER01", "channel": "C0CHANNEL"})
            run = (await runs.recorder.record(replace(typed, source=source), seats)).run
            await runs.carry_out(run, council.events.append)
            await telemetry.close()
        assert set().union(*(span.attributes for span in told.spans)) <= ALLOWED
        assert {span.attributes["council.round"] for span in told.spans if span.name == "stage2"} == {
            1,
            2,
        }
        said = b"".join(told.bodies)
        for word in (b"Shard", b"answer of", b"fine title", b"RANKING", b"U0ASKER01", b"C0CHANNEL"):
            assert word not in said


def environment(told: str) -> dict[str, str]:
    """Name a collector."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": told, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=abc%20def"}


class TestProgram:
    """The whole program, from outside."""

    async def test_variables_count_from_the_environment_and_from_env(self, tmp_path: Path) -> None:
        """OpenTelemetry's own, too; the council's provider is named by its server."""
        async with collector() as told, asked(tmp_path) as (council, _):
            given = environment(told.url) | {"OTEL_SERVICE_NAME": "our-council"}
            (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            ended = await council("ask", QUESTION)
        assert (ended.code, ended.err) == (0, "")
        assert len(told.runs()) == 1
        assert {span.attributes.get("gen_ai.provider.name") for span in told.spans} == {
            "127.0.0.1",
            None,
        }
        assert told.headers[0]["api-key"] == "abc def"
        assert told.resources[0]["service.name"] == "our-council"

    async def test_a_run_killed_and_continued_stays_in_its_trace(self, tmp_path: Path) -> None:
        """In a span of its own, linked to the one that died; recorded calls aren't told again."""
        async with collector() as told, asked(tmp_path) as (usual, server):
            council = Program(tmp_path, usual.environment | environment(told.url))
            await killed_in_stage_3(council, server)
            before = len(told.spans)
            assert told.runs() == []
            await council("ask", QUESTION)
        [top] = told.runs()
        trace, first = ids_of(str(top.attributes["council.run.id"]))
        assert top.trace == f"{trace:032x}"
        assert top.links == ((top.trace, f"{first:016x}"),)
        [stage] = told.below(top)
        assert (stage.name, [call.name for call in told.below(stage)]) == ("stage3", [f"chat {CHAIR}"])
        assert len(told.spans) - before == 3

    @pytest.mark.parametrize("fault", ["hangs", "500", "refused"])
    async def test_a_broken_collector_is_said_once_and_costs_nothing(
        self, tmp_path: Path, fault: str
    ) -> None:
        """The answer comes, and the process doesn't wait for the collector at its end."""
        async with collector() as told, asked(tmp_path) as (usual, _):
            url = "http://127.0.0.1:9" if fault == "refused" else told.url
            if fault == "hangs":
                told.gate = asyncio.Event()
            told.status = 500 if fault == "500" else 200
            council = Program(tmp_path, usual.environment | environment(url))
            began = time.monotonic()
            ended = await council("ask", QUESTION)
            took = time.monotonic() - began
        assert ended.code == 0
        assert "wrote the final answer" in ended.out
        lines = ended.err.splitlines()
        assert len(lines) <= 2, ended.err
        assert all("traces_not_sent" in line or "traces_left_unsent" in line for line in lines)
        assert lines
        assert "Traceback" not in ended.err
        assert took < CLOSING_SECONDS + 10  # far from the collector's own timeouts: 10 s, then again

    async def test_a_hanging_collector_holds_up_no_stop(self, tmp_path: Path) -> None:
        """`council run` ends two seconds after its drain, with code 0."""
        async with collector() as told, SlackServer() as slack, asked(tmp_path) as (usual, _):
            told.gate = asyncio.Event()
            (tmp_path / "council.toml").write_text("[durability]\ndrain_seconds = 0\n")
            bob = slack.add_user("bob")
            room = slack.add_channel("room", bob)
            place = configured("slack", slack.world.origin) | usual.environment | environment(told.url)
            tokens = {"SLACK_BOT_TOKEN": slack.token, "SLACK_APP_TOKEN": slack.app_token}
            fast = {"OTEL_BSP_SCHEDULE_DELAY": "10"}
            process = await Program(tmp_path, place | tokens | fast).start("run")
            await slack.connected()
            await slack.slash(room, bob, "/council", "Shard?")
            await told.until(lambda: bool(told.headers), SECONDS)
            async with asyncio.timeout(SECONDS):
                while not [*(tmp_path / "data/conversations").glob("*.json")]:
                    await asyncio.sleep(0.01)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, said = await finished(process)
        assert process.returncode == 0, said
        assert time.monotonic() - began < CLOSING_SECONDS + 4  # for a busy machine
        assert "traces_left_unsent" in said

    async def test_without_the_extra_one_warning_says_what_to_do(self, tmp_path: Path) -> None:
        """The question is answered all the same."""
        (tmp_path / "without/opentelemetry").mkdir(parents=True)
        (tmp_path / "without/opentelemetry/__init__.py").touch()
        async with asked(tmp_path) as (usual, _):
            given = environment("http://127.0.0.1:9") | {"PYTHONPATH": str(tmp_path / "without")}
            ended = await Program(tmp_path, usual.environment | given)("ask", QUESTION)
        assert ended.code == 0
        [line] = ended.err.splitlines()
        assert "traces_need_extra" in line
        assert "the extra otel isn't installed" in line

    async def test_headers_are_masked(self, tmp_path: Path) -> None:
        """In what is shown of the configuration; what isn't a header is refused."""
        place = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "COUNCIL_MEMBERS": MEMBERS}
        place["OPENROUTER_API_KEY"] = "sk-or-v1-0123456789abcdef"
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cr3t-0123456789"}
        shown = await Program(tmp_path, place | headers)("config")
        assert "s3cr3t" not in shown.out
        assert "OTEL_EXPORTER_OTLP_HEADERS         ••••6789  (environment)" in shown.out
        wrong = await Program(tmp_path, place | {"OTEL_EXPORTER_OTLP_HEADERS": "s3cr3t"})("config")
        assert wrong.code == 2
        assert (
            "OTEL_EXPORTER_OTLP_HEADERS: it isn't name=value, with commas between several" in wrong.err
        )
        assert "s3cr3t" not in wrong.err


def test_samplers_see_even_trace_ids() -> None:
    """They read the last bits; those of a UUID would keep all traces or none."""
    kept = [ids_of(f"run-{number}")[0] % 2**64 < 2**63 for number in range(400)]
    assert 150 < sum(kept) < 250
