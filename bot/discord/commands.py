"""Discord's side of the command registry, and the forms that a button opens.

Commands have typed options, and are registered only when they have changed. One process may send a form
and another receive it: its custom id says what it is about, so it is read from the interaction alone.

Sources: https://discord.com/developers/docs/interactions/application-commands,
https://discord.com/developers/docs/components/using-modal-components
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, Literal, cast

import discord
from discord import app_commands, ui

from bot.actions import Action
from bot.service.commands import ACTION, COMMANDS, Command, Given, Option, OptionKind
from bot.service.dispatcher import LONGEST_REASON, Form, ReasonForm
from bot.service.dispatcher import LONGEST_TEXT as LONGEST_QUESTION
from bot.service.inputs import MOST_FILES, admitted
from bot.view.wording import commands as following
from bot.view.wording.figures import ANSWER_IT, FOLLOW_UP, UNHELPFUL
from council.brief import SentFile

Json = Mapping[str, Any]

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


_WHY, _FOLLOW = "council-why", "council-follow"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SUBMITTED = re.compile(rf"{_WHY}:(?P<why>{UUID})|{_FOLLOW}:(?P<follow>{UUID}):(?P<opened>\d{{1,20}})")
_REASON, _TEXT, _PROFILE, _FILES = "reason", "text", "profile", "files"
_MOST_OPTIONS = 25


@dataclass(frozen=True, slots=True)
class Submission:
    """A form that came back: its action, its run, the interaction that opened it, and what it says."""

    action: Action
    run_id: str
    opened: str
    given: Given


def modal(form: Form | ReasonForm, opened: int) -> ui.Modal:
    """Return a form as Discord shows it; `opened` is the interaction that opens it."""
    return _reason(form.run_id) if isinstance(form, ReasonForm) else _follow_up(form, opened)


def _reason(run_id: str) -> ui.Modal:
    text = ui.TextInput[ui.Modal](
        custom_id=_REASON,
        style=discord.TextStyle.paragraph,
        required=False,
        max_length=LONGEST_REASON,
    )
    label = ui.Label(text=following.WHY_LABEL, description=following.WHY_HINT, component=text)
    return _form(UNHELPFUL, f"{_WHY}:{run_id}", label)


def _follow_up(form: Form, opened: int) -> ui.Modal:
    text = ui.TextInput[ui.Modal](
        custom_id=_TEXT,
        style=discord.TextStyle.paragraph,
        default=form.text or None,
        max_length=LONGEST_QUESTION,
    )
    label = ui.Label(
        text=following.FORM_ANSWER if form.answers else following.FORM_QUESTION,
        description=following.ANSWER_HINT if form.answers else following.QUESTION_HINT,
        component=text,
    )
    title = ANSWER_IT if form.answers else FOLLOW_UP
    return _form(title, f"{_FOLLOW}:{form.run_id}:{opened}", label, _upload(), *_profiles(form))


def _upload() -> ui.Label[ui.Modal]:
    files = ui.FileUpload[ui.Modal](
        custom_id=_FILES, required=False, min_values=0, max_values=MOST_FILES
    )
    return ui.Label(text=following.FORM_FILES, description=following.FILES_HINT, component=files)


def _profiles(form: Form) -> Iterator[ui.Label[ui.Modal]]:
    if not form.profiles:
        return
    offered = sorted(form.profiles, key=lambda name: name != form.profile)[:_MOST_OPTIONS]
    options = [
        discord.SelectOption(label=name[:100], value=name[:100], default=name == form.profile)
        for name in offered
    ]
    choice = ui.Select[ui.Modal](custom_id=_PROFILE, options=options, required=False, min_values=0)
    yield ui.Label(text=following.FORM_PROFILE, description=following.PROFILE_HINT, component=choice)


def submission(interaction: discord.Interaction) -> Submission | None:
    """Return the submitted form if it is one of the bot's."""
    if interaction.type is not discord.InteractionType.modal_submit:
        return None
    data = cast("Json", interaction.data or {})
    found = _SUBMITTED.fullmatch(str(data.get("custom_id", "")))
    if found is None:
        return None
    given = dict(_values(data.get("components", [])))
    if found["why"]:
        return Submission("reason", found["why"], "", {"reason": given.get(_REASON, "")})
    asked: dict[str, object] = {
        "text": given.get(_TEXT, ""),
        "profile": given.get(_PROFILE, ""),
        "files": admitted(_files(data)),
    }
    return Submission("question", found["follow"], found["opened"], asked)


def _files(data: Json) -> Iterator[SentFile]:
    """Yield the files of a submitted form, as the interaction describes them."""
    known: Json = data.get("resolved", {}).get("attachments", {})
    for row in data.get("components", []):
        field: Json = row.get("component") or {}
        numbers: list[str] = field.get("values", []) if field.get("custom_id") == _FILES else []
        for number in numbers:
            file: Json | None = known.get(number)
            if file:
                yield SentFile(
                    name=str(file.get("filename") or following.NO_NAME),
                    address=str(file.get("url") or ""),
                    size=int(file.get("size") or 0),
                    media=str(file.get("content_type") or ""),
                )


def _form(title: str, custom_id: str, *items: ui.Item[ui.Modal]) -> ui.Modal:
    modal = ui.Modal(title=title, custom_id=custom_id, timeout=None)
    for item in items:
        modal.add_item(item)
    modal.stop()  # discord.py forgets a form that has ended; the client itself handles its submission
    return modal


def _values(components: list[Json]) -> Iterator[tuple[str, str]]:
    """Yield each filled-in value by its custom id; for a choice, the first."""
    for each in components:
        inside = each.get("components") or ([each["component"]] if "component" in each else [])
        yield from _values(inside)
        if "custom_id" in each:
            chosen = [*(each.get("values") or ()), each.get("value") or ""]
            yield str(each["custom_id"]), str(chosen[0])
