"""What a question may cost, before it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.brief import Attachment, Brief, History, Turn
from council.calls import Call
from council.estimate import estimate
from council.models.costs import REPLY_TOKENS, WEB_SEARCH, call_cost
from council.profile import Member, Profile
from council.usage import Price, tokens
from tests.council.scripted import FOUR, ScriptedCouncil, profile
from tests.pairs import rows

CHEAP, DEAR = Price(0.000_001, 0.000_002), Price(0.000_01, 0.000_03)
DIME = Price(prompt=0.0, completion=0.0, request=0.1)
FREE = Price(0.0, 0.0)
FILE = Attachment(name="plan.md", text="A plan of many words. " * 400)


def brief(seats: Profile | None = None, **more: object) -> Brief:
    return ScriptedCouncil.brief(seats, **more)


def cheap(member: Member) -> Price:
    del member
    return CHEAP


@rows(
    "seats",
    [
        profile(),
        profile(max_rounds=3),
        profile(*FOUR[:2]),
        profile(FOUR[0], quorum=1),
        profile(title_model="t/one", strategy="security_first", criteria="Cost:3, Security!"),
        profile(answer_format="structured"),
    ],
)
async def test_it_foresees_every_call_and_at_least_its_prompt(seats: Profile) -> None:
    """By stage: as many calls as a run makes, and no prompt longer than estimated."""
    council = ScriptedCouncil()
    asked = brief(
        seats,
        attachments=(FILE,),
        history=History(turns=(Turn(question="Before?", answer="Yes. " * 90),)),
    )
    if seats.title_model:
        asked = asked.model_copy(update={"history": History()})
    found = estimate(asked, cheap)
    long = "Long and different each time, because it names " + "reasons, " * 500
    council.script = {"stage1": lambda call: f"{call.member.name}: {long}"}
    await council.run(seats, attachments=asked.attachments, history=asked.history)
    for stage in found.stages:
        made = [call for call in council.calls if call.step.partition(".")[0] == stage.stage]
        made = [call for call in made if not call.step.endswith(("again", "plain"))]
        assert len(made) <= stage.calls
        assert stage.stage in ("stage2", "stage2_5") or len(made) == stage.calls
        written = sum(tokens(message["content"]) for call in made for message in call.messages)
        assert written <= stage.prompt_tokens


async def test_files_history_and_thread_count_in_every_prompt_that_repeats_them() -> None:
    """Once for each call; the same text costs the same wherever it comes from."""
    council = ScriptedCouncil()
    await council.run()
    assert estimate(brief(), cheap).calls == len(council.calls) == 13
    bare = estimate(brief(), cheap)
    filed = estimate(brief(attachments=(FILE,)), cheap)
    told = estimate(brief(history=History(turns=(Turn(question="x", answer=FILE.text),))), cheap)
    for one, other in zip(bare.stages, filed.stages, strict=True):
        assert other.prompt_tokens - one.prompt_tokens >= other.calls * tokens(FILE.text)
        assert other.completion_tokens == one.completion_tokens
    assert abs(told.tokens - filed.tokens) < 50 * filed.calls


def test_calls_without_a_known_price_cost_a_stated_estimate() -> None:
    """They are counted by stage and in total; other calls keep their prices."""

    def price(member: Member) -> Price | None:
        return None if member.model == FOUR[0] else FREE

    found = estimate(brief(), price, unpriced_call=0.5)
    assert (found.unpriced, found.cost) == (3, 1.5)
    assert [stage.unpriced for stage in found.stages] == [1, 1, 1, 0]


def test_the_dearest_of_those_who_may_write_the_answer_counts() -> None:
    """Only one of them is paid for, and it isn't known which."""
    seats = profile(chairman="a/cheap", chairman_fallbacks=("b/dear", "c/cheap"))

    def price(member: Member) -> Price:
        return DEAR if member.model == "b/dear" else FREE

    found = estimate(brief(seats), price)
    assert found.stages[-1].calls == 1
    assert (
        found.cost
        == found.of("stage3")
        == pytest.approx(DEAR.cost(found.stages[-1].prompt_tokens, REPLY_TOKENS))
    )


def test_limits_searches_and_single_calls_are_estimated() -> None:
    """Every reply is assumed to have `max_tokens`; a server of one's own searches nothing; one call has its own prompt."""
    short, usual = (estimate(brief(profile(**more)), cheap) for more in ({"max_tokens": 100}, {}))
    assert short.reply_tokens == 100
    assert short.cost < usual.cost / 3
    plain, web = (estimate(brief(profile(web=on)), cheap) for on in (False, True))
    assert web.cost - plain.cost == pytest.approx(8 * WEB_SEARCH)
    own = [{"model": name, "endpoint": "http://127.0.0.1:1/v1"} for name in FOUR]
    at_home = Profile.model_validate({"members": own, "chairman": "c/c", "web": True})
    assert estimate(brief(at_home), lambda _: FREE).cost == 0
    call = Call("stage1.1:a", Member(model="a"), lambda: ({"role": "user", "content": "x" * 400},), 1.0)
    assert call_cost(call, CHEAP, 0.5) == CHEAP.cost(100, REPLY_TOKENS)
    assert call_cost(call, None, 0.5) == 0.5


@given(st.text(max_size=200), st.integers(1, 6), st.integers(1, 5), st.integers(1, 5_000))
def test_more_of_anything_never_costs_less(text: str, seats: int, rounds: int, length: int) -> None:
    """More text, members, rounds or tokens never make it cheaper; the total is the sum of the stages."""
    names = tuple(f"m/{number}" for number in range(seats))
    less = profile(*names, max_rounds=rounds, max_tokens=length, quorum=1)
    more = profile(*names, "m/more", max_rounds=min(rounds + 1, 5), max_tokens=length + 1, quorum=1)
    small, large = (
        estimate(brief(less), cheap),
        estimate(brief(more, question=f"Should we shard now or buy a bigger machine?{text}"), cheap),
    )
    assert 0 < small.cost < large.cost
    assert small.cost == pytest.approx(sum(stage.cost for stage in small.stages))


@rows(
    ("settings", "calls"),
    [
        ({"depth": "quick"}, {"stage1": 4, "stage3": 1}),
        ({"depth": "auto"}, {"stage1": 4, "judge": 2, "stage2": 4, "stage2_5": 4, "stage3": 1}),
        (
            {"depth": "auto", "depth_audit": 0.0},
            {"stage1": 4, "judge": 1, "stage2": 4, "stage2_5": 4, "stage3": 1},
        ),
    ],
)
def test_it_knows_how_deep_the_run_may_go(settings: dict[str, object], calls: dict[str, int]) -> None:
    """What may be made counts, so that no budget is passed; if answers agree, it is the judge's one call."""
    found = estimate(brief(profile(judge_model="judge/model", **settings)), lambda _: DIME)
    assert {stage.stage: stage.calls for stage in found.stages} == calls
    assert found.cost == pytest.approx(sum(calls.values()) * 0.1)
    assert found.may_skip == (settings.get("depth") == "auto")
    if found.may_skip:
        assert found.agreed_cost == pytest.approx((4 + 1 + 1) * 0.1)
