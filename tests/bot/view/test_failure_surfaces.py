"""Each kind of failure as people meet it: on the card, in `council ask`, from `council doctor`."""

from pathlib import Path
from typing import get_args

import pytest

from bot.checks.models import gave_nothing
from bot.view.wording import failures
from bot.view.wording.failures import explain, failure
from council.errors import Cause, Failure, NoAnswers
from council.profile import Member

HOSTED = failures.target(Member(model="lab/two"), has_key=True)
KEYLESS = failures.target(Member(model="lab/two"), has_key=False)
OWN = failures.target(
    Member(model="qwen3", endpoint="http://me:pw@10.0.0.5:8000/v1?key=k", api_key_env="LAB_KEY"),
    has_key=True,
)
OPEN = failures.target(Member(model="qwen3", endpoint="http://10.0.0.5:8000"), has_key=True)
IN_ITS_LOG = "Asking again won't help yet. Whoever runs the council finds the cause in its log."

# Cause, where it happened, what the card says of the member, what an operator is told to do.
BY_AN_OPERATOR: list[tuple[Cause, failures.Target, str, str]] = [
    ("key", HOSTED, "the provider refused the key", "Correct OPENROUTER_API_KEY"),
    ("key", OWN, "the provider refused the key", "Correct LAB_KEY"),
    ("key", KEYLESS, "the provider refused the key", "Set OPENROUTER_API_KEY"),
    (
        "key",
        OPEN,
        "the provider refused the key",
        "Set api_key_env to the variable that holds the key for http://10.0.0.5:8000",
    ),
    ("no_key", OWN, "its key isn't set", "Set LAB_KEY"),
    (
        "credit",
        HOSTED,
        "the account has no credit left",
        "Add credit to the account of OPENROUTER_API_KEY",
    ),
    (
        "credit",
        OPEN,
        "the account has no credit left",
        "Add credit to the account at http://10.0.0.5:8000",
    ),
    (
        "key_limit",
        HOSTED,
        "the key's spending limit is reached",
        "Raise the spending limit of OPENROUTER_API_KEY",
    ),
    (
        "too_dear",
        HOSTED,
        "it may cost more than the credit that is left",
        "Add credit to the account of OPENROUTER_API_KEY, or set a smaller max_tokens for lab/two",
    ),
    (
        "forbidden",
        HOSTED,
        "this key may not use this model",
        "Give OPENROUTER_API_KEY access to lab/two, or configure another model",
    ),
    (
        "data_policy",
        HOSTED,
        "the account's privacy settings exclude this model",
        (
            "Change the privacy settings of the account of OPENROUTER_API_KEY, "
            "or configure a model other than lab/two"
        ),
    ),
    ("not_found", HOSTED, "the provider doesn't know this model", "Correct the model id lab/two"),
    (
        "no_api",
        OPEN,
        "there is no chat completions API at its address",
        "Correct http://10.0.0.5:8000 (most addresses end in /v1)",
    ),
    (
        "no_api",
        HOSTED,
        "there is no chat completions API at its address",
        "Correct the address in OPENROUTER_BASE_URL (most addresses end in /v1)",
    ),
    (
        "bad_request",
        HOSTED,
        "the provider rejected the request",
        "Run council doctor --live, name its server's dialect, or configure a model other than lab/two",
    ),
    (
        "no_server",
        OWN,
        "no server is running at its address",
        "Start the server at http://10.0.0.5:8000/v1, or correct that address",
    ),
    (
        "connection",
        HOSTED,
        "no connection to the provider",
        "Check the network, the address in OPENROUTER_BASE_URL and any proxy (HTTPS_PROXY)",
    ),
    (
        "only_thoughts",
        HOSTED,
        "it thought until its limit of 4,096 tokens",
        "Raise max_tokens for lab/two, or lower its reasoning",
    ),
    (
        "not_configured",
        HOSTED,
        "it is no longer configured",
        "Put lab/two back into council.toml or COUNCIL_MEMBERS",
    ),
    (
        "endpoint_changed",
        OWN,
        "its endpoint has changed",
        "Put the endpoint of qwen3 back into council.toml",
    ),
]
# Cause, what the card says of the member, what whoever asked can do.
BY_THE_ASKER: list[tuple[Cause, str, str]] = [
    ("rate_limited", "the provider was too busy", "Wait a minute, then press Continue."),
    ("unavailable", "the provider was unavailable", "Wait a minute, then press Continue."),
    ("moderated", "the provider's moderation refused the text", "Ask again in other words."),
    ("filtered", "a content filter stopped the reply", "Ask again in other words."),
    ("too_long", "the request is longer than the model can read", "Ask again with less text."),
    (
        "over_budget",
        "the budget for this run is used up",
        "Have the budget raised, then press Continue.",
    ),
    ("lost", "the connection was lost", "Ask again."),
    ("silence", "it was silent for too long", "Ask again."),
    ("deadline", "it took too long", "Ask again."),
    ("truncated", "the reply broke off", "Ask again."),
    ("malformed", "the reply couldn't be read", "Ask again."),
    ("too_large", "the reply was too large", "Ask again."),
    ("empty", "the reply was empty", "Ask again."),
]
OUR_DOING = {
    *("echoed_prompt", "echoed_reviews", "echoed_answer", "sent_ranking", "changed_language"),
    *(
        "declined",
        "unanswered",
        "too_small",
        "stopped",
        "straggler",
        "stage_deadline",
        "not_needed",
        "format_refused",
    ),
    "descriptors",  # a run waits for one; only the doctor's own call fails
}


