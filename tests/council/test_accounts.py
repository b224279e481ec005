"""A refused account costs its own members' calls, and nobody else's."""

import asyncio

import pytest

from council.accounts import Accounts
from council.calls import Call
from council.errors import Cause, Failure, ModelError, NoAnswers
from council.events import MemberFailed
from council.profile import Member, Persona, Profile
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.pairs import rows

HERE = "http://127.0.0.1:8000/v1"
THERE = "http://127.0.0.1:9000/v1"
REFUSALS: tuple[Cause, ...] = ("key", "no_key", "credit", "key_limit", "no_api")
every_refusal = rows("cause", REFUSALS)


def own(model: str, endpoint: str = HERE, key: str | None = None) -> Member:
    """Return a member at a server of its own."""
    return Member(model=model, endpoint=endpoint, api_key_env=key)


def seated(*members: str | Member, **settings: object) -> Profile:
    """Return a council as a run keeps it: without addresses and variables."""
    seats = Profile.model_validate({"members": members, "chairman": "chair/man", **settings})
    return Profile.model_validate_json(seats.in_a_run().model_dump_json())


def refused(*models: str, cause: Cause = "key") -> ScriptedCouncil:
    """Return a council in which whatever is asked of these models is refused."""

    def answer(call: Call) -> str:
        if call.member.model in models:
            raise ModelError(failure(cause))
        return ScriptedCouncil.default(call, call.step.partition(".")[0])

    stages = ("stage1", "stage2", "stage2_5", "stage3", "title")
    return ScriptedCouncil(script=dict.fromkeys(stages, answer))


@every_refusal
async def test_the_councils_own_account_leaves_members_with_servers_of_their_own(cause: Cause) -> None:
    """Two local members answer, review and correct; the best-ranked one takes the chair."""
    council = refused("hosted/one", "hosted/two", "chair/man", cause=cause)
    message = (await council.run(seated("hosted/one", own("a"), own("b"), "hosted/two"))).message
    assert [answer.model for answer in message.stage1] == ["a", "b"]
    assert [review.model for review in message.stage2] == ["a", "b"]
    assert (message.stage3.source, message.stage3.model) == ("best_ranked", "a")
    assert "chair/man" not in council.asked("stage3")
    assert ("stage3", "chair/man", cause, 0) in [
        (each.stage, each.member, each.failure.cause, each.failure.attempts) for each in message.failures
    ]
    message.check()


@every_refusal
async def test_one_servers_refusal_costs_its_member_alone(cause: Cause) -> None:
    """A wrong key or an empty account there; everybody else goes on to the chairman's answer."""
    council = refused("local", cause=cause)
    message = (await council.run(seated("hosted/one", own("local"), "hosted/two"))).message
    assert [answer.model for answer in message.stage1] == ["hosted/one", "hosted/two"]
    assert message.stage3.source == "chairman"
    assert [call.step for call in council.calls if call.member.model == "local"] == ["stage1.1:local"]


async def test_two_keys_at_one_address_are_two_accounts() -> None:
    """Only one of them ends."""
    council = refused("a")
    seats = seated(own("a", key="ONE"), own("b", key="TWO"), own("c", key="TWO"), own("d", key="ONE"))
    council.held.add("stage1.1:d")
    message = (await council.run(seats)).message
    assert [answer.model for answer in message.stage1] == ["b", "c"]
    assert council.steps.outcomes["stage1.1:d"] == Failure(cause="key")


def test_an_account_is_an_address_and_a_variable() -> None:
    """What a run keeps of it tells neither; a run of an earlier version has none. Two seats of one model are one model."""
    seats = [own("a"), own("b", key="ONE"), own("c", key="TWO"), own("d", THERE), own("e", THERE, "ONE")]
    accounts = [member.in_a_run().account_id for member in seats]
    assert len({*accounts}) == len(seats)
    assert own("f", key="ONE").account_id == accounts[1]
    assert Member(model="g").account_id is None
    assert not any("ONE" in str(each) or "127" in str(each) for each in accounts)
    accounts = Accounts()
    old = own("a").in_a_run().model_copy(update={"account_id": None})
    accounts.note(old, Failure(cause="key"))
    assert accounts.calls(old).cause == "key"
    assert accounts.calls(Member(model="b")).cause is None
    accounts = Accounts()
    dear = Failure(cause="too_dear")
    for name in ("The Critic", "The Poet"):
        accounts.note(Member(model="m", persona=Persona(name=name, prompt="Be one.")), dear)
    accounts.note(own("n"), dear)
    assert accounts.calls(Member(model="m")).cause is None
    accounts.note(Member(model="n"), dear)
    assert accounts.calls(Member(model="m")).cause == "credit"
    assert accounts.calls(own("n")).cause is None


@every_refusal
async def test_without_anybody_left_each_member_has_its_cause(cause: Cause) -> None:
    """Calls in flight are ended; nothing more is asked."""
    council = ScriptedCouncil(
        script={f"stage1.1:{FOUR[0]}": failure(cause)}, held={f"stage1.1:{name}" for name in FOUR[1:]}
    )
    with pytest.raises(NoAnswers) as caught:
        await council.run()
    assert {name: why.cause for name, why in caught.value.failures.items()} == dict.fromkeys(FOUR, cause)
    assert caught.value.cause == cause
    assert len(council.calls) == 4


