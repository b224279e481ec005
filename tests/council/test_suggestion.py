"""Which council a model list suggests."""

from council.models.costs import ModelListing, Price
from council.suggestion import Suggestion, leading, suggest


def listed(**prices: tuple[float, int]) -> dict[str, ModelListing]:
    """Make a list of models, each with dollars for a million tokens of the reply, and its age."""
    return {
        name.replace("__", "/").replace("_", "-"): ModelListing(
            Price(price / 1e7, price / 1e6), structured=True, created=created
        )
        for name, (price, created) in prices.items()
    }


def bare(*names: str) -> dict[str, ModelListing]:
    """Return a list in the form of a local server."""
    return {name: ModelListing(None, structured=False) for name in names}


def test_each_seat_has_another_maker_and_its_newest_main_model() -> None:
    """Small, special and very dear models stay out, and so do those that cost nothing."""
    listings = listed(
        openai__gpt_5=(10, 5),
        openai__gpt_6=(12, 9),
        openai__gpt_6_mini=(1, 10),
        openai__gpt_6_pro=(120, 11),
        google__gemini_3=(12, 8),
        google__gemini_3_flash_image=(12, 9),
        anthropic__claude_5=(25, 7),
        anthropic__claude_4=(15, 3),
        deepseek__deepseek_v4=(1, 8),
        kind__gift=(0, 12),
    )
    assert suggest(listings) == Suggestion(
        ("openai/gpt-6", "google/gemini-3", "deepseek/deepseek-v4"), "anthropic/claude-5"
    )


def test_a_routed_model_without_a_price_is_no_first_choice() -> None:
    """Where others have one."""
    listings = listed(a__one=(1, 1), b__two=(1, 1), c__three=(1, 1), d__four=(1, 1))
    listings["openrouter/auto"] = ModelListing(None, structured=False, created=99)
    assert leading(listings)[-1] == "openrouter/auto"


def test_few_makers_share_the_seats() -> None:
    """The members still differ; embedding models answer nothing, and an id must be one that a file can contain."""
    models = bare("llama3.3:latest", "qwen3:8b", "gemma3", "qwen3:32b")
    suggestion = suggest(models)
    assert suggestion == Suggestion(("qwen3:8b", "llama3.3:latest", "gemma3"), "qwen3:32b")
    assert suggest(bare("qwen3", "gemma-3")) == Suggestion(("qwen3", "gemma-3"), "qwen3")
    models = bare("nomic-embed-text", 'qu"ote', "a,b", "line\nbreak", "qwen3")
    assert suggest(models) == Suggestion(("qwen3",) * 3, "qwen3")
    assert suggest({}) is None
