"""What a message of the bot's kinds may hold, checked as strictly as Discord does, in UTF-16 units.

Selects, and what only a layout of Components V2 has, are refused: the bot sends neither.

Discord counts code points in some places and UTF-16 units in others; counting the larger of the two
everywhere catches a text that would be refused in either.

Sources: https://discord.com/developers/docs/resources/message#create-message-limitations and
https://discord.com/developers/docs/components/reference
"""

from dataclasses import dataclass
from typing import Any

from . import errors
from .state import Json

CONTENT = 2000
EMBEDS = 10
EMBED_TOTAL = 6000
FILE = 10 * 1024 * 1024
FILES = 10
_EMBED = {"title": 256, "description": 4096}
_EMBED_PARTS = {"footer": ("text", 2048), "author": ("name", 256)}


def units(text: str) -> int:
    """Count UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A message's state after a post or an edit, to be checked as a whole."""

    content: str
    embeds: list[Json]
    components: list[Json]
    files: int


def check(shape: Shape) -> None:
    """Refuse what Discord refuses: 50035 naming the field, or 50006 for an empty message."""
    if units(shape.content) > CONTENT:
        raise errors.too_long("content", CONTENT)
    if shape.files > FILES:
        raise errors.bad_length("attachments", 0, FILES)
    _check_embeds(shape.embeds)
    ids: set[str] = set()
    _check_rows(shape.components)
    for index, component in enumerate(shape.components):
        _check_component(component, f"components.{index}", ids)
    if not (shape.content or shape.embeds or shape.components or shape.files):
        raise errors.ApiError(*errors.EMPTY_MESSAGE)


def _check_embeds(embeds: list[Json]) -> None:
    if len(embeds) > EMBEDS:
        raise errors.bad_length("embeds", 0, EMBEDS)
    total = 0
    for index, embed in enumerate(embeds):
        for path, text, limit in _embed_texts(embed, f"embeds.{index}"):
            total += units(text)
            if units(text) > limit:
                raise errors.too_long(path, limit)
        if embed.get("fields"):
            raise errors.invalid(
                f"embeds.{index}.fields", "UNKNOWN", "Only what the bot sends is known here"
            )
    if total > EMBED_TOTAL:
        raise errors.invalid(
            "embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBED_TOTAL}"
        )


def _embed_texts(embed: Json, path: str) -> list[tuple[str, str, int]]:
    texts = [(f"{path}.{key}", embed.get(key) or "", limit) for key, limit in _EMBED.items()]
    for part, (key, limit) in _EMBED_PARTS.items():
        texts.append((f"{path}.{part}.{key}", embed.get(part, {}).get(key) or "", limit))
    return texts


def _check_rows(components: list[Json]) -> None:
    """Check that a classic message holds at most five action rows and nothing else."""
    if len(components) > 5:
        raise errors.bad_length("components", 0, 5)
    for index, component in enumerate(components):
        if component.get("type") != 1:
            raise _wrong_type(f"components.{index}", {1})


def _wrong_type(path: str, kinds: set[int]) -> errors.ApiError:
    values = ", ".join(map(str, sorted(kinds)))
    return errors.invalid(
        f"{path}.type", "UNION_TYPE_CHOICES", f"Value of field 'type' must be one of ({values})."
    )


def _text(component: Json, key: str, path: str, low: int, high: int) -> None:
    value = component.get(key) or ""
    if not low <= units(value) <= high:
        raise errors.bad_length(f"{path}.{key}", low, high)


def _custom_id(component: Json, path: str, ids: set[str]) -> None:
    _text(component, "custom_id", path, 1, 100)
    if component["custom_id"] in ids:
        raise errors.invalid(
            f"{path}.custom_id",
            "COMPONENT_CUSTOM_ID_DUPLICATED",
            "Component custom id cannot be duplicated",
        )
    ids.add(component["custom_id"])


def _check_component(component: Json, path: str, ids: set[str]) -> None:
    kind: Any = component.get("type")
    if kind == 1:
        _check_children(component, path, {2}, 1, 5)
    elif kind == 2:
        _check_button(component, path, ids)
    for index, child in enumerate(component.get("components", [])):
        _check_component(child, f"{path}.components.{index}", ids)


def _check_children(component: Json, path: str, kinds: set[int], low: int, high: int) -> None:
    children = component.get("components", [])
    if not low <= len(children) <= high:
        raise errors.bad_length(f"{path}.components", low, high)
    for index, child in enumerate(children):
        if child.get("type") not in kinds:
            raise _wrong_type(f"{path}.components.{index}", kinds)


def _check_button(component: Json, path: str, ids: set[str]) -> None:
    _text(component, "label", path, 0, 80)
    if not component.get("label") and not component.get("emoji"):
        raise errors.invalid(
            path, "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A button needs a label or an emoji"
        )
    _custom_id(component, path, ids)
