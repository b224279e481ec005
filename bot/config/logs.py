"""Logs: one line per event, with the run's id, and nothing that people or models wrote.

Above DEBUG, a line has only the fields of `FIELDS`, each in the form of its kind; any others are
named under `omitted`. An error is logged as its type and where it was raised; its message is logged
only if its words are the bot's own. DEBUG lines may contain questions and answers. No line contains
a secret or a control character.
"""

import logging
import os
import re
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from math import inf
from pathlib import Path
from textwrap import indent
from types import TracebackType
from typing import Any, TextIO, cast

import structlog
from structlog.typing import Processor, WrappedLogger

from bot.errors import ConfigurationError, VenueError
from bot.view.message import escaped, escaped_line
from council.errors import ModelError
from council.text.redaction import HIDDEN, Redaction
from storage.errors import StorageError

OUR_WORDS = (StorageError, VenueError, ConfigurationError)
"""Errors whose messages are made of the bot's own words and paths, and the system's."""

REPEAT_SECONDS = 60.0
"""How long a line that says the same as one before is left out."""
MOST_REPEATED = 500
"""How many different lines are remembered."""

_ALWAYS = frozenset({"event", "level", "timestamp", "_record", "_from_structlog"})
"""What the processors before and after this one put there."""
_EVENT = re.compile(r"[a-z][a-z0-9_]*")
_CODE = re.compile(r"[A-Za-z0-9_.:/#@+-]{0,200}")
_TOKEN = re.compile(r"xox[a-z]-[\w-]{6,}|council_[0-9a-f]{12,}")
"""One of Slack's tokens, or a program's: no setting names those."""
_LONGEST = 2000


def _line(text: str) -> str:
    return escaped_line(text[:_LONGEST])


def _code(value: object) -> object | None:
    is_code = isinstance(value, str) and _CODE.fullmatch(value)
    return value if is_code or isinstance(value, int) else None


def _number(value: object) -> object | None:
    return value if isinstance(value, int | float) else None


def _text(value: object) -> object | None:
    return _line(str(value)) if isinstance(value, str | Path) else None


Fit = Callable[[object], object | None]
"""Returns a value in the form of its kind; `None` if it isn't of that kind."""
_KINDS: tuple[tuple[Fit, str], ...] = (
    # the bot's or a platform's key
    (_code, "admin channel conversation id interaction message messages run workspace"),
    # how many, how long, whether
    (_number, "again_in attempts carried_over complete conversations days dollars missing of_dollars"),
    (_number, "orphaned port processes repeated runs seconds shard stale status waiting"),
    # one of a known set of words: a cause, a status, a scope
    (_code, "budget cause clock_last_seen code key lane logger place scopes settings step table"),
    (_code, "until urgency where"),
    # what people who run the council have called a profile, a model or a server
    (_text, "account did_you_mean model profiles server"),
    # one of the bot's files or folders
    (_text, "copy names set_aside"),
    # the bot's own words
    (_text, "connection learned problems remedy template"),
    # an exception: its type, its numbers, and its message where the words are the bot's own
    (lambda value: _described(value) if isinstance(value, BaseException) else None, "reason"),
)
FIELDS: Mapping[str, Fit] = {name: fit for fit, names in _KINDS for name in names.split()}
"""What a line above DEBUG may carry beside its event; whatever holds people's words isn't here."""


def configure(
    *, level: int, secrets: Iterable[str], stream: TextIO | None = None, for_people: bool = False
) -> None:
    """Send logs to `stream` (standard error): as text on a terminal or `for_people`, else as JSON."""
    out = stream or sys.stderr
    is_watched = out.isatty()
    plain = structlog.dev.plain_traceback
    render: Processor = (
        structlog.dev.ConsoleRenderer(colors=is_watched, exception_formatter=plain)
        if is_watched or for_people
        else structlog.processors.JSONRenderer()
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        allow_listed,
        _redacted(secrets),
    ]
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    # Libraries' logs take the same path: they don't know what is private.
    handler = logging.StreamHandler(out)
    handler.addFilter(OnceAMinute())
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[without_meta, render],
            use_get_message=False,
            pass_foreign_args=True,
        )
    )
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)


def catch_crashes() -> None:
    log, sys.excepthook = structlog.get_logger(), log_uncaught
    threading.excepthook = lambda said: log.error("thread_crashed", exc_info=said.exc_value or True)
    sys.unraisablehook = lambda said: log.error("not_raised", exc_info=said.exc_value or True)


def log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log what ends the process, like `sys.excepthook`, but without people's words."""
    structlog.get_logger().critical("crashed", exc_info=(kind, error, trace))


