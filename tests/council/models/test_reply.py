"""What an answer, a failure or a cut stream costs, who gave it, and what is read out of thoughts."""

from dataclasses import replace

import orjson
import pytest

from council.calls import Call
from council.errors import Failure, ModelError
from council.models.refusals import NO_SECRETS
from council.models.reply import Completion, answering_fallback
from council.models.stream import parse
from council.profile import Member
from council.text.json_objects import JsonObject
from council.usage import Price, Usage, total

PRICE = Price(prompt=0.25, completion=0.5)


def call(**changes: object) -> Call:
    """Make a call of one member, its fields as given."""
    member = Member.model_validate({"model": "openai/gpt-5", **changes})
    return Call(
        step="stage1:1:a",
        member=member,
        prompt=lambda: ({"role": "user", "content": "Why is it?"},),
        deadline=5.0,
    )


def chunk(content: object = None, *, finish: str | None = None, **fields: object) -> bytes:
    """Write one chunk of a stream."""
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return orjson.dumps({"model": "openai/gpt-5", "choices": [choice], **fields})


def streamed(*chunks: bytes) -> Completion:
    """Read a stream to its end."""
    completion = Completion()
    for data in chunks:
        completion.take_chunk(parse(data))
    return completion


def body(content: object, **fields: object) -> Completion:
    """Read a plain body."""
    completion = Completion()
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    completion.take_body(parse(orjson.dumps({"choices": [choice], **fields})))
    return completion


def failure_of(completion: Completion, asked: Call, price: Price | None = None) -> Failure:
    """Return why there is no answer."""
    with pytest.raises(ModelError) as caught:
        completion.reply(asked, 1, lambda _: price)
    return caught.value.failure


def paid(completion: Completion, limit: int | None = None) -> Usage:
    """Return what a call that was sent costs so far."""
    used = completion.paid(replace(call(), max_tokens=limit), lambda _: PRICE)
    assert used is not None
    return used


def no_price(_: str) -> Price | None:
    """Know no price."""
    return None


FORM: JsonObject = {"type": "object", "required": ["reviews", "ranking"]}
BALLOT = '{"reviews": [], "ranking": ["B", "A"]}'


@pytest.mark.parametrize(
    ("thoughts", "expected"),
    [
        ([BALLOT], BALLOT),
        ([BALLOT[:9], BALLOT[9:]], BALLOT),
        (["Perhaps ", BALLOT.replace("B", "C"), f"? No: {BALLOT} is right."], BALLOT),
        ([f"{BALLOT} it is, or ", '{"ranking": ["A", "B"]}?'], BALLOT),
        (['{"ranking": ["B", "A"]}'], None),
        (["B is better than A."], None),
    ],
)
def test_an_object_among_the_thoughts_is_an_empty_replys_text(
    thoughts: list[str], expected: str | None
) -> None:
    """LM Studio and KoboldCpp take what a schema asked for as thoughts (lmstudio-bug-tracker#1698).

    Only the object is kept, and only if it has every field that was asked for.
    """
    chunks = [delta(reasoning_content=each) for each in thoughts]
    completion = streamed(*chunks, chunk("", finish="stop"))
    asked = replace(call(), schema=FORM)
    if expected:
        assert completion.reply(asked, 5, no_price).text == expected
    else:
        assert failure_of(completion, asked).cause == "empty"


def test_thoughts_are_no_text_where_there_is_any_or_where_no_schema_was_asked_for() -> None:
    """Whatever is in them."""
    thought = delta(reasoning_content=BALLOT)
    spoken = streamed(thought, chunk("Yes.", finish="stop"))
    assert spoken.reply(replace(call(), schema=FORM), 5, no_price).text == "Yes."
    assert failure_of(streamed(thought, chunk("", finish="stop")), call()).cause == "empty"


def delta(**fields: object) -> bytes:
    """Write a chunk whose delta has these fields."""
    return orjson.dumps({"choices": [{"delta": fields}]})


