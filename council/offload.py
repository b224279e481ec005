"""Work on long texts, kept off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar, TypeVarTuple

Result = TypeVar("Result")
Given = TypeVarTuple("Given")

AT_ONCE = 1_500
"""Characters whose slowest reader, that of critique points, takes the loop for two milliseconds."""

# More threads wouldn't finish sooner: they share one interpreter with the loop, which would have
# to wait for its turn.
_READER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader")


async def offload(characters: int, work: Callable[[*Given], Result], *given: *Given) -> Result:
    """Do some work on texts of this many characters: directly, or in a thread if they are long."""
    if characters <= AT_ONCE:
        return work(*given)
    return await asyncio.get_running_loop().run_in_executor(_READER, partial(work, *given))
