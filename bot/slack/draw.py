"""Cards and forms on Slack: blocks, and buttons whose clicks arrive under their ids.

A form carries its run and its place in its metadata, so that any process can read it.
Source: https://docs.slack.dev/surfaces/modals
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import orjson

from bot.actions import Action
from bot.errors import Refusal
from bot.service.commands import Given
from bot.service.delivery.chat import Button, Part
from bot.service.requests.follow_ups import LONGEST_TEXT, Form
from bot.service.requests.votes import LONGEST_REASON, ReasonForm
from bot.slack.client import Json
from bot.view.wording import commands as following
from bot.view.wording.commands import NOT_HERE
from bot.view.wording.figures import ANSWER_IT, UNHELPFUL


def blocks_with_buttons(part: Part) -> list[Json]:
    """Return a part's blocks, and below them the block of its buttons."""
    return [*part.blocks, *buttons_of(part.buttons)]


def buttons_of(buttons: Iterable[Button]) -> list[Json]:
    """Return the block of a run's buttons; none without buttons."""
    # Slack takes no two buttons with the same id: one for each member has its seat.
    ids = ((f"{each.action}_{each.seat}" if each.name else each.action, each) for each in buttons)
    return actions((action_id(own), each.value, each.label) for own, each in ids)


def actions(buttons: Iterable[tuple[str, str, str]]) -> list[Json]:
    """Return the block of buttons below a message, each by its id, value and label; none without any."""
    elements = [
        {
            "type": "button",
            "action_id": id_,
            "value": value,
            "text": {"type": "plain_text", "text": label, "emoji": False},
        }
        for id_, value, label in buttons
    ]
    return [{"type": "actions", "elements": elements}] if elements else []


def action_id(action: str) -> str:
    """Return the id under which the clicks of a run's button arrive."""
    return f"council_{action}"


WHY, FOLLOW_UP = "council_why", "council_follow_up"
_REASON, _TEXT, _PROFILE = "reason", "text", "profile"
FIRST = {WHY: _REASON, FOLLOW_UP: _TEXT}
"""The field of each form below which an error is shown."""


_MOST_OPTIONS = 100


@dataclass(frozen=True, slots=True)
class OpenedModal:
    """What a form is about: a run, and where its button was pressed."""

    run_id: str
    channel: str
    thread: str | None = None

    @classmethod
    def read(cls, view: Json) -> Self:
        """Read a submitted form's metadata. Raises `Refusal` for what isn't ours."""
        try:
            about: Json = orjson.loads(str(view["private_metadata"]))
            return cls(str(about["run_id"]), str(about["channel"]), about.get("thread"))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise Refusal(NOT_HERE) from error

    @property
    def metadata(self) -> str:
        """What a form carries."""
        return orjson.dumps(self).decode()


def modal(form: Form | ReasonForm, about: OpenedModal) -> Json:
    """Return a form as Slack shows it."""
    return _why(about) if isinstance(form, ReasonForm) else _follow_up(form, about)


def _why(about: OpenedModal) -> Json:
    reason = {
        "type": "input",
        "block_id": _REASON,
        "optional": True,
        "label": _plain(following.WHY_LABEL),
        "hint": _plain(following.WHY_HINT),
        "element": {
            "type": "plain_text_input",
            "action_id": _REASON,
            "multiline": True,
            "max_length": LONGEST_REASON,
        },
    }
    return _form(WHY, UNHELPFUL, following.SEND, about, reason)


def _follow_up(form: Form, about: OpenedModal) -> Json:
    text = {
        "type": "input",
        "block_id": _TEXT,
        "label": _plain(following.FORM_ANSWER if form.answers else following.FORM_QUESTION),
        "hint": _plain(following.ANSWER_HINT if form.answers else following.QUESTION_HINT),
        "element": {
            "type": "plain_text_input",
            "action_id": _TEXT,
            "multiline": True,
            "max_length": LONGEST_TEXT,
            **({"initial_value": form.text} if form.text else {}),
        },
    }
    title = ANSWER_IT if form.answers else following.TITLE
    return _form(FOLLOW_UP, title, following.FORM_SEND, about, text, *_profiles(form))


def _profiles(form: Form) -> Iterator[Json]:
    if not form.profiles:
        return
    offered = sorted(form.profiles, key=lambda name: name != form.profile)[:_MOST_OPTIONS]
    options = [{"text": _plain(name[:75]), "value": name[:150]} for name in offered]
    chosen = {"initial_option": options[0]} if form.profile else {}
    select = {"type": "static_select", "action_id": _PROFILE, "options": options, **chosen}
    yield {
        "type": "input",
        "block_id": _PROFILE,
        "optional": True,
        "label": _plain(following.FORM_PROFILE),
        "hint": _plain(following.PROFILE_HINT),
        "element": select,
    }


def submitted(view: Json) -> tuple[Action, Given]:
    """Return what a submitted form does, and what was written into it."""
    if view["callback_id"] == WHY:
        return "reason", {"reason": _value(view, _REASON)}
    return "question", {"text": _value(view, _TEXT), "profile": _value(view, _PROFILE)}


def _form(callback_id: str, title: str, submit: str, about: OpenedModal, *blocks: Json) -> Json:
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": about.metadata,
        "title": _plain(title),
        "submit": _plain(submit),
        "close": _plain(following.CANCEL),
        "blocks": [*blocks],
    }


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


def _value(view: Json, name: str) -> str:
    given: Json = view.get("state", {}).get("values", {}).get(name, {}).get(name, {})
    chosen: Json = given.get("selected_option") or {}
    return str(chosen.get("value") or given.get("value") or "")
