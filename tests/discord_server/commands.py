"""Application commands: registering them, and filling one in as a person's client would.

Source: https://discord.com/developers/docs/interactions/application-commands
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import errors, limits, wire
from .errors import Impossible
from .permissions import Permission, in_channel
from .rest import Call, route
from .state import Attachment, Channel, ChannelType, Json, User, World

CHAT_INPUT, MESSAGE_MENU = 1, 3
STRING, INTEGER, BOOLEAN, ATTACHMENT = 3, 4, 5, 11
CAPS = {CHAT_INPUT: 100, MESSAGE_MENU: 15}
_NAME = re.compile(r"^[-_'\w]{1,32}$")
_PYTHON: dict[int, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    BOOLEAN: (bool,),
    ATTACHMENT: (Attachment,),
}


# ── registering ──────────────────────────────────────────────────────────────────────────────


@route("GET /applications/{application_id}/commands")
def list_commands(call: Call) -> list[Json]:
    return list(_own(call).values())


@route("PUT /applications/{application_id}/commands")
def overwrite_commands(call: Call) -> list[Json]:
    """Replace all commands; those that stay keep their ids."""
    held = _own(call)
    bodies: list[Json] = call.body or []
    for kind, cap in CAPS.items():
        if sum(1 for body in bodies if body.get("type", CHAT_INPUT) == kind) > cap:
            raise errors.ApiError(400, 30032, f"Maximum number of application commands reached ({cap})")
    for index, body in enumerate(bodies):
        _check(body, str(index))
    known = {(entry["type"], entry["name"]): entry for entry in held.values()}
    held.clear()
    for body in bodies:
        old = known.get((body.get("type", CHAT_INPUT), body["name"]))
        _store(call.world, held, body, old)
    return list(held.values())


def _own(call: Call) -> dict[int, Json]:
    if call.id("application_id") != call.world.application_id:
        raise errors.ApiError(403, 20012, "You are not authorized to perform this action")
    return call.world.commands


def _store(world: World, held: dict[int, Json], body: Json, old: Json | None) -> None:
    number = int(old["id"]) if old else world.snowflake()
    command: Json = {
        "id": str(number),
        "application_id": str(world.application_id),
        "version": str(world.snowflake()),
        "type": body.get("type", CHAT_INPUT),
        "name": body["name"],
        "name_localizations": body.get("name_localizations"),
        "description": body.get("description", ""),
        "description_localizations": body.get("description_localizations"),
        "default_member_permissions": body.get("default_member_permissions"),
        "dm_permission": body.get("dm_permission", True),
        "contexts": body.get("contexts"),
        "integration_types": body.get("integration_types") or [0],
        "nsfw": body.get("nsfw", False),
        "options": body.get("options", []),
    }
    if command["default_member_permissions"] is not None:
        command["default_member_permissions"] = str(command["default_member_permissions"])
    held[number] = command


def _check(body: Json, path: str) -> None:
    """Check a command's names, texts and options."""
    dot = f"{path}." if path else ""
    name: str = body.get("name", "")
    if body.get("type", CHAT_INPUT) == CHAT_INPUT:
        _check_names(body, dot)
        _check_options(body.get("options", []), f"{dot}options")
    elif not 1 <= limits.units(name) <= 32:
        raise errors.bad_length(f"{dot}name", 1, 32)


