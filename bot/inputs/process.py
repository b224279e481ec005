"""Runs the process that reads a file, and ends it, whatever it does.

Its output is as untrusted as the file: it is checked against what it may say.
"""

import asyncio
import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

import bot
from bot.inputs.child import OUT_OF_MEMORY, Extracted
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MOST_CHARACTERS, MOST_PAGE_PICTURES, OUTPUT, SECONDS

STARTING = 5.0
"""Seconds beside the file's own, for the process to start on a busy machine."""
_ENVIRONMENT = {
    "PYTHONPATH": str(Path(bot.__file__).parent.parent),
    "PYTHONDONTWRITEBYTECODE": "1",
    # Libraries for numbers start a thread for each core, each with a stack.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""All that the process knows of ours: no key, no proxy, no home."""
Failed = Literal["too_slow", "too_much_memory", "damaged"]
_SAID = TypeAdapter(Extracted)


async def extract(kind: Extractable, content: bytes, *, seconds: float = SECONDS) -> Extracted | Failed:
    """Read a file in a process of its own that ends within `seconds`, or say why it failed.

    A cancelled reading ends the process with its group, too.
    """
    if sys.platform == "linux":
        # Nor can a process of the same user read this one's memory and keys (prctl(2)).
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE (linux/prctl.h)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "bot.inputs.child",
        kind,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env=_ENVIRONMENT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds + STARTING):
            _, output = await asyncio.gather(_give(process, content), _take(process))
            code = await process.wait()
    except TimeoutError:
        return "too_slow"
    finally:
        # The group outlives its leader where something was started in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        # Waiting alone ends when all pipes have ended, and one that isn't read may never do so.
        await process.communicate()
    if output is None:
        return "damaged"
    # PDFium aborts where there is no memory left for it (its fx_memory.cpp), and the kernel kills.
    if code in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGKILL):
        return "too_much_memory"
    if code == -signal.SIGXCPU:
        return "too_slow"
    return "damaged" if code else _read(output)


async def _give(process: asyncio.subprocess.Process, content: bytes) -> None:
    if (stdin := process.stdin) is None:
        return
    # It may end before it has read everything.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(content)
        await stdin.drain()
    stdin.close()


async def _take(process: asyncio.subprocess.Process) -> bytes | None:
    """Return the output; `None`, and end the process, where it is longer than it may be."""
    output = bytearray()
    if process.stdout is None:
        return None
    while piece := await process.stdout.read(2**16):
        output += piece
        if len(output) > OUTPUT:
            process.kill()
            await process.communicate()  # what is left, or its pipe never ends
            return None
    return bytes(output)


def _read(output: bytes) -> Extracted | Failed:
    try:
        found = _SAID.validate_json(output)
    except ValidationError:
        return "damaged"
    is_in_bounds = len(found.text) <= MOST_CHARACTERS and len(found.pictures) <= MOST_PAGE_PICTURES
    counts = (found.pages or 0, found.read or 0, *found.bare, *found.garbled)
    sides = (side for each in found.pictures for side in (each.width, each.height, each.page or 1))
    is_something = found.text or found.pictures or found.trouble
    is_sound = is_something and is_in_bounds and min(counts) >= 0 and min(sides, default=1) > 0
    return found if is_sound else "damaged"
