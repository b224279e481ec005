"""Texts: cut short, divided into sentences, and known by their language.

A language is named if its script or its small words show it for certain: prompts name the question's,
because small models overlook *the question's language*, and a correction that changes it doesn't count.
Nothing is guessed: a text of one or two words, or one that shows no language, or two, has none. Code,
addresses and quotations aren't read.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

# Kana, Han (with its extensions), Hangul and their half-width forms.
_CJK_RUN = re.compile(
    "[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f](?:(?<=[\u3002\uff01\uff1f])|[\"')\]*]*(?:\s+|$))")
_SHORT = ("e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "no.", "fig.", "resp.", "z.b.", "bzw.", "ca.")
_ABBREVIATION = re.compile(rf"\b(?:{'|'.join(map(re.escape, _SHORT))})$")
_MONTH = re.compile("Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez")
_OPENING = "\"'([*_"

LONGEST = 20_000
"""Characters of a text that are looked at for its language."""
CLEAR = 2
"""Words that a language has to be ahead of every other one."""
FEWEST = 3
"""Words from which a text has a language; fewer may be names, or words of any language."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d", re.DOTALL
)
_SCRIPTS = {
    "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "KATAKANA-HIRAGANA": "Japanese", "HANGUL": "Korean",
    "CJK": "Chinese", "FULLWIDTH": "Latin",
}  # fmt: skip
"""What scripts are called here that Unicode's names of letters begin differently for."""


_FILE = Path(__file__).with_name("languages.toml")  # read now: a run may have no descriptor left
_LANGUAGES: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text("utf-8"))
_VOTES: dict[str, list[str]] = {}
"""The languages that have a small word."""
for _name, _row in _LANGUAGES.items():
    for _word in _row.get("words", "").split():
        _VOTES.setdefault(_word, []).append(_name)


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


def sentences(text: str) -> list[str]:
    """Return the sentences of a line, or what replaces them."""
    ends = [0, *sentence_ends(text), len(text)]
    said = (text[start:end].strip() for start, end in pairwise(ends))
    return [each for each in said if each]


def sentence_ends(text: str, limit: int | None = None) -> Iterator[int]:
    """Yield the places right after each sentence, with what closes beside its mark, up to a limit.

    A mark before a small letter ends none, nor does that of an abbreviation or of a German date.
    """
    for found in _END.finditer(text):
        mark = found[0]
        end = found.start() + len(mark.rstrip())
        if limit is not None and end > limit:
            return
        if not (mark[-1].isspace() and _continues(text, found)):
            yield end


def _continues(text: str, mark: re.Match[str]) -> bool:
    if (end := mark.end()) == len(text):
        return False
    if text[end : end + len(_OPENING)].lstrip(_OPENING)[:1].islower():
        return True
    stop = mark.start() + 1
    if text[max(0, stop - 2) : stop - 1].isdigit() and _MONTH.match(text, end):
        return True
    return bool(_ABBREVIATION.search(text[max(0, stop - len(" approx.")) : stop].lower()))


@lru_cache(maxsize=32)
def script(text: str) -> str:
    """Return the script of a text, Latin unless a third of its letters are in another one."""
    scripts: Counter[str] = Counter()
    for letter, times in Counter(_NOT_PROSE.sub(" ", text[:LONGEST])).items():
        if letter.isalpha():
            name = unicodedata.name(letter, "").partition(" ")[0]
            scripts[_SCRIPTS.get(name, name.capitalize())] += times
    # Japanese has Chinese signs, too.
    written = (name for name in ("Japanese", *scripts) if 3 * scripts[name] > scripts.total())
    return next((name for name in written if name != "Latin"), "Latin")


@lru_cache(maxsize=32)  # every prompt of a run asks for its question's
def language(text: str) -> str | None:
    """Return the English name of a text's language, `None` if it isn't certain."""
    prose = _NOT_PROSE.sub(" ", text[:LONGEST]).lower()
    match script(text):
        case "Cyrillic":
            rows = _LANGUAGES.items()
            found = {name for name, row in rows if any(map(prose.count, row.get("letters", "")))}
            return found.pop() if len(found) == 1 else None
        case "Latin":
            words = _WORD.findall(prose.replace("\u2019", "'"))
            votes = Counter(name for word in {*words} for name in _VOTES.get(word, ()))
            if len(words) < FEWEST or not votes:
                return None
            (first, most), *others = votes.most_common(2)
            return first if most - sum(times for _, times in others) >= CLEAR else None
        case name:
            return name if name in _LANGUAGES else None


def language_tag(text: str) -> str | None:
    """Return the BCP 47 tag of a text's language, `None` if it isn't certain."""
    name = language(text)
    return _LANGUAGES[name]["tag"] if name else None
