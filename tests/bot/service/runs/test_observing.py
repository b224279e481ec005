"""What is observed of a run, once, for its metrics and its trace."""

from dataclasses import dataclass, field

import pytest

from bot.service.durable_writes import DurableSteps
from bot.service.metrics import Metrics
from bot.service.runs.observing import Observation
from council.calls import Call, MemorySteps, Outcome, Reply
from council.errors import Cause, Failure, ModelError
from council.events import Event, MemberStarted, StageCompleted, StageStarted
from council.profile import Member
from council.usage import Usage
from storage.journal.rows import Ended

USED = Usage(prompt_tokens=10, completion_tokens=5, cost=0.5)
CALL = Call(step="stage1.1:a/one", member=Member(model="a/one"), prompt=tuple, deadline=1.0)


@dataclass(slots=True)
class Told:
    """What a trace was told."""

    heard: list[str] = field(default_factory=list[str])

    def called(self, call: Call) -> None:
        """Hear that a call begins."""
        self.heard.append(f"called {call.step}")

    def returned(self, call: Call) -> None:
        """Hear that a call is back."""
        self.heard.append(f"returned {call.step}")

    def recorded(self, call: Call, outcome: Outcome) -> None:
        """Hear what came of a call."""
        self.heard.append(f"recorded {call.step} {type(outcome).__name__}")

    def completed(self, stage: str, number: int) -> None:
        """Hear that a stage's round is over."""
        self.heard.append(f"completed {stage}.{number}")

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Hear how the run ended."""
        self.heard.append(f"ended {status} {error}")


async def test_a_call_is_counted_and_traced_by_one_observer() -> None:
    """Its tokens, cost and time; the trace hears when it begins, returns, and what was recorded."""
    metrics, told, steps = Metrics(), Told(), MemorySteps()
    events: list[Event] = []
    observed = Observation(metrics, told)
    reply = Reply(text="Yes.", usage=USED, latency_ms=1_500)

    async def ask(call: Call) -> Reply:
        assert told.heard == [f"called {call.step}"]
        return reply

    assert await observed.of_calls(ask)(CALL) is reply
    await DurableSteps(steps, events.append, observed.recorded).record(CALL, reply)
    observed.ended("answered")
    assert told.heard == [
        "called stage1.1:a/one",
        "returned stage1.1:a/one",
        "recorded stage1.1:a/one Reply",
        "ended answered None",
    ]
    assert steps.outcomes == {CALL.step: reply}
    assert events == []
    assert metrics.calls == {("a/one", "answered"): 1}
    assert metrics.tokens == {("a/one", "prompt"): 10, ("a/one", "completion"): 5}
    assert metrics.cost == {"a/one": 0.5}
    assert metrics.call_times["a/one"].seconds == 1.5


@pytest.mark.parametrize(("cause", "counted"), [("rate_limited", 1), ("over_budget", 0)])
async def test_a_failed_call_is_counted_by_its_cause(cause: Cause, counted: int) -> None:
    """One that no budget had room for was never made; the trace hears of it, too."""
    metrics, told = Metrics(), Told()

    async def ask(call: Call) -> Reply:
        raise ModelError(Failure(cause=cause, detail=call.member.model))

    with pytest.raises(ModelError):
        await Observation(metrics, told).of_calls(ask)(CALL)
    assert metrics.calls[("a/one", cause)] == counted
    assert told.heard == ["called stage1.1:a/one", "returned stage1.1:a/one"]
    assert not metrics.call_times


def test_only_stages_that_asked_are_timed() -> None:
    """One whose calls are all recalled took no time; the trace hears that either is over."""
    metrics, told, shown = Metrics(), Told(), list[Event]()
    clock = iter((1.0, 2.0, 4.5))
    emit = Observation(metrics, told, lambda: next(clock)).of_events(shown.append)
    events = [
        StageStarted("stage1", ("a/one",)),
        StageCompleted("stage1", ()),
        StageStarted("stage2", ("a/one",)),
        MemberStarted("stage2", "a/one"),
        StageCompleted("stage2", ()),
    ]
    for event in events:
        emit(event)
    assert shown == events
    assert told.heard == ["completed stage1.1", "completed stage2.1"]
    assert {stage: times.seconds for stage, times in metrics.stages.items()} == {"stage2": 2.5}


async def test_without_a_trace_the_metrics_are_the_same() -> None:
    """There is nobody else to tell."""
    metrics = Metrics()
    observed = Observation(metrics)

    async def ask(call: Call) -> Reply:
        return Reply(text=call.step, usage=USED, latency_ms=10)

    observed.recorded(CALL, await observed.of_calls(ask)(CALL))
    observed.ended("failed", ValueError("no"))
    observed.of_events(lambda event: None)(StageCompleted("stage1", ()))  # noqa: ARG005 - nobody watches
    assert metrics.calls == {("a/one", "answered"): 1}
