"""What a provider sent becomes an answer, or the reason why there is none."""

import json
from contextlib import suppress
from dataclasses import replace

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from council.calls import Call, Citation
from council.errors import Cause, Failure, ModelError
from council.models.costs import REPLY_TOKENS
from council.models.refusals import NO_SECRETS
from council.models.reply import Completion, answering_fallback
from council.models.stream import parse
from council.profile import Member
from council.text.json_objects import JsonObject
from council.usage import Price, Usage

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


def cause(completion: Completion) -> Cause:
    """Return why there is no answer."""
    with pytest.raises(ModelError) as caught:
        completion.reply(call(), 1, no_price)
    return caught.value.failure.cause


def no_price(_: str) -> Price | None:
    """Know no price."""
    return None


def test_chunks_join_into_one_text_and_are_heard_as_they_come() -> None:
    """The listener hears exactly the pieces that make up the answer."""
    heard: list[str] = []
    completion = Completion(heard.append)
    for data in (chunk("It "), chunk(None), chunk("depends."), chunk("", finish="stop")):
        completion.take_chunk(parse(data))
    reply = completion.reply(call(), 12, no_price)
    assert reply.text == "It depends."
    assert heard == ["It ", "depends."]
    assert (reply.latency_ms, reply.truncated, reply.answered_by) == (12, False, None)


def test_content_may_come_in_parts() -> None:
    """A list of text parts counts as their text; other parts say nothing."""
    parts = [{"type": "text", "text": "It "}, {"type": "image"}, {"type": "text", "text": "depends."}]
    assert streamed(chunk(parts, finish="stop")).reply(call(), 1, no_price).text == "It depends."
    assert body(parts).reply(call(), 1, no_price).text == "It depends."
    assert streamed(chunk(["It ", "depends."], finish="stop")).text == "It depends."
    assert body(["It ", {"text": "depends."}]).text == "It depends."


def test_text_may_come_as_that_of_a_completion() -> None:
    """Some proxies answer in the shape of the older completions API: `text` without a message."""
    begun, ended = ({"choices": [{"text": said, "finish_reason": why}]} for said, why in SAID)
    completion = streamed(orjson.dumps(begun), orjson.dumps(ended))
    assert completion.reply(call(), 1, no_price).text == "It depends."
    whole = Completion()
    whole.take_body(parse(orjson.dumps({"choices": [{"text": "<think>Hm.</think>It depends."}]})))
    assert whole.reply(call(), 1, no_price).text == "It depends."


SAID = (("It ", None), ("depends.", "stop"))


def test_reasoning_is_not_the_answer() -> None:
    """What a model thinks before it answers doesn't get into the text."""
    data = orjson.dumps({"choices": [{"delta": {"reasoning": "Hm.", "content": None}}]})
    assert streamed(data, chunk("Yes.", finish="stop")).text == "Yes."


FORM: JsonObject = {"type": "object", "required": ["reviews", "ranking"]}
BALLOT = '{"reviews": [], "ranking": ["B", "A"]}'


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
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
    field: str, thoughts: list[str], expected: str | None
) -> None:
    """LM Studio and KoboldCpp take what a schema asked for as thoughts (lmstudio-bug-tracker#1698).

    Only the object is kept, and only if it has every field that was asked for.
    """
    chunks = [delta(content=None, **{field: each}) for each in thoughts]
    completion = streamed(*chunks, chunk("", finish="stop"))
    asked = replace(call(), schema=FORM)
    if expected:
        assert completion.reply(asked, 5, no_price).text == expected
    else:
        with pytest.raises(ModelError) as caught:
            completion.reply(asked, 5, no_price)
        assert caught.value.failure.cause == "empty"


def test_thoughts_are_no_text_where_there_is_any_or_where_no_schema_was_asked_for() -> None:
    """Whatever is in them."""
    thought = delta(reasoning_content=BALLOT)
    spoken = streamed(thought, chunk("Yes.", finish="stop"))
    assert spoken.reply(replace(call(), schema=FORM), 5, no_price).text == "Yes."
    assert cause(streamed(thought, chunk("", finish="stop"))) == "empty"


