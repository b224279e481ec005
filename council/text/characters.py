"""Texts by their characters: cut short, scripts without spaces, halves of surrogate pairs."""

import re

# Kana, Han (with its extensions), Hangul and their half-width forms.
_CJK_RUN = re.compile(
    "[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)


def set_apart(text: str, gap: str) -> str:
    """Return a text with a gap before, between and after CJK characters."""
    return text if text.isascii() else _CJK_RUN.sub(lambda run: f"{gap}{gap.join(run[0])}{gap}", text)


def whole(text: str) -> str:
    """Replace lone halves of surrogate pairs, which neither files nor terminals accept."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clip(text: str, length: int) -> str:
    """Shorten to `length` characters, at the end of a word unless that costs half of them."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    space = cut.rfind(" ")
    return f"{cut[:space] if space > length // 2 else cut}\u2026"
