"""Pages in another's place: named as what they are, and no ordinary page is taken for one."""

from collections.abc import Callable
from typing import Any

import pytest
import trafilatura

from bot.inputs.child import extract
from bot.inputs.files import FileContent
from tests.bot.inputs.pages import ARTICLES, WALLS, article, reader
from tests.pairs import rows


@rows("name", WALLS)
async def test_a_wall_is_no_page(name: str) -> None:
    """Nothing of it is read, and people learn what the site wants."""
    html, why = WALLS[name]

    page = FileContent("https://example.org/x", html.encode(), "https://example.org/x", "text/html")
    [read] = (await reader().read([page])).attachments
    assert (read.text, read.omitted) == ("", why)


@rows("name", ARTICLES)
def test_an_ordinary_page_is_no_wall(name: str) -> None:
    """Whatever it speaks of, and whatever stands beside it."""
    found = extract("page", ARTICLES[name].encode())
    assert found.trouble is None
    assert found.text


BIG = "x " * 1_250_000


@pytest.mark.parametrize(
    "page",
    [
        article(around=f"<div class='{BIG}'>x</div>"),
        article(around=f"<a title='{BIG}' href='http://x/{BIG[:900_000]}'>x</a>"),
        article().replace("<head>", f"<head><meta property='og:title' content='{BIG}'>"),
        article().replace("<head>", f"<head><meta name='author' content='{BIG}'>"),
        article().replace("<html>", f"<html class='{BIG}'>"),
        article().replace("<title>", f"<title>{BIG}"),
    ],
    ids=["class", "title and href", "og:title", "author", "html", "title"],
)
def test_an_attribute_of_megabytes_is_cut(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search of the library's looks through it."""
    seen: list[int] = []

    def noted(name: str) -> None:
        whole: Callable[..., object] = getattr(trafilatura, name)

        def called(tree: Any, **options: Any) -> object:
            seen.extend(
                len(text or "")
                for each in tree.iter()
                for text in (*each.values(), each.text, each.tail)
            )
            return whole(tree, **options)

        monkeypatch.setattr(trafilatura, name, called)

    noted("extract")
    noted("extract_metadata")
    assert "Water boils at a hundred degrees." in extract("page", page.encode()).text
    assert max(seen) <= 100_000
