"""Where a link in a text ends, whatever script the text is in."""

import time

import pytest

from bot.inputs.links import host_of, links_in
from tests.pairs import rows

LINKS = {
    "See (https://a.example/x). And <https://b.example/y_(z)>, https://c.example/?q=1&r=2! http://d": [
        "https://a.example/x", "https://b.example/y_(z)", "https://c.example/?q=1&r=2", "http://d",
    ],
    "(https://a.example/F_(b_(c)))": ["https://a.example/F_(b_(c))"],
    "[docs](https://a.example/a_(b)), and [more](https://b.example)[x]": ["https://a.example/a_(b)", "https://b.example"],
    "[text](https://a.example/x)and (https://a.example/y)…": ["https://a.example/x", "https://a.example/y"],
    "<https://a.example/x|our page>, <https://ja.wikipedia.org/wiki/C言語|C>": ["https://a.example/x", "https://ja.wikipedia.org/wiki/C言語"],
    "**https://a.example/x**, `https://b.example`, ~~https://c.example~~ ||https://d.example||": ["https://a.example/x", "https://b.example", "https://c.example", "https://d.example"],
    "HTTPS://A.example/x,https://b.example/y;http://c.example": ["HTTPS://A.example/x", "https://b.example/y", "http://c.example"],
    "https://web.archive.org/web/2020/https://a.example/x": ["https://web.archive.org/web/2020/https://a.example/x"],
    "https://a.example/x#y-z/ is, https://a.example/?a=b%20c;d=e~f@g:h": ["https://a.example/x#y-z/", "https://a.example/?a=b%20c;d=e~f@g:h"],
    "https:// and http://... and https://)": [],
    "请看https://a.example/x。谢谢，https://b.example/y，（https://c.example/z）": ["https://a.example/x", "https://b.example/y", "https://c.example/z"],
    "「https://a.example/x」『https://b.example/y』【https://c.example/z】《https://d.example》": ["https://a.example/x", "https://b.example/y", "https://c.example/z", "https://d.example"],
    "https://a.example/x、https://b.example/y！https://c.example/z？https://d.example：": ["https://a.example/x", "https://b.example/y", "https://c.example/z", "https://d.example"],
    "https://a.example/xを見て。https://b.example/y에서 https://c.example请看": ["https://a.example/x", "https://b.example/y", "https://c.example"],
    "https://ja.wikipedia.org/wiki/ジョン・レノン https://zh.wikipedia.org/wiki/中国 https://ko.wikipedia.org/wiki/물": ["https://ja.wikipedia.org/wiki/ジョン・レノン", "https://zh.wikipedia.org/wiki/中国", "https://ko.wikipedia.org/wiki/물"],
    "“https://a.example/x”, ‘https://b.example/y’ „https://c.example/z“ ‚https://d.example‘": ["https://a.example/x", "https://b.example/y", "https://c.example/z", "https://d.example"],
    "«https://a.example/x» »https://b.example/y« ‹https://c.example/z› ⟨https://d.example⟩": ["https://a.example/x", "https://b.example/y", "https://c.example/z", "https://d.example"],
    "https://a.example/x—so https://b.example/y – https://c.example/z–": ["https://a.example/x", "https://b.example/y", "https://c.example/z"],
    "https://en.wikipedia.org/wiki/Michelson–Morley_experiment": ["https://en.wikipedia.org/wiki/Michelson–Morley_experiment"],
    "https://de.wikipedia.org/wiki/Köln, https://ru.wikipedia.org/wiki/Вода. https://el.wikipedia.org/wiki/Νερό": ["https://de.wikipedia.org/wiki/Köln", "https://ru.wikipedia.org/wiki/Вода", "https://el.wikipedia.org/wiki/Νερό"],
    "https://hi.wikipedia.org/wiki/हिन्दी। https://th.wikipedia.org/wiki/น้ำ https://ar.wikipedia.org/wiki/ماء، https://a.example/x؟": ["https://hi.wikipedia.org/wiki/हिन्दी", "https://th.wikipedia.org/wiki/น้ำ", "https://ar.wikipedia.org/wiki/ماء", "https://a.example/x"],
    "https://a.example/x։ https://b.example/y። https://c.example/z៖": ["https://a.example/x", "https://b.example/y", "https://c.example/z"],
    "https://a.example/x🙂 https://b.example/y\u200b https://c.example/z\u200f, https://d.example\u00a0so": ["https://a.example/x", "https://b.example/y", "https://c.example/z", "https://d.example"],
    "'https://a.example/x', \"https://b.example/y\"\\n": ["https://a.example/x", "https://b.example/y"],
    "https://a.example/x https://a.example/x.": ["https://a.example/x"],
}  # fmt: skip
"""Texts, and the links in them."""


@rows("text", LINKS)
def test_links_end_before_what_follows_them(text: str) -> None:
    """Brackets that belong to an address stay; the quotes, brackets and full stops of all scripts don't."""
    assert links_in(text) == LINKS[text]


def test_a_site_is_named_without_www() -> None:
    """As people name it."""
    assert host_of("https://www.Example.org/post") == "example.org"


@pytest.mark.parametrize(
    "text",
    [
        "https://a" + ")" * 150_000,
        "https://a" + ").(" * 50_000,
        "https://a" + ")." * 75_000,
        "https://a" + "(" * 150_000,
        "https://a" + "." * 150_000,
        "<https://" * 17_000,
        "<https://a。" * 14_000,
        "https://" * 18_000,
        "https://a" + ",https:/" * 18_000,
        "https://a" + "日a" * 75_000,
        "http" * 40_000,
    ],
    ids=lambda text: f"{text[9:20]}",
)
def test_looking_for_links_takes_time_that_grows_with_the_text(text: str) -> None:
    """Some of these took a minute and a half."""
    started = time.process_time()
    links_in(text)
    assert time.process_time() - started < 5
