"""Which failed calls are retried, and how long the wait before that is."""

import asyncio
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from council.calls import Call, Reply, RetryBudget
from council.errors import Cause, Failure, ModelError
from council.models.refusals import RefusedCall
from council.models.retries import LONGEST_WAIT, Backoff, Retries, retry_after, worth_retrying
from council.profile import Member
from council.usage import Usage

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "-1", "retry-after": "2"}, 2.0),
        ({"retry-after": "Tue, 20 Jan 2026 11:30:07 +0100"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "Tue, 20 Jan 2026 10:30:07 GMT"}, 7.0),
        ({"retry-after": "Tue, 20 Jan 2026 10:30:07 -0000"}, 7.0),
        ({"retry-after": "Tue, 20 Jan 2026 10:29:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date; nonsense counts as nothing."""
    assert retry_after(headers, NOW) == seconds


def test_waits_grow_with_full_jitter_up_to_the_longest() -> None:
    """Each wait is drawn from the whole range up to its bound."""
    backoff = Backoff(first=1.0, growth=4.0, longest=10.0)
    chance = random.Random(1)  # noqa: S311 - jitter, not a secret
    for attempt, bound in ((1, 1.0), (2, 4.0), (3, 10.0), (4, 10.0)):
        waits = [backoff.wait(attempt, None, chance) for _ in range(500)]
        assert 0 <= min(waits) < bound * 0.05
        assert bound * 0.95 < max(waits) <= bound


def test_the_wait_a_provider_asks_for_is_a_floor() -> None:
    """Jitter comes on top, so that calls refused together don't come back together."""
    chance = random.Random(1)  # noqa: S311 - jitter, not a secret
    waits = [Backoff(first=1.0).wait(1, 5.0, chance) for _ in range(50)]
    assert min(waits) >= 5.0
    assert max(waits) <= 6.0
    assert len(set(waits)) == 50


@pytest.mark.parametrize(
    ("cause", "worth"),
    [
        ("rate_limited", True),
        ("unavailable", True),
        ("no_server", True),
        ("connection", True),
        ("lost", True),
        ("silence", True),
        ("truncated", True),
        ("malformed", True),
        ("key", False),
        ("credit", False),
        ("forbidden", False),
        ("not_found", False),
        ("bad_request", False),
        ("deadline", False),
        ("too_large", False),
        ("empty", True),
        ("only_thoughts", False),
        ("too_dear", False),
        ("key_limit", False),
        ("filtered", False),
    ],
)
def test_only_what_may_pass_is_retried(cause: Cause, worth: bool) -> None:
    """The same call would fail the same way again otherwise."""
    assert worth_retrying(ModelError(Failure(cause=cause))) is worth


@pytest.mark.parametrize(
    ("wait", "retryable", "worth"),
    [
        (None, True, True),
        (LONGEST_WAIT, True, True),
        (LONGEST_WAIT + 1, True, False),
        (86_400.0, True, False),
        (1.0, False, False),
    ],
)
def test_a_long_wait_gives_the_member_up(wait: float | None, retryable: bool, worth: bool) -> None:
    """So does a provider that says that asking again is in vain."""
    error = RefusedCall(Failure(cause="rate_limited"), wait, retryable=retryable)
    assert worth_retrying(error) is worth


def test_only_model_failures_are_retried() -> None:
    """A cancelled call stays cancelled, a bug stays a bug."""
    assert not worth_retrying(KeyboardInterrupt())


YES = Reply(text="Yes.", usage=Usage(), latency_ms=1)


def failing(cause: Cause = "unavailable", status: int | None = None, attempts: int = 1) -> ModelError:
    """Return an error of a call."""
    return ModelError(Failure(cause=cause, detail=f"it was {cause}", status=status, attempts=attempts))


class Highest(random.Random):
    """Chance that always draws the longest wait."""

    def uniform(self, a: float, b: float) -> float:
        """Return the upper bound."""
        assert a == 0
        return b


@dataclass
class Tries:
    """A call that ends as a script says, one attempt after the other, and what was told of it."""

    script: list[Reply | BaseException]
    budget: RetryBudget = field(default_factory=lambda: RetryBudget(12))
    listens: bool = True
    waits: list[float] = field(default_factory=list[float])
    announced: list[tuple[Failure, float]] = field(default_factory=list[tuple[Failure, float]])

    async def attempt(self) -> Reply:
        """Make the next attempt."""
        outcome = self.script.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def sleep(self, seconds: float) -> None:
        """Note a wait instead of waiting."""
        self.waits.append(seconds)

    def announce(self, failure: Failure, wait: float) -> None:
        """Note a failed attempt."""
        self.announced.append((failure, wait))

    async def reply(self, *, left: float = 1_000.0, max_attempts: int | None = None) -> Reply:
        """Make the call, with so many seconds left for it."""
        retries = Retries(chance=Highest(), sleep=self.sleep)
        if max_attempts is not None:
            retries = replace(retries, max_attempts=max_attempts)
        call = Call(
            step="stage1.1:a/b",
            member=Member(model="a/b"),
            prompt=lambda: (),
            deadline=1.0,
            retries=self.budget,
            on_retry=self.announce if self.listens else None,
        )
        return await retries.reply(call, self.attempt, asyncio.get_running_loop().time() + left)

    async def fails(self, *, left: float = 1_000.0, max_attempts: int | None = None) -> Failure:
        """Make a call that fails in the end; return why."""
        with pytest.raises(ModelError) as caught:
            await self.reply(left=left, max_attempts=max_attempts)
        return caught.value.failure


async def test_a_call_is_made_again_until_it_succeeds() -> None:
    """Each failure is announced with the wait after it, which grows; each spends one retry."""
    tries = Tries([failing(), failing("lost"), YES])
    assert await tries.reply() == YES
    assert tries.waits == [0.5, 2.0]
    assert [(failure.cause, wait) for failure, wait in tries.announced] == [
        ("unavailable", 0.5),
        ("lost", 2.0),
    ]
    assert tries.budget.left == 10


async def test_a_call_nobody_listens_to_is_retried_too() -> None:
    """Announcing is for whoever shows it."""
    tries = Tries([failing(), YES], listens=False)
    assert await tries.reply() == YES
    assert tries.waits == [0.5]


async def test_a_provider_says_when_to_ask_again() -> None:
    """Its wait, and jitter on top."""
    tries = Tries([RefusedCall(Failure(cause="rate_limited"), 7.0), YES])
    await tries.reply()
    assert tries.waits == [7.5]


@pytest.mark.parametrize(("most", "attempts"), [(None, 4), (2, 2), (1, 1)])
async def test_a_call_that_keeps_failing_is_given_up(most: int | None, attempts: int) -> None:
    """After four attempts, unless said otherwise; its failure counts them."""
    tries = Tries([failing()] * 9)
    failure = await tries.fails(max_attempts=most)
    assert failure == Failure(cause="unavailable", detail="it was unavailable", attempts=attempts)
    assert len(tries.waits) == len(tries.announced) == attempts - 1
    assert tries.budget.left == 12 - (attempts - 1)


async def test_an_empty_reply_is_asked_for_once_more() -> None:
    """Whatever else fails between; a second one is the model's answer."""
    tries = Tries([failing("empty"), failing(), failing("empty"), YES])
    failure = await tries.fails()
    assert (failure.cause, failure.attempts) == ("empty", 3)
    after_others = Tries([failing(), failing("empty"), YES])
    assert await after_others.reply() == YES


async def test_what_would_fail_again_is_not_retried() -> None:
    """Nor is what isn't a model's failure."""
    tries = Tries([failing("key", 401)])
    assert await tries.fails() == Failure(cause="key", detail="it was key", status=401, attempts=1)
    assert tries.waits == []
    with pytest.raises(ZeroDivisionError):
        await Tries([ZeroDivisionError()]).reply()


async def test_no_retry_is_made_that_no_budget_has() -> None:
    """It is given up at the first failure after the last one was spent."""
    tries = Tries([failing()] * 9, budget=RetryBudget(1))
    assert (await tries.fails()).attempts == 2


async def test_no_wait_outlasts_the_call() -> None:
    """One that would end with it or later isn't begun, and spends nothing."""
    tries = Tries([failing(), YES])
    assert (await tries.fails(left=0)).attempts == 1
    assert tries.budget.left == 12
    soon = Tries([failing(), failing(), YES])
    assert (await soon.fails(left=1.9)).attempts == 2  # the second wait takes two seconds
    assert soon.waits == [0.5]


async def test_a_wait_that_ends_with_the_call_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could come of the attempt after it."""
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 5.0)
    tries = Tries([failing(), YES])
    assert (await tries.fails(left=0.5)).attempts == 1
    assert await Tries([failing(), YES]).reply(left=0.75) == YES


async def test_a_deadline_says_what_it_waited_for() -> None:
    """The refusal before it, if there was one; only the attempts that were sent are counted."""
    refused = RefusedCall(Failure(cause="rate_limited", detail="slow down", status=429))
    late = failing("deadline", attempts=0)
    failure = await Tries([refused, late]).fails()
    assert failure == Failure(
        cause="deadline", detail="it was deadline; before that: slow down", attempts=1
    )
    for earlier in ([failing("lost")], []):
        failure = await Tries([*earlier, late]).fails()
        assert (failure.detail, failure.attempts) == ("it was deadline", len(earlier))
    other = await Tries([refused, failing("key")]).fails()
    assert (other.detail, other.attempts) == ("it was key", 2)


def test_a_call_is_retried_soon_then_later() -> None:
    """By default up to half a second at first, four times as long each time, 20 seconds at most."""
    backoff = Retries().backoff
    waits = [backoff.wait(attempt, None, Highest()) for attempt in (1, 2, 3, 4, 9)]
    assert waits == [0.5, 2.0, 8.0, 20.0, 20.0]
    assert (Retries().max_attempts, Retries().sleep, LONGEST_WAIT) == (4, asyncio.sleep, 300)
