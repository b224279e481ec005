"""Discord's side of the command registry: typed options, registered only when they have changed.

Source: https://discord.com/developers/docs/interactions/application-commands
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Literal, cast

import discord
from discord import app_commands

from bot.service.commands import ACTION, COMMANDS, Command, Given, Option, OptionKind

LONGEST_TEXT = 6000
MOST_CHOICES = 25

Answer = Callable[[discord.Interaction, Given], Awaitable[None]]
Propose = Callable[[discord.Interaction, str], Coroutine[Any, Any, list[app_commands.Choice[str]]]]
"""Returns what Discord lists while somebody types an option."""
About = Callable[[discord.Interaction, discord.Message], Coroutine[Any, Any, None]]
"""Answers the message action."""

Shapes = dict[tuple[int, str], dict[str, Any]]
# What makes two commands the same; everything else is Discord's own, or a default.
_SHAPE = (
    "type",
    "name",
    "description",
    "options",
    "required",
    "min_length",
    "max_length",
    "min_value",
    "max_value",
    "autocomplete",
    "contexts",
    "integration_types",
)


def command_tree(
    client: discord.AutoShardedClient,
    answers: Mapping[Command, Answer],
    propose: Mapping[OptionKind, Propose],
    about: About,
) -> app_commands.CommandTree[discord.AutoShardedClient]:
    """Make Discord's commands of the whole registry, and the message action."""
    tree = app_commands.CommandTree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
    )
    for command in COMMANDS:
        tree.add_command(slash(command, answers[command], propose))
    tree.add_command(app_commands.ContextMenu(name=ACTION, callback=about))
    return tree


def slash(
    command: Command, answer: Answer, propose: Mapping[OptionKind, Propose]
) -> app_commands.Command[Any, ..., None]:
    """Make a slash command from an entry in the registry; `propose` completes its options by kind."""

    async def callback(interaction: discord.Interaction, **given: object) -> None:
        await answer(interaction, given)

    options = (
        Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if option.required else None,
            annotation=_type(option) if option.required else _type(option) | None,
        )
        for option in command.options
    )
    first = Parameter("interaction", Parameter.POSITIONAL_ONLY, annotation=discord.Interaction)
    # discord.py reads the options out of a function's signature.
    callback.__signature__ = Signature([first, *options])  # pyright: ignore[reportFunctionMemberAccess] - inspect's protocol
    described = app_commands.describe(**{option.name: option.description for option in command.options})
    made = app_commands.Command[Any, ..., None](
        name=command.name, description=command.description, callback=described(callback)
    )

    for option in command.options:
        if option.kind in propose:
            made.autocomplete(option.name)(propose[option.kind])
    return made


def fitting(names: Sequence[str], typed: str) -> list[app_commands.Choice[str]]:
    """Return our own names that contain what was typed."""
    fit = [name for name in names if typed.lower() in name.lower()]
    return [app_commands.Choice(name=name, value=name) for name in fit[:MOST_CHOICES]]


def _type(option: Option) -> Any:  # noqa: ANN401 - what discord.py reads as a type, by its own rules
    match option.kind:
        case "file":
            return discord.Attachment
        case "flag":
            return bool
        case "number":
            return app_commands.Range[int, option.least, option.most]
        case "choice":
            return Literal[option.choices]
        case _:
            return app_commands.Range[str, 1, option.most or LONGEST_TEXT]


async def register(tree: app_commands.CommandTree[Any]) -> None:
    """Register the commands of a client that has logged in, unless Discord has exactly these."""
    there, ours = await shapes(tree)
    if there != ours:
        await tree.sync()


async def shapes(tree: app_commands.CommandTree[Any]) -> tuple[Shapes, Shapes]:
    """Return the commands that Discord has and those of a tree, each by its kind and name."""
    application = cast("int", tree.client.application_id)
    # Not `tree.fetch_commands`: discord.py 2.7 reads contexts and integration types back wrongly.
    there = [_shape(command) for command in await tree.client.http.get_global_commands(application)]
    ours = [_shape(command.to_dict(tree)) for command in tree.get_commands()]
    return {_name(one): one for one in there}, {_name(one): one for one in ours}


def _shape(command: Mapping[Any, Any]) -> dict[str, Any]:
    shape = {key: command[key] for key in _SHAPE if command.get(key)}
    if choices := command.get("choices"):
        shape["choices"] = [(choice["name"], choice["value"]) for choice in choices]
    if options := shape.get("options"):
        shape["options"] = [_shape(option) for option in options]
    return shape


def _name(shape: dict[str, Any]) -> tuple[int, str]:
    return shape["type"], shape["name"]
