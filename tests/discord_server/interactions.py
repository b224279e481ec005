"""The endpoints that an interaction's token opens: the first response, the original, follow-ups."""

import time
from typing import Any

from . import errors, limits, modals, posting, wire
from .rest import Call, body_of, route
from .state import Interaction, Json, Message, MessageFlag, World

TOKEN_LIFE = 15 * 60.0
COMPLETIONS = 8
COMPONENT, AUTOCOMPLETE, MODAL = 3, 4, 5
SLASH_RESPONSE, MENU_RESPONSE = 20, 23


@route("POST /interactions/{interaction_id}/{token}/callback", token=False)
def callback(call: Call) -> Json | None:
    """Take the first response: in time, and only one."""
    interaction = call.world.interactions.get(call.id("interaction_id"))
    if interaction is None or interaction.token != call.parameters["token"]:
        raise errors.ApiError(*errors.UNKNOWN_INTERACTION)
    try:
        _first(call, interaction)
    except errors.ApiError as error:
        interaction.refused.append(error.code)
        raise
    if call.query.get("with_response") not in {"1", "true"}:
        return None
    return _receipt(call.world, interaction)


def _first(call: Call, interaction: Interaction) -> None:
    world = call.world
    if interaction.callback is not None:
        raise errors.ApiError(*errors.ALREADY_ACKNOWLEDGED)
    if world.clock.now() - interaction.sent_at > world.patience:
        raise errors.ApiError(*errors.UNKNOWN_INTERACTION)
    body = body_of(call)
    kind = body.get("type")
    data: Json = body.get("data") or {}
    if (kind == COMPLETIONS) != (interaction.kind == AUTOCOMPLETE):
        raise errors.invalid("type", "INTERACTION_APPLICATION_COMMAND_INVALID_TYPE", "Wrong type")
    match kind:
        case 4:
            interaction.message = _send(call, interaction, data)
        case 5:
            private = bool(int(data.get("flags") or 0) & MessageFlag.EPHEMERAL)
            interaction.message = posting.thinking(world, interaction, ephemeral=private)
        case 6 | 7 if interaction.kind != COMPONENT or interaction.source is None:
            raise errors.invalid("type", "BASE_TYPE_CHOICES", "There is no message to update")
        case 6:
            interaction.message = interaction.source
        case 7:
            assert interaction.source is not None
            interaction.message = _edit(call, interaction.source, data)
        case 8:
            interaction.choices = _choices(data)
        case 9 if interaction.kind == MODAL:
            raise errors.invalid("type", "BASE_TYPE_CHOICES", "A form can't open another")
        case 9:
            modals.check(data)
        case _:
            raise errors.invalid("type", "BASE_TYPE_CHOICES", "Value must be one of (4, ..., 9).")
    interaction.callback, interaction.response = kind, data
    acknowledge(interaction)


def acknowledge(interaction: Interaction) -> None:
    """Note that the first response came, and how long it took."""
    interaction.acknowledged_after = time.perf_counter() - interaction.sent
    interaction.answered.set()


def _receipt(world: World, interaction: Interaction) -> Json:
    message = interaction.message
    about: Json = {"id": str(interaction.id), "type": interaction.kind}
    reply: Json = {"interaction": about}
    if message is not None:
        about |= {
            "response_message_id": str(message.id),
            "response_message_loading": bool(message.now.flags & MessageFlag.LOADING),
            "response_message_ephemeral": message.ephemeral,
        }
        reply["resource"] = {"type": interaction.callback, "message": wire.message(message, world)}
    return reply


def _choices(data: Json) -> list[Json]:
    choices: list[Json] = data.get("choices", [])
    if len(choices) > 25:
        raise errors.bad_length("data.choices", 0, 25)
    for index, choice in enumerate(choices):
        if not 1 <= limits.units(choice["name"]) <= 100:
            raise errors.bad_length(f"data.choices.{index}.name", 1, 100)
        if isinstance(choice["value"], str) and limits.units(choice["value"]) > 100:
            raise errors.bad_length(f"data.choices.{index}.value", 1, 100)
    return choices


def _send(call: Call, interaction: Interaction, body: Json) -> Message:
    """Post through the interaction, which needs no permission in the channel."""
    world = call.world
    kind = SLASH_RESPONSE
    if interaction.payload["data"].get("target_id"):
        kind = MENU_RESPONSE
    elif interaction.kind in (COMPONENT, MODAL):
        kind = 0
    return posting.post(
        world,
        interaction.channel,
        world.bot,
        body,
        call.uploads,
        by="interaction",
        interaction=interaction,
        kind=kind,
    )


def _edit(call: Call, message: Message, body: Json) -> Message:
    return posting.edit(call.world, message, body, call.uploads, by="interaction")


def _alive(call: Call) -> Interaction:
    """Return the interaction of a token; raises 50027 after 15 minutes, 10015 for no token of ours."""
    world = call.world
    interaction = world.tokens.get(call.parameters["token"])
    if interaction is None or call.id("webhook_id") != world.application_id:
        raise errors.ApiError(*errors.UNKNOWN_WEBHOOK)
    if world.clock.now() - interaction.sent_at > TOKEN_LIFE:
        raise errors.ApiError(*errors.EXPIRED_TOKEN)
    return interaction


def _reachable(call: Call) -> Message:
    """Return a message that this token wrote: by id, or the original."""
    interaction = _alive(call)
    wanted = call.parameters.get("message_id", "@original")
    written: list[Any] = [interaction.message, *interaction.followups]
    for message in written:
        if message is not None and not message.deleted and wanted in {"@original", str(message.id)}:
            return message
        if wanted == "@original":
            break
    raise errors.ApiError(*errors.UNKNOWN_MESSAGE)


@route("POST /webhooks/{webhook_id}/{token}", token=False)
def follow_up(call: Call) -> Json:
    """Post a follow-up; after a deferred response the first one completes it."""
    interaction = _alive(call)
    original = interaction.message
    if interaction.callback is None:
        raise errors.ApiError(*errors.UNKNOWN_WEBHOOK)
    if original is not None and not original.deleted and original.now.flags & MessageFlag.LOADING:
        return wire.message(_edit(call, original, body_of(call)), call.world)
    message = _send(call, interaction, body_of(call))
    interaction.followups.append(message)
    return wire.message(message, call.world)


@route("GET /webhooks/{webhook_id}/{token}/messages/@original", token=False)
@route("GET /webhooks/{webhook_id}/{token}/messages/{message_id}", token=False)
def read(call: Call) -> Json:
    """Return a message this token wrote."""
    return wire.message(_reachable(call), call.world)


@route("PATCH /webhooks/{webhook_id}/{token}/messages/@original", token=False)
@route("PATCH /webhooks/{webhook_id}/{token}/messages/{message_id}", token=False)
def change(call: Call) -> Json:
    """Edit a message this token wrote, ephemeral ones too."""
    return wire.message(_edit(call, _reachable(call), body_of(call)), call.world)
