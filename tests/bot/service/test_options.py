"""The options of a run: read from any platform's values, applied to a profile, kept for a repetition."""

import inspect

import pytest

from bot.cli.asking import ask
from bot.errors import UsageError
from bot.service.admission.channels import ChannelSettings, EffectiveSettings, Operator
from bot.service.commands import ASK
from bot.service.options import RunOptions
from council.profile import Profile
from tests.council.scripted import profile

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


@pytest.mark.parametrize("option", ["rounds", "strategy", "criteria", "mode"])
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