def test_an_error_inside_a_stream_ends_it_with_what_it_cost() -> None:
    """OpenRouter sends the error in a chunk of its own, after text and with usage."""
    completion = streamed(chunk("It dep"))
    completion.begin({}, NO_SECRETS)
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.01}
    with pytest.raises(ModelError) as caught:
        completion.take_chunk(
            parse(chunk(finish="error", error={"code": 502, "message": "Upstream broke"}, usage=usage))
        )
    failure = completion.billed(caught.value.failure, call(), no_price)
    assert (failure.cause, failure.status, failure.detail) == ("unavailable", 502, "Upstream broke")
    assert failure.usage == Usage(prompt_tokens=9, completion_tokens=2, cost=0.01)


# Usage --------------------------------------------------------------------------------------------


def test_a_reply_without_text_costs_its_listed_price() -> None:
    """A failure is paid for like an answer, and its price is as well known."""
    completion = body("", usage={"prompt_tokens": 10, "completion_tokens": 5})
    failure = failure_of(completion, call(), PRICE)
    assert failure.cause == "empty"
    assert failure.usage == Usage(prompt_tokens=10, completion_tokens=5, cost=5.0)


@pytest.mark.parametrize(
    ("chunks", "limit", "cost"),
    [
        ([{"content": ""}], None, 1000.75),
        ([{"content": "It dep"}], None, 1001.75),
        ([{"reasoning": "Hm."}], None, 1001.25),
        ([{"reasoning": "Hm. " * 4000}], None, 3000.75),
        ([{"reasoning": "Hm. Or not."}, {"content": "It"}], None, 1002.75),
        ([{"refusal": "No, I can't"}], None, 1002.25),
        ([{"content": "It dep"}], 100, 50.75),
        ([{"content": "It dep" * 100}], 100, 75.75),
    ],
)
@pytest.mark.parametrize("ends", [False, True])
def test_what_nobody_counted_costs_at_least_what_was_reserved(
    chunks: list[JsonObject], limit: int | None, cost: float, *, ends: bool
) -> None:
    """A cut stream may be billed whole, and thoughts are where they are hidden: all that arrived, too."""
    completion = Completion()
    completion.begin({}, NO_SECRETS)
    for delta in chunks:
        completion.take_chunk(parse(orjson.dumps({"choices": [{"delta": delta}]})))
    if ends:
        completion.take_chunk(parse(chunk("", finish="stop")))
    used = paid(completion, limit)
    assert (used.cost, used.source) == (cost, "estimated")


@pytest.mark.parametrize(
    ("stated", "cost"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.5}, 0.5),
        ({"cost": 0.5}, 0.5),
        ({"prompt_tokens": 10, "completion_tokens": 5}, 1001.75),
        ({"prompt_tokens": 10, "completion_tokens": 9_000}, 4502.5),
    ],
)
def test_a_cut_stream_costs_less_only_where_its_provider_says_so(
    stated: JsonObject, cost: float
) -> None:
    """In dollars: tokens that were counted before the end may not be all."""
    completion = streamed(chunk("It dep", usage=stated))
    completion.begin({}, NO_SECRETS)
    used = paid(completion)
    assert used.cost == cost


def test_a_count_from_before_the_end_is_not_the_last_word() -> None:
    """Some servers count into every chunk, or the prompt alone into the first."""
    first = chunk("", usage={"prompt_tokens": 3, "completion_tokens": 1})
    completion = streamed(first, chunk("It depends on whom you ask."))
    completion.begin({}, NO_SECRETS)
    used = paid(completion)
    assert (used.completion_tokens, used.source) == (7, "estimated")


def test_a_search_that_nobody_counted_costs_its_price() -> None:
    """Without a stated cost, it comes on top of the tokens."""
    completion = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5})
    assert completion.reply(replace(call(), web=True), 1, lambda _: PRICE).usage.cost == 5.02


