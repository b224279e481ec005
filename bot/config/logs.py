"""Logs: one line an event, the run's id on each, never a secret, a question or an answer."""

import logging
import re
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import Processor, WrappedLogger

HIDDEN = "[hidden]"
WORDS_OF_PEOPLE = frozenset({"question", "answer", "text", "content", "prompt", "title", "messages"})
"""Keys whose values are people's or models' words; they appear at DEBUG only."""


def configure(*, level: int, secrets: Iterable[str], stream: TextIO | None = None) -> None:
    """Send logs to `stream` (standard error), pretty on a terminal, else as JSON lines."""
    out = stream or sys.stderr
    render: Processor = (
        structlog.dev.ConsoleRenderer(colors=True, exception_formatter=structlog.dev.plain_traceback)
        if out.isatty()
        else structlog.processors.JSONRenderer()
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redaction(secrets),
    ]
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    # What libraries log goes the same way: they don't know what must not be read.
    handler = logging.StreamHandler(out)
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[without_meta, Redaction(secrets), render]
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class Redaction:
    """Hides secrets wherever they stand, and above DEBUG the words of people and models."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted((re.escape(secret) for secret in secrets if secret), key=len, reverse=True)
        self._secret = re.compile("|".join(known)) if known else None

    def __call__(
        self, logger: WrappedLogger, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Process one event."""
        del logger
        for key, value in event.items():
            if method != "debug" and key in WORDS_OF_PEOPLE:
                event[key] = HIDDEN
            elif isinstance(value, str) and self._secret:
                event[key] = self._secret.sub(HIDDEN, value)
        return event