def _check_names(body: Json, dot: str) -> None:
    name: str = body.get("name", "")
    if not _NAME.match(name) or name != name.lower():
        raise errors.invalid(f"{dot}name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if not 1 <= limits.units(body.get("description", "")) <= 100:
        raise errors.bad_length(f"{dot}description", 1, 100)


def _check_options(options: list[Json], path: str) -> None:
    if len(options) > 25:
        raise errors.bad_length(path, 0, 25)
    optional = False
    for index, option in enumerate(options):
        here = f"{path}.{index}"
        _check_names(option, f"{here}.")
        if option.get("required") and optional:
            raise errors.invalid(
                f"{here}.required",
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        optional = optional or not option.get("required")
        if len(option.get("choices", [])) > 25:
            raise errors.bad_length(f"{here}.choices", 0, 25)
        _check_options(option.get("options", []), f"{here}.options")


# ── filling in ───────────────────────────────────────────────────────────────────────────────


def find(world: World, channel: Channel, user: User, name: str, kind: int) -> Json:
    """Return the command that a person sees under this name here; raises `Impossible` where they see none."""
    for command in world.commands.values():
        if command["type"] == kind and command["name"] == name:
            _check_shown(command, channel, user)
            return command
    raise Impossible(f"no command {name!r} (type {kind}) is registered here")


def _check_shown(command: Json, channel: Channel, user: User) -> None:
    direct = channel.type is ChannelType.DM
    contexts = command["contexts"]
    if contexts is not None and (1 if direct else 0) not in contexts:
        raise Impossible(f"{command['name']!r} isn't offered here: contexts {contexts}")
    if direct and not command["dm_permission"]:
        raise Impossible(f"{command['name']!r} isn't offered in direct messages")
    held = in_channel(channel, user)
    needed = int(command["default_member_permissions"] or 0)
    if not held & Permission.USE_APPLICATION_COMMANDS or held & needed != needed:
        raise Impossible(f"{user.name} may not use {command['name']!r} here")


@dataclass(slots=True)
class Filled:
    """What a client sends about a command: its options and what their ids refer to."""

    options: list[Json] = field(default_factory=list[Json])
    resolved: dict[str, Json] = field(default_factory=dict[str, Json])


def fill(command: Json, values: Mapping[str, Any], focused: str | None = None) -> Filled:
    """Type values into the options of a command.

    A value that the client wouldn't send (unknown option, wrong type, too long, not among the choices,
    missing) raises `Impossible`. While completing (`focused`) options may be missing.
    """
    options: list[Json] = command["options"]
    declared = {option["name"]: option for option in options}
    if unknown := set(values) - set(declared):
        raise Impossible(f"no option {sorted(unknown)}; there is {sorted(declared)}")
    missing = [name for name, option in declared.items() if option.get("required")]
    if focused is None and (absent := set(missing) - set(values)):
        raise Impossible(f"required: {sorted(absent)}")
    filled = Filled()
    for name, value in values.items():
        option = declared[name]
        if name == focused and not option.get("autocomplete"):
            raise Impossible(f"option {name!r} has no completion")
        wired = value if name == focused else _wired(option, value)
        entry: Json = {"name": name, "type": option["type"], "value": wired}
        if name == focused:
            entry["focused"] = True
        filled.options.append(entry)
        if isinstance(value, Attachment):
            body = wire.attachment(value, ephemeral=True)
            filled.resolved.setdefault("attachments", {})[str(value.id)] = body
    return filled


def _wired(option: Json, value: Any) -> Any:
    """Check one value against its option; return what is sent."""
    kind = option["type"]
    if not isinstance(value, _PYTHON[kind]) or (isinstance(value, bool) and kind != BOOLEAN):
        raise Impossible(f"option {option['name']!r} (type {kind}) can't hold {value!r}")
    if isinstance(value, str):
        low, high = option.get("min_length", 0), option.get("max_length", 6000)
        if not low <= limits.units(value) <= high:
            raise Impossible(f"option {option['name']!r} takes {low} to {high} characters")
    if kind == INTEGER and not (
        option.get("min_value", value) <= value <= option.get("max_value", value)
    ):
        raise Impossible(f"option {option['name']!r}: {value} is out of range")
    choices: list[Json] = option.get("choices", [])
    if choices and value not in [choice["value"] for choice in choices]:
        raise Impossible(f"option {option['name']!r}: {value!r} is not among the choices")
    return str(value.id) if isinstance(value, Attachment) else value
