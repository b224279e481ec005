"""Tokens that a provider reads from its cache are counted, cost what its list says, and are never guessed."""

import pytest

from council.models.costs import cached_tokens, used
from council.text.json_objects import JsonObject
from council.usage import Price, Usage, total
from tests.council.models.test_reply import call

WHOLE = 20
PRICE = Price(prompt=2e-6, completion=1e-5, cached=2e-7)


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, 800),  # OpenAI, xAI
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"prompt_tokens": 900, "prompt_cache_hit_tokens": 640}, 640),  # DeepSeek
        ({"prompt_tokens": 900, "cached_tokens": 512}, 512),  # Moonshot
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 5_000}}, 900),
        ({"prompt_tokens": 900, "prompt_tokens_details": None}, None),
        ({"prompt_tokens": 900, "cached_tokens": "many"}, None),
        ({"prompt_tokens": 900}, None),
    ],
)
def test_each_servers_count_is_read(usage: JsonObject, cached: int | None) -> None:
    """Nothing said is unknown, not 0; more than the prompt can't be."""
    assert cached_tokens(usage) == cached


def test_cached_tokens_cost_what_the_list_says() -> None:
    """Where it has no price for them, they cost what others do."""
    usage: JsonObject = {
        "prompt_tokens": 1_000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    found = used(call(), WHOLE, usage, {}, PRICE, 0.1)
    assert found.cached_tokens == 900
    assert found.cost == pytest.approx(100 * 2e-6 + 900 * 2e-7 + 10 * 1e-5)
    plain = used(call(), WHOLE, usage, {}, Price(prompt=2e-6, completion=1e-5), 0.1)
    assert plain.cost == pytest.approx(1_000 * 2e-6 + 10 * 1e-5)
    stated = used(call(), WHOLE, usage | {"cost": 0.001}, {}, PRICE, 0.1)
    assert (stated.cost, stated.cached_tokens) == (0.001, 900)


def test_a_sum_is_known_where_any_part_is() -> None:
    """One provider's count isn't lost because another says nothing."""
    parts = [Usage(prompt_tokens=5), Usage(prompt_tokens=9, cached_tokens=4), Usage(cached_tokens=0)]
    assert total(parts).cached_tokens == 4
    assert total(parts[:1]).cached_tokens is None
