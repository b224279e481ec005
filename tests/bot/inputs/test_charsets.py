"""Text in the charsets in which people's programs and sites write it."""

import codecs
import time
from collections.abc import Iterable, Iterator

import pytest

from bot.inputs.kinds import text_of
from tests.pairs import rows

JAPANESE = "水は百度で沸騰します。ポンプは赤です。カタログをご覧ください。"
CHINESE = "水在一百度沸腾。水泵是红色的，请检查阀门。"
TRADITIONAL = "水在一百度沸騰。水泵是紅色的，請檢查閥門。"
KOREAN = "물은 백도에서 끓습니다. 펌프는 빨간색입니다."
RUSSIAN = "Вода кипит при ста градусах. Насос красный."
GERMAN = "Name;Größe;Straße\nMüller;3,5;Hauptstraße\n"
POLISH = "Woda wrze w stu stopniach. Żółta pompa, źródło."

NAMED = [
    ("shift_jis", "cp932", JAPANESE + "①㈱髙"),
    ("Shift_JIS", "cp932", JAPANESE),
    ("x-sjis", "cp932", JAPANESE),
    ("Windows-31J", "cp932", JAPANESE + "①"),
    ("euc-jp", "euc_jp", JAPANESE),
    ("iso-2022-jp", "iso2022_jp", JAPANESE),
    ("gb2312", "gb18030", CHINESE + "镕€"),
    ("GBK", "gb18030", CHINESE),
    ("gb18030", "gb18030", CHINESE),
    ("big5", "big5hkscs", TRADITIONAL),
    ("euc-kr", "cp949", KOREAN + "똠"),
    ("ks_c_5601-1987", "cp949", KOREAN),
    ("koi8-r", "koi8_r", RUSSIAN),
    ("koi8-u", "koi8_u", RUSSIAN + "Ґ"),
    ("windows-1251", "cp1251", RUSSIAN),
    ("cp866", "cp866", RUSSIAN),
    ("iso-8859-5", "iso8859_5", RUSSIAN),
    ("windows-1250", "cp1250", POLISH),
    ("iso-8859-2", "iso8859_2", POLISH),
    ("iso-8859-1", "cp1252", GERMAN + "“€”"),
    ("us-ascii", "cp1252", GERMAN),
    ("iso-8859-15", "iso8859_15", GERMAN + "€"),
    ("iso-8859-9", "cp1254", "Kırmızı şişe"),
    ("windows-1253", "cp1253", "Το νερό βράζει"),
    ("windows-1255", "cp1255", "מים רותחים"),
    ("windows-1256", "cp1256", "الماء يغلي"),
    ("windows-874", "cp874", "น้ำเดือด"),
    ("TIS-620", "cp874", "น้ำเดือด"),
    ("windows-1258", "cp1258", "Nước".replace("ướ", "uo")),
    ("macintosh", "mac_roman", GERMAN),
    ("utf-16", "utf-16-le", f"<html>{JAPANESE}</html>"),
    ("utf-16be", "utf-16-be", f"<html>{JAPANESE}</html>"),
    ("utf8", "utf-8", JAPANESE),
]
"""Labels of the Encoding Standard, what a browser reads them by, and a text that shows it."""


@rows(("label", "codec", "text"), NAMED)
def test_a_charset_is_named_by_a_header_or_in_markup(label: str, codec: str, text: str) -> None:
    """Quoted or not, in HTML old or new, and in XML; browsers read many labels by a wider charset."""
    assert text_of(text.encode(codec), f"text/html; charset={label}") == (text, None)
    assert text_of(text.encode(codec), f'text/html;Charset="{label}"') == (text, None)
    if not codec.startswith("utf-16"):
        for head in (
            f"<!doctype html><html><head><meta charset={label}>",
            f'<html><head><title>x</title><meta content="text/html; charset={label}" http-equiv=content-type>',
            f"<?xml version='1.0' encoding='{label}'?><html>",
        ):
            assert text_of((head + text).encode(codec)) == (head + text, None)


@rows(
    ("text", "codec", "media", "head"),
    [
        (JAPANESE, "utf-8", "text/html; charset=iso-8859-1", ""),
        (JAPANESE, "utf-8", "text/html; charset=shift_jis", ""),
        (GERMAN, "utf-8", "", "<meta charset=windows-1252>"),
        (GERMAN, "utf-8", "", "<meta charset=utf-16>"),
        (JAPANESE, "cp932", "text/html; charset=utf-8", "<meta charset=shift_jis>"),
        (JAPANESE, "euc_jp", "text/html; charset=utf-8", "<meta charset=euc-jp>"),
        (KOREAN, "cp949", "text/html; charset=nonsense", "<meta charset=euc-kr>"),
        (GERMAN, "utf-8-sig", "text/html; charset=shift_jis", ""),
        (GERMAN, "utf-16", "text/html; charset=utf-8", ""),
    ],
)
def test_a_wrong_name_is_not_believed(text: str, codec: str, media: str, head: str) -> None:
    """Where the bytes say otherwise; a byte order mark is believed before all."""
    assert text_of((head + text).encode(codec), media) == (head + text, None)


@rows("name", ["unicode_escape", "utf-7", "punycode", "idna", "zlib", "rot13", "hex", "undefined"])
def test_what_is_no_charset_is_not_used(name: str) -> None:
    """Python knows it, browsers don't; some of these would take hours."""
    started = time.process_time()
    content = b"\\u0041+AEE- \xfc" + b"a-" * 100_000
    text, said = text_of(content, f"text/html; charset={name}") or ("", None)
    assert text.startswith("\\u0041+AEE- ü")
    assert said == "read as Windows-1252"
    assert time.process_time() - started < 5


