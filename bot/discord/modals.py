"""Forms that a button opens: one process may send a form, and another receive it.

A form's custom id says what it is about, so it is read from the interaction alone.
Source: https://discord.com/developers/docs/components/using-modal-components
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import discord
from discord import ui

from bot.actions import Action
from bot.service.commands import Given
from bot.service.requests.attachments import MOST_FILES, admitted
from bot.service.requests.follow_ups import LONGEST_TEXT, Form
from bot.service.requests.votes import LONGEST_REASON, ReasonForm
from bot.view.wording import commands as following
from bot.view.wording.figures import ANSWER_IT, FOLLOW_UP, UNHELPFUL
from council.brief import SentFile

Json = Mapping[str, Any]

_WHY, _FOLLOW = "council-why", "council-follow"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SUBMITTED = re.compile(rf"{_WHY}:(?P<why>{_UUID})|{_FOLLOW}:(?P<follow>{_UUID}):(?P<opened>\d{{1,20}})")
_REASON, _TEXT, _PROFILE, _FILES = "reason", "text", "profile", "files"
_MOST_OPTIONS = 25


@dataclass(frozen=True, slots=True)
class Submitted:
    """A form that came back: its action, its run, the interaction that opened it, and what it says."""

    action: Action
    run_id: str
    opened: str
    given: Given


def drawn(form: Form | ReasonForm, opened: int) -> ui.Modal:
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
        max_length=LONGEST_TEXT,
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


def read(interaction: discord.Interaction) -> Submitted | None:
    """Return the submitted form if it is one of the bot's."""
    if interaction.type is not discord.InteractionType.modal_submit:
        return None
    data = cast("Json", interaction.data or {})
    found = _SUBMITTED.fullmatch(str(data.get("custom_id", "")))
    if found is None:
        return None
    given = dict(_values(data.get("components", [])))
    if found["why"]:
        return Submitted("reason", found["why"], "", {"reason": given.get(_REASON, "")})
    asked: dict[str, object] = {
        "text": given.get(_TEXT, ""),
        "profile": given.get(_PROFILE, ""),
        "files": admitted(_files(data)),
    }
    return Submitted("question", found["follow"], found["opened"], asked)


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
