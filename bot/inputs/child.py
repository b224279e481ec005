"""The process that reads one file: `python -m bot.inputs.child KIND`, content in, result out.

What a library makes of a hostile file isn't trusted to end, or to fit. So the process bounds itself
before it looks at anything, in memory, time, files, processes and network. It gets no secrets, and ends
with its parent. The result is JSON, with pictures in Base64. It imports little: each file waits for it.
"""

import ctypes
import errno
import io
import json
import mimetypes
import os
import re
import resource
import signal
import struct
import sys
import tomllib
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import bot
import council
from bot.inputs import limits

if TYPE_CHECKING:
    from PIL.Image import Image

Wall = Literal["checks_for_robots", "asks_for_cookies", "needs_login", "needs_javascript"]
Tree = Any
"""lxml's element: the library has no types."""

_ROWS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("walls.toml").read_text("utf-8")
)
_SIGNS = {
    (wall, name): re.compile("|".join(signs), re.IGNORECASE)
    for wall, row in _ROWS.items()
    for name, signs in row.items()
}
_UNSEEN = "ancestor::script or ancestor::style or ancestor::template"
_BESIDE = "ancestor::header or ancestor::nav or ancestor::footer or ancestor::aside or ancestor::dialog"
_FIELD = "input[translate(@type, 'PASWORD', 'pasword')='password']"
# Some sites put the whole page into one form.
_FORM = f"ancestor::button or ancestor::noscript or ancestor::form[string-length() < 1500][.//{_FIELD}]"
_BUTTONS = "//button | //a | //input[@type='submit' or @type='button'] | //*[@role='button']"
_IS_APP = " or ".join(f"@id='{name}'" for name in _ROWS["needs_javascript"]["apps"])
_EMPTY_APP = f"//body//*[contains(name(), '-') or {_IS_APP}][not(normalize-space())]"


def wall_in(tree: Tree, text: str) -> Wall | None:
    """Return what is in a page's place, if anything; `text` is what was read of it. Sizes are bytes."""
    shown = _words(tree.xpath(f"//body//text()[not({_UNSEEN})]"))
    own = _words(tree.xpath(f"//body//text()[not({_UNSEEN} or {_BESIDE} or {_FORM})]"))
    size, rest = len(shown.encode()), len(own.encode())
    titles = [_words(each.itertext()) for each in (*tree.xpath("//title")[:1], *tree.xpath("//h1")[:1])]
    headings = [part for title in titles for part in (title, *re.split(r" (?:\W|::) ", title))]

    def is_headed(wall: Wall) -> bool:
        return any(map(_SIGNS[wall, "headings"].fullmatch, headings))

    def says(wall: Wall) -> bool:
        return bool(_SIGNS[wall, "words"].search(shown))

    if (size < 1_500 and is_headed("checks_for_robots")) or (size < 500 and says("checks_for_robots")):
        return "checks_for_robots"
    is_open = bool(tree.xpath(f"//{_FIELD}[not({_BESIDE})]"))
    most = (1_500 if is_open else 300) if is_headed("needs_login") else 250 if is_open else 0
    if rest < most or (size < 300 and says("needs_login")):
        return "needs_login"
    buttons = (_words(each.itertext()) or each.get("value", "") for each in tree.xpath(_BUTTONS))
    if rest < 4_000 and any(map(_SIGNS["asks_for_cookies", "buttons"].fullmatch, buttons)):
        others = [
            line for line in text.splitlines() if not _SIGNS["asks_for_cookies", "words"].search(line)
        ]
        if is_headed("asks_for_cookies") or len("".join(others).encode()) < min(
            120, len(text.encode()) / 2
        ):
            return "asks_for_cookies"
    is_empty = _SIGNS["needs_javascript", "loading"].fullmatch(own) or (
        rest < 150 and tree.xpath(_EMPTY_APP)
    )
    if (rest < 400 and says("needs_javascript")) or (is_empty and tree.xpath("//script")):
        return "needs_javascript"
    return None


