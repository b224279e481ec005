"""Other people's Markdown, made harmless."""

from hypothesis import given

from bot.transcript.prose import html
from tests.fragments import made_of
from tests.pairs import rows

LINK = '<a href="{0}" rel="noopener noreferrer"><bdi>{1}</bdi></a>'
SHOWN = ' <span class="address">(<bdi dir="ltr">{0}</bdi>)</span>'


def shown(markdown: str) -> str:
    """Return a paragraph's inside."""
    return html(markdown, 3).strip().removeprefix("<p>").removesuffix("</p>")


@rows(
    ("markdown", "expected"),
    [
        ("<script>x</script> &lt;b&gt;", "&lt;script&gt;x&lt;/script&gt; &lt;b&gt;"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](data:text/html,y)", "[x](data:text/html,y)"),
        ("[x](/etc/passwd)", f"<bdi>x</bdi>{SHOWN.format('/etc/passwd')}"),
        ("[here](https://a.org/b)", LINK.format("https://a.org/b", "here") + SHOWN.format("https://a.org/b")),
        ("[a.org](https://b.org)", LINK.format("https://b.org", "a.org") + SHOWN.format("https://b.org")),
        ("<https://a.org>, https://b.org/c_d_e.", f"{LINK.format('https://a.org', 'https://a.org')}, {LINK.format('https://b.org/c_d_e', 'https://b.org/c_d_e')}."),
        ("<a@b.org>", LINK.format("mailto:a@b.org", "a@b.org")),
        ("![cat](https://a.org/c.png)", LINK.format("https://a.org/c.png", "cat") + SHOWN.format("https://a.org/c.png")),
        ("![](ftp://a.org/c)", f"<bdi>picture</bdi>{SHOWN.format('ftp://a.org/c')}"),
        ("[![cat](https://a.org/c.png)](https://b.org)", LINK.format("https://b.org", "cat") + SHOWN.format("https://b.org")),
        ("[<https://a.b>\\[a](http://x.y/b)", LINK.format("http://x.y/b", "https://a.b[a") + SHOWN.format("http://x.y/b")),
        (r"So \(x_1 < 2\) and $$a=b$$", "So x₁ &lt; 2 and a = b"),
        (r"\begin{gather} a \\ b \end{gather}", "a<br>\nb"),
        (r"\(\text{<script>} \le \href{javascript:a}{b}\)", r"<code>\(\text{&lt;script&gt;} \le \href{javascript:a}{b}\)</code>"),
        (r"\(x = \text{<b>}\)", "x = &lt;b&gt;"),
        ("\\* ~~gone~~ [r]\n\n[r]: https://a.org", "* <s>gone</s> " + LINK.format("https://a.org", "r") + SHOWN.format("https://a.org")),
    ],
)  # fmt: skip
def test_nothing_in_a_text_can_act(markdown: str, expected: str) -> None:
    """HTML is text, a picture is a link, a link leads to the web or a mailbox, and shows where."""
    assert shown(markdown) == expected


def test_a_part_keeps_its_place_in_the_page() -> None:
    """Headings rank below the one above, cells are aligned without a style of their own."""
    assert html("# A\n\n##### B\n\n## C", 3) == "<h4>A</h4>\n<h5>B</h5>\n<h5>C</h5>\n"
    assert '<td class="right">1</td>' in html("| a |\n| -: |\n| 1 |", 3)
    assert "style=" not in html("| a |\n| -: |\n| 1 |", 3)


def test_deep_nesting_is_shown_as_written() -> None:
    """Markdown-it would leave it out."""
    page = html(">" * 29 + " deep & low\n\nEnd.", 3)
    assert page.count("<blockquote>") == 24
    assert '<pre tabindex="0"><code>&gt;&gt;&gt;&gt;&gt; deep &amp; low\n</code></pre>' in page
    assert page.endswith("<p>End.</p>\n")


@given(made_of("<>&\"'`[]()!*_~|-\n #:/abc", 60))
def test_no_markup_but_ours_gets_through(markdown: str) -> None:
    """Every tag is one of those that Markdown makes."""
    tags = {part.split(">")[0].split()[0].strip("/") for part in html(markdown, 3).split("<")[1:]}
    assert tags <= {
        *(
            "p",
            "h4",
            "h5",
            "h6",
            "a",
            "bdi",
            "span",
            "code",
            "pre",
            "em",
            "strong",
            "s",
            "ul",
            "ol",
            "li",
        ),
        *("blockquote", "hr", "br", "div", "table", "thead", "tbody", "tr", "th", "td"),
    }
