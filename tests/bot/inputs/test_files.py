"""Files as they are read: in their own process, bounded, with a reason for whatever isn't read."""

import asyncio
import base64
import ctypes
import io
import json
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from bot.inputs import files
from bot.inputs.child import Extract
from bot.inputs.files import FileContent, FileReader, fitted
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MOST_CHARACTERS
from council.brief import Attachment
from tests.bot.inputs.pages import all_by_one
from tests.bot.inputs.pdfs import BLANK, box, lines, pdf, stream
from tests.bot.inputs.pictures import animated, bomb, plain, saved, turned

LOCKED = (
    b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> /P -4 >>"
    b" /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]"
)
COLUMNS = lines("Left one", "Left two") + b"\n" + lines("Right one", "Right two", x=330)
TABLE = b"\n".join(
    lines(cell, x=72 + 120 * place) for place, cell in enumerate(("Region", "2026", "41 %"))
)
FORM = b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada) /Rect [100 700 200 720] >>"
SCRIPT = b"/OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >>"
HEBREW = "\u05e9\u05dc\u05d5\u05dd"
TO_UNICODE = stream(
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
    b"1 begincodespacerange <00> <FF> endcodespacerange 4 beginbfchar <01> <05E9> <02> <05DC> <03> <05D5> "
    b"<04> <05DD> endbfchar endcmap end end"
)


def right_to_left() -> bytes:
    """Return a file whose font is Hebrew, written from right to left."""
    made = pdf([b"BT /F1 12 Tf 72 700 Td <04030201> Tj ET"], more=[TO_UNICODE])
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    return made.replace(font, font[:-3] + b" /ToUnicode 4 0 R >>")


def packed(megabytes: int) -> bytes:
    """Return a file of a few kilobytes whose page is a stream that unpacks to so much."""
    packer = zlib.compressobj(9)
    piece = b"q Q " * 250_000
    begun = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    content = zlib.compress(begun + again * (megabytes - 1) + packer.flush(), 9)
    made = pdf([b"@"])
    return made.replace(stream(b"@"), stream(content, "/Filter [/FlateDecode /FlateDecode]"))


def with_attachment() -> bytes:
    inside = stream(b"SECRET INSIDE", "/Type /EmbeddedFile")
    names = b"/Names << /EmbeddedFiles << /Names [(x.txt) << /Type /Filespec /F (x.txt) /EF << /F 4 0 R >> >>] >> >>"
    return pdf([lines("Outside")], root=names, more=[inside])


PDFS = {
    "text": (pdf([lines("Hello", "there")]), "[p. 1]\nHello\nthere", None),
    "pages": (pdf([lines("One"), lines("Two")]), "[p. 1]\nOne\n\n[p. 2]\nTwo", None),
    "columns": (pdf([COLUMNS]), "[p. 1]\nLeft one\nLeft two\nRight one\nRight two", None),
    "table": (pdf([TABLE]), "[p. 1]\nRegion\t2026\t41 %", None),
    "scan": (
        pdf([lines("One"), box(), box(), lines("Four")]),
        "[p. 1]\nOne\n\n[p. 4]\nFour",
        "pages 2\u20133 hold only pictures",
    ),
    "one picture": (pdf([box(), lines("Two")]), "[p. 2]\nTwo", "page 1 holds only a picture"),
    "only pictures": (pdf([box()]), "", "page 1 holds only a picture"),
    "right to left": (right_to_left(), f"[p. 1]\n{HEBREW}", None),
    "form": (
        pdf([lines("Name:")], more=[FORM], root=b"/AcroForm << /Fields [4 0 R] >>"),
        "[p. 1]\nName:",
        None,
    ),
    "script": (pdf([lines("Hi")], root=SCRIPT), "[p. 1]\nHi", None),
    "attachment inside": (with_attachment(), "[p. 1]\nOutside", None),
    "looks like markers": (pdf([lines("[p. 9]", "Not nine")]), "[p. 1]\n[p. 9]\nNot nine", None),
    "500 pages": (pdf([lines(f"Page {n}") for n in range(1, 501)]), None, "pages 201\u2013500 left out"),
    "long": (pdf([lines(*["x" * 90] * 45)] * 40), None, "pages 25\u201340 left out"),
    "encrypted": (pdf([lines("Hello")], trailer=LOCKED), "", "encrypted"),
    "truncated": (pdf([lines("Hello")])[:120], "", "damaged or incomplete"),
    "empty page": (pdf([BLANK]), "", "no text in it"),
    "no pages": (pdf([]), "", "damaged or incomplete"),
    "header alone": (b"%PDF-1.7\n", "", "damaged or incomplete"),
}
"""Of each file: its content, the text that is read (where it is short), and what people read was left out."""


