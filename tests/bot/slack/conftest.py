"""What every test of Slack needs."""

import pytest
from slack_sdk.http_retry.handler import default_interval_calculator


@pytest.fixture(autouse=True)
def no_waits_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits up to two seconds before it tries again, partly by chance."""

    def at_once(current_attempt: int) -> float:
        del current_attempt  # part of the interface
        return 0.0

    monkeypatch.setattr(default_interval_calculator, "calculate_sleep_duration", at_once)
