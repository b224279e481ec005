"""The typed form of `/council`: flags before the question, as people really type them; the options of a run."""

import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.asking import ask
from bot.errors import UsageError
from bot.service.channels import ChannelSettings, EffectiveSettings, Operator
from bot.service.commands import ASK, COMMANDS, Given, RunOptions, Typed, argument, is_help, parse, usage
from council.profile import Profile
from tests.council.scripted import profile
from tests.pairs import data, rows

NAMED = {command.name: command for command in COMMANDS}


@rows(("text", "question", "given"), data(__file__, "flags_are_read_before_the_first_word_only"))
def test_flags_are_read_before_the_first_word_only(
    text: str, question: str, given: dict[str, object]
) -> None:
    """The question itself stays as it was typed."""
    assert parse(text) == Typed(question, given)
    assert parse(text).is_private == ("private" in given)


@rows(("text", "said"), data(__file__, "a_mistyped_command_is_explained"))
def test_a_mistyped_command_is_explained(text: str, said: str) -> None:
    """Nothing is asked then."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == said


@rows(("text", "expected"), data(__file__, "only_a_bare_word_asks_for_help"))
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


@rows(("command", "text", "given"), data(__file__, "a_command_of_one_option_takes_the_rest_of_the_line"))
def test_a_command_of_one_option_takes_the_rest_of_the_line(
    command: str, text: str, given: Given
) -> None:
    """Without flags and quotes; left out, it isn't given."""
    assert argument(NAMED[command], text) == given


@rows(("command", "text", "said"), data(__file__, "a_wrong_or_missing_option_is_explained"))
def test_a_wrong_or_missing_option_is_explained(command: str, text: str, said: str) -> None:
    """With its allowed values."""
    with pytest.raises(UsageError) as caught:
        argument(NAMED[command], text)
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