@pytest.mark.parametrize("cut", range(1, 5))
def test_an_emoji_cut_in_two_comes_out_whole(cut: int) -> None:
    """Servers that count UTF-16 units send its halves as lone surrogates in two chunks."""
    units = [f"\\u{ord(unit):04x}" for unit in "a\ud83d\ude00b"]
    heard: list[str] = []
    completion = Completion(heard.append)
    for half in ("".join(units[:cut]), "".join(units[cut:])):
        completion.take_chunk(parse(f'{{"choices": [{{"delta": {{"content": "{half}"}}}}]}}'.encode()))
    assert completion.text == "a😀b"
    assert "".join(heard) == "a😀b"


@pytest.mark.parametrize("mark", ["<|im_end|>", "\n<|eot_id|>", "<end_of_turn>\n", "<|end|><|return|>"])
def test_a_templates_end_is_no_part_of_an_answer(mark: str) -> None:
    """Only right at its very end: a text may name the mark."""
    said = f"{mark} ends a turn."
    assert streamed(chunk(f"{said}{mark}", finish="stop")).reply(call(), 1, no_price).text == said
    named = chunk("A turn ends with <|im_end|>", finish="stop")
    assert streamed(named).reply(call(), 1, no_price).text == "A turn ends with <|im_end|>"


def cites(*pages: object) -> list[dict[str, object]]:
    """Write annotations as OpenRouter does."""
    return [{"type": "url_citation", "url_citation": page} for page in pages]


def delta(**fields: object) -> bytes:
    """Write a chunk whose delta has these fields."""
    return orjson.dumps({"choices": [{"delta": fields}]})


def test_cited_pages_are_kept_once_each_in_their_order() -> None:
    """A stream sends them in any chunk, and sometimes again."""
    first = {"url": "https://a.example/x", "title": " A page ", "start_index": 0}
    completion = streamed(
        delta(content="See ", annotations=cites(first)),
        delta(annotations=cites(first, {"url": "http://b.example/"})),
        chunk("a and b.", finish="stop"),
    )
    assert completion.reply(call(), 1, no_price).citations == (
        Citation(url="https://a.example/x", title="A page"),
        Citation(url="http://b.example/"),
    )


def test_a_plain_body_cites_too() -> None:
    """Its annotations are the message's."""
    completion = Completion()
    message = {"content": "See a.", "annotations": cites({"url": "https://a.example"})}
    completion.take_body(parse(orjson.dumps({"choices": [{"message": message}]})))
    assert completion.reply(call(), 1, no_price).citations == (Citation(url="https://a.example"),)


def test_pages_beside_the_choices_are_cited() -> None:
    """Perplexity lists them with titles in each chunk, and as addresses; xAI as addresses at the end."""
    pages = ["https://a.example/", "https://b.example/"]
    results = [{"title": " A ", "url": pages[0], "date": None}, {"title": "", "url": pages[1]}]
    beside = {"citations": pages, "search_results": results}
    said = [{"choices": [{"delta": {"content": piece}}], **beside} for piece in ("So [1]", ".")]
    perplexity = streamed(*map(orjson.dumps, said), chunk("", finish="stop"))
    assert perplexity.reply(call(), 1, no_price).citations == (
        Citation(url=pages[0], title="A"),
        Citation(url=pages[1]),
    )
    xai = streamed(chunk("So."), chunk("", finish="stop", citations=[*pages, 7, "no page"]))
    assert [each.url for each in xai.reply(call(), 1, no_price).citations] == pages


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        "https://a.example",
        [None, "x", {}],
        cites(None, {"url": 7}, {"url": "javascript:alert(1)"}, {"url": "https://a b"}),
        [{"type": "file", "file": {"name": "x"}}],
    ],
)
def test_only_pages_are_cited(annotations: object) -> None:
    """Other citations are dropped; the answer stays."""
    completion = streamed(delta(annotations=annotations), chunk("Yes.", finish="stop"))
    assert completion.reply(call(), 1, no_price).citations == ()


