"""Each kind of failure as people meet it: on the card, in `council ask`, from `council doctor`."""

from pathlib import Path
from typing import get_args

from bot.checks.models import gave_nothing
from bot.view.wording import failures
from bot.view.wording.failures import explain, failure
from council.errors import CAUSES, Cause, Failure, NoAnswers
from council.profile import Member
from tests.pairs import rows

HOSTED = failures.target(Member(model="lab/two"), has_key=True)
KEYLESS = failures.target(Member(model="lab/two"), has_key=False)
OWN = failures.target(
    Member(model="qwen3", endpoint="http://me:pw@10.0.0.5:8000/v1?key=k", api_key_env="LAB_KEY"),
    has_key=True,
)
OPEN = failures.target(Member(model="qwen3", endpoint="http://10.0.0.5:8000"), has_key=True)
NO_SETTING = "If it happens again, configure another model, or a fallback for this one"
IN_ITS_LOG = "Asking again won't help yet. Whoever runs the council finds the cause in its log."

# Cause, where it happened, what an operator is told to do.
BY_AN_OPERATOR: list[tuple[Cause, failures.Target, str]] = [
    ("key", HOSTED, "Correct OPENROUTER_API_KEY"),
    ("key", OWN, "Correct LAB_KEY"),
    ("key", KEYLESS, "Set OPENROUTER_API_KEY"),
    ("key", OPEN, "Set api_key_env to the variable that holds the key for http://10.0.0.5:8000"),
    ("no_key", OWN, "Set LAB_KEY"),
    ("credit", HOSTED, "Add credit to the account of OPENROUTER_API_KEY"),
    ("credit", OPEN, "Add credit to the account at http://10.0.0.5:8000"),
    ("key_limit", HOSTED, "Raise the spending limit of OPENROUTER_API_KEY"),
    ("too_dear", HOSTED, "Add credit to the account of OPENROUTER_API_KEY, or set a smaller max_tokens for lab/two"),
    ("forbidden", HOSTED, "Give OPENROUTER_API_KEY access to lab/two, or configure another model"),
    ("data_policy", HOSTED, "Change the privacy settings of the account of OPENROUTER_API_KEY, or configure a model other than lab/two"),
    ("not_found", HOSTED, "Correct the model id lab/two"),
    ("no_api", OPEN, "Correct http://10.0.0.5:8000 (most addresses end in /v1)"),
    ("no_api", HOSTED, "Correct the address in OPENROUTER_BASE_URL (most addresses end in /v1)"),
    ("bad_request", HOSTED, "Run council doctor --live, name its server's dialect, or configure a model other than lab/two"),
    ("no_server", OWN, "Start the server at http://10.0.0.5:8000/v1, or correct that address"),
    ("connection", HOSTED, "Check the network, the address in OPENROUTER_BASE_URL and any proxy (HTTPS_PROXY)"),
    ("only_thoughts", HOSTED, "Raise max_tokens for lab/two, or lower its reasoning"),
    ("not_configured", HOSTED, "Put lab/two back into council.toml or COUNCIL_MEMBERS"),
    ("endpoint_changed", OWN, "Put the endpoint of qwen3 back into council.toml"),
]  # fmt: skip
BY_THE_ASKER = [cause for cause, reason in CAUSES.items() if reason.fault != "operator"]


def happened(cause: Cause) -> Failure:
    """Return a failure in which the provider told something of the account."""
    return Failure(cause=cause, detail="See example.com/keys", limit=4096, status=400)


def clause(cause: Cause, where: failures.Target = HOSTED, *, keyless: bool = False) -> str:
    """Return what people read of a failure, and the quotation of its provider where they may read it."""
    if cause == "key" and keyless and not where.has_key:
        return "the server wants a key"
    limit = "it thought until its limit of 4,096 tokens"
    return limit if cause == "only_thoughts" else CAUSES[cause].clause


def quoted(cause: Cause) -> str:
    """Return the provider's sentence in brackets; of the HTTP client's there is nothing to read."""
    return "" if cause in ("no_server", "connection", "lost") else " (\u201cSee example.com/keys\u201d)"


def test_every_cause_has_its_row() -> None:
    """And no row is of a cause that isn't any more; what only operators can do has a remedy, tested here."""
    assert CAUSES.keys() == {*get_args(Cause)}
    operators = {cause for cause, reason in CAUSES.items() if reason.fault == "operator"}
    assert operators == {cause for cause, _, _ in BY_AN_OPERATOR}
    assert all("_" not in reason.clause for reason in CAUSES.values())


@rows(("cause", "where", "fix"), BY_AN_OPERATOR)
def test_what_an_operator_can_mend(cause: Cause, where: failures.Target, fix: str) -> None:
    """The asker reads what is wrong and who can mend it; the terminal and the doctor say what to change."""
    why = happened(cause)
    is_hidden = why.is_account or cause in ("too_dear", "data_policy")
    assert failure(why) == clause(cause) + ("" if is_hidden else quoted(cause))
    told = explain(NoAnswers({"a": why, "b": why}), "7b1f", remedies=[fix])
    assert told == f"No member of the council answered. {IN_ITS_LOG}"
    assert not any(name in failure(why) for name in ("OPENROUTER", "LAB_KEY", where.address))
    said = clause(cause, where, keyless=True) + quoted(cause)
    assert (failures.reason(why, where), failures.remedy(why, where)) == (said, fix)
    assert explain(NoAnswers({"a": why}), "7b1f", at_terminal=True, remedies=[fix]) == (
        f"No member of the council answered. {fix}, then run: council retry 7b1f"
    )
    advice = gave_nothing("lab/two", where, why, "no cost")
    assert (advice.what, advice.fix) == (f"it gave no answer: {said} (all live calls: no cost)", fix)
    assert not any(secret in advice.what + fix for secret in ("pw", "key=k"))


@rows("cause", BY_THE_ASKER)
def test_what_others_can_do(cause: Cause) -> None:
    """The asker waits, asks in other words or again; the doctor always has a fix."""
    why, reason = happened(cause), CAUSES[cause]
    assert failure(why) == failures.reason(why, HOSTED) == reason.clause + quoted(cause)
    error = NoAnswers({"a": why, "b": why})
    for at_terminal, retry in ((False, "press Continue."), (True, "run: council retry 7b1f")):
        advice = reason.advice.format(retry=retry)
        said = explain(error, "7b1f", at_terminal=at_terminal)
        assert said == f"No member of the council answered. {advice}"
    found = gave_nothing("lab/two", HOSTED, why, "$0.02")
    assert found.what == f"it gave no answer: {reason.clause}{quoted(cause)} (all live calls: $0.02)"
    assert found.fix == (reason.remedy.format(model="lab/two") or NO_SETTING)


def test_several_remedies_are_told_in_turn() -> None:
    """Each as a sentence; how to go on comes last."""
    error = NoAnswers({"a": happened("key"), "b": happened("no_server")})
    fixes = ["Correct LAB_KEY", "Start the server at http://10.0.0.5:8000/v1, or correct that address"]
    assert explain(error, "7b1f", at_terminal=True, remedies=fixes) == (
        "No member of the council answered. Correct LAB_KEY. Start the server at "
        "http://10.0.0.5:8000/v1, or correct that address. Then run: council retry 7b1f"
    )


def test_the_operators_guide_has_every_remedy() -> None:
    """In the table of run.md, row for row."""
    guide = (Path(__file__).parents[3] / "docs" / "run.md").read_text()
    for cause, where, fix in BY_AN_OPERATOR:
        if where is HOSTED:
            assert f"| *{clause(cause)}* | {fix} |" in guide
