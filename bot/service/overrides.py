"""What a channel's admins, and an asker, can set of a profile: its keys that an `Override` marks."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from council.profile import Override, Profile

OVERRIDES: Mapping[str, Override] = {
    name: mark
    for name, field in Profile.model_fields.items()
    for mark in field.metadata
    if isinstance(mark, Override)
}
"""What a channel can set, too, by key."""
IN_FULL: Mapping[str, str] = {"depth": "full"}
"""What is set for a question that is asked again in full."""


def choices(key: str) -> tuple[str, ...]:
    """Return the words that an override takes; a yes or no is `on` or `off`."""
    kind = Profile.model_fields[key].annotation
    taken = get_args(kind)
    return ("on", "off") if bool in (kind, *taken) else taken


def optional(keys: Iterable[str]) -> dict[str, Any]:
    """Return a field for each of these overrides, as `create_model` takes it: a word or `None`."""
    taken: dict[str, Any] = {key: Literal[choices(key)] for key in keys}
    return {key: (words | None, None) for key, words in taken.items()}


def chosen(key: str, word: str) -> object:
    """Return the value that one of these words means."""
    return word == "on" if "on" in choices(key) else word


def word_for(key: str, value: object) -> object:
    """Return the word that means a value."""
    return ("on" if value else "off") if "on" in choices(key) else value