def test_what_arrived_of_a_plain_body_is_paid_for() -> None:
    """Nothing of it can be read before it is whole."""
    completion = Completion()
    completion.begin({}, NO_SECRETS)
    completion.arrive(400)
    used = paid(completion)
    assert used.completion_tokens == 100


def test_a_sum_is_known_where_any_part_is() -> None:
    """One provider's count isn't lost because another says nothing."""
    parts = [Usage(prompt_tokens=5), Usage(prompt_tokens=9, cached_tokens=4), Usage(cached_tokens=0)]
    assert total(parts).cached_tokens == 4
    assert total(parts[:1]).cached_tokens is None


# Fallbacks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ("openai/gpt-5", None),
        ("openai/gpt-5-2025-08-07", None),
        ("openai/gpt-5-mini", "openai/gpt-5-mini"),
        ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("x-ai/grok-4:beta", "x-ai/grok-4"),
        ("somebody/else", None),
        (None, None),
    ],
)
def test_a_fallback_that_answered_is_named(answered: str | None, expected: str | None) -> None:
    """Dated variants are the model they vary; of several ids that fit, the longest is meant."""
    fallbacks = ("openai/gpt-5-mini", "x-ai/grok-4")
    assert answering_fallback("openai/gpt-5", fallbacks, answered) == expected


def test_a_fallbacks_answer_has_the_fallbacks_price() -> None:
    """Prices are of the model that answered."""
    asked: list[str] = []

    def price(model: str) -> Price | None:
        asked.append(model)
        return None

    completion = body("Yes.", model="x-ai/grok-4")
    reply = completion.reply(call(fallbacks=["x-ai/grok-4"]), 1, price)
    assert reply.answered_by == "x-ai/grok-4"
    assert asked == ["x-ai/grok-4"]


def test_a_member_without_fallbacks_is_never_answered_for() -> None:
    """Servers name models as they like; that alone means nothing."""
    assert body("Yes.", model="gpt-oss").reply(call(), 1, no_price).answered_by is None


def test_nothing_but_thoughts_names_the_limit() -> None:
    """The one that was set, else where the reply ended."""
    counted = {"prompt_tokens": 10, "completion_tokens": 64}
    for completion, asked, limit in (
        (streamed(chunk("<think>The user is new.", finish="length")), 50, 50),
        (
            streamed(delta(reasoning="The user is new."), chunk("", finish="length", usage=counted)),
            None,
            64,
        ),
        (streamed(delta(reasoning="The user is new."), chunk("", finish="length")), None, None),
    ):
        failure = failure_of(completion, replace(call(), max_tokens=asked))
        assert (failure.cause, failure.limit, failure.detail) == ("only_thoughts", limit, "")
        assert failure.usage is not None


def test_a_reply_that_broke_off_is_paid_for() -> None:
    """As counted, else by what arrived; one that was refused before a word costs nothing."""
    lost, busy, refused = (Failure(cause=cause) for cause in ("lost", "rate_limited", "credit"))
    completion = streamed(chunk("It depends on"))
    assert completion.billed(lost, call(), no_price).usage is None  # nothing was sent
    unanswered = Completion()
    unanswered.send()
    assert unanswered.billed(lost, call(), lambda _: PRICE).usage == Usage(
        prompt_tokens=3, cost=1000.75, source="estimated"
    )
    down = Failure(cause="unavailable", status=503)
    assert unanswered.billed(down, call(), no_price).usage is None
    completion.begin({}, NO_SECRETS)
    assert completion.billed(lost, call(), lambda _: PRICE).usage == Usage(
        prompt_tokens=3, completion_tokens=4, cost=1002.75, source="estimated"
    )
    nothing = Completion()
    nothing.begin({}, NO_SECRETS)
    assert nothing.billed(busy, call(), no_price).usage is None
    assert nothing.billed(refused, call(), no_price).usage is None
    assert nothing.billed(lost, call(), no_price).usage == Usage(
        prompt_tokens=3, unpriced=1, source="estimated"
    )
