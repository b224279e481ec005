"""Reads the files of a question: each by its kind, bounded, with a reason for whatever isn't read.

What isn't plain text is read in a process of its own, which is ended, whatever it does. Its output is as
untrusted as the file: it is checked against what it may say.
"""

import asyncio
import base64
import ctypes
import hashlib
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Literal, cast

from pydantic import TypeAdapter, ValidationError

import bot
from bot.inputs import limits
from bot.inputs.child import OUT_OF_MEMORY, Extract, PictureExtract
from bot.inputs.kinds import Extractable, Kind, kind_of, page_kind, text_of, why_unread
from bot.view.message import printable
from bot.view.wording import inputs as wording
from bot.view.wording import to_install
from council.brief import Attachment, Picture

MOST_TOGETHER = 150_000
"""Characters of all that is read with a question."""
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
_RESULT = TypeAdapter(Extract)
Mishap = Literal["too_slow", "too_much_memory", "damaged"]

_PAGE = re.compile(r"^\[p\. (\d{1,6})\]$", re.MULTILINE)

_INSTALL_OFFICE = f"send it as PDF, or install the extra office: {to_install('office')}"
_KINDS: Mapping[Kind, tuple[int, str, str]] = {
    "text": (limits.TEXT_BYTES, "", ""),
    "pdf": (limits.DOCUMENT_BYTES, "pypdfium2", wording.INSTALL_INPUTS),
    "office": (limits.DOCUMENT_BYTES, "markitdown", _INSTALL_OFFICE),
    "picture": (limits.PICTURE_BYTES, "PIL", wording.INSTALL_INPUTS),
    "page": (limits.DOCUMENT_BYTES, "trafilatura", wording.INSTALL_INPUTS),
}
"""By kind of file: the most bytes, and the library that it needs, with how to install that."""
_WHY: Mapping[str, str] = {
    "encrypted": "encrypted",
    "damaged": "damaged or incomplete",
    "too_many_pixels": "more than 50 megapixels",
    "no_text": "no text in it",
    "not_a_page": "no readable text on the page",
    "needs_login": wording.NEEDS_LOGIN,
    "needs_javascript": "needs JavaScript",
    "checks_for_robots": wording.CHECKS_FOR_ROBOTS,
    "asks_for_cookies": wording.ASKS_FOR_COOKIES,
    "too_slow": "took longer than 10 seconds to read",
    "too_much_memory": "took more than 512 MB to read",
}


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file's name and bytes; of a page, the `url` it was fetched from, and its `Content-Type`."""

    name: str
    content: bytes
    url: str | None = None
    media: str = ""


@dataclass(frozen=True, slots=True)
class FilesAsRead:
    """What was read of a question's files, in their order; those of which nothing was read say why.

    `pictures` holds each picture's content in Base64, by its SHA-256.
    """

    attachments: tuple[Attachment, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])


NO_FILES = FilesAsRead()


def unread(name: str, why: str, kind: Kind = "text", url: str | None = None) -> Attachment:
    return Attachment(name=name, text="", kind=kind, omitted=why, url=url)


_Parts = tuple[Attachment, Sequence[PictureExtract], Sequence[int]]
"""A file, the pictures that were made of it, and the pages that only pictures show whole."""


async def extract(
    kind: Extractable, content: bytes, *, seconds: float = limits.SECONDS
) -> Extract | Mishap:
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
        if len(output) > limits.OUTPUT:
            process.kill()
            await process.communicate()  # what is left, or its pipe never ends
            return None
    return bytes(output)


def _read(output: bytes) -> Extract | Mishap:
    try:
        found = _RESULT.validate_json(output)
    except ValidationError:
        return "damaged"
    is_in_bounds = (
        len(found.text) <= limits.MOST_CHARACTERS and len(found.pictures) <= limits.MOST_PAGE_PICTURES
    )
    counts = (found.pages or 0, found.read or 0, *found.bare, *found.garbled)
    sides = (side for each in found.pictures for side in (each.width, each.height, each.page or 1))
    is_something = found.text or found.pictures or found.trouble
    is_sound = is_something and is_in_bounds and min(counts) >= 0 and min(sides, default=1) > 0
    return found if is_sound else "damaged"