async def test_a_pdf_is_read_by_page() -> None:
    """Pages are named as answers cite them; what isn't read has its reason."""
    read = await all_by_one("pdf", {name: content for name, (content, *_) in PDFS.items()})
    for name, (_, text, omitted) in PDFS.items():
        [file] = read[name].attachments
        assert (file.kind, file.omitted) == ("pdf", omitted), name
        assert len(file.text) <= MOST_CHARACTERS, name
        assert text is None or file.text == text, name


PICTURES: dict[str, tuple[Callable[[], bytes], tuple[int, int]]] = {
    "PNG": (plain, (1200, 800)),
    "JPEG": (partial(plain, form="JPEG"), (1200, 800)),
    "WebP": (partial(plain, form="WEBP"), (1200, 800)),
    "GIF": (animated, (40, 30)),
    "large": (partial(plain, 6000, 3000), (6000, 3000)),
    "turned": (partial(turned, 6), (400, 600)),
    "upside down": (partial(turned, 3), (600, 400)),
    "CMYK": (lambda: saved(Image.new("CMYK", (300, 200)), "JPEG"), (300, 200)),
    "transparent": (partial(plain, 300, 200, "RGBA"), (300, 200)),
    "palette": (partial(plain, 300, 200, "P"), (300, 200)),
    "16 bits": (lambda: saved(Image.new("I;16", (300, 200)), "PNG"), (300, 200)),
    "BMP": (partial(plain, form="BMP"), (1200, 800)),
    "TIFF": (partial(plain, form="TIFF"), (1200, 800)),
    "AVIF": (partial(plain, form="AVIF"), (1200, 800)),
    "fax": (lambda: saved(Image.new("1", (300, 200)), "TIFF", compression="group4"), (300, 200)),
    "TIFF in CMYK": (lambda: saved(Image.new("CMYK", (300, 200)), "TIFF"), (300, 200)),
    "1 x 30,000": (partial(plain, 1, 30_000), (1, 30_000)),
}
"""Made when they are wanted: every process of a run reads this file."""


async def test_a_picture_is_made_small_and_bare() -> None:
    """It is as large as people know it, at most 1,568 pixels as it is sent, and says nothing else."""
    found = await all_by_one("picture", {name: make() for name, (make, _) in PICTURES.items()})
    for name, (_, size) in PICTURES.items():
        [file] = found[name].attachments
        [picture] = file.pictures
        assert (file.kind, file.omitted, (picture.width, picture.height)) == ("picture", None, size), (
            name
        )
        sent = base64.b64decode(found[name].pictures[picture.sha256])
        assert b"SECRET PLACE" not in sent, name
        with Image.open(io.BytesIO(sent)) as shown:
            assert max(shown.size) == min(max(size), 1568), name
            assert (shown.width > shown.height) == (size[0] > size[1]), name
            assert shown.mode == "RGB", name
            assert not shown.getexif(), name


async def test_of_a_tiff_file_the_first_page_is_shown() -> None:
    """And the others are named."""
    pages = [Image.new("L", (40, 30), shade) for shade in (0, 100, 255)]
    content = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    [file] = (await FileReader().read([FileContent("fax.tiff", content)])).attachments
    assert (file.pages, file.omitted, len(file.pictures)) == (3, "pages 2\u20133 left out", 1)


async def test_a_text_says_what_was_guessed_of_it() -> None:
    """People and members read it with the file's name."""
    files = {"sums.csv": "Größe;3".encode("cp1252"), "app.log": b"10:00 pump\xff started", "a.txt": b"x"}
    read = await FileReader().read([FileContent(name, content) for name, content in files.items()])
    assert [(file.text, file.omitted) for file in read.attachments] == [
        ("Größe;3", "read as Windows-1252"),
        ("10:00 pump\ufffd started", "1 unreadable byte replaced"),
        ("x", None),
    ]


BROKEN = {
    "no PNG": b"\x89PNG\r\n\x1a\n" + b"x" * 100,
    "no JPEG": b"\xff\xd8\xff" + b"\0" * 100,
    "no TIFF": b"II*\0" + b"\x08\0\0\0\xff" * 100,
    "no BMP": b"BM" + b"\0" * 100,
}


