"""Other people's Markdown, made harmless."""

from hypothesis import given

from bot.transcript.prose import html
from tests.fragments import made_of
from tests.pairs import data, rows


def shown(markdown: str) -> str:
    return html(markdown, 3).strip().removeprefix("<p>").removesuffix("</p>")


@rows(
    ("markdown", "expected"),
    data(__file__, "nothing_in_a_text_can_act"),
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
    ours = "p h4 h5 h6 a bdi span code pre em strong s ul ol li blockquote hr br div table thead tbody tr th td"
    assert tags <= {*ours.split()}
