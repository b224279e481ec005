"""Files that were changed at random: read or refused, and never a limit passed."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from bot.inputs.files import FileContent, FileReader
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MOST_CHARACTERS, MOST_PAGE_PICTURES, PICTURE_OUTPUT
from tests.bot.inputs.pdfs import box, lines, pdf
from tests.bot.inputs.pictures import animated, plain, turned
from tests.pairs import rows

FILES: list[tuple[Extractable, bytes]] = [
    ("pdf", pdf([lines("Hello", "there"), box(), lines("Three")])),
    ("picture", plain(60, 40)),
    ("picture", plain(60, 40, form="JPEG")),
    ("picture", plain(60, 40, form="WEBP")),
    ("picture", plain(60, 40, form="AVIF")),
    ("picture", plain(60, 40, form="TIFF")),
    ("picture", plain(60, 40, form="BMP")),
    ("picture", animated()),
    ("picture", turned(6)),
    (
        "page",
        b"<html><head><title>T</title></head><body><article><p>Words of a page.</p></article></body></html>",
    ),
]


def mutated(content: bytes, seed: int) -> bytes:
    """Change, drop, repeat or insert some bytes."""
    draw = random.Random(seed)  # noqa: S311 - the seed is the example
    changed = bytearray(content)
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(max(1, len(changed)))
        match draw.randrange(5):
            case 0:
                changed[place : place + 1] = bytes([draw.randrange(256)])
            case 1:
                del changed[place : place + draw.randint(1, 40)]
            case 2:
                changed[place:place] = changed[place : place + draw.randint(1, 200)]
            case 3:
                changed[place:place] = draw.randbytes(draw.randint(1, 20))
            case _:
                number = str(draw.choice([0, -1, 2**31, 2**63, 10**9])).encode()
                changed[place : place + len(number)] = number
    return bytes(changed)


async def check(kind: Extractable, content: bytes) -> None:
    """Read a file; what comes back is within all limits, and nothing is left running."""
    url = "https://example.org/x" if kind == "page" else None
    read = await FileReader().read([FileContent("x", content, url)])
    [found] = read.attachments
    assert len(found.text) <= MOST_CHARACTERS
    assert len(found.pictures) <= MOST_PAGE_PICTURES
    assert found.text or found.pictures or found.omitted or found.kind == "text"
    assert all(len(each) <= PICTURE_OUTPUT * 4 / 3 + 4 for each in read.pictures.values())


@rows("number", range(0, len(FILES), 2))
async def test_a_changed_file_is_read_or_refused(number: int) -> None:
    """In its own process, whatever happens there."""
    kind, content = FILES[number]
    await check(kind, mutated(content, number))


@pytest.mark.soak
async def test_a_thousand_changed_files_pass_no_limit() -> None:
    """Two at a time; no process is left when all are read."""
    for seed in range(0, 1_000, 2):
        both = (FILES[each % len(FILES)] + (each,) for each in (seed, seed + 1))
        await asyncio.gather(*(check(kind, mutated(content, each)) for kind, content, each in both))
    assert children() == []


def children() -> list[str]:
    """Return the processes that read files for this one."""
    parent = f" {os.getpid()} "
    stats = (each / "stat" for each in Path("/proc").iterdir() if each.name.isdecimal())
    found: list[str] = []
    for stat in stats:
        try:
            said = stat.read_text()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent in said.rpartition(")")[2][:20] and b"bot.inputs.child" in command:
            found.append(stat.parent.name)
    return found