def _words(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


Trouble = Literal["encrypted", "damaged", "too_many_pixels", "no_text", "not_a_page"] | Wall
"""Why nothing of a file can be read."""

_BETWEEN = "\n\n"
OUT_OF_MEMORY = 3
"""The exit code for a file that takes more memory than is allowed."""
_FORBIDDEN = (
    b"socket io_uring_setup fork vfork execve execveat ptrace process_vm_readv process_vm_writev kill "
    b"tkill pidfd_send_signal setpriority chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat "
    b"utimensat"
)
"""Calls for the network and other processes, and what Landlock leaves of files."""


@dataclass(frozen=True, slots=True)
class PictureExtract:
    """A picture as it is sent: of a file, or of a document's page. Sizes are in pixels."""

    __pydantic_config__: ClassVar = {"val_json_bytes": "base64"}

    media: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    content: bytes
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Extract:
    """What was read of a file.

    `pages` counts all pages, `read` those that were looked at; `bare` are the numbers of those without
    text, `garbled` of those that show more than their text says. `cut`: the text is longer than that.
    """

    text: str = ""
    title: str = ""
    pages: int | None = None
    read: int | None = None
    bare: tuple[int, ...] = ()
    garbled: tuple[int, ...] = ()
    cut: bool = False
    pictures: tuple[PictureExtract, ...] = field(default=())
    trouble: Trouble | None = None


def extract(kind: str, content: bytes) -> Extract:
    readers = {"pdf": _pdf, "picture": _picture, "page": _page, "office": _office}
    return readers[kind](content)


def _pdf(content: bytes) -> Extract:
    from bot.inputs.pdf_text import page_text

    pypdfium2: Any = import_module("pypdfium2")  # it has no types
    try:
        document = pypdfium2.PdfDocument(content)
        document.init_forms()  # before its pages, or they don't show what was filled in
    except pypdfium2.PdfiumError as error:
        is_locked = error.err_code in (4, 5)  # FPDF_ERR_PASSWORD, _SECURITY (pdfium's fpdfview.h)
        return Extract(trouble="encrypted" if is_locked else "damaged")
    texts: list[str] = []
    bare: list[int] = []
    garbled: list[int] = []
    pictures: list[PictureExtract] = []
    room = limits.MOST_CHARACTERS
    read = 0
    for number in range(1, min(len(document), limits.MOST_PAGES) + 1):
        try:
            text, is_whole = page_text(document, number)
            is_bare = (
                not text
                and is_whole
                and any(True for _ in document[number - 1].get_objects(max_depth=1))
            )
        except pypdfium2.PdfiumError:
            text, is_whole, is_bare = "", False, False
        said = f"[p. {number}]\n{text}" if text else ""
        if len(said) > room and texts:
            break
        texts += [said[:room]] * bool(said)
        room -= len(said) + len(_BETWEEN) * bool(said)
        read = number
        if is_bare or not is_whole:
            (bare if is_bare else garbled).append(number)
            if len(pictures) < limits.MOST_PAGE_PICTURES:
                # Some pages can't be drawn.
                with suppress(pypdfium2.PdfiumError, ValueError, ZeroDivisionError):
                    page = document[number - 1]
                    scale = min(
                        limits.PICTURE_SIDE / max(page.get_size()), 200 / 72
                    )  # at most 200 dots an inch
                    pictures.append(_encoded(page.render(scale=scale).to_pil(), number))
    if not texts and not pictures:
        return Extract(pages=len(document), trouble="no_text")
    return Extract(
        _BETWEEN.join(texts),
        pages=len(document),
        read=read,
        bare=tuple(bare),
        garbled=tuple(garbled),
        cut=room < 0 or read < len(document),
        pictures=tuple(pictures),
    )


def _picture(content: bytes) -> Extract:
    from PIL import AvifImagePlugin, Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = limits.MOST_PIXELS
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each has its memory, and none may be started here
    formats = ("PNG", "JPEG", "WEBP", "GIF", "AVIF", "TIFF", "BMP")
    try:
        with Image.open(io.BytesIO(content), formats=formats) as checked:
            if checked.width * checked.height > limits.MOST_PIXELS:
                return Extract(trouble="too_many_pixels")
            checked.verify()
        # `verify` leaves a file that has to be opened again (Pillow's documentation).
        with Image.open(io.BytesIO(content), formats=formats) as image:
            pages = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
            is_turned = image.getexif().get(0x0112, 1) >= 5  # orientations that exchange the sides
            size = (image.height, image.width) if is_turned else image.size
            side = limits.PICTURE_SIDE
            image.draft("RGB", (side, side))
            small: Image.Image = image
            if image.mode == "P":
                small = image.convert("RGBA" if "transparency" in image.info else "RGB")
            elif image.mode.startswith(("I", "F")):
                # Of 16 or 32 bits a pixel, the darkest becomes black and the brightest white.
                low, high = cast("tuple[float, float]", image.getextrema())
                scale = 255 / ((high - low) or 1)
                small = image.convert("F").point(lambda value: value * scale - low * scale).convert("L")
            small.thumbnail((side, side))
            drawn = _encoded(ImageOps.exif_transpose(small))
    except Image.DecompressionBombError:
        return Extract(trouble="too_many_pixels")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError):
        # What Pillow raises for broken files depends on the format.
        return Extract(trouble="damaged")
    shown = (PictureExtract(drawn.media, *size, drawn.content),)
    return Extract(pages=pages if pages > 1 else None, read=1, pictures=shown)


def _encoded(image: "Image", page: int | None = None) -> PictureExtract:
    """Return a small picture in a common format, without what its file said beside it."""
    from PIL import Image

    # A new image: no EXIF, colour profile or comment comes along.
    bare = Image.new("RGB", image.size, "white")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        clear = image.convert("RGBA")
        bare.paste(clear, mask=clear.getchannel("A"))
    else:
        bare.paste(image.convert("RGB"))
    content, media = _saved(bare, "PNG"), "image/png"
    for quality in (90, 75, 60, 40):
        found = _saved(bare, "JPEG", quality=quality)
        if len(found) < len(content):
            content, media = found, "image/jpeg"
        if len(content) <= limits.PICTURE_OUTPUT:
            break
    return PictureExtract(media, bare.width, bare.height, content, page)


