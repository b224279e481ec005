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


_PACED = ThreadPoolExecutor(max_workers=1, thread_name_prefix="paced")
_LAST = {"took": 0.0, "ended": 0.0}


async def offload_slowly(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Do work on a whole run's texts that comes after its answer, such as a transcript, when it is due.

    It is done in one thread, which rests after each piece for as long as that computed. Without the
    rests, a hundred answers that come together would make each other late by seconds: a thread that
    computes holds up the loop whenever that has waited for anything.
    """

    def after_rest() -> Result:
        rested = time.perf_counter() - _LAST["ended"]
        time.sleep(max(0.0, _LAST["took"] - max(0.0, rested)))
        began = time.thread_time()
        try:
            return work(*arguments)
        finally:
            _LAST.update(took=time.thread_time() - began, ended=time.perf_counter())

    return await asyncio.get_running_loop().run_in_executor(_PACED, after_rest)


async def offload(
    characters: int, work: Callable[[*Arguments], Result], *arguments: *Arguments
) -> Result:
    """Do some work on texts of this many characters: directly, or in a thread if they are long."""
    if characters <= AT_ONCE:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_READER, partial(work, *arguments))
