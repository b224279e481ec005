"""Pictures made with Pillow, as people and attackers send them."""

import io
import struct
import zlib

from PIL import Image


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    written = io.BytesIO()
    image.save(written, form, **options)  # pyright: ignore[reportArgumentType] - Pillow's own options
    return written.getvalue()


def plain(width: int = 1200, height: int = 800, mode: str = "RGB", form: str = "PNG") -> bytes:
    """Return a picture of one colour with a dark corner, top left."""
    image = Image.new(mode, (width, height), 200 if mode in ("L", "P") else None)
    if mode in ("RGB", "RGBA"):
        image.paste((240, 240, 240) if mode == "RGB" else (240, 240, 240, 255), (0, 0, width, height))
        image.paste((0, 0, 0) if mode == "RGB" else (0, 0, 0, 255), (0, 0, width // 3, height // 3))
    return saved(image, form)


def turned(orientation: int) -> bytes:
    """Return a JPEG that says how it is to be turned, and where it was taken."""
    image = Image.open(io.BytesIO(plain(600, 400)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "SECRET PLACE"
    return saved(image, "JPEG", exif=exif)


def animated() -> bytes:
    """Return a GIF with two frames, the first one dark."""
    frames = [Image.new("L", (40, 30), shade) for shade in (0, 255)]
    return saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100)


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG that claims to have these many pixels, all of them the same."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = b"\0" * (1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    rows = packer.compress(row * min(height, 3000)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
