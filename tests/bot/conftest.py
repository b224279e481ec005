"""Configuration of the tests of `bot`."""

import pytest

import bot.service.dispatcher


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a question to be written down, however busy the machine is."""
    monkeypatch.setattr(bot.service.dispatcher, "ACCEPT_SECONDS", 60.0)
