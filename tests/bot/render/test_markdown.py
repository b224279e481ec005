"""Standard Markdown: our lines are shown as they are, other people's text stays in its part."""

from hypothesis import example, given
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import contain, escape, render
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Table, Title
from tests.fragments import made_of
from tests.pairs import data, rows

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

# What Markdown is made of, so that examples break things more often than random letters do.
TEXT = made_of([*"`*_[]<>#+-.!|~&\\()=:1aé ", "```", "&amp;", "1. ", "<b>", "](x)"], 20)
FRAGMENTS = made_of(
    [
        *("```", "~~~~", "```sh", "<!--", "<div>", "<script>", "<b>", "</b>", "<?x", "# A", "## B", "==="),
        *("---", "- ", "1. ", "> ", "    ", "`", "|a|<i>|", "|-|-|", "| \\| <u> |", "[a]: <b>", "word"),
        *("<https://a.b>", "\\", "\n", "\n\n"),
    ],
    25,
)  # fmt: skip


def shown(token: Token) -> str:
    children = token.children or []
    assert {child.type for child in children} <= {"text"}, "our text became markup"
    return "".join(child.content for child in children)


@given(TEXT)
def test_a_line_of_ours_shows_as_it_is(text: str) -> None:
    """Whatever it contains, a line is one paragraph of exactly that text."""
    line = Line(text)
    tokens = READER.parse(render(Message("m", (line,))))
    if line.text:
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
        assert shown(tokens[1]) == line.text


@given(TEXT)
def test_a_heading_shows_as_it_is(text: str) -> None:
    """A model's title can't become markup either."""
    title = Title(f"x{text}")
    tokens = READER.parse(render(Message("m", (title,))))
    assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]
    assert shown(tokens[1]) == title.text


@given(TEXT)
def test_a_cell_shows_as_it_is(text: str) -> None:
    """A pipe in a cell doesn't end it."""
    table = Table(("a", "b"), ((text, "end"),))
    tokens = READER.parse(render(Message("m", (table,))))
    cells = [shown(token) for token in tokens if token.type == "inline"]
    assert cells == ["a", "b", table.rows[0][0], "end"]


@given(FRAGMENTS)
@example("[a]: <b>```\n<!--<div>```")
def test_prose_stays_in_its_part(markdown: str) -> None:
    """Whatever a model writes, the next heading is a heading and nothing of it is HTML."""
    message = Message("m", (Heading("Before"), Prose(markdown), Heading("After"), Line("End.")))
    tokens = READER.parse(render(message))
    types = [token.type for token in tokens]
    assert types[-6:] == [
        *("heading_open", "inline", "heading_close"),
        *("paragraph_open", "inline", "paragraph_close"),
    ]
    assert tokens[-5].content == "After"
    assert "html_block" not in types
    children = [child for token in tokens for child in token.children or []]
    assert "html_inline" not in {child.type for child in children}


@given(FRAGMENTS)
def test_a_quote_ends_where_it_ends(markdown: str) -> None:
    """A question with an open fence quotes only itself."""
    tokens = READER.parse(render(Message("m", (Quote(markdown), Line("End.")))))
    assert [token.type for token in tokens[-3:]] == ["paragraph_open", "inline", "paragraph_close"]
    assert tokens[-2].level == 1


@rows(("markdown", "contained"), data(__file__, "prose_keeps_its_words"))
def test_prose_keeps_its_words(markdown: str, contained: str) -> None:
    """Fences are closed, tags shown, headings lowered by two; nothing else changes."""
    assert contain(markdown, 2) == contained


def test_escaping_is_sparing() -> None:
    """Signs that can't be markup in their place are left alone, so the source reads well."""
    plain = "openai/gpt-4.1_mini: +3 lines, $0.0123 (2026-01-20) & more | 50% #1 - 2."
    assert escape(plain) == plain
    assert escape("1. a_ *b*") == "1\\. a\\_ \\*b\\*"


def test_every_block_has_its_form(snapshot: SnapshotAssertion) -> None:
    """One message with everything, below a heading of level 1."""
    blocks: tuple[Block, ...] = (
        Title("Cron"),
        Quote("Why?\n\n# Really"),
        Heading("Ranking"),
        Line("Position 1 is the best."),
        Pairs((("gpt-5", "answered"), ("grok-4", "failed: it was *late*"))),
        Pairs((("a", "b"),)),
        Heading("Original response", 3),
        Prose("# Yes\n\n- one"),
        Table(("Rank", "Member"), (("1st", "a|b"),)),
        Line(""),
        Footer("4 members \u00b7 12 s"),
    )
    assert render(Message("m", blocks), under=1) == snapshot


def test_a_list_is_kept_apart_only_from_what_it_would_join() -> None:
    """A list, or a paragraph of its last item; below other text it needs no mark."""
    cases = {
        "Yes.": False,
        "- one\n\nYes.": False,
        "```\na\n\nb\n```": False,
        "- one": True,
        "Yes.\n\n1. one": True,
        "- one\n\n  more of it": True,
    }
    for prose, is_apart in cases.items():
        shown = render(Message("m", (Prose(prose), Pairs((("a", "b"),)))))
        assert ("<!-- -->" in shown) == is_apart, prose
        tokens = [token for token in READER.parse(shown) if token.type == "bullet_list_open"]
        assert tokens[-1].level == 0, prose
        assert READER.render(shown).endswith("<ul>\n<li>a: b</li>\n</ul>\n"), prose
