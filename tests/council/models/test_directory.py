"""The directory: endpoints and keys come from today's configuration, whatever a run's row says."""

import orjson
import pytest

from council.accounts import Directory
from council.brief import Brief
from council.calls import Call
from council.errors import Cause, ModelError
from council.profile import Member, Profile
from tests.pairs import rows

HERE = "http://127.0.0.1:11434/v1"
THERE = "http://127.0.0.1:8000/v1"
OWN = Member(model="llama", endpoint=HERE, api_key_env="LLAMA_KEY")
ROUTED = Member(model="openai/gpt-5", fallbacks=("x-ai/grok", "meta/llama"))
TODAY = Profile(members=(OWN, ROUTED), chairman=ROUTED)


def call(member: Member, profile: str = "default") -> Call:
    """Call a member as a run does: without what only the configuration may say."""
    return Call(step="stage1.1:a", member=member.in_a_run(), prompt=tuple, deadline=1.0, profile=profile)


def refused(called: Call, *profiles: Profile) -> Cause:
    """Look a member up in vain."""
    with pytest.raises(ModelError) as caught:
        Directory(profiles or (TODAY,)).find(called)
    assert caught.value.failure.attempts == 0
    return caught.value.failure.cause


def test_a_member_has_the_endpoint_and_the_key_of_today() -> None:
    """The key's variable may have another name than when the run began."""
    today = TODAY.model_copy(update={"members": (OWN.model_copy(update={"api_key_env": "NEW"}),)})
    found = Directory([today]).find(call(OWN))
    assert (found.endpoint, found.api_key_env) == (HERE, "NEW")


def test_a_member_without_an_endpoint_is_the_councils_own() -> None:
    """Whatever a row says beside its model."""
    crafted = ROUTED.model_copy(update={"endpoint": THERE, "api_key_env": "DISCORD_TOKEN"})
    found = Directory([TODAY]).find(Call("stage1.1:a", crafted, tuple, 1.0))
    assert (found.endpoint, found.api_key_env) == (None, None)


@rows(
    ("called", "cause"),
    [
        (call(Member(model="x-ai/grok")), "not_configured"),
        (call(OWN, profile="another"), "not_configured"),
        (call(Member(model="llama", endpoint=THERE)), "endpoint_changed"),
        (call(Member(model="llama")), "endpoint_changed"),
        (call(Member(model="openai/gpt-5", endpoint=HERE)), "endpoint_changed"),
    ],
)
def test_a_model_that_is_not_configured_is_not_asked(called: Call, cause: Cause) -> None:
    """A model that isn't on this council, or isn't served where the run has it."""
    assert refused(called) == cause


def test_it_contains_everybody_who_may_be_asked() -> None:
    """Members, chairman, its fallbacks, the title model."""
    seats = [
        Member(model=name, endpoint=f"http://127.0.0.1:{port}/v1") for port, name in enumerate("abcd", 1)
    ]
    today = Profile(
        members=(seats[0],), chairman=seats[1], chairman_fallbacks=(seats[2],), title_model=seats[3]
    )
    directory = Directory([today])
    assert [directory.find(call(seat)).endpoint for seat in seats] == [seat.endpoint for seat in seats]


def test_only_configured_fallbacks_remain() -> None:
    """A row can't have a question sent to a model that nobody configured."""
    crafted = ROUTED.model_copy(update={"fallbacks": ("evil/model", "meta/llama")})
    assert Directory([TODAY]).find(call(crafted)).fallbacks == ("meta/llama",)
    plain = Member(model="openai/gpt-5")
    both = Profile(members=(ROUTED,), chairman=plain)
    assert Directory([both]).find(call(ROUTED)).fallbacks == ROUTED.fallbacks


def test_a_changed_configuration_serves_the_runs_before_it_too() -> None:
    """Until the process ends: what it leaves out was configured when they began."""
    directory = Directory([TODAY])
    directory.add([Profile(members=(Member(model="llama", endpoint=THERE),), chairman=ROUTED)])
    assert directory.find(call(OWN)).endpoint == HERE
    assert directory.find(call(Member(model="llama", endpoint=THERE))).endpoint == THERE


@pytest.mark.parametrize("endpoint", ["http://ada:hunter2@127.0.0.1:11434/v1", f"{HERE}/"])
def test_an_endpoint_is_known_without_its_password(endpoint: str) -> None:
    """A new password doesn't make it another server, and it can't be guessed from the digest."""
    assert Member(model="llama", endpoint=endpoint).endpoint_id == OWN.endpoint_id


def test_a_brief_contains_no_endpoint_and_no_variable() -> None:
    """Neither in memory nor in its row; the endpoint's digest tells another one."""
    brief = Brief(question="Why?", profile=TODAY, seed=1, boundary="b0undary")
    assert [(seat.endpoint, seat.api_key_env) for seat in brief.profile.seats] == [(None, None)] * 3
    row = brief.model_dump_json()
    assert HERE not in row
    assert "LLAMA_KEY" not in row
    assert "api_key_env" not in row
    loaded = Brief.model_validate_json(row)
    assert loaded == brief
    assert loaded.profile.members[0].endpoint_id == OWN.endpoint_id


def test_endpoints_in_rows_of_earlier_versions_are_not_used() -> None:
    """Rows used to contain address and variable; only the endpoint's digest is left."""
    row = orjson.loads(
        Brief(question="Why?", profile=TODAY, seed=1, boundary="b0undary").model_dump_json()
    )
    row["profile"]["members"][0] = {"model": "llama", "endpoint": THERE, "api_key_env": "DISCORD_TOKEN"}
    [member, _] = Brief.model_validate(row).profile.members
    assert (member.endpoint, member.api_key_env) == (None, None)
    assert member.endpoint_id == Member(model="llama", endpoint=THERE).endpoint_id
