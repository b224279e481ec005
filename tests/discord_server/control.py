"""The driving API for another process: `POST /_control/METHOD` with the arguments as JSON.

Every public method of `DiscordServer` is there under its name. What is an object in Python is its id on
the wire (a value inside a command's options that stands for one: `{"id": ...}`), bytes are base64.
Beside them: `message` and `interaction` (by id), `acknowledged` (waits), `release` (a fault, by `index`)
and `changed`, which answers once the revision is past `since`.
"""

import asyncio
import base64
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

import orjson
from aiohttp import web

from .errors import ApiError, Impossible
from .state import Attachment, Channel, Guild, Interaction, Message, Role, User, World

if TYPE_CHECKING:
    from .server import DiscordServer

ENTITIES = (User, Role, Guild, Channel, Message, Attachment, Interaction)
HIDDEN = {"start", "stop", "until"}
_SKIPPED = {"data", "messages", "gate", "answered", "payload", "token"}


def mount(app: web.Application, server: "DiscordServer") -> None:
    """Put the driving API under /_control."""

    async def call(request: web.Request) -> web.Response:
        arguments = orjson.loads(await request.read() or b"{}")
        name = request.match_info["method"]
        try:
            result = _method(server, name)(**arguments)
            if inspect.isawaitable(result):
                result = await result
        except (ApiError, Impossible, TypeError, LookupError, TimeoutError) as error:
            complaint = {"error": type(error).__name__, "message": str(error)}
            return _json(complaint, status=409)
        return _json({"result": describe(result)})

    app.router.add_post("/_control/{method}", call)


def _json(body: Any, status: int = 200) -> web.Response:
    headers = {"Content-Type": "application/json"}
    return web.Response(status=status, body=orjson.dumps(body), headers=headers)


def _method(server: "DiscordServer", name: str) -> Callable[..., Any]:
    """Return a method that takes ids for objects."""
    world = server.world

    async def acknowledged(interaction: int) -> Interaction:
        return await world.interactions[int(interaction)].acknowledged()

    async def changed(since: int) -> int:
        await server.until(lambda: server.revision > since, within=30.0)
        return server.revision

    def message(message: int) -> Message:
        return world.messages[int(message)]

    def interaction(interaction: int) -> Interaction:
        return world.interactions[int(interaction)]

    def release(index: int) -> None:
        server.api.faults[index].release()

    own = (acknowledged, changed, message, interaction, release)
    extra: dict[str, Callable[..., Any]] = {entry.__name__: entry for entry in own}
    if name in extra:
        return extra[name]
    method = getattr(server, name, None)
    if name.startswith("_") or name in HIDDEN or not inspect.ismethod(method):
        raise LookupError(f"no method {name!r}")
    hints = get_type_hints(method)

    def call(**arguments: Any) -> Any:
        return method(
            **{key: _taken(world, hints.get(key, Any), value) for key, value in arguments.items()}
        )

    return call


def _taken(world: World, hint: Any, value: Any) -> Any:
    """Return an argument from the wire as the method takes it."""
    kinds = [kind for kind in (hint, *get_args(hint)) if kind in ENTITIES]
    if kinds and value is not None:
        return _entity(world, int(value), kinds)
    if hint is bytes:
        return base64.b64decode(str(value))
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, str]", value)
    if hint is Any:
        return _entity(world, int(entries["id"]), list(ENTITIES))
    return {key: base64.b64decode(entry) for key, entry in entries.items()}


def _entity(world: World, number: int, kinds: list[Any]) -> Any:
    """Return the object with an id, among the kinds it may be of."""
    roles = {role.id: role for guild in world.guilds.values() for role in guild.roles.values()}
    held: dict[Any, dict[int, Any]] = {
        User: world.users,
        Role: roles,
        Guild: world.guilds,
        Channel: world.channels,
        Message: world.messages,
        Attachment: world.attachments,
        Interaction: world.interactions,
    }
    for kind in kinds:
        if number in held[kind]:
            return held[kind][number]
    raise LookupError(f"nothing has the id {number}")


def describe(value: Any, *, inside: bool = False) -> Any:
    """Write a result as JSON: an object with its fields, objects within it as their ids."""
    if isinstance(value, list | tuple | set):
        return [describe(item, inside=inside) for item in cast("list[Any]", value)]
    if inside and isinstance(value, ENTITIES):
        return value.id
    if not is_dataclass(value) or isinstance(value, type):
        return value
    body: dict[str, Any] = {}
    for entry in fields(value):
        item = getattr(value, entry.name)
        if entry.name not in _SKIPPED and not isinstance(item, asyncio.Event):
            body[entry.name] = _plain(item)
    if isinstance(value, Message):
        body |= {"text": value.text, "buttons": value.buttons, "ephemeral": value.ephemeral}
    return body


def _plain(item: Any) -> Any:
    if isinstance(item, dict):
        entries = cast("dict[Any, Any]", item)
        return {str(key): describe(entry, inside=True) for key, entry in entries.items()}
    return describe(item, inside=True)
