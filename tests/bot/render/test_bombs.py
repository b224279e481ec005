"""Texts made to be slow: parsing them is limited, and nothing of them is lost."""

from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline

from bot.discord import text as discord_text
from bot.render import dialect
from bot.render.markdown import contain
from bot.render.parsing import beginning, parse_blocks, parse_inline
from bot.slack import text as slack_text
from bot.transcript import prose
from bot.view.card import card
from bot.view.message import Message, Prose, Quote, Title
from bot.view.run import fold
from council.events import MemberFailed
from tests.bot.render.bombs import BOMBS, EACH, END, LENGTH, bomb
from tests.bot.render.long_answer import answer
from tests.bot.sample_run import LATE, seen
from tests.discord_server.limits import Shape, check
from tests.slack_server.blocks import checked
from tests.slack_server.rules import Rules

MOST_CELLS = 3_500
MOST_TOKENS = 12_000
SHORTER = 4_000


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every text that the Markdown library is given."""
    texts: list[str] = []
    parse, parse_line = MarkdownIt.parse, ParserInline.parse

    def noting(self: MarkdownIt, src: str, env: dict[str, object] | None = None) -> object:
        texts.append(src)
        return parse(self, src, env)

    def noting_line(self: ParserInline, src: str, *rest: Any) -> object:
        texts.append(src)
        return parse_line(self, src, *rest)

    monkeypatch.setattr(MarkdownIt, "parse", noting)
    monkeypatch.setattr(ParserInline, "parse", noting_line)
    dialect.clear_cache()
    discord_text.clear_cache()
    slack_text.clear_cache()
    return texts


@pytest.mark.parametrize("kind", EACH)
def test_parsing_a_bomb_is_limited(kind: str) -> None:
    """Cells, other blocks and their content are limited, however they are arranged."""
    tokens, env = parse_blocks(BOMBS[kind])
    assert sum(token.type in ("th_open", "td_open") for token in tokens) <= MOST_CELLS
    assert len(tokens) <= MOST_TOKENS
    inner = [parse_inline(token.content, env) for token in tokens if token.type == "inline"]
    assert sum(map(len, inner)) <= MOST_TOKENS
    assert max((token.level for token in tokens), default=0) <= 26


@pytest.mark.parametrize("kind", EACH)
def test_a_bomb_is_shown_to_its_end(kind: str) -> None:
    """In both platforms' threads, which accept it, on the page and in Markdown; and it doesn't grow."""
    text = bomb(kind, SHORTER)
    message = Message("m", (Prose(text),))
    pages = discord_text.pages(message)
    contents = [embed for page in pages for embed in page]
    messages = slack_text.pages(message)
    page, markdown = prose.html(text, 3), contain(text)
    for embeds in pages:
        check(Shape("", [{"description": embed} for embed in embeds], [], 0))
    for blocks in messages:
        checked(blocks, Rules())
    assert END in contents[-1]
    assert END in str(messages[-1])
    assert END in page[-1_000:]
    assert END in markdown
    assert sum(map(len, contents)) <= 12 * len(text) + 10_000
    assert len(str(messages)) <= 12 * len(text) + 10_000
    assert len(page) <= 30 * len(text) + 10_000
    assert len(markdown) <= 3 * len(text)


@pytest.mark.parametrize("kind", EACH)
def test_a_bomb_on_a_card_is_accepted(kind: str) -> None:
    """As a question and as an answer, both cut, on both platforms."""
    message = Message("card", (Quote(bomb(kind, SHORTER)), Prose(BOMBS[kind])))
    shown = discord_text.card(message)
    check(Shape("", [{"title": shown.title, "description": shown.description}], [], 0))
    checked([*slack_text.card(message).blocks, {"type": "divider"}], Rules())


@pytest.mark.parametrize("length", [4_000, 60_000, 100_000])
def test_an_ordinary_answer_is_parsed_whole(length: int) -> None:
    """Tables, lists, code and links, as dense as answers are."""
    tokens, env = parse_blocks(answer(length))
    for token in tokens:
        if token.type == "inline":
            parse_inline(token.content, env)
    assert env["work"].blocks > 0
    assert env["work"].inline > 0
    assert all(token.type != "code_block" for token in tokens)


def test_a_card_and_a_thread_parse_what_they_can_show_once(parsed: list[str]) -> None:
    """Not all of an answer of 100 kB, nor of a question of 20 kB; the thread parses no answer again."""
    message = Message("card", (Quote(answer(LENGTH)), Prose(answer(100_000))))
    assert discord_text.card(message).cut
    assert max(map(len, parsed)) <= 1.5 * discord_text.DESCRIPTION
    parsed.clear()
    assert slack_text.card(message).cut
    assert max(map(len, parsed)) <= 1.5 * slack_text.HEIGHT
    blocks = (Title("Title"), Prose("One *answer*, " * 300))
    discord_text.card(Message("card", blocks))
    parsed.clear()
    discord_text.pages(Message("answer", blocks))
    assert parsed == []


def test_an_edit_that_changes_a_members_state_parses_nothing(parsed: list[str]) -> None:
    """The question and the chairman's text were parsed for the edit before."""
    for before in (seen(13), seen(34)):
        after = fold(before, MemberFailed("stage1", before.seats[0].name, LATE), 35.0)
        for platform in (discord_text.card, slack_text.card):
            platform(card(before, 35.0))
            assert parsed
            parsed.clear()
            platform(card(after, 36.0))
            assert parsed == []


def test_the_beginning_of_a_text_ends_between_blocks() -> None:
    """Otherwise between lines; the definitions of its links are included."""
    text = "word [a][1]\n\n" * 10
    assert beginning(text, 100) == text
    assert beginning(text, 40) == ("word [a][1]\n\n" * 4).rstrip()
    assert beginning("line\n" * 30, 40) == ("line\n" * 12).rstrip()
    assert beginning("x" * 100, 40) == "x" * 60
    cut = beginning(text + "\n\n[1]: https://a.b 'A'", 40)
    assert cut == "[1]: https://a.b 'A'\n\n" + ("word [a][1]\n\n" * 4).rstrip()


def test_what_is_beyond_the_limit_is_code() -> None:
    """Rows are shown as written, below the table; text that isn't parsed can't be contained in another way."""
    table = f"|{'a|' * 181}\n|{'-|' * 181}\n" + "|\n" * 362
    tokens, _ = parse_blocks(f"{table}\n**End.**")
    kinds = [token.type for token in tokens if token.level == 0]
    assert kinds == ["table_open", "table_close", "code_block", "paragraph_open", "paragraph_close"]
    code = next(token for token in tokens if token.type == "code_block")
    assert code.content == "|\n" * code.content.count("\n")
    assert code.content.count("\n") > 300
    items = [f"- <b>{number}" for number in range(3_000)]
    lines = contain("\n".join(["# A", "", *items]), 2).split("\n")
    fence = lines.index("```")
    assert lines[:fence] == ["### A", "", *(f"- \\<b>{number}" for number in range(fence - 2))]
    assert lines[fence:] == ["```", *items[fence - 2 :], "```"]
    assert fence > 500
