"""Which failed calls are retried, and how long the wait before that is."""

import random
from datetime import UTC, datetime

import pytest

from council.errors import Cause, Failure, ModelError
from council.models.refusals import Refused
from council.models.retries import LONGEST_WAIT, Backoff, retry_after, worth_retrying

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
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
    error = Refused(Failure(cause="rate_limited"), wait, retryable=retryable)
    assert worth_retrying(error) is worth


def test_only_model_failures_are_retried() -> None:
    """A cancelled call stays cancelled, a bug stays a bug."""
    assert not worth_retrying(KeyboardInterrupt())
