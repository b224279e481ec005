"""Faults of the models, their providers and the key."""

from collections.abc import Callable
from typing import cast

from council.text.json_objects import JsonObject
from tests.bot.doctor.scene import GOOD_KEY, MEMBERS, NOWHERE, Scene, setting
from tests.model_server import Turn


def key_says(**said: object) -> Callable[[Scene], object]:
    """Let the provider say something else of the key."""
    return lambda scene: setattr(scene.models, "key", {**GOOD_KEY, **said})


def _unlisted_price(scene: Scene) -> None:
    cast("list[JsonObject]", scene.models.models)[0]["pricing"] = {"prompt": "-1", "completion": "-1"}


def _mute(scene: Scene) -> None:
    scene.live = True
    scene.models.script(MEMBERS[1], Turn(status=403))


PLANTS: dict[str, Callable[[Scene], object]] = {
    "no provider there": setting("OPENROUTER_BASE_URL", f"{NOWHERE}/api/v1"),
    "wrong address": lambda s: s.env.update(OPENROUTER_BASE_URL=f"{s.models.url}/v2"),
    "provider down": lambda s: s.refused.update({"/api/v1/models": 503}),
    "key refused for the list": lambda s: s.refused.update({"/api/v1/models": 401}),
    "key refused": lambda s: s.refused.update({"/api/v1/key": 401}),
    "management key": key_says(is_management_key=True),
    "no credit": key_says(limit_remaining=0),
    "little credit": key_says(limit_remaining=0.4),
    "free tier": key_says(is_free_tier=True),
    "expiring key": key_says(expires_at="2026-01-01T00:00:00Z"),
    "misspelt member": setting("COUNCIL_MEMBERS", "openai/gpt5,google/gemini-2.5-pro"),
    "member without its maker": setting("COUNCIL_MEMBERS", "grok-4,google/gemini-2.5-pro"),
    "chairman unlike any": setting("COUNCIL_CHAIRMAN", "zzz"),
    "no price": _unlisted_price,
    "own server down": lambda s: s.own_server(url=f"{NOWHERE}/v1"),
    "own server's key": lambda s: (s.own_server(), s.refused.update({"/v1/models": 401})),
    "own server without a list": lambda s: (s.own_server(), s.refused.update({"/v1/models": 404})),
    "own server's model": lambda s: s.own_server("openai/gpt-6"),
    "a model that the provider on this machine doesn't list": lambda s: s.env.update(
        OPENROUTER_DIALECT="llamacpp", COUNCIL_MEMBERS="any,openai/gpt-5"
    ),
    "a member that says nothing": _mute,
    "key of another provider": lambda s: (
        s.env.pop("OPENROUTER_BASE_URL"),
        s.env.update(OPENROUTER_API_KEY="sk-ant-0123456789abcdef"),
    ),
    "trouble with the key": lambda s: s.refused.update({"/api/v1/key": 503}),
}
