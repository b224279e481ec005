"""What `council doctor` says about the models, their providers and the key."""

from collections.abc import Iterator, Mapping, Sequence

from bot.view.wording.doctor.doctor import Advice
from bot.view.wording.figures import count
from bot.view.wording.names import listing
from council.models.dialects import Format
from council.models.learning import OTHER_LIMIT, Traits

PROVIDER, SERVER = "the model provider", "the server"
DEMONSTRATION = "no provider is configured: the built-in demonstration model answers"
KEY_SHAPE = Advice(
    "it isn't an OpenRouter key: those begin with sk-or-",
    "Copy a key from openrouter.ai/settings/keys, or set OPENROUTER_BASE_URL to the address of the "
    "key's provider",
)
KEY_REFUSED = Advice(
    "the provider refuses the key",
    "Make a new key at openrouter.ai/settings/keys, or at your own provider, and set OPENROUTER_API_KEY",
)
MANAGEMENT_KEY = Advice(
    "it is a management key, which can't be used to ask a model",
    "Make an API key at openrouter.ai/settings/keys and set OPENROUTER_API_KEY",
)
NO_CREDIT = Advice(
    "the key's credit limit is used up",
    "Raise the limit at openrouter.ai/settings/keys, or add credit at openrouter.ai/settings/credits",
)
FREE_TIER = Advice(
    "the account has never bought credit, so only models whose ids end in :free answer",
    "Add credit at openrouter.ai/settings/credits, or configure :free models only",
)
NO_KEY = "none is set; this provider may need none"
KEY_UNKNOWN = "this provider doesn't say how much of the key's credit is left"
PRICES_UNLISTED = "this provider lists no prices, so costs are unknown"
WITHOUT_LIST = "skipped: without a list, only --live can tell whether they exist"


def low_credit(dollars: float) -> Advice:
    """Say that the key's credit is nearly used up."""
    return Advice(
        f"only ${dollars:.2f} of the key's credit limit is left",
        "Raise the key's limit at openrouter.ai/settings/keys",
    )


def expires(when: str) -> Advice:
    """Say that the key expires soon."""
    return Advice(
        f"the key expires on {when}",
        "Make a new key at openrouter.ai/settings/keys and set OPENROUTER_API_KEY",
    )


def credit(remaining: float | None) -> str:
    """Say how much of the key's credit is left."""
    if remaining is None:
        return "accepted; the key has no credit limit of its own"
    return f"accepted; ${remaining:,.2f} of the key's credit limit is left"


def unreachable(what: str, reason: str) -> Advice:
    """Say that a model provider doesn't answer."""
    return Advice(
        f"{what} doesn't answer ({reason})",
        "Check the network, the address and any proxy (HTTPS_PROXY)",
    )


def not_running(what: str, reason: str) -> Advice:
    """Say that nothing listens at an address."""
    return Advice(f"{what} doesn't answer ({reason})", "Start the server, or correct the address")


def not_a_provider(reason: str) -> Advice:
    """Say that there is no model list at an address."""
    return Advice(
        f"there is no model list at its /models page ({reason})",
        "Correct the address: OpenRouter's ends in /api/v1, most others' in /v1. If the provider has no "
        "list, --live tells whether it answers",
    )


def provider_trouble(reason: str) -> Advice:
    """Say that a provider is having problems."""
    return Advice(
        f"the provider is having problems ({reason})",
        "Wait and run `council doctor` again; the provider's status page may say more",
    )


def models_listed(number: int) -> str:
    """Count a provider's models."""
    return f"{count(number, 'model')} listed"


def no_such_model(model: str, near: str | None, places: Sequence[str]) -> Advice:
    """Say that a configured model doesn't exist, and suggest one."""
    fix = f"Did you mean {near}?" if near else "See openrouter.ai/models, or the server's own list,"
    verb = " Correct" if near else " and correct"
    return Advice(f"the provider has no model {model}", f"{fix}{verb} {listing(places)}")


def not_listed(model: str, near: str | None, places: Sequence[str]) -> Advice:
    """Say that a server, which may serve a model under any name, doesn't list this one."""
    correct = f"Did you mean {near}? Correct {listing(places)}" if near else f"Correct {listing(places)}"
    return Advice(
        f"the server lists no model {model}",
        f"{correct}. Some servers have models that they don't list: --live tells",
    )


def no_price(model: str) -> Advice:
    """Say that a model's price isn't listed."""
    return Advice(
        f"the provider names no price for {model}, so its cost can't be estimated",
        "Configure a model with a price, or set the key's credit limit at openrouter.ai/settings/keys",
    )


def all_known(number: int) -> str:
    """Say that every configured model is listed."""
    return (
        f"{count(number, 'configured model')} listed"
        if number == 1
        else f"all {number} configured models are listed"
    )


def servers(number: int) -> str:
    """Count the members' own servers that answer."""
    return f"{count(number, 'server')} answering" if number == 1 else f"all {number} answer"


def answered(calls: int, paid: str) -> str:
    """Say how many live calls were made and what they cost."""
    return f"{count(calls, 'call')} answered, {paid}"


_BALLOTS: Mapping[Format | None, str] = {
    "strict": "ballots by JSON schema",
    "schema": "ballots by JSON schema",
    "object_schema": "ballots as JSON",
    "object": "ballots as JSON",
    None: "ballots in prose",
}
_REFUSED: Mapping[Format | None, str] = {
    "strict": "no JSON schema of another kind",
    "schema": "no strict JSON schema",
    "object_schema": "no JSON schema",
    "object": "no JSON schema",
    None: "no JSON",
}


def learned(dialect: str, format_sent: Format | None, traits: Traits) -> str:
    """Say how a model is asked, and what of that had to be learned from its server's refusals."""
    said = f"{dialect} dialect; {_BALLOTS[format_sent]}"
    different = ", ".join(_learned(traits, format_sent))
    if not traits.refusals and not different:
        return f"{said}; nothing had to be learned"
    spent = f"learned in {count(traits.refusals, 'refused request')}" if traits.refusals else "learned"
    return f"{said}; {spent}: {different}" if different else f"{said}; {spent} that no change would mend"


def _learned(traits: Traits, format_sent: Format | None) -> Iterator[str]:
    if traits.prefix:
        yield f"{traits.prefix} added to the address"
    if traits.limit and traits.limit not in traits.dropped:
        yield f"{traits.limit} instead of {OTHER_LIMIT[traits.limit]}"
    if traits.merges_system:
        yield "instructions in the user's message"
    if traits.whole or traits.whole_formats:
        yield "replies not streamed" if traits.whole else "JSON not streamed"
    yield from (f"no {name}" for name in traits.dropped)
    if traits.format_steps:
        yield _REFUSED[format_sent]
    if traits.thinks_unmarked:
        yield "thoughts end at a tag that nothing opened"


def gave_nothing(why: str, fix: str | None, paid: str) -> Advice:
    """Say that a model gave no answer when it was asked for one word."""
    return Advice(
        f"it gave no answer: {why} (all live calls: {paid})",
        fix or "If it happens again, configure another model, or a fallback for this one",
    )
