"""Forms: what Slack accepts as one, and what it sends when somebody submits it.

Source: https://docs.slack.dev/surfaces/modals, https://docs.slack.dev/reference/views/modal-views
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.slack_server.rules import Json, Refused
from tests.slack_server.workspace import Team, Workspace

TRIGGER_SECONDS = 3.0


@dataclass(slots=True, eq=False)
class View:
    """An open form; `errors` are shown below its fields."""

    id: str
    team: str
    user: str
    form: Json
    is_open: bool = True
    errors: dict[str, str] = field(default_factory=dict[str, str])


class Modals:
    """Opens forms for fresh triggers, and applies the bot's answer to a submission."""

    def __init__(self, world: Workspace) -> None:
        self.world = world
        self.views: list[View] = []
        self._triggers: dict[str, tuple[str, float]] = {}

    def arm(self, payload: Json) -> Json:
        """Let a payload's trigger open one form within three seconds; return the payload."""
        user = payload.get("user_id") or payload["user"]["id"]
        self._triggers[payload["trigger_id"]] = str(user), self.world.clock()
        return payload

    def open(self, team: Team, arguments: Json) -> Json:
        """Show a form to the person who acted."""
        user, at = self._triggers.get(str(arguments.get("trigger_id")), ("", 0.0))
        if not user:
            raise Refused("invalid_trigger_id")
        if self.world.clock() - at > TRIGGER_SECONDS:
            raise Refused("expired_trigger_id")
        form: Json = arguments["view"]
        if faults := [*_faults(form)]:
            raise Refused("invalid_arguments", response_metadata={"messages": faults})
        del self._triggers[arguments["trigger_id"]]
        view = View(f"V{secrets.token_hex(5).upper()}", team.id, user, form)
        self.views.append(view)
        return {"view": {"id": view.id, **form}}

    def submission(self, view: View, app_id: str, values: Mapping[str, str]) -> Json:
        """Return what Slack sends for a submitted form; fields that aren't given stay as prefilled."""
        if not view.is_open:
            raise LookupError("the form is closed")
        blocks: list[Json] = [block for block in view.form["blocks"] if block["type"] == "input"]
        if strange := values.keys() - {block["block_id"] for block in blocks}:
            raise LookupError(f"no such fields: {strange}")
        user, team = self.world.users[view.user], self.world.teams[view.team]
        return {
            "type": "view_submission",
            "token": "verification-token",
            "team": {"id": user.team, "domain": self.world.teams[user.team].domain},
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
            "api_app_id": app_id,
            "trigger_id": secrets.token_hex(16),
            "view": {
                **view.form,
                "id": view.id,
                "team_id": team.id,
                "app_id": app_id,
                "app_installed_team_id": team.id,
                "hash": secrets.token_hex(8),
                "state": {"values": {each["block_id"]: _filled(each, values) for each in blocks}},
            },
            "response_urls": [],
            "is_enterprise_install": False,
            "enterprise": None,
        }

    def answered(self, view_id: str, answer: Json | str | None) -> None:
        """Close a form that was accepted; show the errors of one that wasn't."""
        view = next(each for each in self.views if each.id == view_id)
        if isinstance(answer, dict) and answer.get("response_action") == "errors":
            view.errors = dict(answer["errors"])
        else:
            view.is_open = False
        self.world.changes.happened()


def _filled(block: Json, values: Mapping[str, str]) -> Json:
    element: Json = block["element"]
    name = block["block_id"]
    if element["type"] == "plain_text_input":
        text = values.get(name, element.get("initial_value") or "")
        if len(text) > element.get("max_length", 3000) or not (text or block.get("optional")):
            raise LookupError(f"{name} takes no such text")
        return {element["action_id"]: {"type": element["type"], "value": text or None}}
    options = {option["value"]: option for option in element["options"]}
    chosen = options[values[name]] if name in values else element.get("initial_option")
    return {element["action_id"]: {"type": element["type"], "selected_option": chosen}}


def _faults(form: Json) -> Iterator[str]:
    if form.get("type") != "modal":
        yield "unsupported type [json-pointer:/view/type]"
    for name, most in (("title", 24), ("submit", 24), ("close", 24)):
        if not 1 <= len(form[name]["text"]) <= most:
            yield f"must be less than {most + 1} characters [json-pointer:/view/{name}]"
    if len(form.get("private_metadata", "")) > 3000 or len(form.get("callback_id", "")) > 255:
        yield "must be less than 3001 characters [json-pointer:/view/private_metadata]"
    for number, block in enumerate(form["blocks"]):
        at = f"/view/blocks/{number}"
        if block["type"] != "input":
            yield f"unsupported type [json-pointer:{at}/type]"
            continue
        if len(block["label"]["text"]) > 2000 or len((block.get("hint") or {"text": ""})["text"]) > 2000:
            yield f"must be less than 2001 characters [json-pointer:{at}/label]"
        yield from _element_faults(block["element"], f"{at}/element")


def _element_faults(element: Json, at: str) -> Iterator[str]:
    match element["type"]:
        case "plain_text_input":
            most = element.get("max_length", 3000)
            if not 1 <= most <= 3000:
                yield f"must be less than 3001 [json-pointer:{at}/max_length]"
            if len(element.get("initial_value", "")) > most:
                yield f"must be less than {most + 1} characters [json-pointer:{at}/initial_value]"
        case "static_select":
            if not 1 <= len(element["options"]) <= 100:
                yield f"no more than 100 items allowed [json-pointer:{at}/options]"
            for option in element["options"]:
                if not (1 <= len(option["text"]["text"]) <= 75 and 1 <= len(option["value"]) <= 150):
                    yield f"must be less than 76 characters [json-pointer:{at}/options]"
            if element.get("initial_option", element["options"][0]) not in element["options"]:
                yield f"must be one of the options [json-pointer:{at}/initial_option]"
        case _:
            yield f"unsupported type [json-pointer:{at}/type]"
