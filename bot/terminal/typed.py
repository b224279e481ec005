"""Lines that a person types."""

import signal
import sys

from bot.terminal.ask import say
from bot.view.wording.terminal import NOT_UTF8


def read_line() -> str | None:
    """Wait for a line, blocking everything else; return `None` at the end of input or at Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while True:
            if sys.stdin.isatty():
                sys.stdout.write("> ")
                sys.stdout.flush()
            try:
                return sys.stdin.buffer.readline().decode(sys.stdin.encoding) or None
            except UnicodeDecodeError:
                say(NOT_UTF8)
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGINT, before)