async def test_the_only_answer_left_is_delivered() -> None:
    """As one model's, not reviewed."""
    message = (await refused("x/a", "x/b").run(seated("x/a", "x/b", own("local")))).message
    assert (message.stage3.source, message.stage3.model) == ("single", "local")


@rows("stage", ["stage2", "stage2_5"])
async def test_an_account_that_is_refused_later_leaves_the_answers(stage: str) -> None:
    """Nobody can write the final answer, so the best-ranked one is it, unedited."""
    council = ScriptedCouncil(script={f"{stage}.1:{FOUR[0]}": failure("credit")})
    council.held |= {f"{stage}.1:{name}" for name in FOUR[1:]}
    message = (await council.run()).message
    assert message.stage3.source == "verbatim"
    assert council.asked("stage3") == []
    assert len(message.stage1) == 4
    assert {each.fallback.cause for each in message.stage2_5 or [] if each.fallback} == {"credit"}
    message.check()


async def test_the_chair_passes_to_another_account() -> None:
    """Fallbacks of the refused account are passed over, as is a best-ranked member of it."""
    council = refused("chair/man")
    seats = seated("x/a", "x/b", own("c"), chairman_fallbacks=("vice/one", own("vice", THERE)))
    message = (await council.run(seats)).message
    assert (message.stage3.source, message.stage3.model) == ("fallback", "vice")
    assert council.asked("stage3") == ["chair/man", "vice"]
    council = refused("chair/man")
    message = (await council.run(seated("x/a", "x/b", own("c")))).message
    assert message.aggregate_ranking is not None
    assert (message.stage3.source, message.stage3.model) == ("best_ranked", "c")
    assert message.aggregate_ranking.places[0].model != "c"


async def test_the_chair_goes_down_the_ranking_only_past_refused_accounts() -> None:
    """A best-ranked member that fails for its own reasons ends the line; a refused one doesn't."""
    council = ScriptedCouncil(script={"stage3": failure()})
    await council.run(seated(own("a", key="ONE"), own("b", key="TWO"), own("c", key="THREE")))
    assert len(council.asked("stage3")) == 2
    council = ScriptedCouncil(script={"stage3": failure("credit")})
    await council.run(seated(own("a", key="ONE"), own("b", key="TWO"), own("c", key="THREE")))
    assert len(council.asked("stage3")) == 4


async def test_one_model_too_dear_fails_alone_and_a_second_ends_the_account() -> None:
    """The account still pays for the others; whoever waits for its answer after the second refusal is told the same."""
    message = (await refused(FOUR[1], cause="too_dear").run(profile())).message
    assert len(message.stage1) == 3
    assert message.stage3.source == "chairman"
    council = refused(*FOUR[:2], cause="too_dear")
    council.held |= {f"stage1.1:{name}" for name in FOUR[2:]}
    message = (await council.run(seated(*FOUR, own("local")))).message
    causes = {each.member: each.failure.cause for each in message.failures if each.stage == "stage1"}
    assert causes == {FOUR[0]: "too_dear", **dict.fromkeys(FOUR[1:], "credit")}
    assert (message.stage3.source, message.stage3.model) == ("single", "local")


async def test_a_call_that_is_not_made_is_told_but_not_recorded() -> None:
    """Observers hear the cause; a retried run asks again."""
    council = ScriptedCouncil(script={f"stage2.1:{FOUR[0]}": failure("credit")})
    await council.run()
    told = [event for event in council.events if isinstance(event, MemberFailed)]
    assert ("stage3", "chair/man", 0) in [
        (each.stage, each.member, each.failure.attempts) for each in told
    ]
    assert not any(step.startswith("stage3") for step in council.steps.outcomes)


@rows("step", ["stage1.1:x/a", "stage2.1:x/a", "stage2_5.1:x/a", "stage3.1:chair/man"])
async def test_a_replay_ends_as_the_run_did(step: str) -> None:
    """Nothing is asked again, and the same accounts are refused."""
    seats = seated("x/a", "x/b", own("c"), own("d"))
    council = ScriptedCouncil(script={step: failure("credit"), f"{step}:chairman": failure("credit")})
    first = (await council.run(seats)).message
    again = ScriptedCouncil(steps=council.steps)
    second = (await again.run(seats)).message
    assert again.calls == []
    varying = {"started_at", "finished_at", "failures"}  # failures are in the order of their events
    assert second.model_dump(exclude=varying) == first.model_dump(exclude=varying)
    assert sorted(map(repr, second.failures)) == sorted(map(repr, first.failures))


async def test_a_refused_account_costs_the_title() -> None:
    """The question becomes the title."""
    council = ScriptedCouncil(
        script={f"stage1.1:{FOUR[0]}": failure("credit")}, held={"title", f"stage1.1:{FOUR[1]}"}
    )
    running = asyncio.create_task(council.run(seated(*FOUR[:2], own("a"), title_model="some/titles")))
    assert (await running).title == "Should we shard now or buy a bigger machine?"
    assert council.steps.outcomes["title"] == Failure(cause="credit")