@dataclass(kw_only=True)
class FileReader:
    """Reads files, a few at a time; `has` says whether a library is installed."""

    extract: Callable[[Extractable, bytes], Awaitable[Extract | Mishap]] = extract
    has: Callable[[str], bool] = lambda library: find_spec(library) is not None
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(limits.AT_ONCE))

    async def read(self, files: Sequence[FileContent | Attachment]) -> FilesAsRead:
        """Read files; an `Attachment` among them is one of which it is known why it isn't read."""
        found = await asyncio.gather(*map(self._file, files))
        pictures: dict[str, str] = {}
        attachments: list[Attachment] = []
        files_left, pages_left = limits.MOST_PICTURES, limits.MOST_PAGE_PICTURES
        for attachment, drawn, bare in found:
            is_picture = attachment.kind == "picture" and bool(drawn)
            if is_picture and files_left == 0:
                why = wording.too_many(limits.MOST_PICTURES, "pictures")
                attachments.append(unread(attachment.name, why, "picture"))
                continue
            taken = drawn if is_picture else drawn[:pages_left]
            files_left -= is_picture
            pages_left -= 0 if is_picture else len(taken)
            shown: list[Picture] = []
            for each in taken:
                name = hashlib.sha256(each.content).hexdigest()
                pictures[name] = base64.b64encode(each.content).decode()
                scale = min(1.0, limits.PICTURE_SIDE / max(each.width, each.height))
                shown.append(
                    Picture(
                        sha256=name,
                        media=each.media,
                        width=each.width,
                        height=each.height,
                        page=each.page,
                        tokens=ceil(each.width * each.height * scale**2 / limits.PIXELS_PER_TOKEN),
                    )
                )
            unseen = [page for page in bare if page not in {each.page for each in taken}]
            omitted = [
                attachment.omitted,
                f"{wording.named_pages(unseen)} not shown" if unseen else None,
            ]
            update = {"pictures": tuple(shown), "omitted": "; ".join(filter(None, omitted)) or None}
            attachments.append(attachment.model_copy(update=update))
        return FilesAsRead(tuple(attachments), pictures)

    async def _file(self, file: FileContent | Attachment) -> _Parts:
        if isinstance(file, Attachment):
            return file, (), ()
        # Twenty megabytes take longer to look through than others should wait.
        kind, digest, text, guessed = await asyncio.to_thread(_looked_at, file)
        if kind is None:
            return unread(file.name, why_unread(file.content), url=file.url), (), ()
        most, library, install = _KINDS[kind]
        if len(file.content) > most:
            return unread(file.name, wording.too_large(most), kind, file.url), (), ()
        if file.url and kind in ("text", "page") and not text.strip():
            return unread(file.name, "the page is empty", kind, file.url), (), ()
        if kind == "text":
            read = Attachment(name=file.name, text=text, sha256=digest, omitted=guessed, url=file.url)
            return read, (), ()
        if not self.has(library):
            return unread(file.name, install, kind, file.url), (), ()
        async with self._places:
            found = await self.extract(kind, text.encode() if kind == "page" else file.content)
        if not isinstance(found, Extract) or found.trouble:
            why = _WHY[cast("str", found.trouble) if isinstance(found, Extract) else found]
            return unread(file.name, why, kind, file.url), (), ()
        attachment = Attachment(
            name=(file.url and found.title[:300]) or file.name,
            text=printable(found.text),
            kind=kind,
            sha256=digest,
            pages=found.pages,
            omitted="; ".join(filter(None, (guessed, *_omitted(found)))) or None,
            url=file.url,
        )
        return attachment, found.pictures, sorted(found.bare + found.garbled)


def _looked_at(file: FileContent) -> tuple[Kind | None, str, str, str | None]:
    """Return what a file is, its SHA-256, its text if it is one, and what of that was guessed."""
    kind = kind_of(file.content, file.media)
    text, guessed = (text_of(file.content, file.media) if kind == "text" else None) or ("", None)
    if file.url and kind == "text":
        kind = page_kind(text, file.media)
    return kind, hashlib.sha256(file.content).hexdigest(), text, guessed


def _omitted(found: Extract) -> list[str]:
    said: list[str] = []
    if found.bare:
        hold = "holds only a picture" if len(found.bare) == 1 else "hold only pictures"
        said.append(f"{wording.named_pages(found.bare)} {hold}")
    if found.garbled:
        say = "says" if len(found.garbled) == 1 else "say"
        said.append(f"{wording.named_pages(found.garbled)} {say} something that can't be read as text")
    if found.pages is not None and found.read is not None and found.read < found.pages:
        said.append(wording.pages_read(found.read, found.pages))
    elif found.cut:
        said.append(wording.characters_read(len(found.text)))
    return said


def fitted(files: Sequence[Attachment], room: int) -> tuple[Attachment, ...]:
    """Return files as far as they fit together into `room` characters, in their order.

    A document is cut between pages where it has them. What is left out is named.
    """
    left = min(room, MOST_TOGETHER)
    kept: list[Attachment] = []
    for file in files:
        if len(file.text) > left:
            file = _cut(file, left)  # noqa: PLW2901 - the same file, shorter
        kept.append(file)
        left -= len(file.text)
    return tuple(kept)


def _cut(file: Attachment, room: int) -> Attachment:
    text = file.text[:room]
    if file.pages is not None:
        marks = [*_PAGE.finditer(text)]
        if len(marks) > 1:
            text = text[: marks.pop().start()].rstrip()
        page = int(marks[-1][1]) if marks else 0
        why = wording.pages_read(page, file.pages) if page < file.pages else None
    else:
        why = wording.characters_read(len(text))
    if not text:
        why = "no room left beside the other files"
    said = "; ".join(filter(None, (file.omitted if text else None, why)))
    return file.model_copy(update={"text": text, "omitted": said or file.omitted})
