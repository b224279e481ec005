"""The Slack app's manifest: everything the listeners need, and nothing else."""

from typing import Any

from bot.service.commands import ACTION, COMMANDS
from bot.slack.client import EVENTS, OPTIONAL, REQUIRED, SHORTCUT, app_manifest

Json = dict[str, Any]


def test_every_command_of_the_registry_is_a_slash_command() -> None:
    """Beside `/council` stands a question as people ask it, beside the others what they take."""
    commands: list[Json] = app_manifest()["features"]["slash_commands"]
    assert [command["command"] for command in commands] == [f"/{command.name}" for command in COMMANDS]
    assert [command["description"] for command in commands] == [each.description for each in COMMANDS]
    assert (
        commands[0]["usage_hint"] == "Should we shard the database now, or buy a bigger machine first?"
    )
    hints = {command["command"]: command.get("usage_hint") for command in commands[1:]}
    assert {name: hint for name, hint in hints.items() if hint} == {
        "/council-history": "[count]",
        "/council-search": "words",
        "/council-show": "answer",
        "/council-stats": "[days]",
        "/council-forget": "what",
        "/council-config": "[--SETTING VALUE] [--reset SETTING]",
    }


def test_people_are_sent_as_ids_only_where_a_command_needs_ids() -> None:
    """Elsewhere as names, which are better in a question."""
    commands: list[Json] = app_manifest()["features"]["slash_commands"]
    escaped = [command["command"] for command in commands if command["should_escape"]]
    assert escaped == ["/council-forget", "/council-config"]


def test_the_message_action_fits_slacks_limit() -> None:
    """24 characters at most."""
    [shortcut] = app_manifest()["features"]["shortcuts"]
    assert (shortcut["name"], shortcut["type"]) == (ACTION, "message")
    assert shortcut["callback_id"] == SHORTCUT == "ask_the_council"
    assert len(shortcut["name"]) <= 24


def test_scopes_are_those_needed_with_the_optional_ones_marked() -> None:
    """No history scope except for direct messages."""
    scopes: Json = app_manifest()["oauth_config"]["scopes"]
    assert set(scopes["bot"]) == {*REQUIRED, *OPTIONAL}
    assert set(scopes["bot_optional"]) == {*OPTIONAL}
    assert not REQUIRED & OPTIONAL
    assert [scope for scope in scopes["bot"] if scope.endswith(":history")] == ["im:history"]


def test_threads_are_read_only_with_scopes_of_their_own() -> None:
    """They are optional."""
    scopes: Json = app_manifest(threads=True)["oauth_config"]["scopes"]
    assert set(scopes["bot"]) == {*REQUIRED, *OPTIONAL, "channels:history", "groups:history"}
    assert set(scopes["bot_optional"]) == {*OPTIONAL, "channels:history", "groups:history"}


def test_socket_mode_needs_no_address() -> None:
    """Slack refuses a manifest with both."""
    made = app_manifest()
    assert made["settings"]["socket_mode_enabled"] is True
    assert made["settings"]["interactivity"] == {"is_enabled": True}
    assert made["settings"]["event_subscriptions"] == {"bot_events": [*EVENTS]}
    assert "http" not in str(made)


def test_over_http_everything_comes_to_one_path() -> None:
    """Commands, events and clicks."""
    made = app_manifest(socket_mode=False, url="https://council.example.com/")
    address = "https://council.example.com/slack/events"
    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["interactivity"]["request_url"] == address
    assert made["settings"]["event_subscriptions"]["request_url"] == address
    assert {command["url"] for command in made["features"]["slash_commands"]} == {address}