def test_a_reply_cut_off_by_its_length_is_an_answer_with_a_mark() -> None:
    """Length is no failure: what is there can be read."""
    reply = streamed(chunk("It dep", finish="length")).reply(call(), 1, no_price)
    assert reply.truncated


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (streamed(chunk("It dep")), "truncated"),
        (streamed(), "truncated"),
        (streamed(chunk("", finish="stop")), "empty"),
        (streamed(chunk(" \n\t", finish="stop")), "empty"),
        (streamed(chunk("", finish="length")), "only_thoughts"),
        (streamed(chunk(None, finish="tool_calls")), "empty"),
        (streamed(chunk("I can", finish="content_filter")), "filtered"),
        (streamed(chunk("I can", finish="error")), "unavailable"),
        (body(None), "empty"),
        (body("  "), "empty"),
    ],
)
def test_a_reply_that_is_no_answer_has_its_cause(completion: Completion, expected: Cause) -> None:
    """No error text and no half answer ever passes for an answer."""
    assert cause(completion) == expected


def test_a_refusal_is_a_filtered_reply_in_the_models_words() -> None:
    """OpenAI models put a refusal beside the content."""
    choice = {"delta": {"refusal": "I can't help with that."}, "finish_reason": "stop"}
    completion = streamed(orjson.dumps({"choices": [choice]}))
    with pytest.raises(ModelError) as caught:
        completion.reply(call(), 1, no_price)
    assert caught.value.failure.cause == "filtered"
    assert caught.value.failure.detail == "I can't help with that."


def test_a_plain_body_needs_no_finish_reason() -> None:
    """It is whole by having arrived; some servers leave the field out."""
    completion = Completion()
    completion.take_body(parse(b'{"choices": [{"message": {"content": "Yes."}}]}'))
    assert completion.reply(call(), 1, no_price).text == "Yes."


@pytest.mark.parametrize("data", [b"<html>", b"[]", b"[1]", b'"text"', b'{"choices": [{"delta"', b""])
def test_anything_but_a_json_object_is_malformed(data: bytes) -> None:
    """A corrupt chunk ends the reply: text may be missing from its middle."""
    with pytest.raises(ModelError) as caught:
        Completion().take_chunk(parse(data))
    assert caught.value.failure.cause == "malformed"


