"""What Slack sends to an app: commands, events, shortcuts and clicks, field by field."""

import secrets

from tests.slack_server.rules import Json
from tests.slack_server.workspace import Channel, Ephemeral, Message, Team, User


def slash_command(
    app_id: str, team: Team, channel: Channel, user: User, command: str, text: str, response_url: str
) -> Json:
    """Return a slash command: flat strings, as the form carries them."""
    return {
        "token": "verification-token",
        "team_id": team.id,
        "team_domain": team.domain,
        "channel_id": channel.id,
        "channel_name": {"private": "privategroup", "im": "directmessage"}.get(
            channel.kind, channel.name
        ),
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": app_id,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": new_trigger(),
    }


def event_callback(app_id: str, team: Team, event: Json, now: float) -> Json:
    """Return an event in its envelope; redeliveries keep its `event_id`."""
    return {
        "token": "verification-token",
        "team_id": team.id,
        "api_app_id": app_id,
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{secrets.token_hex(5).upper()}",
        "event_time": int(now),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": team.id,
                "user_id": team.bot.id,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": f"4-{secrets.token_hex(8)}",
    }


def message_event(kind: str, team: Team, channel: Channel, message: Message) -> Json:
    """Return an `app_mention`, or a `message` of a direct conversation."""
    event: Json = {
        "type": kind,
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "client_msg_id": secrets.token_hex(16),
        "team": team.id,
        "channel": channel.id,
        "event_ts": message.ts,
    }
    if kind == "message":
        event["channel_type"] = channel.kind
    if message.thread_ts:
        event["thread_ts"] = message.thread_ts
    if message.blocks:
        event["blocks"] = message.blocks
    if message.attachments:
        event["attachments"] = message.attachments
    if message.files:
        event["files"] = [file.shared() for file in message.files]
        event["upload"] = False
        if kind == "message":
            event["subtype"] = "file_share"
    return event


def _interaction(app_id: str, team: Team, channel: Channel, user: User, response_url: str) -> Json:
    return {
        "token": "verification-token",
        "team": {"id": team.id, "domain": team.domain},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": team.id},
        "channel": {"id": channel.id, "name": channel.name},
        "api_app_id": app_id,
        "trigger_id": new_trigger(),
        "response_url": response_url,
    }


def message_shortcut(
    app_id: str,
    team: Team,
    channel: Channel,
    user: User,
    callback_id: str,
    message: Message,
    response_url: str,
    action_ts: str,
) -> Json:
    return {
        **_interaction(app_id, team, channel, user, response_url),
        "type": "message_action",
        "action_ts": action_ts,
        "callback_id": callback_id,
        "message_ts": message.ts,
        "message": {**message.wire(), "team": team.id},
    }


def block_action(
    app_id: str,
    team: Team,
    channel: Channel,
    user: User,
    message: Message | Ephemeral,
    element: Json,
    block: Json,
    response_url: str,
    action_ts: str,
) -> Json:
    """Return a click; an ephemeral message comes without its content."""
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": isinstance(message, Ephemeral),
    }
    if message.thread_ts or (isinstance(message, Message) and message.reply_count):
        container["thread_ts"] = message.thread_ts or message.ts
    action: Json = {
        "type": element["type"],
        "action_id": element["action_id"],
        "block_id": block["block_id"],
        "text": element.get("text"),
        "action_ts": action_ts,
    }
    action |= {key: element[key] for key in ("value", "style") if key in element}
    payload: Json = {
        **_interaction(app_id, team, channel, user, response_url),
        "type": "block_actions",
        "container": container,
        "state": {"values": {}},
        "actions": [action],
    }
    if isinstance(message, Message):
        payload["message"] = {**message.wire(), "team": team.id}
    return payload


def new_trigger() -> str:
    """Return a trigger id, the same in every delivery of one command or click."""
    return f"{secrets.randbelow(10**12)}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}"
