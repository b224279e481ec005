"""The Slack app's manifest, made from the command registry and from what the listeners need.

Source: https://docs.slack.dev/reference/app-manifest
"""

from typing import Any

from bot.service.commands import ACTION, COMMANDS, FORGET, Command, usage

Json = dict[str, Any]

PATH = "/slack/events"
PLACEHOLDER = "https://YOUR-SERVER"
SHORTCUT = ACTION.lower().replace(" ", "_")
"""The message action's `callback_id`."""
EVENTS = ("app_mention", "app_uninstalled", "message.im", "tokens_revoked")
REQUIRED = {
    "app_mentions:read": "receive mentions",
    "chat:write": "post and edit cards and threads",
    "commands": "slash commands and the message action",
    "files:write": "post transcripts",
}
OPTIONAL = {
    "channels:read": "see that an asker is still in a public channel, before a direct message",
    "chat:write.public": "answer in public channels without being invited",
    "files:read": "read the text files of a message the council is asked about",
    "groups:read": "see that an asker is still in a private channel, before a direct message",
    "im:history": "take questions in direct messages",
    "im:write": "open a direct message for a private run, or for an answer whose channel is lost",
    "users:read": "tell who is an admin, and name who mentions the bot",
}
"""Scopes without which the council still runs; it says what it can't do."""
THREADS = {
    "channels:history": "read the thread in which it is asked, in public channels",
    "groups:history": "read the thread in which it is asked, in private channels",
}
"""Scopes that let the bot read what people write; only for those who want that."""


def app_manifest(*, socket_mode: bool = True, url: str = PLACEHOLDER, threads: bool = False) -> Json:
    """Return the manifest, for Socket Mode, or for HTTP requests to the server at `url`.

    With `threads`, the app may read the thread in which it is asked.
    """
    optional = {**OPTIONAL, **(THREADS if threads else {})}
    address = {} if socket_mode else {"request_url": f"{url.rstrip('/')}{PATH}"}
    return {
        "display_information": {
            "name": "Council",
            "description": "Several language models answer, review each other, and conclude",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "council", "always_online": True},
            "shortcuts": [
                {
                    "name": ACTION,
                    "type": "message",
                    "callback_id": SHORTCUT,
                    "description": "Take this message as the question",
                }
            ],
            "slash_commands": [_command(command, address.get("request_url")) for command in COMMANDS],
        },
        "oauth_config": {
            "scopes": {"bot": sorted({**REQUIRED, **optional}), "bot_optional": sorted(optional)}
        },
        "settings": {
            "event_subscriptions": {**address, "bot_events": [*EVENTS]},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket_mode,
            "token_rotation_enabled": False,
        },
    }


def _command(command: Command, url: str | None) -> Json:
    hint = usage(command)
    return {
        "command": f"/{command.name}",
        "description": command.description,
        **({"usage_hint": hint} if hint else {}),
        **({} if url is None else {"url": url}),
        # What people type is a question for models: names serve it better than ids. Who is to be
        # forgotten has to be certain.
        "should_escape": command is FORGET,
    }