def allow_listed(
    logger: WrappedLogger, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Keep only what a line may contain; a structlog processor."""
    del logger
    is_debug = method == "debug"
    omitted: list[str] = []
    kept: dict[str, Any] = {}
    error = _raised(event.pop("exc_info", None))
    if event.get("_from_structlog") is False:
        omitted += _library_message(event, is_debug=is_debug)
    elif not is_debug and not _EVENT.fullmatch(str(event["event"])):
        omitted.append("event")
        event["event"] = "unnamed"
    for name, value in event.items():
        if name in _ALWAYS:
            kept[name] = value
        elif is_debug:
            kept[name] = _anything(value)
        elif (fit := _fitting(FIELDS.get(name), value)) is not None:
            kept[name] = fit
        elif value is not None:
            omitted.append(name if _EVENT.fullmatch(name) else "unnamed")
    kept["event"] = _line(str(kept["event"]))
    if error is not None:
        text = "".join(traceback.format_exception(error)) if is_debug else "\n".join(_frames(error))
        kept["exception"] = indent(escaped(text), "  ")
    if omitted:
        kept["omitted"] = sorted(omitted)
    return kept


class Repeats:
    """Which lines were written within the last minute, and how many that say the same were left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: dict[Hashable, float] = {}
        self._left_out: Counter[Hashable] = Counter()

    def before(self, key: Hashable) -> int | None:
        """Return how many such lines were left out before this one; `None` to leave it out, too."""
        now = self._clock()
        if now < self._written.get(key, -inf) + REPEAT_SECONDS:
            self._left_out[key] += 1
            return None
        self._written.pop(key, None)
        if len(self._written) >= MOST_REPEATED:
            oldest = next(iter(self._written))
            del self._written[oldest]
            self._left_out.pop(oldest, None)
        self._written[key] = now
        return self._left_out.pop(key, 0)


class OnceAMinute(logging.Filter):
    """Lets a library say the same at most once a minute; the next line has the number left out.

    Same means the same place in its code, the same error from the same place, and the same run.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._repeats = Repeats(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        error = _raised(record.exc_info)
        trace = error.__traceback__ if error else None
        raised = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
        said = (record.name, record.pathname, record.lineno, type(error), *raised[-1:])
        repeated = self._repeats.before((said, structlog.contextvars.get_contextvars().get("run")))
        record.repeated = repeated
        return repeated is not None


def _redacted(secrets: Iterable[str]) -> Processor:
    hide = Redaction(secrets).hide

    def hidden(value: object) -> object:
        if isinstance(value, list):
            return [*map(hidden, cast("list[object]", value))]
        return _TOKEN.sub(HIDDEN, hide(value)) if isinstance(value, str) else value

    return lambda _, __, event: {key: hidden(value) for key, value in event.items()}


def _library_message(event: MutableMapping[str, Any], *, is_debug: bool) -> list[str]:
    """Return which library logs and where; keep its sentence only if it is a literal in its code."""
    record = cast("logging.LogRecord", event["_record"])
    arguments: object = event.pop("positional_args", ())
    event["event"] = "library_message"
    event["logger"] = record.name
    event["where"] = f"{Path(record.pathname).name}:{record.lineno}"
    event["repeated"] = getattr(record, "repeated", None) or None
    template = str(record.msg)
    if is_debug:
        event["template"] = template % arguments if arguments else template
        return []
    if arguments:  # without, it may have been put together before
        event["template"] = template
        return ["arguments"]
    return ["template"]


def _fitting(fit: Fit | None, value: object) -> object | None:
    if fit is None or value is None:
        return None
    if isinstance(value, list | tuple | set | frozenset):
        fits = [_fitting(fit, each) for each in cast("Iterable[object]", value)]
        return fits if None not in fits else None
    return fit(value)


def _described(error: BaseException) -> str:
    """Describe an error: its type, its numbers, and its message if the words are the bot's own."""
    name = type(error).__name__
    match error:
        case ModelError():
            said = error.failure.cause
        case _ if isinstance(error, OUR_WORDS):
            said = str(error)
        case OSError() if error.errno:
            said = os.strerror(error.errno)
        case _:
            numbers = ((what, getattr(error, what, None)) for what in ("status", "code"))
            said = ", ".join(f"{what} {number}" for what, number in numbers if isinstance(number, int))
    return _line(f"{name}: {said}" if said else name)


def _frames(error: BaseException, seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """Return a traceback's lines, causes first: types and places, no source, locals or messages."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    seen |= {id(error)}
    if before is not None and id(before) not in seen:
        yield from _frames(before, seen)
        yield "then"
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        yield f"{_line(code.co_filename)}:{line} {code.co_name}"
    yield _described(error)
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            if id(each) not in seen:
                yield from (f"  {line}" for line in _frames(each, seen))


def _raised(exc_info: object) -> BaseException | None:
    """Return the exception that a line is about, in whatever form logging was given it."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        error = cast("tuple[object, object, object]", exc_info)[1]
        return error if isinstance(error, BaseException) else None
    return sys.exc_info()[1] if exc_info else None


def _anything(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    return _line(value if isinstance(value, str) else repr(value))
