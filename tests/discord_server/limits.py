"""What a message may hold, checked as strictly as Discord does, in UTF-16 units.

Discord counts code points in some places and UTF-16 units in others; counting the larger of the two
everywhere catches a text that would be refused in either.

Sources: https://discord.com/developers/docs/resources/message#create-message-limitations and
https://discord.com/developers/docs/components/reference
"""

from dataclasses import dataclass
from typing import Any

from . import errors
from .state import Json, MessageFlag, walk

CONTENT = 2000
EMBEDS = 10
EMBED_TOTAL = 6000
FILE = 10 * 1024 * 1024
FILES = 10
V2_COMPONENTS = 40
V2_TEXT = 4000
SELECTS = {3, 5, 6, 7, 8}
V2_TOP = {1, 9, 10, 12, 13, 14, 17}
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
    flags: int
    files: int


def check(shape: Shape) -> None:
    """Refuse what Discord refuses: 50035 naming the field, or 50006 for an empty message."""
    if units(shape.content) > CONTENT:
        raise errors.too_long("content", CONTENT)
    if shape.files > FILES:
        raise errors.bad_length("attachments", 0, FILES)
    _check_embeds(shape.embeds)
    ids: set[str] = set()
    if shape.flags & MessageFlag.COMPONENTS_V2:
        _check_layout(shape)
    else:
        _check_rows(shape.components)
    for index, component in enumerate(shape.components):
        _check_component(component, f"components.{index}", ids)
    if not (shape.content or shape.embeds or shape.components or shape.files):
        raise errors.empty_message()


def _check_embeds(embeds: list[Json]) -> None:
    if len(embeds) > EMBEDS:
        raise errors.bad_length("embeds", 0, EMBEDS)
    total = 0
    for index, embed in enumerate(embeds):
        for path, text, limit in _embed_texts(embed, f"embeds.{index}"):
            total += units(text)
            if units(text) > limit:
                raise errors.too_long(path, limit)
        if len(embed.get("fields", [])) > 25:
            raise errors.bad_length(f"embeds.{index}.fields", 0, 25)
    if total > EMBED_TOTAL:
        raise errors.invalid(
            "embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBED_TOTAL}"
        )


def _embed_texts(embed: Json, path: str) -> list[tuple[str, str, int]]:
    texts = [(f"{path}.{key}", embed.get(key) or "", limit) for key, limit in _EMBED.items()]
    for part, (key, limit) in _EMBED_PARTS.items():
        texts.append((f"{path}.{part}.{key}", embed.get(part, {}).get(key) or "", limit))
    for index, entry in enumerate(embed.get("fields", [])):
        for key, limit in (("name", 256), ("value", 1024)):
            here = f"{path}.fields.{index}.{key}"
            if not entry.get(key):
                raise errors.invalid(here, "BASE_TYPE_REQUIRED", "This field is required")
            texts.append((here, entry[key], limit))
    return texts


def _check_layout(shape: Shape) -> None:
    """Check what holds for a Components V2 message as a whole."""
    for key, value in (("content", shape.content), ("embeds", shape.embeds)):
        if value:
            raise errors.invalid(
                key,
                "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
                f"The '{key}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
            )
    every = list(walk(shape.components))
    if len(every) > V2_COMPONENTS:
        raise errors.invalid(
            "components",
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
            f"The total number of components exceeds the maximum of {V2_COMPONENTS}",
        )
    if sum(units(part["content"]) for part in every if part.get("type") == 10) > V2_TEXT:
        raise errors.invalid(
            "components",
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
            f"The total displayable text size exceeds the maximum of {V2_TEXT}",
        )
    for index, component in enumerate(shape.components):
        if component.get("type") not in V2_TOP:
            raise _wrong_type(f"components.{index}", V2_TOP)


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
        _check_row(component, path)
    elif kind == 2:
        _check_button(component, path, ids)
    elif kind in SELECTS:
        _check_select(component, path, ids)
    elif kind == 9:
        _check_section(component, path, ids)
    elif kind == 10:
        _text(component, "content", path, 1, V2_TEXT)
    elif kind == 12 and not 1 <= len(component.get("items", [])) <= 10:
        raise errors.bad_length(f"{path}.items", 1, 10)
    elif kind == 17:
        _check_children(component, path, V2_TOP - {17}, 1, V2_COMPONENTS)
    for index, child in enumerate(component.get("components", [])):
        _check_component(child, f"{path}.components.{index}", ids)


def _check_children(component: Json, path: str, kinds: set[int], low: int, high: int) -> None:
    children = component.get("components", [])
    if not low <= len(children) <= high:
        raise errors.bad_length(f"{path}.components", low, high)
    for index, child in enumerate(children):
        if child.get("type") not in kinds:
            raise _wrong_type(f"{path}.components.{index}", kinds)


def _check_row(component: Json, path: str) -> None:
    _check_children(component, path, {2, *SELECTS}, 1, 5)
    children = component["components"]
    if len(children) > 1 and any(child["type"] in SELECTS for child in children):
        raise errors.invalid(
            f"{path}.components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds"
        )


def _check_section(component: Json, path: str, ids: set[str]) -> None:
    _check_children(component, path, {10}, 1, 3)
    accessory: Json = component.get("accessory") or {}
    if accessory.get("type") not in {2, 11}:
        raise _wrong_type(f"{path}.accessory", {2, 11})
    _check_component(accessory, f"{path}.accessory", ids)


def _check_button(component: Json, path: str, ids: set[str]) -> None:
    _text(component, "label", path, 0, 80)
    if not component.get("label") and not component.get("emoji"):
        raise errors.invalid(
            path, "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A button needs a label or an emoji"
        )
    if component.get("style") == 5:
        _text(component, "url", path, 1, 512)
        if component.get("custom_id"):
            raise errors.invalid(
                f"{path}.custom_id", "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "Not both"
            )
    else:
        _custom_id(component, path, ids)


def _check_select(component: Json, path: str, ids: set[str]) -> None:
    _custom_id(component, path, ids)
    _text(component, "placeholder", path, 0, 150)
    if component["type"] != 3:
        return
    options = component.get("options", [])
    if not 1 <= len(options) <= 25:
        raise errors.bad_length(f"{path}.options", 1, 25)
    values: set[str] = set()
    for index, option in enumerate(options):
        here = f"{path}.options.{index}"
        for key, low in (("label", 1), ("value", 1), ("description", 0)):
            _text(option, key, here, low, 100)
        if option["value"] in values:
            raise errors.invalid(
                f"{here}.value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "Values must be unique"
            )
        values.add(option["value"])
    most = component.get("max_values", 1)
    if not 1 <= most <= 25 or component.get("min_values", 1) > most:
        raise errors.invalid(f"{path}.max_values", "NUMBER_TYPE_MAX", "Must be between 1 and 25.")
