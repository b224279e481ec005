"""The Slack app's manifest, made from the command registry and from what the listeners need.

Source: https://docs.slack.dev/reference/app-manifest
"""

from bot.service.commands import ACTION, ASK, COMMANDS, CONFIG, FORGET, Command, usage
from bot.slack.client import Json
from bot.view.wording.commands import EXAMPLE, TAKE_MESSAGE

PATH = "/slack/events"
PLACEHOLDER = "https://YOUR-SERVER"
SHORTCUT = ACTION.lower().replace(" ", "_")
"""The message action's `callback_id`."""
EVENTS = ("app_mention", "app_uninstalled", "message.im", "tokens_revoked")
REQUIRED = frozenset(
    {
        "app_mentions:read",
        "chat:write",
        "commands",
        "files:write",
    }
)
OPTIONAL = frozenset(
    {
        "channels:read",
        "chat:write.public",
        "files:read",
        "groups:read",
        "im:history",
        "im:write",
        "usergroups:read",
        "users:read",
    }
)
"""Scopes without which the council still runs; it says what it can't do."""
THREADS = frozenset(
    {
        "channels:history",
        "groups:history",
    }
)
"""Scopes that let the bot read what people write; only for those who want that."""


def app_manifest(*, socket_mode: bool = True, url: str = PLACEHOLDER, threads: bool = False) -> Json:
    """Return the manifest, for Socket Mode, or for HTTP requests to the server at `url`.

    With `threads`, the app may read the thread in which it is asked.
    """
    optional = OPTIONAL | THREADS if threads else OPTIONAL
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
                    "description": TAKE_MESSAGE,
                }
            ],
            "slash_commands": [_command(command, address.get("request_url")) for command in COMMANDS],
        },
        "oauth_config": {
            "scopes": {"bot": sorted(REQUIRED | optional), "bot_optional": sorted(optional)}
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
    hint = EXAMPLE if command is ASK else usage(command)
    return {
        "command": f"/{command.name}",
        "description": command.description,
        **({"usage_hint": hint} if hint else {}),
        **({} if url is None else {"url": url}),
        # What people type is a question for models: names serve it better than ids. Who is to be
        # forgotten, or may ask, has to be certain.
        "should_escape": command in (CONFIG, FORGET),
    }
