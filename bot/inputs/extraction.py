"""Reads one file's content: what the process that reads files does, and nothing else imports.

What a library makes of a hostile file isn't trusted to end, or to fit: `bot.inputs.child` bounds it.
"""

import io
import mimetypes
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from bot.inputs.kinds import Extractable
from bot.inputs.limits import (
    MOST_CHARACTERS,
    MOST_PAGE_PICTURES,
    MOST_PAGES,
    MOST_PIXELS,
    PICTURE_OUTPUT,
    PICTURE_SIDE,
)
from bot.inputs.walls import Tree, Wall, wall_in

if TYPE_CHECKING:
    from PIL.Image import Image

Trouble = Literal["encrypted", "damaged", "too_many_pixels", "no_text", "not_a_page"] | Wall
"""Why nothing of a file can be read."""

SHARPEST = 200 / 72
"""Pixels of a drawn page for each of its points: 200 dots an inch."""
MOST_ATTRIBUTE = 2_000
_BETWEEN = "\n\n"
_PASSWORD = 4
"""`FPDF_ERR_PASSWORD` (pdfium's public/fpdfview.h)."""
_SECURITY = 5
_QUALITIES = (90, 75, 60, 40)
"""Of JPEG, tried in this order until a picture is small enough."""
_ORIENTATION = 0x0112
_FIRST_QUARTER_TURN = 5
"""EXIF orientations from this one on exchange width and height."""


@dataclass(frozen=True, slots=True)
class ExtractedPicture:
    """A picture as it is sent: of a file, or of a document's page. Sizes are in pixels."""

    __pydantic_config__: ClassVar = {"val_json_bytes": "base64"}

    media: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    content: bytes
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
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
    pictures: tuple[ExtractedPicture, ...] = field(default=())
    trouble: Trouble | None = None


def extract(kind: Extractable, content: bytes) -> Extracted:
    """Read a file of a kind; what can't be read is an `Extracted` with its `trouble`."""
    return _READERS[kind](content)


def _pdf(content: bytes) -> Extracted:
    from bot.inputs.pdf_text import page_text

    pypdfium2: Any = import_module("pypdfium2")  # it has no types
    try:
        document = pypdfium2.PdfDocument(content)
        document.init_forms()  # before its pages, or they don't show what was filled in
    except pypdfium2.PdfiumError as error:
        is_locked = error.err_code in (_PASSWORD, _SECURITY)
        return Extracted(trouble="encrypted" if is_locked else "damaged")
    texts: list[str] = []
    bare: list[int] = []
    garbled: list[int] = []
    pictures: list[ExtractedPicture] = []
    room = MOST_CHARACTERS
    read = 0
    for number in range(1, min(len(document), MOST_PAGES) + 1):
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
            if len(pictures) < MOST_PAGE_PICTURES:
                # Some pages can't be drawn.
                with suppress(pypdfium2.PdfiumError, ValueError, ZeroDivisionError):
                    page = document[number - 1]
                    scale = min(PICTURE_SIDE / max(page.get_size()), SHARPEST)
                    pictures.append(_encoded(page.render(scale=scale).to_pil(), number))
    if not texts and not pictures:
        return Extracted(pages=len(document), trouble="no_text")
    return Extracted(
        _BETWEEN.join(texts),
        pages=len(document),
        read=read,
        bare=tuple(bare),
        garbled=tuple(garbled),
        cut=room < 0 or read < len(document),
        pictures=tuple(pictures),
    )


