"""The typed form of `/council`: flags before the question, as people really type them; the options of a run."""

import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.asking import ask
from bot.errors import UsageError
from bot.service.channels import ChannelSettings, EffectiveSettings, Operator
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
    RunOptions,
    Typed,
    argument,
    is_help,
    parse,
    usage,
)
from council.profile import Profile
from tests.council.scripted import profile
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


PROFILES = {
    "default": profile(),
    "fast": profile("a/one", "b/two", name="fast", strategy="cost_capped", max_rounds=2),
}
ONE = ChannelSettings(profiles=frozenset({"fast"}))


def test_texts_and_typed_values_mean_the_same() -> None:
    """Slack gives texts as they are typed, Discord its own choices."""
    expected = RunOptions(profile="fast", own={"depth": "quick"})
    assert RunOptions.read({"profile": "fast", "depth": " Quick"}) == expected
    given = {"profile": "fast", "depth": "quick", "question": "Why?", "private": None}
    assert RunOptions.read(given) == expected


def test_a_command_goes_before_the_profile() -> None:
    """Other settings are the profile's."""
    chosen = RunOptions.read({"profile": "fast", "depth": "quick"}).applied(PROFILES)
    assert chosen == PROFILES["fast"].model_copy(update={"depth": "quick"})
    assert RunOptions().applied(PROFILES) == PROFILES["default"]


def test_without_a_default_profile_the_first_one_answers() -> None:
    """A team may name its only council as it likes."""
    assert RunOptions().applied({"fast": PROFILES["fast"]}) == PROFILES["fast"]


def test_a_runs_options_are_read_back_from_its_profile() -> None:
    """So that it can be asked again, even if its members have changed."""
    run = RunOptions.read({"profile": "fast", "depth": "quick"}).applied(PROFILES)
    now: dict[str, Profile] = PROFILES | {"fast": profile("c/three", name="fast")}
    again = RunOptions.of(run).applied(now)
    assert {member.model for member in again.members} == {"c/three"}
    assert again.depth == "quick"


def test_a_bad_value_is_explained_with_the_allowed_ones() -> None:
    """Option, value, what it takes."""
    with pytest.raises(UsageError) as caught:
        RunOptions.read({"depth": "deep"})
    assert str(caught.value) == (
        "The option depth can't be \u201cdeep\u201d. It takes one of quick, auto, full. Nothing was asked."
    )


@rows("option", ["rounds", "strategy", "criteria", "mode"])
def test_an_option_that_profiles_have_now_names_them(option: str) -> None:
    """Those that are open there; nothing is asked."""
    options = RunOptions.read({option: "2", "profile": "fast"})
    operator = Operator(profiles=PROFILES)
    for own, names in ((ChannelSettings(), "default, fast"), (ONE, "fast")):
        with pytest.raises(UsageError) as caught:
            EffectiveSettings(operator, own).profile(options)
        assert str(caught.value) == (
            f"--{option} belongs to a profile now, in council.toml. This council's profiles: {names}. "
            "Choose one with --profile. Nothing was asked."
        )


def test_an_unknown_profile_is_explained_with_the_known_ones() -> None:
    """Profiles are known only at run time."""
    with pytest.raises(UsageError) as caught:
        RunOptions(profile="slow").applied(PROFILES)
    assert str(caught.value) == (
        "There is no profile \u201cslow\u201d. Available: default, fast. Nothing was asked."
    )


def test_a_profile_is_named_in_any_case() -> None:
    """One that is written exactly so comes first; a megabyte of a name isn't said again."""
    both = {**PROFILES, "FAST": profile("c/three", name="FAST")}
    assert RunOptions(profile="Fast").applied(PROFILES).name == "fast"
    assert RunOptions(profile="fast").applied(both).name == "fast"
    with pytest.raises(UsageError) as caught:
        RunOptions(profile="x" * 1_000_000).applied(PROFILES)
    assert len(str(caught.value)) < 200


def test_the_command_line_takes_every_option_of_the_registry() -> None:
    """All but the private answer: a terminal is private."""
    parameters = inspect.signature(ask).parameters
    wanted = [option.name for option in ASK.options if option.name != "private"]
    assert [name for name in parameters if name in wanted] == wanted