@rows(
    ("text", "codec", "said"),
    [
        (GERMAN, "cp1252", "Windows-1252"),
        ("Nom;Prix\nCafé crème;3,50 €\nThé à l’eau;2 €\n", "cp1252", "Windows-1252"),
        ("Item;Price\nPump;€ 120\n", "cp1252", "Windows-1252"),
        ("El señor Muñoz pidió 3 cafés y una piña.\n", "cp1252", "Windows-1252"),
        ("NÃO SÃO;ação\n", "cp1252", "Windows-1252"),
        ("Åsa;Ängelholm\nÖrjan;Åre\n", "cp1252", "Windows-1252"),
        ("50 °C ± 2\n", "cp1252", "Windows-1252"),
        ("Größe", "cp1252", "Windows-1252"),
        (JAPANESE, "cp932", "Shift_JIS"),
        ("日付,担当,金額\n2024-08-21,田中,1200\n2024-08-22,佐藤,3400\n", "cp932", "Shift_JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        (CHINESE, "gb18030", "GB18030"),
        ("日期,负责人,金额\n2024-08-21,王伟,1200\n2024-08-22,李娜,3400\n", "gb18030", "GB18030"),
        (TRADITIONAL, "big5hkscs", "Big5"),
        (KOREAN, "cp949", "EUC-KR"),
        (RUSSIAN, "cp1251", "windows-1251"),
        ("Дата;Имя;Сумма\n21.08.2024;Иванов;1200\n", "cp1251", "windows-1251"),
        (RUSSIAN, "koi8_r", "KOI8-R"),
        ("Το νερό βράζει στους εκατό βαθμούς.", "cp1253", "windows-1253"),
        ("x = 1  # " + JAPANESE + "\n" + "print(x)\n" * 5_000, "cp932", "Shift_JIS"),
        ("x,y\n" * 20_000 + GERMAN, "cp1252", "Windows-1252"),
    ],
)
def test_a_charset_that_nothing_names_is_guessed_and_said(text: str, codec: str, said: str) -> None:
    """By the frequent characters of other scripts; what is otherwise text is Windows-1252."""
    assert text_of(text.encode(codec)) == (text, f"read as {said}")


LOG = b"10:00 pump started\n10:01 pressure 3 bar\n10:02 pump stopped\n"


@rows(
    ("content", "replaced"),
    [
        (LOG + b"10:03 \xff\n", 1),
        (LOG + b"10:03 pump\xfe7\n", 1),
        (LOG + b"10:03 \0\n", 1),
        (LOG[:14] + b"\x80" + LOG[14:], 1),
        (LOG + b"10:03 caf\xc3\n", 1),
        (LOG + b"10:03 \xe2\x80", 1),
        (LOG + "10:03 Müller, café, naïve\n".encode() + b"caf\xe9\n", 1),
        (LOG + "😀".encode()[:3] + b"\n", 1),
        ("水は百度".encode()[:-1] + LOG, 1),
        (LOG * 50 + b"\0" * 12, 12),
        (b"\xff\xfe" + LOG.decode().encode("utf-16-le") + b"\0", 1),
        (b"\xef\xbb\xbf" + LOG + b"\xff", 1),
        (LOG * 9 + b"\xff\xfe\x90\n", 3),
    ],
)
def test_a_stray_byte_is_replaced_and_said(content: bytes, replaced: int) -> None:
    """Noise on a line, a NUL, a character cut in two: the rest is text."""
    text, said = text_of(content) or ("", None)
    assert "pressure 3 bar" in text
    assert text.count("\ufffd") == replaced
    assert said == f"{replaced} unreadable byte{'s' * (replaced > 1)} replaced"


@rows(
    "content",
    [
        b"a\0b",
        b"\xff\xfeo",
        b"\xff\xfe\x00\xd8\x41\x00",
        b"\xfe\xff\x00\x00",
        "Größe".encode("utf-16-le"),
        bytes(range(256)),
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9W(\xcf/\xcaI\x01",
        b"RIFF\0\0\0\0WAVE",
        b"\x89\xff",
        "الماء يغلي عند مئة درجة".encode("cp1256"),
        "น้ำเดือดที่ร้อยองศา".encode("cp874"),
        b"\x7fELF" + b"\0" * 60 + b"\x01\x02",
        b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20\0\0\0\x07",
    ],
)
def test_what_is_no_text_is_not_read(content: bytes) -> None:
    """Half a character, half of UTF-16, files of other kinds, and scripts that nothing here tells apart."""
    assert text_of(content) is None


@rows("text", ["", "Hello", "a �\n", "\x1b[31mred\x1b[0m\n", "Größe: 3 TB 🚀\r\n"])
def test_utf_8_needs_no_word(text: str) -> None:
    """Also if it has a replaced character from elsewhere."""
    assert text_of(text.encode()) == (text, None)


@rows("codec", ["cp1252", "cp932", "gb18030", "big5", "iso2022_jp", "utf-8", "utf-16"])
def test_what_is_replaced_is_decoded_piece_by_piece(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five megabytes of nothing but bad bytes took two seconds in which no other thread ran; no cut shows."""
    sizes: list[int] = []
    whole = codecs.iterdecode

    def noted(pieces: Iterable[bytes], *how: str) -> Iterator[str]:
        return whole((sizes.append(len(piece)) or piece for piece in pieces), *how)

    monkeypatch.setattr(codecs, "iterdecode", noted)
    content = ("\ufeff" if codec == "utf-16" else "").encode(codec) + "水 は百度で".encode(
        codec, "ignore"
    ) * 40_000
    text, _ = text_of(content + b"\xff\xff\x81", f"text/plain; charset={codec}") or ("", None)
    assert max(sizes) <= 2**16
    assert "\ufffd" not in text[:-9]
