"""Reviews in prose with marks that say which answer the words are about; `data/divided.txt` explains them."""

import re
from pathlib import Path

_CASE = re.compile(r"^=== (.+)\n", re.MULTILINE)
_MARK = re.compile(r"\[\[([ABC])\|(.*?)\]\]", re.DOTALL)


def _cases() -> list[tuple[str, str, dict[str, str]]]:
    """Return each case's name, its text without the marks, and the marked words by letter."""
    text = (Path(__file__).parent / "data" / "divided.txt").read_text(encoding="utf-8")
    _, *parts = _CASE.split(text)
    return [
        (name, _MARK.sub(r"\2", marked).strip(), _marked(marked))
        for name, marked in zip(parts[::2], parts[1::2], strict=True)
    ]


def _marked(text: str) -> dict[str, str]:
    words = dict.fromkeys("ABC", "")
    for letter, said in _MARK.findall(text):
        words[letter] += f" {said}"
    return {letter: said for letter, said in words.items() if said}


CASES = _cases()
