"""The Slack app's manifest: everything the listeners need, and nothing else."""

from typing import Any

from bot.slack.client import OPTIONAL, REQUIRED, app_manifest

Json = dict[str, Any]


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


def test_over_http_everything_comes_to_one_path() -> None:
    """Commands, events and clicks."""
    made = app_manifest(socket_mode=False, url="https://council.example.com/")
    address = "https://council.example.com/slack/events"
    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["interactivity"]["request_url"] == address
    assert made["settings"]["event_subscriptions"]["request_url"] == address
    assert {command["url"] for command in made["features"]["slash_commands"]} == {address}
