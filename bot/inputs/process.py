"""Runs the process that reads a file, and ends it, whatever it does.

Its output is as untrusted as the file: it is checked against what it may say.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

import bot
from bot.inputs.child import OUT_OF_MEMORY
from bot.inputs.extraction import Extracted, ExtractedPicture
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MOST_CHARACTERS, MOST_PAGE_PICTURES, OUTPUT, SECONDS

STARTING = 5.0
"""Seconds beside the file's own, for the process to start on a busy machine."""
_FOLDER = str(Path(bot.__file__).parent.parent)
_ENVIRONMENT = {
    "PYTHONPATH": _FOLDER,
    "PYTHONDONTWRITEBYTECODE": "1",
    # Libraries for numbers start a thread for each core, each with a stack.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""All that the process knows of ours: no key, no proxy, no home."""

Failed = Literal["too_slow", "too_much_memory", "damaged"]


class _Shown(BaseModel):
    """A picture as the process describes it; `content` is its length in bytes."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    media: Literal["image/png", "image/jpeg"]
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    page: Annotated[int, Field(gt=0)] | None
    content: NonNegativeInt


class _Said(BaseModel):
    """What the process says of a file."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    title: str
    pages: NonNegativeInt | None
    read: NonNegativeInt | None
    bare: tuple[NonNegativeInt, ...]
    cut: bool
    pictures: Annotated[tuple[_Shown, ...], Field(max_length=MOST_PAGE_PICTURES)]
    trouble: Literal["encrypted", "damaged", "too_many_pixels", "no_text", "not_a_page"] | None


async def extract(kind: Extractable, content: bytes, *, seconds: float = SECONDS) -> Extracted | Failed:
    """Read a file in a process of its own that ends within `seconds`, or say why it failed.

    A cancelled reading ends the process with its group, too.
    """
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
    match code:
        case 0 if output is not None:
            return _read(output)
        case _ if code == OUT_OF_MEMORY:
            return "too_much_memory"
        case _ if code == -signal.SIGXCPU:
            return "too_slow"
        case _:
            return "damaged"


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
    line, _, rest = output.partition(b"\n")
    try:
        said = _Said.model_validate_json(line)
    except ValidationError:
        return "damaged"
    if sum(each.content for each in said.pictures) != len(rest):
        return "damaged"
    pictures: list[ExtractedPicture] = []
    for each in said.pictures:
        content, rest = rest[: each.content], rest[each.content :]
        pictures.append(ExtractedPicture(each.media, each.width, each.height, content, each.page))
    return Extracted(
        said.text,
        said.title,
        said.pages,
        said.read,
        said.bare,
        said.cut,
        tuple(pictures),
        said.trouble,
    )
