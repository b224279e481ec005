"""Tells a page that is in another's place: a login, a check for robots, a wall of cookies, an empty app.

It says little else. An article may speak of all that, and have a form or a question beside it.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

Wall = Literal["checks_for_robots", "asks_for_cookies", "needs_login", "needs_javascript"]
Tree = Any
"""lxml's element: the library has no types."""

_ROWS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
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
