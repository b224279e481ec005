"""Faults of the models, their providers and the key."""

from collections.abc import Callable
from typing import cast

from council.calls import JsonObject
from tests.bot.doctor.scene import GOOD_KEY, MEMBERS, NOWHERE, Planted, Scene, setting
from tests.model_server import Turn


def key_says(**said: object) -> Callable[[Scene], object]:
    """Let the provider say something else of the key."""
    return lambda scene: setattr(scene.models, "key", {**GOOD_KEY, **said})


def _unlisted_price(scene: Scene) -> None:
    cast("list[JsonObject]", scene.models.models)[0]["pricing"] = {"prompt": "-1", "completion": "-1"}


def _mute(scene: Scene) -> None:
    scene.live = True
    scene.models.script(MEMBERS[1], Turn(status=403))


FAULTS = [
    Planted(
        "no provider there",
        setting("OPENROUTER_BASE_URL", f"{NOWHERE}/api/v1"),
        "OPENROUTER_BASE_URL",
        "doesn't answer (no server is running at its address)",
        "Start the server, or correct the address",
    ),
    Planted(
        "wrong address",
        lambda s: s.env.update(OPENROUTER_BASE_URL=f"{s.models.url}/v2"),
        "OPENROUTER_BASE_URL",
        "no model list",
        "/api/v1",
        "warning",
    ),
    Planted(
        "provider down",
        lambda s: s.refused.update({"/api/v1/models": 503}),
        "OPENROUTER_BASE_URL",
        "is having problems",
        "Wait",
    ),
    Planted(
        "key refused for the list",
        lambda s: s.refused.update({"/api/v1/models": 401}),
        "OPENROUTER_API_KEY",
        "refuses the key",
        "openrouter.ai/settings/keys",
    ),
    Planted(
        "key refused",
        lambda s: s.refused.update({"/api/v1/key": 401}),
        "OPENROUTER_API_KEY",
        "refuses the key",
        "openrouter.ai/settings/keys",
    ),
    Planted(
        "management key",
        key_says(is_management_key=True),
        "OPENROUTER_API_KEY",
        "management key",
        "Make an API key",
    ),
    Planted(
        "no credit",
        key_says(limit_remaining=0),
        "OPENROUTER_API_KEY",
        "used up",
        "openrouter.ai/settings/credits",
    ),
    Planted(
        "little credit",
        key_says(limit_remaining=0.4),
        "OPENROUTER_API_KEY",
        "only $0.40",
        "Raise the key's limit",
        "warning",
    ),
    Planted(
        "free tier",
        key_says(is_free_tier=True),
        "OPENROUTER_API_KEY",
        "never bought credit",
        "Add credit",
    ),
    Planted(
        "expiring key",
        key_says(expires_at="2026-01-01T00:00:00Z"),
        "OPENROUTER_API_KEY",
        "expires on 2026-01-01",
        "new key",
        "warning",
    ),
    Planted(
        "misspelt member",
        setting("COUNCIL_MEMBERS", "openai/gpt5,google/gemini-2.5-pro"),
        "openai/gpt5",
        "no model openai/gpt5",
        "Did you mean openai/gpt-5?",
    ),
    Planted(
        "member without its maker",
        setting("COUNCIL_MEMBERS", "grok-4,google/gemini-2.5-pro"),
        "grok-4",
        "no model grok-4",
        "Did you mean x-ai/grok-4?",
    ),
    Planted(
        "chairman unlike any",
        setting("COUNCIL_CHAIRMAN", "zzz"),
        "zzz",
        "no model zzz",
        "openrouter.ai/models",
    ),
    Planted("no price", _unlisted_price, MEMBERS[0], "no price", "credit limit", "warning"),
    Planted(
        "own server down",
        lambda s: s.own_server(url=f"{NOWHERE}/v1"),
        f"{NOWHERE}/v1",
        "doesn't answer (no server is running at its address)",
        "Start the server, or correct the address",
    ),
    Planted(
        "own server's key",
        lambda s: (s.own_server(), s.refused.update({"/v1/models": 401})),
        "/v1",
        "refused the key",
        "Correct OWN_KEY",
    ),
    Planted(
        "own server without a list",
        lambda s: (s.own_server(), s.refused.update({"/v1/models": 404})),
        "/v1",
        "no model list",
        "most others' in /v1",
        "warning",
    ),
    Planted(
        "own server's model",
        lambda s: s.own_server("openai/gpt-6"),
        "/v1",
        "the server lists no model openai/gpt-6",
        "Did you mean openai/gpt-5? Correct council.toml. Some servers have models",
        "warning",
    ),
    Planted(
        "a model that the provider on this machine doesn't list",
        lambda s: s.env.update(OPENROUTER_DIALECT="llamacpp", COUNCIL_MEMBERS="any,openai/gpt-5"),
        "any",
        "the server lists no model any",
        "--live tells",
        "warning",
    ),
    Planted("a member that says nothing", _mute, MEMBERS[1], "it gave no answer", "another model"),
    Planted(
        "key of another provider",
        lambda s: (
            s.env.pop("OPENROUTER_BASE_URL"),
            s.env.update(OPENROUTER_API_KEY="sk-ant-0123456789abcdef"),
        ),
        "OPENROUTER_API_KEY",
        "isn't an OpenRouter key",
        "openrouter.ai/settings/keys",
    ),
    Planted(
        "trouble with the key",
        lambda s: s.refused.update({"/api/v1/key": 503}),
        "OPENROUTER_API_KEY",
        "is having problems",
        "Wait",
    ),
]