async def test_a_bomb_or_a_broken_picture_is_refused() -> None:
    """A bomb before it is decoded."""
    bombs = {"bomb": bomb(40_000, 40_000), "smaller bomb": bomb(8_000, 7_000)}
    cut = {"cut": plain()[:200], "AVIF, cut": plain(form="AVIF")[:150]}
    for name, read in (await all_by_one("picture", bombs | cut | BROKEN)).items():
        [file] = read.attachments
        why = "more than 50 megapixels" if name in bombs else "damaged or incomplete"
        assert (file.is_unread, file.omitted) == (True, why), name


async def test_what_is_sent_at_most() -> None:
    """Four pictures, and eight drawn pages of all documents; the others are named."""
    pictures = [FileContent(f"{n}.png", plain(30 + n, 20)) for n in range(5)]
    read = await FileReader().read(pictures)
    assert [file.omitted for file in read.attachments] == [None] * 4 + ["only 4 pictures are read"]
    scan = pdf([box() + b"%%%d" % n for n in range(6)])
    read = await FileReader().read([FileContent("a.pdf", scan), FileContent("b.pdf", scan)])
    assert [len(file.pictures) for file in read.attachments] == [6, 2]
    assert [file.omitted for file in read.attachments] == [
        "pages 1\u20136 hold only pictures",
        "pages 1\u20136 hold only pictures; pages 3\u20136 not shown",
    ]


async def test_without_the_libraries_people_read_what_to_install() -> None:
    """Nothing is started."""

    async def never(kind: Extractable, content: bytes) -> Extract:
        raise AssertionError(kind, content)

    reader = FileReader(extract=never, has=lambda library: False)  # noqa: ARG005
    office = FileContent("plan.docx", b"PK\x03\x04 [Content_Types].xml word/document.xml")
    files = [FileContent("plan.pdf", pdf([lines("x")])), FileContent("shot.png", plain()), office]
    assert [file.omitted for file in (await reader.read(files)).attachments] == [
        "needs the extra inputs: make install EXTRAS=inputs",
        "needs the extra inputs: make install EXTRAS=inputs",
        "send it as PDF, or install the extra office: make install EXTRAS=office",
    ]


async def test_what_is_too_large_is_never_handed_on() -> None:
    """By size, before any process is started; what isn't of a known kind has its reason in `test_kinds`."""

    async def never(kind: Extractable, content: bytes) -> Extract:
        raise AssertionError(kind, content)

    for content, why in (
        (b"x" * 200_001, "larger than 200 kB"),
        (plain(60, 40) + b"\0" * 10_000_000, "larger than 10 MB"),
        (pdf([lines("x")]) + b"%" * 20_000_000, "larger than 20 MB"),
        (b"a\0b", "neither text, PDF nor a picture"),
    ):
        [file] = (await FileReader(extract=never).read([FileContent("x", content)])).attachments
        assert (file.is_unread, file.omitted) == (True, why)


SPINNING = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({mark!r}, "w").write(str(__import__("os").getpid()))
while True: pass
"""


def hostile(folder: Path, script: str) -> dict[str, str]:
    """Return an environment in which the child's module is this script."""
    package = folder / "bot" / "inputs"
    package.mkdir(parents=True)
    for each in (folder / "bot", package):
        (each / "__init__.py").touch()
    (package / "child.py").write_text(script)
    return {"PYTHONPATH": str(folder)}


