"""PDF files written by hand, as small as they can be: objects, a table of them, nothing compressed.

Format: ISO 32000-1, 7.3 to 7.7.
"""

from collections.abc import Iterable, Sequence

BLANK = b""
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
WIDTH, HEIGHT = 612, 792


def lines(*said: str, x: int = 72, y: int = 720, size: int = 12) -> bytes:
    """Return a page's content that writes lines below each other."""
    shown = "".join(
        f"1 0 0 1 {x} {y - 15 * place} Tm ({_escaped(text)}) Tj " for place, text in enumerate(said)
    )
    return f"BT /F1 {size} Tf {shown}ET".encode("latin-1")


def box() -> bytes:
    """Return a page's content that draws, and writes nothing."""
    return b"1 0 0 RG 0 0 1 rg 100 100 300 200 re B"


def at(*said: tuple[int, int, str], font: str = "/F1 12 Tf") -> bytes:
    """Return a page's content that writes texts where they are wanted, in this order."""
    shown = (f"BT {font} 1 0 0 1 {x} {y} Tm ({_escaped(text)}) Tj ET" for x, y, text in said)
    return "\n".join(shown).encode("latin-1")


def pdf(
    pages: Sequence[bytes],
    *,
    root: bytes = b"",
    trailer: bytes = b"",
    more: Iterable[bytes] = (),
    font: bytes = FONT,
    page: bytes = b"",
) -> bytes:
    """Return a file with these contents as pages; `root`, `trailer` and objects `more` go beside them.

    The objects of `more` have the numbers from 4 on: 1 is the catalogue, 2 the pages, 3 the `font`. Each
    page has the entries of `page`.
    """
    beside = [*more]
    first = 4 + len(beside)
    kids = " ".join(f"{first + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R " + root + b" >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        font,
        *beside,
    ]
    for place, content in enumerate(pages):
        objects += [
            (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
                f"/Resources << /Font << /F1 3 0 R >> >> /Contents {first + 2 * place + 1} 0 R "
            ).encode()
            + page
            + b">>",
            stream(content),
        ]
    return _file(objects, trailer)


def stream(content: bytes, entries: str = "") -> bytes:
    return f"<< /Length {len(content)} {entries} >>\nstream\n".encode() + content + b"\nendstream"


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    written = bytearray(b"%PDF-1.7\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = len(written)
    written += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for place in places:
        written += f"{place:010d} 00000 n \n".encode()
    written += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R ".encode() + trailer
    written += f" >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(written)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