@pytest.mark.parametrize("choices", [{}, {"choices": []}, {"choices": None}, {"choices": "no"}])
def test_a_plain_body_without_choices_is_malformed(choices: JsonObject) -> None:
    """It isn't what the API promises."""
    with pytest.raises(ModelError) as caught:
        Completion().take_body(parse(orjson.dumps(choices)))
    assert caught.value.failure.cause == "malformed"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["choices", "delta", "usage", "x"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_no_json_breaks_the_reader(value: object) -> None:
    """Whatever a server sends, it is taken or refused with a cause."""
    with suppress(ModelError):
        Completion().take_chunk(parse(orjson.dumps(value)))


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


def test_json_with_a_lone_surrogate_is_still_json() -> None:
    """It is legal, and JavaScript servers write it."""
    assert parse(b'{"a": "\\ud83d"}') == {"a": "\ud83d"}


def test_half_a_pair_in_anything_but_the_text_is_replaced() -> None:
    """It can be written to no file, so it would end the run."""
    page = {"url": "https://example.com", "title": "\ud83d page"}
    half = json.dumps(
        {"choices": [{"message": {"content": "Yes.", "annotations": [{"url_citation": page}]}}]}
    )
    completion = Completion()
    completion.take_body(parse(half.encode()))
    [cited] = completion.reply(call(), 1, no_price).citations
    assert cited.title == "\ufffd page"


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"a":' * 100_000, b'{"a": NaN, "b":' + b"[" * 100_000]
)
def test_json_that_is_too_deep_is_malformed(data: bytes) -> None:
    """It costs this reply and nothing else."""
    with pytest.raises(ModelError) as caught:
        Completion().take_body(parse(data))
    assert caught.value.failure.cause == "malformed"


# Usage --------------------------------------------------------------------------------------------


def test_the_providers_own_count_and_cost_are_kept() -> None:
    """Measured beats estimated, and a stated cost beats a listed price."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}
    completion = streamed(chunk("Yes.", finish="stop"), orjson.dumps({"choices": [], "usage": usage}))
    reply = completion.reply(call(), 1, lambda _: PRICE)
    assert reply.usage == Usage(prompt_tokens=10, completion_tokens=5, cost=0.25)


def test_without_a_stated_cost_the_listed_price_counts() -> None:
    """Tokens times price."""
    completion = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5})
    assert completion.reply(call(), 1, lambda _: PRICE).usage.cost == 5.0


@pytest.mark.parametrize(
    "cost", [float("nan"), float("inf"), -1, "0.1", True, False, {}, {"total_cost": True}]
)
def test_a_missing_cost_is_replaced_by_the_listed_price(cost: object) -> None:
    """One such number would spoil every sum."""
    completion = Completion()
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": cost}
    completion.take_body(
        parse(json.dumps({"choices": [{"message": {"content": "Yes."}}], "usage": usage}).encode())
    )
    assert completion.reply(call(), 1, lambda _: PRICE).usage.cost == 5.0


def test_a_reply_without_text_costs_its_listed_price() -> None:
    """A failure is paid for like an answer, and its price is as well known."""
    completion = body("", usage={"prompt_tokens": 10, "completion_tokens": 5})
    with pytest.raises(ModelError) as caught:
        completion.reply(call(), 1, lambda _: PRICE)
    assert caught.value.failure.cause == "empty"
    assert caught.value.failure.usage == Usage(prompt_tokens=10, completion_tokens=5, cost=5.0)


def test_without_any_price_the_call_counts_as_unpriced() -> None:
    """So that a sum never passes for the whole."""
    completion = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5})
    assert completion.reply(call(), 1, no_price).usage == Usage(
        prompt_tokens=10, completion_tokens=5, unpriced=1
    )


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        "many",
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": -5, "completion_tokens": 10**30},
    ],
)
def test_without_a_count_four_characters_make_a_token(usage: object) -> None:
    """And the sum says that it is an estimate."""
    completion = Completion()
    reply = {
        "choices": [{"message": {"content": "Yes, it is."}, "finish_reason": "stop"}],
        "usage": usage,
    }
    completion.take_body(parse(json.dumps(reply).encode()))
    assert completion.reply(call(), 1, lambda _: PRICE).usage == Usage(
        prompt_tokens=3, completion_tokens=3, cost=1002.25, source="estimated"
    )


@pytest.mark.parametrize(
    ("usage", "headers", "cost"),
    [
        ({"cost": {"total_cost": 0.5}}, {}, 0.5),
        ({"cost_in_usd_ticks": 15_000_000_000}, {}, 1.5),
        ({}, {"x-litellm-response-cost": "0.25"}, 0.25),
        ({"cost": 0.5}, {"x-litellm-response-cost": "0.25"}, 0.5),
        ({}, {"x-litellm-response-cost": "0.0"}, 5.0),
        ({}, {"x-litellm-response-cost": "None"}, 5.0),
        ({}, {"x-litellm-response-cost": "nan"}, 5.0),
        ({"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1.0}}, {}, 1.05),
        ({"cost": 1.0, "is_byok": False, "cost_details": {"upstream_inference_cost": 1.0}}, {}, 1.0),
        ({"cost": 1.0, "cost_details": {"upstream_inference_cost": 1.0}}, {}, 1.0),
        ({"cost": 0, "cost_details": {"upstream_inference_cost": 1.0}}, {}, 1.0),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, {}, 5.0),
        ({"cost": 0.05, "is_byok": True}, {}, 5.05),
        ({"cost": 0}, {}, 5.0),
        ({"cost": 0, "is_byok": False}, {}, 0.0),
        ({"cost": 500}, {}, 500.0),
        ({"prompt_tokens": 0, "completion_tokens": 0, "cost": 3}, {}, 3.0),
    ],
)
def test_a_cost_is_read_wherever_servers_state_it(
    usage: JsonObject, headers: dict[str, str], cost: float
) -> None:
    """With one's own key at OpenRouter, the provider's charge comes on top of the fee."""
    completion = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5, **usage})
    completion.begin(headers, NO_SECRETS)
    assert completion.reply(call(), 1, lambda _: PRICE).usage.cost == cost


def test_ones_own_key_without_any_price_is_unpriced() -> None:
    """The fee alone isn't what the call cost; a free one says so."""
    own = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0, "is_byok": True})
    assert own.reply(call(), 1, no_price).usage.unpriced == 1
    free = body("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0})
    assert free.reply(call(), 1, no_price).usage == Usage(prompt_tokens=10, completion_tokens=5)


CHEAP = Price(0.001, 0.002)
RESERVED = CHEAP.cost(3, REPLY_TOKENS)


@pytest.mark.parametrize(
    ("stated", "price", "expected"),
    [
        ({"cost": 2e10}, CHEAP, Usage(cost=RESERVED)),
        ({"cost": 10**30}, CHEAP, Usage(cost=RESERVED)),
        ({"cost_in_usd_ticks": 2e20}, CHEAP, Usage(cost=RESERVED)),
        ({"cost": 2.0}, CHEAP, Usage(cost=2.0)),  # 100 times the list price
        ({"cost": 2.01}, CHEAP, Usage(cost=RESERVED)),
        ({"cost": 1.0}, Price(0.0, 0.000_001), Usage(cost=1.0)),
        ({"cost": 1.01}, Price(0.0, 0.000_001), Usage(cost=0.002)),
        ({"cost": 50.0}, None, Usage(cost=50.0)),  # 100 times `unpriced_call`
        ({"cost": 50.01}, None, Usage(unpriced=1)),
        ({"prompt_tokens": 10**12}, CHEAP, Usage(cost=RESERVED)),
        ({"prompt_tokens": 10**12, "cost": 0.01}, CHEAP, Usage(cost=RESERVED)),
    ],
)
def test_a_cost_that_no_call_can_have_is_not_believed(
    stated: JsonObject, price: Price | None, expected: Usage
) -> None:
    """It would keep everybody out; what the call was taken to cost counts, and the log says so."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, **stated}
    completion = Completion(unpriced_call=0.5)
    completion.take_body(
        parse(json.dumps({"choices": [{"message": {"content": "Yes."}}], "usage": usage}).encode())
    )
    with structlog.testing.capture_logs() as logs:
        used = completion.reply(call(), 1, lambda _: price).usage
    assert (used.cost, used.unpriced) == (pytest.approx(expected.cost), expected.unpriced)
    is_believed = (used.cost, used.unpriced) == (stated.get("cost"), 0)
    assert [line["event"] for line in logs] == ([] if is_believed else ["cost_not_believed"])


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
    used = completion.paid(replace(call(), max_tokens=limit), lambda _: PRICE)
    assert used is not None
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
    used = completion.paid(call(), lambda _: PRICE)
    assert used is not None
    assert used.cost == cost


def test_a_count_from_before_the_end_is_not_the_last_word() -> None:
    """Some servers count into every chunk, or the prompt alone into the first."""
    first = chunk("", usage={"prompt_tokens": 3, "completion_tokens": 1})
    completion = streamed(first, chunk("It depends on whom you ask."))
    completion.begin({}, NO_SECRETS)
    used = completion.paid(call(), lambda _: PRICE)
    assert used is not None
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
    used = completion.paid(call(), lambda _: PRICE)
    assert used is not None
    assert used.completion_tokens == 100


@pytest.mark.parametrize(
    "chunks",
    [
        (orjson.dumps({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}),),
        (orjson.dumps({"x_groq": {"usage": {"prompt_tokens": 10, "completion_tokens": 5}}}),),
        (
            orjson.dumps(
                {"choices": [{"delta": {}, "usage": {"prompt_tokens": 10, "completion_tokens": 5}}]}
            ),
        ),
        (
            chunk("", usage={"prompt_tokens": 10, "completion_tokens": 2}),
            chunk("", usage={"prompt_tokens": 10, "completion_tokens": 5}),
            chunk("", usage=None),
        ),
    ],
    ids=["openai", "groq", "moonshot", "gemini"],
)
def test_the_last_usage_counts_wherever_it_is(chunks: tuple[bytes, ...]) -> None:
    """Counts in every chunk aren't added up; it may follow the reply's end."""
    completion = streamed(chunk("Yes.", finish="stop"), *chunks)
    assert completion.reply(call(), 1, lambda _: PRICE).usage == Usage(
        prompt_tokens=10, completion_tokens=5, cost=5.0
    )


@pytest.mark.parametrize(("total", "tokens"), [(22, 12), (15, 5), (None, 5)])
def test_thoughts_are_added_where_a_server_counts_them_apart(total: int | None, tokens: int) -> None:
    """As xAI does: its total says so."""
    completion = Completion()
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    choice = {"message": {"content": "Yes."}, "finish_reason": "stop"}
    completion.take_body(parse(orjson.dumps({"choices": [choice], "usage": usage})))
    assert completion.reply(call(), 1, no_price).usage.completion_tokens == tokens


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


# Thoughts -----------------------------------------------------------------------------------------

THOUGHT = "I am gpt-5, and the user is new."


def thinking(**fields: object) -> bytes:
    """Write a chunk whose delta has these fields and no content."""
    return orjson.dumps({"choices": [{"delta": {"content": None, **fields}}]})


@pytest.mark.parametrize(
    "chunks",
    [
        (chunk(f"<think>\n{THOUGHT}\n</think>\n\nYes.", finish="stop"),),
        (chunk(f"<think>{THOUGHT}</think>Yes.", finish="stop"),),
        (chunk("\ufeff"), chunk(f" <Think>{THOUGHT}</Think>Yes.", finish="stop")),
        (chunk([f"<think>{THOUGHT}", "</think>Yes."], finish="stop"),),
        (chunk(f" \n<think>{THOUGHT}"), chunk("</thi"), chunk("nk>\nYes.", finish="stop")),
        (chunk(f"{THOUGHT}\n</think>\n\nYes.", finish="stop"),),
        (thinking(reasoning=THOUGHT), chunk("Yes.", finish="stop")),
        (thinking(reasoning_content=THOUGHT), chunk("Yes.", finish="stop")),
        (thinking(reasoning_text=THOUGHT), chunk("Yes.", finish="stop")),  # GitHub Copilot
        (thinking(reasoning_content=THOUGHT, reasoning=THOUGHT), chunk("Yes.", finish="stop")),
        (chunk([{"type": "thinking", "thinking": THOUGHT}, {"text": "Yes."}], finish="stop"),),
        (
            chunk([{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]),
            chunk("Yes.", finish="stop"),
        ),
    ],
)
def test_thoughts_are_counted_and_never_part_of_the_answer(chunks: tuple[bytes, ...]) -> None:
    """However a server sends them; without a count, an estimate includes them."""
    completion = streamed(*chunks)
    reply = completion.reply(call(), 1, no_price)
    assert reply.text == "Yes."
    assert completion.thoughts.strip() == THOUGHT
    assert reply.usage.source == "estimated"
    assert reply.usage.completion_tokens >= (len(THOUGHT) + len("Yes.")) // 4


def test_thoughts_of_a_whole_body_are_no_answer_either() -> None:
    """Streamed or not, the reading is the same."""
    assert body(f"{THOUGHT}\n</think>\n\nYes.").reply(call(), 1, no_price).text == "Yes."


def test_nothing_but_thoughts_names_the_limit() -> None:
    """The one that was set, else where the reply ended."""
    counted = {"prompt_tokens": 10, "completion_tokens": 64}
    for completion, asked, limit in (
        (streamed(chunk(f"<think>{THOUGHT}", finish="length")), 50, 50),
        (streamed(thinking(reasoning=THOUGHT), chunk("", finish="length", usage=counted)), None, 64),
        (streamed(thinking(reasoning=THOUGHT), chunk("", finish="length")), None, None),
    ):
        with pytest.raises(ModelError) as caught:
            completion.reply(replace(call(), max_tokens=asked), 1, no_price)
        failure = caught.value.failure
        assert (failure.cause, failure.limit, failure.detail) == ("only_thoughts", limit, "")
        assert failure.usage is not None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("eos", None),
        ("STOP", None),
        ("end_turn", None),
        ("length", None),
        ("model_length", None),
        ("model_context_window_exceeded", None),
        ("max_tokens", None),
        ("sensitive", "filtered"),
        ("content_filter", "filtered"),
        ("error", "unavailable"),
        ("network_error", "unavailable"),
        ("insufficient_system_resource", "unavailable"),
        ("abort", "unavailable"),
        ("null", "truncated"),
        ("", "truncated"),
    ],
)
def test_a_finish_reason_is_read_as_its_server_means_it(reason: str, expected: Cause | None) -> None:
    """Only what broke off, or was filtered, is no answer."""
    completion = streamed(chunk("It depends.", finish=reason))
    if expected is not None:
        assert cause(completion) == expected
        return
    reply = completion.reply(call(), 1, no_price)
    assert reply.truncated is (reason not in {"eos", "STOP", "end_turn"})


def test_a_full_window_without_a_word_is_too_long() -> None:
    """A larger limit wouldn't help."""
    assert cause(streamed(chunk("", finish="model_context_window_exceeded"))) == "too_long"


SILENT: list[JsonObject] = [
    {"choices": []},
    {"choices": None},
    {"choices": [None]},
    {"choices": [{"index": 0}]},
    {"choices": [{"delta": None}]},
    {"choices": [{"delta": {"content": None, "role": "assistant"}}]},
    {"choices": [], "prompt_filter_results": [{}]},
    {"id": "x"},
]


@pytest.mark.parametrize("data", SILENT)
def test_chunks_that_say_nothing_are_passed_over(data: JsonObject) -> None:
    """Servers announce filters, roles and counts in chunks of their own."""
    assert streamed(orjson.dumps(data), chunk("Yes.", finish="stop")).text == "Yes."


BROKEN: list[JsonObject] = [
    {"error": {"message": "it broke"}},
    {"choices": [{"error": {"message": "it broke"}, "delta": {}}]},
    {"x_groq": {"error": "it broke"}, "choices": [{"delta": {}}]},
    {"object": "error", "message": "it broke"},
    {"type": "error", "message": "it broke"},
    {"errors": [{"message": "it broke"}]},
    {"detail": "it broke"},
]


@pytest.mark.parametrize("data", BROKEN)
def test_an_error_in_any_chunk_is_an_error(data: JsonObject) -> None:
    """Wherever it is in the chunk, and if it is the chunk."""
    completion = streamed(chunk("It dep"))
    with pytest.raises(ModelError) as caught:
        completion.take_chunk(parse(orjson.dumps(data)))
    assert (caught.value.failure.cause, caught.value.failure.detail) == ("unavailable", "it broke")


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
