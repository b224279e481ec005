"""What the metrics count of a run."""

import pytest

from bot.service.metrics import Metrics, Observation
from council.calls import Call, Reply
from council.errors import Cause, Failure, ModelError
from council.events import Event, MemberStarted, StageCompleted, StageStarted
from council.profile import Member
from council.usage import Usage

USED = Usage(prompt_tokens=10, completion_tokens=5, cost=0.5)
CALL = Call(step="stage1.1:a/one", member=Member(model="a/one"), prompt=tuple, deadline=1.0)


async def test_a_call_is_counted() -> None:
    """Its tokens, cost and time."""
    metrics = Metrics()
    reply = Reply(text="Yes.", usage=USED, latency_ms=1_500)

    async def ask(call: Call) -> Reply:
        assert call is CALL
        return reply

    with Observation(metrics).of_call(CALL) as answered:
        answered(await ask(CALL))
    assert metrics.calls == {("a/one", "answered"): 1}
    assert metrics.tokens == {("a/one", "prompt"): 10, ("a/one", "completion"): 5}
    assert metrics.cost == {"a/one": 0.5}
    assert metrics.call_times["a/one"].seconds == 1.5


@pytest.mark.parametrize(("cause", "counted"), [("rate_limited", 1), ("over_budget", 0)])
async def test_a_failed_call_is_counted_by_its_cause(cause: Cause, counted: int) -> None:
    """One that no budget had room for was never made."""
    metrics = Metrics()

    async def ask(call: Call) -> Reply:
        raise ModelError(Failure(cause=cause, detail=call.member.model))

    with pytest.raises(ModelError), Observation(metrics).of_call(CALL):
        await ask(CALL)
    assert metrics.calls[("a/one", cause)] == counted
    assert not metrics.call_times


def test_only_stages_that_asked_are_timed() -> None:
    """One whose calls are all recalled took no time."""
    metrics, shown = Metrics(), list[Event]()
    clock = iter((1.0, 2.0, 4.5))
    emit = Observation(metrics, lambda: next(clock)).of_events(shown.append)
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
    assert {stage: times.seconds for stage, times in metrics.stages.items()} == {"stage2": 2.5}
