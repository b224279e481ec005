"""Logs contain only listed fields: no secret, no question and no answer."""

import ast
import io
import json
import logging
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import structlog

from bot.config import logs
from bot.config.logs import MOST_REPEATED, OnceAMinute, Repeats
from bot.errors import Gone, UsageError
from council.errors import Failure, ModelError
from storage.errors import DatabaseError
from tests.sources import parsed

ROOT = Path(__file__).parents[3]
ASKED = "Who earns what?"


@pytest.fixture
def out() -> Generator[io.StringIO]:
    """Log into a string, as into a file; restore structlog afterwards."""
    before = structlog.get_config()
    stream = io.StringIO()
    yield stream
    structlog.configure(**before)


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_json_with_its_runs_id(out: io.StringIO) -> None:
    """Unless it goes to a terminal."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    with structlog.contextvars.bound_contextvars(run="7b1f"):
        structlog.get_logger().info("run_accepted", attempts=3)
    [line] = lines(out)
    assert (line["event"], line["run"], line["attempts"], line["level"]) == (
        "run_accepted",
        "7b1f",
        3,
        "info",
    )


def test_secrets_are_hidden_wherever_they_are(out: io.StringIO) -> None:
    """At every level; within longer texts, lists and tracebacks too."""
    logs.configure(level=logging.DEBUG, secrets=["sk-or-1", "xoxb-22"], stream=out)
    log = structlog.get_logger()
    try:
        raise DatabaseError("refused: sk-or-1")
    except DatabaseError:
        log.exception("not_forgotten", problems=["https://x/?token=xoxb-22"])
        log.debug("not_forgotten", exc_info=True, url="https://x/?token=xoxb-22")
    assert "sk-or-1" not in out.getvalue()
    assert "xoxb-22" not in out.getvalue()
    assert out.getvalue().count("[hidden]") == 5


def test_tokens_that_no_setting_names_are_hidden_by_their_shape(out: io.StringIO) -> None:
    """Slack's of installed workspaces, and programs'; also where they are cut off."""
    logs.configure(level=logging.DEBUG, secrets=[], stream=out)
    token = "council_" + "0123456789abcdef" * 3
    log = structlog.get_logger()
    log.warning("not_forgotten", problems=[f"Bearer {token}", "xoxe-1-abcdefgh"])
    log.debug("not_forgotten", header=f"Bearer {token[:25]}")
    assert "0123456789ab" not in out.getvalue()
    assert "abcdefgh" not in out.getvalue()
    assert out.getvalue().count("[hidden]") == 3


def test_a_field_that_is_not_listed_is_named_and_left_out(out: io.StringIO) -> None:
    """Above DEBUG, to which one has to switch."""
    logs.configure(level=logging.DEBUG, secrets=[], stream=out)
    structlog.get_logger().warning("asked", question=ASKED, said=["a"], run="7b1f")
    structlog.get_logger().debug("asked", question=ASKED)
    warned, debugged = lines(out)
    assert {"run": "7b1f", "omitted": ["question", "said"]}.items() <= warned.items()
    assert debugged["question"] == ASKED


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", ASKED),
        ("message", ASKED),
        ("status", ASKED),
        ("cause", "the answer"),
        ("scopes", ["users:read", ASKED]),
        ("reason", ASKED),
        ("model", {"prompt": ASKED}),
        (ASKED, 1),
    ],
)
def test_a_field_has_the_form_of_its_kind(out: io.StringIO, name: str, value: object) -> None:
    """A sentence is no id, no number and no code."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    structlog.get_logger().info("told", **{name: value})
    [line] = lines(out)
    assert line["omitted"] == ["unnamed" if name == ASKED else name]
    assert "earns" not in out.getvalue()
    assert "the answer" not in out.getvalue()


def test_an_event_is_a_name_not_a_sentence(out: io.StringIO) -> None:
    """A sentence could contain people's words; of an uncaught error, the interpreter would print its message."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    structlog.get_logger().info(f"asked {ASKED}")
    [line] = lines(out)
    assert (line["event"], line["omitted"]) == ("unnamed", ["event"])
    logs.log_uncaught(ValueError, ValueError(ASKED), None)
    _, line = lines(out)
    assert (line["event"], line["level"], line["exception"]) == ("crashed", "critical", "  ValueError")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DatabaseError("council.db is locked"), "DatabaseError: council.db is locked"),
        (Gone("the card was deleted"), "Gone: the card was deleted"),
        (UsageError(f"There is no flag {ASKED}"), "UsageError"),
        (ModelError(Failure(cause="filtered", detail=ASKED)), "ModelError: filtered"),
        (OSError(28, ASKED), "OSError: No space left on device"),
        (TimeoutError(), "TimeoutError"),
        (ValueError(ASKED), "ValueError"),
    ],
)
def test_only_our_own_errors_are_logged_with_their_message(
    out: io.StringIO, error: Exception, said: str
) -> None:
    """Of others only the type is logged, as a reason and in a traceback."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    structlog.get_logger().info("told", reason=error)
    structlog.get_logger().error("told", exc_info=error)
    as_reason, as_traceback = lines(out)
    assert as_reason["reason"] == said
    assert str(as_traceback["exception"]).splitlines()[-1] == f"  {said}"
    assert "earns" not in out.getvalue()


