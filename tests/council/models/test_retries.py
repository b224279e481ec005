"""Which failed calls are retried, and how long the wait before that is."""

import random
from datetime import UTC, datetime
from typing import cast

from council.errors import Cause, Failure, ModelError
from council.models.client import Retries, last_word
from council.models.refusals import RefusedCall, retry_after
from tests.pairs import rows

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


@rows(
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


def drawn(retries: Retries, error: ModelError, made: int) -> list[float]:
    earlier = [error.failure] * (made - 1)
    waits = [retries.wait(error, earlier, 1_000.0) for _ in range(500)]
    return [wait for wait in waits if wait is not None]


def test_waits_grow_with_full_jitter_above_what_a_provider_asks_for() -> None:
    """Each is drawn from the whole range up to its bound; calls refused together don't come back together."""
    chance = random.Random(1)  # noqa: S311 - jitter, not a secret
    retries = Retries(9, 1.0, chance, growth=4.0, longest=10.0)
    for made, bound in ((1, 1.0), (2, 4.0), (3, 10.0), (4, 10.0)):
        waits = drawn(retries, failing("lost"), made)
        assert 0 <= min(waits) < bound * 0.05
        assert bound * 0.95 < max(waits) <= bound
    chance = random.Random(1)  # noqa: S311 - jitter, not a secret
    error = RefusedCall(Failure(cause="rate_limited"), 5.0)
    waits = drawn(Retries(9, 1.0, chance), error, 2)
    assert min(waits) >= 5.0
    assert max(waits) <= 6.0
    assert len({*waits}) == 500


class Highest(random.Random):
    """Chance that always draws the longest wait."""

    def uniform(self, a: float, b: float) -> float:
        assert a == 0
        return b


def failing(cause: Cause) -> ModelError:
    return ModelError(Failure(cause=cause))


@rows(
    ("error", "earlier", "left", "wait"),
    [
        (failing("lost"), "", 1_000.0, 0.5),
        (failing("lost"), "lost", 1_000.0, 2.0),
        (failing("lost"), "lost lost", 1_000.0, 8.0),
        (failing("lost"), "lost lost lost", 1_000.0, None),
        (failing("empty"), "lost", 1_000.0, 2.0),
        (failing("empty"), "empty lost", 1_000.0, None),
        (failing("lost"), "empty", 1_000.0, 2.0),
        (failing("key"), "", 1_000.0, None),
        (RefusedCall(Failure(cause="rate_limited"), 7.0), "", 1_000.0, 7.5),
        (failing("lost"), "", 0.5, None),  # it would end with the call
        (failing("lost"), "", 0.75, 0.5),
        (failing("lost"), "lost", 1.9, None),
    ],
)
def test_a_failed_call_waits_for_its_turn_or_is_given_up(
    error: ModelError, earlier: str, left: float, wait: float | None
) -> None:
    """Longer each time, four attempts in all; of empty replies a second one is the model's answer."""
    before = [failing(cast("Cause", cause)).failure for cause in earlier.split()]
    assert Retries(chance=Highest()).wait(error, before, left) == wait


@rows(
    ("last", "earlier", "detail", "attempts"),
    [
        (("deadline", "late", 0), [("rate_limited", 429)], "late; before that: slow down", 1),
        (("deadline", "late", 0), [("lost", None)], "late", 1),
        (("deadline", "late", 0), [], "late", 0),
        (("key", "no", 1), [("rate_limited", 429)], "no", 2),
    ],
)
def test_a_deadline_says_what_it_waited_for(
    last: tuple[Cause, str, int], earlier: list[tuple[Cause, int | None]], detail: str, attempts: int
) -> None:
    """The refusal before it, if there was one; only the attempts that were sent are counted."""
    cause, said, made = last
    why = Failure(cause=cause, detail=said, attempts=made)
    before = [Failure(cause=each, detail="slow down", status=status) for each, status in earlier]
    found = last_word(why, before)
    assert (found.cause, found.detail, found.attempts) == (cause, detail, attempts)
