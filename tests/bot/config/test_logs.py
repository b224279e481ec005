"""Logs hold no secret, no question and no answer."""

import io
import json
import logging
from collections.abc import Generator

import pytest
import structlog

from bot.config import logs


@pytest.fixture
def out() -> Generator[io.StringIO]:
    """Log into a string, as into a file, and leave structlog as it was."""
    before = structlog.get_config()
    stream = io.StringIO()
    yield stream
    structlog.configure(**before)


def lines(out: io.StringIO) -> list[dict[str, object]]:
    """Read the JSON lines."""
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_json_with_its_runs_id(out: io.StringIO) -> None:
    """Where no person reads along."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    with structlog.contextvars.bound_contextvars(run="7b1f"):
        structlog.get_logger().info("run_accepted", members=3)
    [line] = lines(out)
    assert (line["event"], line["run"], line["members"], line["level"]) == (
        "run_accepted",
        "7b1f",
        3,
        "info",
    )


def test_secrets_are_hidden_wherever_they_stand(out: io.StringIO) -> None:
    """Within longer texts and tracebacks too."""
    logs.configure(level=logging.INFO, secrets=["sk-or-1", "xoxb-22"], stream=out)
    try:
        raise RuntimeError("refused: sk-or-1")
    except RuntimeError:
        structlog.get_logger().exception("call_failed", url="https://x/?token=xoxb-22")
    assert "sk-or-1" not in out.getvalue()
    assert "xoxb-22" not in out.getvalue()
    assert out.getvalue().count(logs.HIDDEN) >= 2


def test_words_of_people_and_models_appear_at_debug_only(out: io.StringIO) -> None:
    """Whoever needs them has to ask for them."""
    logs.configure(level=logging.DEBUG, secrets=[], stream=out)
    structlog.get_logger().info("asked", question="Who earns what?")
    structlog.get_logger().debug("asked", question="Who earns what?")
    assert [line["question"] for line in lines(out)] == [logs.HIDDEN, "Who earns what?"]


def test_a_traceback_shows_no_local_variables(out: io.StringIO) -> None:
    """They hold prompts."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    prompt = "the team's question"
    try:
        raise RuntimeError(str(len(prompt)))
    except RuntimeError:
        structlog.get_logger().exception("run_crashed")
    assert "the team's question" not in out.getvalue().replace('prompt = "the team\'s question"', "")


def test_what_libraries_log_goes_the_same_way(out: io.StringIO) -> None:
    """As JSON, from warnings on, without secrets."""
    logs.configure(level=logging.INFO, secrets=["xoxb-22"], stream=out)
    logging.getLogger("slack_bolt").error("no luck with %s", "xoxb-22")
    logging.getLogger("httpx").info("GET /?token=xoxb-22")
    [line] = lines(out)
    assert line["event"] == f"no luck with {logs.HIDDEN}"


def test_less_important_lines_are_left_out(out: io.StringIO) -> None:
    """Below the level nothing is written."""
    logs.configure(level=logging.WARNING, secrets=[], stream=out)
    structlog.get_logger().info("quiet")
    assert out.getvalue() == ""