def alive_in_group(group: int) -> list[int]:
    """Return the processes of a group that aren't over."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        try:
            state, _, of = (each / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state != "Z":
            found.append(int(each.name))
    return found


async def until_none_in_group(group: int) -> None:
    """Wait until no process of a group is left: a signal takes a moment to reach each."""
    async with asyncio.timeout(10):
        while alive_in_group(group):
            await asyncio.sleep(0.005)


async def test_a_process_that_does_not_end_is_ended_with_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what it has started; and likewise where the reading is cancelled."""
    mark = tmp_path / "started"
    monkeypatch.setattr(files, "_ENVIRONMENT", hostile(tmp_path, SPINNING.format(mark=str(mark))))
    monkeypatch.setattr(files, "STARTING", 0.0)
    assert await files.extract("pdf", b"x", seconds=1.0) == "too_slow"
    await until_none_in_group(int(mark.read_text()))
    mark.unlink()
    task = asyncio.create_task(files.extract("pdf", b"x", seconds=60.0))
    while not (mark.exists() and mark.read_text()):
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.wait({task})
    await until_none_in_group(int(mark.read_text()))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit(3)", "too_much_memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "too_slow"),
        ("import os; os.abort()", "too_much_memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "too_much_memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "damaged"),
        ("print('{}')", "damaged"),
        ("import sys; sys.stdout.write('x' * (25 * 2**20))", "damaged"),
        ("import sys\nwhile True: sys.stdout.write('x' * 2**20)", "damaged"),
        ("print('{\"text\": \"' + 'x' * 100001 + '\"}')", "damaged"),
    ],
)
async def test_what_a_process_says_is_checked(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it ends, and whatever it writes: whoever breaks it can say no more than a file can."""
    monkeypatch.setattr(files, "_ENVIRONMENT", hostile(tmp_path, script))
    assert await files.extract("pdf", b"x") == said


TRIED = {
    "a process": "os.fork() or os._exit(0)",
    "a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "another program in its place": "os.execv('/bin/true', ['true'])",
    "the network": "socket.socket()",
    "a datagram": "socket.socket(type=socket.SOCK_DGRAM)",
    "a socket of this machine": "socket.socket(socket.AF_UNIX)",
    "a new file": "open('new', 'x')",
    "a new folder": "os.mkdir('new')",
    "a link": "os.symlink('there', 'new')",
    "deleting": "os.unlink('there')",
    "emptying": "os.truncate('there', 0)",
    "opening to others": "os.chmod('there', 0o777)",
    "another time": "os.utime('there')",
    "a folder's names": "os.listdir('.')",
    "a file's content": "open('there').read()",
    "this machine's users": "open('/etc/passwd').read()",
    "what is beside the program": "open(os.path.join(bot.__path__[0], '..', 'pyproject.toml')).read()",
    "its parent's keys": "open(f'/proc/{os.getppid()}/environ').read()",
    "its parent's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "its parent's end": "os.kill(os.getppid(), 0)",
    "its parent's limits": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
    "its parent's priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 1)",
    "memory": "bytearray(600 * 2**20)",
    "addresses": "mmap.mmap(-1, 800 * 2**20)",
}
"""What a process may try that a file has taken over."""
TRYING = """
import json, mmap, os, resource, socket, sys
import bot
from bot.inputs.child import bound
bound("pdf")
for name, tried in json.loads(sys.argv[1]).items():
    try:
        eval(tried)
        print(name)
    except (OSError, MemoryError):
        pass
print(resource.getrlimit(resource.RLIMIT_CPU)[0], "OPENROUTER_API_KEY" in os.environ)
"""


async def test_the_process_is_bounded_and_knows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, time, files, processes and network, before it looks at its input; it has no key of ours."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    (tmp_path / "there").touch()
    run = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        TRYING,
        json.dumps(TRIED),
        cwd=tmp_path,
        env=files._ENVIRONMENT,  # pyright: ignore[reportPrivateUsage]
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await run.communicate()
    assert said.decode().splitlines() == ["10 False"]


async def test_no_process_of_the_same_user_can_read_the_bots_memory() -> None:
    """Also where the kernel has no Landlock: who isn't dumpable can't be traced, nor its keys be read."""
    await files.extract("pdf", b"")
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE


async def test_a_file_that_takes_all_memory_is_named() -> None:
    """It ends within the process's own limit."""
    [file] = (await FileReader().read([FileContent("x.pdf", packed(600))])).attachments
    assert (file.is_unread, file.omitted) == (True, "took more than 512 MB to read")


async def test_a_picture_near_the_limit_is_read_within_memory_and_time() -> None:
    """Fifty megapixels, of which only a small copy is ever made."""
    large, started = FileContent("large.png", plain(8000, 6200, "L")), time.monotonic()
    [file] = (await FileReader().read([large])).attachments
    assert file.omitted is None
    assert time.monotonic() - started < 10 + files.STARTING


def test_documents_are_cut_between_pages() -> None:
    """What is left out is named; a file for which no room is left isn't read at all."""
    pages = "\n\n".join(f"[p. {n}]\n{'x' * 90}" for n in range(1, 11))
    document = Attachment(name="plan.pdf", text=pages, kind="pdf", pages=10)
    text = Attachment(name="notes.txt", text="y" * 100)
    first, second = fitted([document, text], 500)
    assert first.text.startswith("[p. 1]\n")
    assert first.text.endswith("x" * 90)
    assert "[p. 4]" in first.text
    assert "[p. 5]" not in first.text
    assert first.omitted == "pages 5\u201310 left out"
    assert (len(second.text), second.omitted) == (100, None)
    assert fitted([text, document], 100)[1].omitted == "no room left beside the other files"
    assert fitted([text], 40)[0].omitted == "only the first 40 characters"
    assert fitted([document, text], 10_000) == (document, text)