def _saved(image: "Image", form: str, **options: int) -> bytes:
    written = io.BytesIO()
    image.save(written, form, **options)
    return written.getvalue()


def _page(content: bytes) -> Extract:
    import trafilatura

    tree: Tree = trafilatura.load_html(content)
    if tree is None:
        return Extract(trouble="not_a_page")
    # Of an attribute of megabytes, each of a hundred searches would take its time.
    for element in tree.iter():
        for name, value in element.items():
            if len(value) > 2_000:
                del element.attrib[name]
        element.text = element.text and element.text[: limits.MOST_CHARACTERS]
        element.tail = element.tail and element.tail[: limits.MOST_CHARACTERS]
    about = trafilatura.extract_metadata(tree)
    title = " ".join((about.title or "").split()) if about else ""
    text = trafilatura.extract(deepcopy(tree), include_comments=False, include_tables=True) or ""
    if wall := wall_in(tree, text):
        return Extract(title=title, trouble=wall)
    if not text.strip():
        return Extract(title=title, trouble="not_a_page")
    most = limits.MOST_CHARACTERS
    return Extract(text[:most].strip(), title, cut=len(text) > most)


def _office(content: bytes) -> Extract:
    mimetypes.knownfiles.clear()  # the system's own lists, which this process can't read
    library: Any = import_module("markitdown")  # an extra that isn't there in development
    try:
        converted = library.MarkItDown(enable_plugins=False).convert_stream(io.BytesIO(content))
        text: str = converted.text_content
    except (library.MarkItDownException, OSError, ValueError, KeyError):
        return Extract(trouble="damaged")
    text = text.replace("\0", "").strip()
    if not text:
        return Extract(trouble="no_text")
    return Extract(text[: limits.MOST_CHARACTERS], cut=len(text) > limits.MOST_CHARACTERS)


def bound(kind: str) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent
        # Where memory runs out all the same, the kernel ends this process and not the bot.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        # Memory of its own: reserved addresses and shared libraries take none (getrlimit(2)).
        resource.setrlimit(resource.RLIMIT_DATA, (limits.MEMORY, limits.MEMORY))
        # Office files' libraries start a thread for each core, each with addresses of its own.
        if kind != "office":
            resource.setrlimit(resource.RLIMIT_AS, (limits.MEMORY * 3 // 2, limits.MEMORY * 3 // 2))
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which neither may be done
        _give_up_files(libc)
        _give_up_calls()
    resource.setrlimit(resource.RLIMIT_CPU, (limits.SECONDS, limits.SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _give_up_files(libc: ctypes.CDLL) -> None:
    """Leave of all files the libraries', to read, where the kernel has Landlock (landlock(7))."""
    version = libc.syscall(444, None, 0, 1)
    if version < 1:
        return
    # Truncating is known from the third version on, TCP from the fourth, signals from the sixth.
    handled = struct.pack("QQQ", 0x1FFF | (version > 2) << 14, 3 * (version > 3), 3 * (version > 5))
    rules = libc.syscall(444, handled, len(handled), 0)
    # A checkout may hold keys and data beside the program; a folder of installed packages doesn't.
    folder = Path(bot.__path__[0]).parent
    others = (path for path in sys.path if Path(path) != folder or any(folder.glob("*.dist-info")))
    for path in (*others, *bot.__path__, *council.__path__, "/usr", "/lib", "/lib64"):
        with suppress(OSError):
            place = os.open(path, os.O_PATH | os.O_DIRECTORY)
            libc.syscall(445, rules, 1, struct.pack("=Qi", 4 | 8, place), 0)
            os.close(place)
    libc.syscall(446, rules, 0)
    os.close(rules)


def _give_up_calls() -> None:
    """Forbid calls that no reading needs, where libseccomp is installed (seccomp_rule_add(3))."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(0x7FFF0000))
    number, add = library.seccomp_syscall_resolve_name, library.seccomp_rule_add_array
    refused = 0x50000 | errno.EPERM
    for name in _FORBIDDEN.split():
        add(rules, refused, number(name), 0, None)
    # `clone` without `CLONE_THREAD` makes a process; without `clone3`, libraries call it.
    add(rules, 0x50000 | errno.ENOSYS, number(b"clone3"), 0, None)
    for name, *of in (
        (b"clone", 7, 0x10000, 0),
        (b"prlimit64", 1, 0, 0),
        (b"tgkill", 1, os.getpid(), 0),
    ):
        add(rules, refused, number(name), 1, struct.pack("IiQQ", 0, *of))
    library.seccomp_load(rules)


def main() -> None:
    kind = sys.argv[1]
    bound(kind)
    try:
        found = extract(kind, sys.stdin.buffer.read())
        said = json.dumps(asdict(found), default=lambda content: b64encode(content).decode())
    except (MemoryError, RecursionError):
        sys.exit(OUT_OF_MEMORY)
    sys.stdout.write(said)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
