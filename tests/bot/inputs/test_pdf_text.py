"""What a page of a PDF shows, as its text: each row is a small file and what is read of it.

Their kinds are from reports about pypdfium2, pdfminer.six, pdfplumber, pdfparser, PdfPig and docling.
"""

from collections.abc import Iterable, Sequence

import pytest

from bot.inputs.child import extract
from tests.bot.inputs.pages import all_by_one
from tests.bot.inputs.pdfs import FONT, at, box, lines, pdf, stream


def rows(*said: str, by: str = "row", right: bool = False) -> bytes:
    """Return a table's content, written by row or by column; cells are divided by `|`."""
    cells = [
        (150 * column + 60 - (6 * len(cell) if right else 0), 700 - 16 * row, cell)
        for row, line in enumerate(said)
        for column, cell in enumerate(line.split("|"))
    ]
    return at(*(sorted(cells, key=lambda cell: (cell[0], -cell[1])) if by == "column" else cells))


def turned(*said: str, matrix: str, step: tuple[int, int]) -> bytes:
    shown = (
        f"BT /F1 12 Tf {matrix} {300 + step[0] * line} {300 + step[1] * line} Tm ({text}) Tj ET"
        for line, text in enumerate(said)
    )
    return "\n".join(shown).encode()


def look(text: str, size: str = "0 0 200 18", place: str = "2 4", font: str = "/F1 3 0 R") -> bytes:
    """Return what a field or a note looks like, as the program that filled it in drew it."""
    return stream(
        f"/Tx BMC q BT /F1 12 Tf {place} Td {text} ET Q EMC".encode(),
        f"/Type /XObject /Subtype /Form /BBox [{size}] /Resources << /Font << {font} >> >>",
    )


def widget(place: str, more: str, kind: str = "/Tx") -> bytes:
    """Return a field of a form, which is seen at this place."""
    return (
        f"<< /Type /Annot /Subtype /Widget /FT {kind} /T ({place}) /DA (/F1 12 Tf 0 g) /Rect [{place}] {more} >>"
    ).encode()


def form(
    content: bytes, *fields: bytes, looks: Sequence[bytes] = (), page: bytes = b"", root: str = ""
) -> bytes:
    """Return a form: its fields are the objects from 4 on, and their looks follow them."""
    names = " ".join(f"{4 + place} 0 R" for place in range(len(fields)))
    return pdf(
        [content],
        more=[*fields, *looks],
        root=f"/AcroForm << /Fields [{names}] /DR << /Font << /F1 3 0 R >> >> /DA (/F1 12 Tf 0 g) {root} >>".encode(),
        page=f"/Annots [{names}] ".encode() + page,
    )


def note(kind: str, place: str, more: str) -> bytes:
    return f"<< /Type /Annot /Subtype {kind} /Rect [{place}] /DA (/F1 12 Tf 0 g) {more} >>".encode()


def to_unicode(*pairs: tuple[int, str]) -> bytes:
    """Return a font's map from codes to UTF-16 in hexadecimal."""
    said = " ".join(f"<{code:02X}> <{meant}>" for code, meant in pairs)
    return stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        b"1 begincodespacerange <00> <FF> endcodespacerange "
        + f"{len(pairs)} beginbfchar {said} endbfchar endcmap end end".encode()
    )


def mapped(*pairs: tuple[int, str]) -> bytes:
    """Return a file whose text is the letters *ab ab*, which mean what a map says."""
    return pdf([lines("ab ab")], font=FONT[:-3] + b" /ToUnicode 4 0 R >>", more=[to_unicode(*pairs)])


TWO = (lines("Left one", "Left two"), lines("Right one", "Right two", x=330))
CHECKED = "/AS /Yes /AP << /N << /Yes {0} 0 R /Off {0} 0 R >> >>"
OPTIONS = "/Opt [[(s) (Small)] [(l) (Large)]]"

