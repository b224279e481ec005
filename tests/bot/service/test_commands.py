"""The typed form of `/council`: flags before the question, as people really type them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UsageError
from bot.service.commands import (
    ASK,
    COMMANDS,
    FORGET,
    HELP,
    HISTORY,
    SEARCH,
    SHOW,
    STATS,
    Command,
    Given,
    Typed,
    argument,
    is_help,
    parse,
    usage,
)
from tests.pairs import rows


@rows(
    ("text", "question", "given"),
    [
        ("Shard now?", "Shard now?", {}),
        ("  Shard\nnow?  ", "Shard\nnow?", {}),
        ("--private Shard now?", "Shard now?", {"private": True}),
        ("\u2014private Shard now?", "Shard now?", {"private": True}),
        ("\u2013private Shard now?", "Shard now?", {"private": True}),
        ("--PRIVATE  Shard now?", "Shard now?", {"private": True}),
        ("--depth quick Shard now?", "Shard now?", {"depth": "quick"}),
        ("--depth=quick Shard now?", "Shard now?", {"depth": "quick"}),
        ("--rounds 2 Shard now?", "2 Shard now?", {"rounds": True}),
        ("--private \u2014Mode=council Shard?", "council Shard?", {"private": True, "mode": True}),
        (
            "\u2014profile fast --private \u2014depth full Shard now?",
            "Shard now?",
            {"profile": "fast", "private": True, "depth": "full"},
        ),
        ('--profile "Big team" Shard?', "Shard?", {"profile": "Big team"}),
        ("--profile \u201cBig team\u201d Shard?", "Shard?", {"profile": "Big team"}),
        ("--profile \u201eBig team\u201c Shard?", "Shard?", {"profile": "Big team"}),
        ("--profile \u201dBig team\u201d Shard?", "Shard?", {"profile": "Big team"}),
        ("--profile \u00abBig team\u00bb Shard?", "Shard?", {"profile": "Big team"}),
        ("--profile 'fast' \"Shard\" or not?", '"Shard" or not?', {"profile": "fast"}),
        ("--profile fast\nShard?", "Shard?", {"profile": "fast"}),
        ("Is --private a flag?", "Is --private a flag?", {}),
        ("-- --private is a flag?", "--private is a flag?", {}),
        ("\u2014 so, shard?", "so, shard?", {}),
        ("\u201cShard\u201d or not?", "\u201cShard\u201d or not?", {}),
        ("--help", "--help", {}),
        (" \u2014Help ", "\u2014Help", {}),
        ("help me shard", "help me shard", {}),
    ],
)
def test_flags_are_read_before_the_first_word_only(
    text: str, question: str, given: dict[str, object]
) -> None:
    """The question itself stays as it was typed."""
    assert parse(text) == Typed(question, given)
    assert parse(text).is_private == ("private" in given)


@rows(
    ("text", "said"),
    [
        ("", "There is no question. Write one: /council Should we shard now?"),
        ("--private", "There is no question. Write one: /council Should we shard now?"),
        ("--depth quick", "There is no question. Write one: /council Should we shard now?"),
        (
            "--privat Shard?",
            "Unknown option --privat. Did you mean --private? Options come before the question.",
        ),
        (
            "--colour red Shard?",
            "Unknown option --colour. Available: --profile, --depth, --private. Options come before the question.",
        ),
        (
            "--depth --private Shard?",
            "The option --depth needs a value. It takes one of quick, auto, full.",
        ),
        ("--profile", "The option --profile needs a value. It takes the name of a profile."),
        (
            "--attachment log.txt Why?",
            "Unknown option --attachment. Attach files to a message that mentions the bot, to a direct message to it, or to a message on which you use “Ask the council”. On Discord there is also the option attachment; at the terminal, council ask --attachment.",
        ),
        ("--depth quick --depth full Shard?", "The option --depth appears twice. Use it once."),
        (
            "--profile \u201cBig team Shard?",
            "The quotation mark after --profile is never closed.",
        ),
    ],
)
def test_a_mistyped_command_is_explained(text: str, said: str) -> None:
    """Nothing is asked then."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == said


@rows(
    ("text", "expected"),
    [
        *(
            (text, True)
            for text in ("help", "HELP", " --help ", "\u2014help", "\u2013help", "?", "\uff1f")
        ),
        *((text, False) for text in ("help me", "Help?", "--help me", "??", "", "helpful", "-- help")),
    ],
)
def test_only_a_bare_word_asks_for_help(text: str, expected: bool) -> None:
    """A question may begin with it."""
    assert is_help(text) is expected


@given(st.text())
def test_any_text_is_a_question_or_a_mistake(text: str) -> None:
    """Without a leading dash, all of it is the question."""
    try:
        typed = parse(text)
    except UsageError:
        return
    assert text.strip().endswith(typed.question)


@rows(
    ("command", "text", "given"),
    [
        (HISTORY, "", {}),
        (HISTORY, " 7 ", {"count": 7}),
        (SEARCH, ' "move  jobs" cron ', {"words": '"move jobs" cron'}),
        (SHOW, "550e", {"answer": "550e"}),
        (HELP, "me", {}),
    ],
)
def test_a_command_of_one_option_takes_the_rest_of_the_line(
    command: Command, text: str, given: Given
) -> None:
    """Without flags and quotes; left out, it isn't given."""
    assert argument(command, text) == given


@rows(
    ("command", "text", "said"),
    [
        (HISTORY, "11", "The option count can't be “11”. It takes a whole number from 1 to 10."),
        (STATS, "ten", "The option days can't be “ten”. It takes a whole number from 1 to 3650."),
        (
            SEARCH,
            " ",
            'Say what to search for: words, or an "exact phrase" in quotes.',
        ),
        (
            SHOW,
            "",
            "Say which answer to show: any words of its title or question. `/council-history` lists them.",
        ),
        (
            FORGET,
            "",
            "Say what to delete: words of an answer's title or question, `me` (all you asked), `@person` (all they asked, for admins), or `channel`.",
        ),
    ],
)
def test_a_wrong_or_missing_option_is_explained(command: Command, text: str, said: str) -> None:
    """With its allowed values."""
    with pytest.raises(UsageError) as caught:
        argument(command, text)
    assert str(caught.value) == said


def test_the_registry_fits_the_platforms() -> None:
    """Names and descriptions within Discord's limits; one required option first."""
    for command in COMMANDS:
        assert command.name == command.name.lower()
        assert len(command.description) <= 100
        assert all(len(option.description) <= 100 for option in command.options)
        required = [option.required for option in command.options]
        assert required == sorted(required, reverse=True)
        assert all(len(option.choices) <= 25 for option in command.options)


def test_the_docs_name_every_command() -> None:
    """With its options in the typed form."""
    page = Path("docs/using.md").read_text(encoding="utf-8")
    table = page.partition("## How to use it")[2].partition("\n## ")[0]
    typed = [f"/{command.name} {usage(command)}".strip() for command in COMMANDS if command is not ASK]
    assert all(f"| `{each}` |" in table for each in typed), typed


def test_the_docs_name_every_option_and_choice() -> None:
    """In the registry's order."""
    page = Path("docs/using.md").read_text(encoding="utf-8")
    table = page.partition("## Options of `/council`")[2].partition("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    options = [option for option in ASK.options if not option.required]
    assert [row.split("`")[1] for row in rows] == [option.name for option in options]
    for row, option in zip(rows, options, strict=True):
        assert all(f"`{choice}`" in row for choice in option.choices)