def test_a_traceback_has_only_types_and_places_but_for_debug(out: io.StringIO) -> None:
    """No message, no source and no locals, of causes, contexts and groups alike; a debug line's is whole, and indented."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)

    def fail() -> None:
        try:
            raise ValueError(ASKED)
        except ValueError as error:
            raise ExceptionGroup(ASKED, [KeyError(ASKED)]) from error

    try:
        fail()
    except ExceptionGroup:
        structlog.get_logger().exception("run_crashed")
    [line] = lines(out)
    here = Path(__file__)
    shown = [part.rpartition(":")[0] or part for part in str(line["exception"]).split("\n")]
    assert shown == [
        f"  {here}",
        "  ValueError",
        "  then",
        f"  {here}",
        f"  {here}",
        "  ExceptionGroup",
        "    KeyError",
    ]
    assert "earns" not in out.getvalue()
    logs.configure(level=logging.DEBUG, secrets=[], stream=out)
    structlog.get_logger().debug("run_crashed", exc_info=ValueError("a\n2026 [info] forged\x1b[2J"))
    assert "ValueError: a\n  2026 [info] forged\\u001b[2J" in str(lines(out)[-1]["exception"])


def test_a_value_is_one_line_without_control_characters(out: io.StringIO) -> None:
    """On a terminal and as JSON: nothing forges a line, or steers the terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    hostile = "a\n2026-01-01 [info] forged\r\x1b[2J\x9b1m\x7f\u202e\u2028b"
    terminal = Terminal()
    for stream in (out, terminal):
        logs.configure(level=logging.DEBUG, secrets=[], stream=stream)
        log = structlog.get_logger()
        log.warning("documents_unreadable", names=[hostile], reason=DatabaseError(hostile))
        log.error("crashed", exc_info=DatabaseError(hostile))
        log.debug("asked", question=hostile, more=[hostile])
        logging.getLogger("library").warning("odd %s" + hostile, 1)
    for written in (out.getvalue(), terminal.getvalue().replace("\x1b[", "")):
        for character in "\r\x1b\x9b\x7f\u202e\u2028":
            assert character not in written
    assert not any(line.startswith("2026-01-01 [info]") for line in terminal.getvalue().split("\n"))


def test_of_libraries_messages_only_the_template_is_kept(out: io.StringIO) -> None:
    """With the place; inserted values, and messages that may be formatted already, are left out."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    library = logging.getLogger("slack_bolt.app")
    library.error("no luck with %s", ASKED)
    library.error(f"Failed: {ASKED}")
    try:
        raise ValueError(ASKED)
    except ValueError:
        library.exception("Failed")
    logging.getLogger("httpx").info("GET /?token=xoxb-22")
    one, two, three = lines(out)
    assert one["event"] == two["event"] == three["event"] == "library_message"
    assert (one["logger"], one["template"]) == ("slack_bolt.app", "no luck with %s")
    assert str(one["where"]).startswith("test_logs.py:")
    assert (one["omitted"], two["omitted"]) == (["arguments"], ["template"])
    assert str(three["exception"]).splitlines()[-1] == "  ValueError"
    assert "earns" not in out.getvalue()


def logged() -> Iterator[tuple[str, ast.Call]]:
    for folder in ("bot", "council", "storage"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(parsed(file)):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr=level)):
                        if level != "debug":
                            yield f"{file.relative_to(ROOT)}:{node.lineno}", node
                    case _:
                        pass


def test_every_line_of_ours_has_only_listed_fields() -> None:
    """A new field must be added to the list, with its kind."""
    calls = [*logged()]
    assert len(calls) > 40
    for place, call in calls:
        [event] = call.args
        assert isinstance(event, ast.Constant), place
        names = {keyword.arg for keyword in call.keywords} - {"exc_info"}
        assert names <= logs.FIELDS.keys(), f"{place}: {names - logs.FIELDS.keys()}"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_what_a_library_repeats_is_written_once_a_minute(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next line says how many were left out. What is inserted isn't written, so it doesn't count."""
    clock = Clock()
    monkeypatch.setattr(logs, "OnceAMinute", lambda: OnceAMinute(clock))
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    library = logging.getLogger("asyncio")
    for seconds in range(1000):
        clock.seconds = seconds / 10
        library.error("socket.accept() out of system resource: %s", seconds)
    assert [line.get("repeated") for line in lines(out)] == [None, 599]


def test_what_differs_is_written(out: io.StringIO) -> None:
    """By its place, its error, where that was raised, or the run."""
    logs.configure(level=logging.INFO, secrets=[], stream=out)
    library = logging.getLogger("asyncio")

    def fail(error: Exception) -> None:
        try:
            if isinstance(error, KeyError):
                raise error
            raise error
        except (KeyError, TypeError, ValueError):
            library.exception("Task exception was never retrieved")

    for error in (ValueError(), TypeError(), KeyError("a"), ValueError(), KeyError("b")):
        fail(error)
    library.warning("one place")
    library.warning("another")
    for run in ("a", "b", "a"):
        with structlog.contextvars.bound_contextvars(run=run):
            fail(ValueError())
    assert len(lines(out)) == 3 + 2 + 2


def test_different_lines_are_remembered_up_to_a_bound() -> None:
    """The oldest is forgotten, and would be written again."""
    repeats = Repeats(Clock())
    assert [repeats.before(key) for key in range(MOST_REPEATED)] == [0] * MOST_REPEATED
    assert repeats.before(0) is None
    assert repeats.before("one more") == 0
    assert repeats.before(1) is None
    assert repeats.before(0) == 0


def test_beside_text_for_people_logs_are_text_without_colours(out: io.StringIO) -> None:
    """Somebody reads a command's output in a file or a pipe, too."""
    logs.configure(level=logging.WARNING, secrets=[], stream=out, for_people=True)
    structlog.get_logger().warning("model_list_missing", attempts=2)
    assert out.getvalue().endswith("[warning  ] model_list_missing             attempts=2\n")
    assert "{" not in out.getvalue()
