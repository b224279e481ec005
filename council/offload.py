"""Work on long texts, kept off the event loop."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

AT_ONCE = 2_400
"""Characters whose slowest reader, that of critique points, takes the loop for two milliseconds."""

# More threads wouldn't finish sooner: they share one interpreter with the loop, which would have
# to wait for its turn.
_READER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader")


class _ThrottledThread:
    """Does work in one thread, and rests after each piece for as long as that computed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="paced")
        self._took = self._ended = 0.0

    async def do(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._after_rest, partial(work, *arguments))

    def _after_rest(self, work: Callable[[], Result]) -> Result:
        rested = time.perf_counter() - self._ended
        time.sleep(max(0.0, self._took - max(0.0, rested)))
        began = time.thread_time()
        try:
            return work()
        finally:
            self._took = time.thread_time() - began
            self._ended = time.perf_counter()


_THROTTLED = _ThrottledThread()


async def offload_slowly(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Do work on a whole run's texts that comes after its answer, such as a transcript, when it is due.

    Without the rests, a hundred answers that come together would make each other late by seconds: a
    thread that computes holds up the loop whenever that has waited for anything.
    """
    return await _THROTTLED.do(work, *arguments)


async def offload(
    characters: int, work: Callable[[*Arguments], Result], *arguments: *Arguments
) -> Result:
    """Do some work on texts of this many characters: directly, or in a thread if they are long."""
    if characters <= AT_ONCE:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_READER, partial(work, *arguments))