def happened(cause: Cause) -> Failure:
    """Return a failure in which the provider told something of the account."""
    return Failure(cause=cause, detail="See example.com/keys", limit=4096, status=400)


@pytest.mark.parametrize(("cause", "where", "said", "fix"), BY_AN_OPERATOR)
class TestWhatAnOperatorCanMend:
    """A setting of the council, or of an account."""

    def test_on_the_card(self, cause: Cause, where: failures.Target, said: str, fix: str) -> None:
        """The asker reads what is wrong and who can mend it, but neither variables nor addresses."""
        why = happened(cause)
        assert failure(why).partition(" (\u201c")[0] == said
        error = NoAnswers({"a": why, "b": why})
        assert explain(error, "7b1f", remedies=[fix]) == (
            f"No member of the council answered. {IN_ITS_LOG}"
        )
        assert not any(name in failure(why) for name in ("OPENROUTER", "LAB_KEY", where.address))
        if why.is_account or cause in ("too_dear", "data_policy"):
            assert "example.com" not in failure(why)

    def test_in_the_terminal(self, cause: Cause, where: failures.Target, said: str, fix: str) -> None:
        """With the provider's own words, and what to change."""
        why = happened(cause)
        quoted = "" if cause in ("no_server", "connection") else " (\u201cSee example.com/keys\u201d)"
        if cause == "key" and not where.has_key:
            said = "the server wants a key"
        assert failures.told(why, where) == f"{where.model}: {said}{quoted}. {fix}."
        error = NoAnswers({"a": why})
        assert explain(error, "7b1f", at_terminal=True, remedies=[fix]) == (
            f"No member of the council answered. {fix}, then run: council retry 7b1f"
        )

    def test_from_the_doctor(self, cause: Cause, where: failures.Target, said: str, fix: str) -> None:
        """As a finding and its fix."""
        why = happened(cause)
        if cause == "key" and not where.has_key:
            said = "the server wants a key"
        quoted = "" if cause in ("no_server", "connection") else " (\u201cSee example.com/keys\u201d)"
        advice = gave_nothing("lab/two", where, why, "no cost")
        assert advice.what == f"it gave no answer: {said}{quoted} (all live calls: no cost)"
        assert advice.fix == fix
        assert not any(secret in advice.what + fix for secret in ("pw", "key=k"))


@pytest.mark.parametrize(("cause", "said", "advice"), BY_THE_ASKER)
def test_what_whoever_asked_can_do(cause: Cause, said: str, advice: str) -> None:
    """Wait, ask in other words, or ask again; the provider's own words are quoted."""
    why = happened(cause)
    quoted = "" if cause == "lost" else " (\u201cSee example.com/keys\u201d)"
    assert failure(why) == said + quoted
    error = NoAnswers({"a": why, "b": why})
    assert explain(error, "7b1f") == f"No member of the council answered. {advice}"
    assert explain(error, "7b1f", at_terminal=True) == (
        "No member of the council answered. "
        + advice.replace("press Continue.", "run: council retry 7b1f")
    )


SLOW: list[tuple[Cause, str | None]] = [
    ("silence", "If lab/two is only slow, raise idle_timeout"),
    ("deadline", "If lab/two is only slow, raise call_deadline"),
    (
        "over_budget",
        "Raise the limit of a run: under [budgets] in council.toml, or a program's max_cost",
    ),
]
NO_SETTING = "If it happens again, configure another model, or a fallback for this one"


@pytest.mark.parametrize(("cause", "said", "advice"), BY_THE_ASKER)
def test_what_an_operator_reads_of_it(cause: Cause, said: str, advice: str) -> None:
    """The terminal names the setting that may help, if there is one; the doctor always has a fix."""
    why = happened(cause)
    fix = dict(SLOW).get(cause)
    quoted = "" if cause == "lost" else " (\u201cSee example.com/keys\u201d)"
    assert failures.told(why, HOSTED) == (f"lab/two: {said}{quoted}. {fix}." if fix else None)
    found = gave_nothing("lab/two", HOSTED, why, "$0.02")
    assert found.what == f"it gave no answer: {said}{quoted} (all live calls: $0.02)"
    assert found.fix == (fix or NO_SETTING)
    del advice


def test_every_cause_is_in_one_of_the_tables() -> None:
    """A new one needs its sentences here."""
    known = {row[0] for row in BY_AN_OPERATOR} | {row[0] for row in BY_THE_ASKER}
    assert not known & OUR_DOING
    assert known | OUR_DOING == {*get_args(Cause)}


def test_several_remedies_are_told_in_turn() -> None:
    """Each as a sentence; how to go on comes last."""
    error = NoAnswers({"a": happened("key"), "b": happened("no_server")})
    fixes = ["Correct LAB_KEY", "Start the server at http://10.0.0.5:8000/v1, or correct that address"]
    assert explain(error, "7b1f", at_terminal=True, remedies=fixes) == (
        "No member of the council answered. Correct LAB_KEY. Start the server at "
        "http://10.0.0.5:8000/v1, or correct that address. Then run: council retry 7b1f"
    )


def test_the_operators_guide_has_every_remedy() -> None:
    """In the table of troubleshooting.md, row for row."""
    guide = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text()
    for cause, where, said, fix in BY_AN_OPERATOR:
        if where is HOSTED and cause != "only_thoughts":
            assert f"| *{said}* | {fix} |" in guide