SHOWN: dict[str, tuple[bytes, str]] = {
    "cells of one character": (pdf([rows("2023|5|17", "2024|8|21")]), "2023\t5\t17\n2024\t8\t21"),
    "written by column": (pdf([rows("2023|5|17", "2024|8|21", by="column")]), "2023\n2024\n5\n8\n17\n21"),
    "cells of two words": (pdf([rows("Red pump|New York|x", "Blue valve|Los Angeles|-")]),
                           "Red pump\tNew York\tx\nBlue valve\tLos Angeles\t-"),
    "numbers to the right": (pdf([rows("Sum|1,234.50|7", "Tax|4.50|12", right=True)]),
                             "Sum\t1,234.50\t7\nTax\t4.50\t12"),
    "narrow cells": (pdf([at(*((60 + 10 * n, 700, str(n)) for n in range(5)))]), "0 1 2 3 4"),
    "cells in one array": (pdf([b"BT /F1 12 Tf 60 700 Td [(2024) -3000 (8) -4000 (21)] TJ ET"]), "2024\t8\t21"),
    "two columns": (pdf([b"\n".join(TWO)]), "Left one\nLeft two\nRight one\nRight two"),
    "a raised sign": (pdf([at((72, 700, "m")) + b" BT /F1 7 Tf 83 705 Td (2) Tj ET"]), "m 2"),
    "wide letter spacing": (pdf([b"BT /F1 12 Tf 3 Tc 60 700 Td (Metropolis) Tj ET"]), "Metropolis"),
    "a hyphen at a line's end": (pdf([lines("An exam-", "ple of it")]), "An example of it"),
    "beside the page": (pdf([at((72, 700, "Here"), (900, 700, "Not here"))]), "Here"),
    "upwards": (pdf([turned("One", "Two", matrix="0 1 -1 0", step=(16, 0))]), "One\nTwo"),
    "downwards": (pdf([turned("One", "Two", matrix="0 -1 1 0", step=(-16, 0))]), "One\nTwo"),
    "upside down": (pdf([turned("One", "Two", matrix="-1 0 0 -1", step=(0, 16))]), "One\nTwo"),
    "at a slant": (pdf([lines("One") + b"\n" + turned("Draft", matrix="0.71 0.71 -0.71 0.71", step=(0, 0))]),
                   "One\nDraft"),
    "a turned page": (pdf([rows("2023|5", "2024|8")], page=b"/Rotate 90 "), "2023\t5\n2024\t8"),
    "across a turned page": (pdf([turned("One", "Two", matrix="0 1 -1 0", step=(16, 0))], page=b"/Rotate 90 "),
                             "One\nTwo"),
    "emoji and ligatures": (mapped((97, "D83DDE00"), (98, "006600660069")), "\U0001f600ffi \U0001f600ffi"),
    "check marks": (pdf([at((72, 700, "4lnq"))], font=FONT.replace(b"Helvetica", b"ZapfDingbats")),
                    "\u2714\u25cf\u25a0\u2751"),
    "a text field": (form(at((60, 700, "Name:"), (300, 700, "Date:")), widget("100 696 290 714", "/V (Ada) /AP << /N 6 0 R >>"),
                          widget("340 696 400 714", "/V (2024-01-02)"), looks=[look("(Ada) Tj")]), "Name: Ada\tDate: 2024-01-02"),
    "a field that says otherwise": (form(at((60, 700, "Sum:")), widget("100 696 290 714", "/V (1234.5) /AP << /N 5 0 R >>"),
                                         looks=[look("(1,234.50) Tj")]), "Sum: 1,234.50"),
    "a field in a line": (form(at((60, 700, "I, "), (200, 700, ", agree.")), widget("75 696 195 714", "/V (Ada)")),
                          "I, Ada\t, agree."),
    "a field of two lines": (form(at((60, 700, "Remarks:"), (60, 600, "Signed:")), widget("120 630 290 714", "/Ff 4096 /V (x) /AP << /N 5 0 R >>"),
                                  looks=[look("(One) Tj 0 -14 Td (Two) Tj", "0 0 170 84", "2 70")]), "Remarks: One\nTwo\nSigned:"),
    "a comb": (form(at((60, 700, "Number:")), widget("120 696 290 714", "/Ff 16777216 /MaxLen 8 /V (12) /AP << /N 5 0 R >>"),
                    looks=[look("(1) Tj 21 0 Td (2) Tj")]), "Number:\t1 2"),
    "a password": (form(at((60, 700, "Key:")), widget("100 696 290 714", "/Ff 8192 /V (SECRET)")), "Key:\t******"),
    "a hidden field": (form(at((60, 700, "Key:")), widget("100 696 290 714", "/F 2 /V (SECRET)")), "Key:"),
    "check boxes": (form(at((80, 700, "Yes"), (140, 700, "No"), (200, 700, "Maybe")), widget("60 698 72 710", CHECKED.format(7), "/Btn"),
                         widget("120 698 132 710", "/AS /Off", "/Btn"), widget("180 698 192 710", "/V /Yes /AS /Yes", "/Btn"),
                         looks=[look("(4) Tj", "0 0 12 12", "1 1", "/F1 << /Type /Font /Subtype /Type1 /BaseFont /ZapfDingbats >>")]),
                    "[x] Yes\t[ ] No\t[x] Maybe"),
    "radio buttons": (pdf([at((80, 700, "Red"), (140, 700, "Blue"))], root=b"/AcroForm << /Fields [4 0 R] >>", page=b"/Annots [5 0 R 6 0 R] ", more=[
        b"<< /FT /Btn /Ff 49152 /T (colour) /V /b /Kids [5 0 R 6 0 R] >>",
        b"<< /Type /Annot /Subtype /Widget /Parent 4 0 R /Rect [60 698 72 710] /AS /Off /AP << /N << /a 7 0 R >> >> >>",
        b"<< /Type /Annot /Subtype /Widget /Parent 4 0 R /Rect [120 698 132 710] /AS /b /AP << /N << /b 7 0 R >> >> >>",
        stream(b"0 0 12 12 re f", "/Type /XObject /Subtype /Form /BBox [0 0 12 12]")]), "[ ] Red\t[x] Blue"),
    "a combo box": (form(at((60, 700, "Size:")), widget("100 696 290 714", f"/Ff 131072 {OPTIONS} /V (l)", "/Ch")), "Size:\tLarge"),
    "a list": (form(at((60, 700, "Size:")), widget("100 670 290 714", f"{OPTIONS} /V (l)", "/Ch")), "Size: [ ] Small [x] Large"),
    "a value of the field above": (pdf([at((60, 700, "Name:"))], root=b"/AcroForm << /Fields [4 0 R] >>", page=b"/Annots [5 0 R] ", more=[
        b"<< /FT /Tx /T (x) /V (Ada) /DA (/F1 12 Tf) /Kids [5 0 R] >>",
        b"<< /Type /Annot /Subtype /Widget /Parent 4 0 R /Rect [100 696 290 714] >>"]), "Name: Ada"),
    "a field without a form": (pdf([at((60, 700, "Name:"))], more=[widget("100 696 290 714", "/AP << /N 5 0 R >>"), look("(Ada) Tj")],
                                   page=b"/Annots [4 0 R] "), "Name: Ada"),
    "a form on a turned page": (form(turned("Name:", "City:", matrix="0 1 -1 0", step=(30, 0)), widget("286 340 304 540", "/V (x) /AP << /N 5 0 R >>"),
                                     looks=[stream(b"BT /F1 12 Tf 0 1 -1 0 14 2 Tm (Ada) Tj ET", "/Type /XObject /Subtype /Form /BBox [0 0 18 200] /Resources << /Font << /F1 3 0 R >> >>")],
                                     page=b"/Rotate 90 "), "Name: Ada\nCity:"),
    "typed onto the page": (pdf([at((60, 700, "Above"), (60, 500, "Below"))], page=b"/Annots [4 0 R 5 0 R] ",
                                more=[note("/FreeText", "60 600 260 618", "/Contents (Approved) /AP << /N 6 0 R >>"),
                                      note("/FreeText", "60 560 260 578", "/Contents (by Ada)"), look("(Approved) Tj")]), "Above\nApproved\nby Ada\nBelow"),
    "a stamp": (pdf([at((60, 700, "Drawing 7"))], page=b"/Annots [4 0 R] ",
                    more=[note("/Stamp", "300 696 500 714", "/Name /Draft /AP << /N 5 0 R >>"), look("(DRAFT) Tj")]), "Drawing 7\tDRAFT"),
    "a comment and a link": (pdf([at((60, 700, "Text"))], page=b"/Annots [4 0 R 5 0 R] ",
                                 more=[note("/Link", "60 700 90 712", ""), note("/Text", "60 700 90 712", "/Contents (Psst)")]), "Text"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_is_read_as_people_see_it(name: str) -> None:
    """Cells stay apart, lines stay lines, and what was filled in or typed on is in its place."""
    content, shown = SHOWN[name]
    found = extract("pdf", content)
    assert (found.text, found.garbled, found.bare) == (f"[p. 1]\n{shown}", (), ())


def named(*names: str) -> bytes:
    """Return a font that calls its letters from `a` on by names of its own."""
    said = " ".join(names)
    widths = f"/FirstChar 97 /LastChar {96 + len(names)} /Widths [{'600 ' * len(names)}]"
    coding = f"/Encoding << /Differences [97 {said}] >>"
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /X+Y {widths} {coding} >>".encode()


def descending(*more: bytes) -> Iterable[bytes]:
    """Return the font of two bytes a letter on which another rests."""
    yield (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X+Y /FontDescriptor 5 0 R "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    )
    yield (
        b"<< /Type /FontDescriptor /FontName /X+Y /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 "
        b"/Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>"
    )
    yield from more


IDENTITY = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /X+Y /Encoding /Identity-H /DescendantFonts [4 0 R] >>"
)
TYPE_3 = (
    b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 750 750] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 97 "
    b"/LastChar 98 /Widths [800 800] /CharProcs << /g1 4 0 R /g2 4 0 R >> "
    b"/Encoding << /Type /Encoding /Differences [97 /g1 /g2] >> >>"
)
SQUARE = stream(b"800 0 0 0 750 750 d1 0 0 750 750 re f")
NUMBERED = '!"#$%&\'!("#)*!+,%(-.&!/0!1"2&3'
"""A text as a font calls it that numbers its letters as they come."""

TWO_FONTS = b"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> "

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "letters with names of their own": (pdf([lines("ab ab")], font=named("/g1", "/g2")), ""),
    "two bytes a letter": (pdf([b"BT /F1 12 Tf 72 700 Td <00240025> Tj ET"], font=IDENTITY, more=descending()), ""),
    "drawn letters": (pdf([lines("ab ab")], font=TYPE_3, more=[SQUARE]), ""),
    "private letters": (mapped((97, "E001"), (98, "E002")), ""),
    "control characters": (mapped((97, "0007"), (98, "0008")), ""),
    "letters numbered as they come": (pdf([lines(NUMBERED)]), NUMBERED.replace("'", "\u2019")),
    "a sum among words": (pdf([at((60, 700, "The sum is:")) + b" BT /F2 12 Tf 140 700 Td (abab) Tj ET"], page=TWO_FONTS,
                              more=[named("/g1", "/g2")]), "The sum is:\t\ufffd"),
    "a scanned form": (form(box(), widget("100 696 290 714", "/V (Ada)")), "Ada"),
}  # fmt: skip


async def test_a_page_that_says_more_than_its_text_is_a_picture_too() -> None:
    """Letters that only their shape tells are never passed on as others; people read which pages those are."""
    read = await all_by_one("pdf", {name: content for name, (content, _) in UNREADABLE.items()})
    for name, (_, text) in UNREADABLE.items():
        [file] = read[name].attachments
        assert file.text == (f"[p. 1]\n{text}" if text else ""), name
        assert [picture.page for picture in file.pictures] == [1], name
        assert file.omitted == "page 1 says something that can't be read as text", name


def test_single_unknown_signs_leave_a_page_text() -> None:
    """Such as a symbol font's bullets."""
    points = ((700, "First point"), (680, "Second point"))
    content = pdf(
        [b" ".join(at((60, y, "a"), font="/F2 12 Tf") + b" " + at((80, y, said)) for y, said in points)],
        page=TWO_FONTS,
        more=[TYPE_3.replace(b"4 0 R", b"5 0 R"), SQUARE],
    )
    found = extract("pdf", content)
    assert (found.text, found.garbled) == ("[p. 1]\n\ufffd\tFirst point\n\ufffd\tSecond point", ())