def _picture(content: bytes) -> Extracted:
    from PIL import AvifImagePlugin, Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each has its memory, and none may be started here
    formats = ("PNG", "JPEG", "WEBP", "GIF", "AVIF", "TIFF", "BMP")
    try:
        with Image.open(io.BytesIO(content), formats=formats) as checked:
            if checked.width * checked.height > MOST_PIXELS:
                return Extracted(trouble="too_many_pixels")
            checked.verify()
        # `verify` leaves a file that has to be opened again (Pillow's documentation).
        with Image.open(io.BytesIO(content), formats=formats) as image:
            pages = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
            is_turned = image.getexif().get(_ORIENTATION, 1) >= _FIRST_QUARTER_TURN
            size = (image.height, image.width) if is_turned else image.size
            drawn = _encoded(ImageOps.exif_transpose(_small(image)))
    except Image.DecompressionBombError:
        return Extracted(trouble="too_many_pixels")
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError):
        # What Pillow raises for broken files depends on the format.
        return Extracted(trouble="damaged")
    shown = (ExtractedPicture(drawn.media, *size, drawn.content),)
    return Extracted(pages=pages if pages > 1 else None, read=1, pictures=shown)


def _small(image: "Image") -> "Image":
    """Return a picture no larger than it is sent, with its metadata."""
    image.draft("RGB", (PICTURE_SIDE, PICTURE_SIDE))
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode.startswith(("I", "F")):
        image = _eight_bits(image)
    image.thumbnail((PICTURE_SIDE, PICTURE_SIDE))
    return image


def _eight_bits(image: "Image") -> "Image":
    """Return a picture of 16 or 32 bits a pixel, its darkest one black and its brightest one white."""
    low, high = cast("tuple[float, float]", image.getextrema())
    scale = 255 / ((high - low) or 1)
    return image.convert("F").point(lambda value: value * scale - low * scale).convert("L")


def _encoded(image: "Image", page: int | None = None) -> ExtractedPicture:
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
    for quality in _QUALITIES:
        found = _saved(bare, "JPEG", quality=quality)
        if len(found) < len(content):
            content, media = found, "image/jpeg"
        if len(content) <= PICTURE_OUTPUT:
            break
    return ExtractedPicture(media, bare.width, bare.height, content, page)


def _saved(image: "Image", form: str, **options: int) -> bytes:
    written = io.BytesIO()
    image.save(written, form, **options)
    return written.getvalue()


def _page(content: bytes) -> Extracted:
    import trafilatura

    tree: Tree = trafilatura.load_html(content)
    if tree is None:
        return Extracted(trouble="not_a_page")
    _bound(tree)
    about = trafilatura.extract_metadata(tree)
    title = " ".join((about.title or "").split()) if about else ""
    text = trafilatura.extract(deepcopy(tree), include_comments=False, include_tables=True) or ""
    if wall := wall_in(tree, text):
        return Extracted(title=title, trouble=wall)
    if not text.strip():
        return Extracted(title=title, trouble="not_a_page")
    return Extracted(text[:MOST_CHARACTERS].strip(), title, cut=len(text) > MOST_CHARACTERS)


def _bound(tree: Tree) -> None:
    """Cut what no page needs: of an attribute of megabytes each of a hundred searches takes its time."""
    for element in tree.iter():
        for name, value in element.items():
            if len(value) > MOST_ATTRIBUTE:
                del element.attrib[name]
        element.text = element.text and element.text[:MOST_CHARACTERS]
        element.tail = element.tail and element.tail[:MOST_CHARACTERS]


def _office(content: bytes) -> Extracted:
    mimetypes.knownfiles.clear()  # the system's own lists, which this process can't read
    library: Any = import_module("markitdown")  # an extra that isn't there in development
    try:
        converted = library.MarkItDown(enable_plugins=False).convert_stream(io.BytesIO(content))
        text: str = converted.text_content
    except (library.MarkItDownException, OSError, ValueError, KeyError):
        return Extracted(trouble="damaged")
    text = text.replace("\0", "").strip()
    if not text:
        return Extracted(trouble="no_text")
    return Extracted(text[:MOST_CHARACTERS], cut=len(text) > MOST_CHARACTERS)


_READERS: dict[Extractable, Callable[[bytes], Extracted]] = {
    "pdf": _pdf,
    "picture": _picture,
    "page": _page,
    "office": _office,
}
