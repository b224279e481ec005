"""What a broken reply costs, and who gave it; `read.toml` has all that a reply says by itself."""

from council.errors import Failure
from council.models.refusals import NO_SECRETS
from council.models.reply import Completion
from council.usage import Price, Usage, total
from tests.council.models.scene import call
from tests.pairs import rows

PRICE = Price(prompt=0.25, completion=0.5)
MEMBERS = ("openai/gpt-5-mini", "x-ai/grok-4")


def said(text: str, **fields: object) -> Completion:
    """Read a body with this text."""
    completion = Completion()
    completion.take_body(
        {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **fields}
    )
    return completion


def no_price(_: str) -> Price | None:
    """Know no price."""
    return None


@rows(
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
def test_a_fallback_that_answered_is_named_and_has_its_price(
    answered: str | None, expected: str | None
) -> None:
    """Dated variants are the model they vary; of several ids that fit, the longest is meant."""
    priced: list[str] = []
    reply = said("Yes.", model=answered).reply(call(fallbacks=MEMBERS), 1, priced.append)
    assert (reply.answered_by, priced) == (expected, [expected or "openai/gpt-5"])
    # Servers name models as they like: without fallbacks, that means nothing.
    assert said("Yes.", model=answered).reply(call(), 1, no_price).answered_by is None


def test_a_sum_is_known_where_any_part_is() -> None:
    """One provider's count isn't lost because another says nothing."""
    parts = [Usage(prompt_tokens=5), Usage(prompt_tokens=9, cached_tokens=4), Usage(cached_tokens=0)]
    assert total(parts).cached_tokens == 4
    assert total(parts[:1]).cached_tokens is None


def test_a_reply_that_broke_off_is_paid_for() -> None:
    """As counted, else by what arrived; one that was refused before a word costs nothing."""
    lost, busy, refused = (Failure(cause=cause) for cause in ("lost", "rate_limited", "credit"))
    completion = Completion()
    completion.take_chunk({"choices": [{"delta": {"content": "It depends on"}}]})
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
    nothing.arrive(400)  # of a plain body, which can't be read before it is whole
    assert nothing.billed(lost, call(), no_price).usage == Usage(
        prompt_tokens=3, completion_tokens=100, unpriced=1, source="estimated"
    )
