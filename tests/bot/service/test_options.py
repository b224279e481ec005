"""The options of a run: read from any platform's values, applied to a profile, kept for a repetition."""

import inspect

import pytest

from bot.cli.asking import ask
from bot.errors import UsageError
from bot.service.commands import ASK
from bot.service.options import RunOptions
from council.criteria import Criterion, EvaluationCriteria
from council.profile import Profile
from tests.council.scripted import profile

PROFILES = {
    "default": profile(),
    "fast": profile("a/one", "b/two", name="fast", strategy="cost_capped", max_rounds=2),
}


def test_texts_and_typed_values_mean_the_same() -> None:
    """Slack gives texts, Discord numbers."""
    texts = {"profile": "fast", "rounds": "3", "strategy": "coverage", "criteria": "Cost:2!"}
    texts |= {"mode": "consultants"}
    expected = RunOptions(
        profile="fast",
        rounds=3,
        strategy="coverage",
        criteria=EvaluationCriteria(criteria=(Criterion(name="Cost", weight=2, must_have=True),)),
        mode="consultants",
    )
    assert RunOptions.read(texts) == expected
    assert RunOptions.read(texts | {"rounds": 3, "question": "Why?", "private": None}) == expected
    assert RunOptions.read({"strategy": "Risk-averse"}).strategy == "risk_averse"


def test_a_command_goes_before_the_profile() -> None:
    """Other settings are the profile's."""
    chosen = RunOptions.read({"profile": "fast", "rounds": 3}).applied(PROFILES)
    assert chosen == PROFILES["fast"].model_copy(update={"max_rounds": 3})
    assert RunOptions().applied(PROFILES) == PROFILES["default"]


def test_without_a_default_profile_the_first_one_answers() -> None:
    """A team may name its only council as it likes."""
    assert RunOptions().applied({"fast": PROFILES["fast"]}) == PROFILES["fast"]


def test_a_runs_options_are_read_back_from_its_profile() -> None:
    """So that it can be asked again, even if its members have changed."""
    before = RunOptions.read(
        {"profile": "fast", "strategy": "coverage", "criteria": "Cost", "mode": "consultants"}
    )
    run = before.applied(PROFILES)
    now: dict[str, Profile] = PROFILES | {"fast": profile("c/three", name="fast")}
    again = RunOptions.of(run).applied(now)
    assert {member.model for member in again.members} == {"c/three"}
    assert (again.strategy, str(again.criteria), again.max_rounds) == ("coverage", "Cost", 2)
    assert again.answer_format == "structured"


def test_consultants_are_seated_with_personas() -> None:
    """Four of them share the profile's models; a council of consultants keeps its seats."""
    mode = RunOptions.read({"mode": "consultants"})
    seated = mode.applied({"default": profile("a/one", "b/two")})
    assert [member.persona and member.persona.name for member in seated.members] == [
        "The Architect",
        "The Pragmatist",
        "The Devil's Advocate",
        "The Innovator",
    ]
    own = profile("a/one", "b/two", answer_format="structured")
    assert mode.applied({"default": own}) == own
    assert RunOptions.of(seated).applied({"default": profile("a/one", "b/two")}) == seated


def test_a_council_of_consultants_can_answer_as_a_council() -> None:
    """In plain text, from the same seats."""
    own = profile("a/one", "b/two", answer_format="structured")
    plain = RunOptions.read({"mode": "council"}).applied({"default": own})
    assert plain == own.model_copy(update={"answer_format": "plain"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"rounds": "6"},
            "The option rounds can't be \u201c6\u201d. It takes a whole number from 1 to 5. Nothing was asked.",
        ),
        (
            {"rounds": "two"},
            "The option rounds can't be \u201ctwo\u201d. It takes a whole number from 1 to 5. Nothing was asked.",
        ),
        (
            {"strategy": "guess"},
            "The option strategy can't be \u201cguess\u201d. It takes one of consensus, coverage, risk_averse, security_first, cost_capped, compare_only. Nothing was asked.",
        ),
        (
            {"criteria": "Cost:much"},
            "The option criteria can't be \u201cCost:much\u201d. \u201cCost:much\u201d isn't a criterion; write each as a name, with :weight and ! for a must-have where wanted: Cost:3, Security:2!, Speed. Nothing was asked.",
        ),
        (
            {"criteria": "Cost:0"},
            "The option criteria can't be \u201cCost:0\u201d. A criterion's weight is more than 0 and at most 100. Nothing was asked.",
        ),
    ],
)
def test_a_bad_value_is_explained_with_the_allowed_ones(given: dict[str, object], said: str) -> None:
    """Option, value, what it takes."""
    with pytest.raises(UsageError) as caught:
        RunOptions.read(given)
    assert str(caught.value) == said


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
