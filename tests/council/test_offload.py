"""Work on long texts leaves the event loop free."""

import threading

from council.offload import AT_ONCE, offload


async def test_short_texts_are_worked_on_at_once() -> None:
    """A thread would cost more than it saves."""
    assert await offload(AT_ONCE, threading.get_ident) == threading.get_ident()


async def test_long_texts_are_worked_on_in_a_thread() -> None:
    """With the same result."""
    assert await offload(AT_ONCE + 1, threading.get_ident) != threading.get_ident()
    assert await offload(AT_ONCE + 1, str.upper, "long") == "LONG"
