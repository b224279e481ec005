"""Discord's side of the command registry: typed options, registered only when they have changed.

Source: https://discord.com/developers/docs/interactions/application-commands
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, cast

import aiohttp
import discord
from discord import app_commands

from bot.commands import Command, Kind
from bot.desk import Refusal
from council.brief import Attachment

LONGEST_TEXT = 6000
LARGEST_FILE = 200_000
FILE_SECONDS = 1.0

Given = Mapping[str, Any]
"""What somebody filled in, by option; `None` where they left it out."""
Answer = Callable[[discord.Interaction, Given], Awaitable[None]]

_TYPES: Mapping[Kind, Any] = {
    "text": app_commands.Range[str, 1, LONGEST_TEXT],
    "file": discord.Attachment,
    "flag": bool,
}
# What makes two commands the same; all else is Discord's own, or a default.
_SHAPE = (
    "type",
    "name",
    "description",
    "options",
    "required",
    "min_length",
    "max_length",
    "contexts",
    "integration_types",
)


def slash(command: Command, answer: Answer) -> app_commands.Command[Any, ..., None]:
    """Make a slash command of an entry in the registry."""

    async def callback(interaction: discord.Interaction, **given: object) -> None:
        await answer(interaction, given)

    options = (
        Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if option.required else None,
            annotation=_TYPES[option.kind] if option.required else _TYPES[option.kind] | None,
        )
        for option in command.options
    )
    first = Parameter("interaction", Parameter.POSITIONAL_ONLY, annotation=discord.Interaction)
    # discord.py reads the options out of a function's signature.
    callback.__signature__ = Signature([first, *options])  # pyright: ignore[reportFunctionMemberAccess] - inspect's protocol
    described = app_commands.describe(**{option.name: option.description for option in command.options})
    return app_commands.Command(
        name=command.name, description=command.description, callback=described(callback)
    )


async def register(tree: app_commands.CommandTree[Any]) -> None:
    """Register the commands of a client that has logged in, unless Discord has exactly these."""
    application = cast("int", tree.client.application_id)
    # Not `tree.fetch_commands`: discord.py 2.7 reads contexts and integration types back wrongly.
    there = [_shape(command) for command in await tree.client.http.get_global_commands(application)]
    ours = [_shape(command.to_dict(tree)) for command in tree.get_commands()]
    if sorted(there, key=_name) != sorted(ours, key=_name):
        await tree.sync()


def _shape(command: Mapping[Any, Any]) -> dict[str, Any]:
    shape = {key: command[key] for key in _SHAPE if command.get(key)}
    if options := shape.get("options"):
        shape["options"] = [_shape(option) for option in options]
    return shape


def _name(shape: dict[str, Any]) -> tuple[int, str]:
    return shape["type"], shape["name"]


async def read_text(file: discord.Attachment) -> Attachment:
    """Read a file that was given as an option. Raises `Refusal` where it isn't a text of fair size."""
    name = file.filename
    if file.size > LARGEST_FILE:
        raise Refusal(f"{name} is larger than {LARGEST_FILE // 1000} kB. Attach the part that matters.")
    try:
        # The command has to be answered in 3 seconds.
        async with asyncio.timeout(FILE_SECONDS):
            content = await file.read()
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        raise Refusal(f"Discord did not hand over {name}. Try again.") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Refusal(f"{name} is not text. Attach plain text in UTF-8, such as .md, .txt or .csv.")
    return Attachment(name=name, text=text)
