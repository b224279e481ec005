"""Who may ask: every kind of list, opt-in and a channel's own settings, on both platforms."""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bot.errors import Refusal
from bot.service.access import AT_TERMINAL, OPEN, Access, Requester
from bot.service.channels import ChannelSettings, EffectiveSettings, Operator
from council.document.conversation import Source
from tests.council.scripted import profile
from tests.pairs import rows

SERVER, GENERAL, OFFICE, ENGINEER, ADA = (f"{kind}{'0' * 16}" for kind in range(11, 16))
"""Discord's ids: a server, a channel, its category, a role, a person."""
TEAM, ROOM, GROUP, BOB = "T0000001", "C0000001", "S0000001", "U0000001"
"""Slack's: a workspace, a channel, a user group, a person."""
NOBODY = {"users": [f"99{'0' * 16}"]}

IN_CHANNEL, DIRECTLY = "in a channel", "directly"
ON_DISCORD, ON_SLACK = "discord", "slack"
HERE: dict[tuple[str, str], Requester] = {
    (ON_DISCORD, IN_CHANNEL): Requester(
        workspace=SERVER, places=frozenset({GENERAL, OFFICE}), memberships=frozenset({ENGINEER})
    ),
    (ON_DISCORD, DIRECTLY): Requester(places=frozenset({f"77{'0' * 16}"}), is_direct=True),
    (ON_SLACK, IN_CHANNEL): Requester(
        workspace=TEAM, places=frozenset({ROOM}), memberships=frozenset({GROUP})
    ),
    (ON_SLACK, DIRECTLY): Requester(
        workspace=TEAM, places=frozenset({"D0000001"}), memberships=frozenset({GROUP}), is_direct=True
    ),
}
SAID = {
    "accepted": None,
    "WORKSPACE": "The council isn't open to this server or workspace.",
    "CHANNEL": "The council isn't open in this channel.",
    "PERSON": "The council isn't open to you here.",
    "DIRECT": "The council isn't open to you in direct messages. Ask in a channel.",
    "PROFILE": "The profile fast isn't open to you here. Choose another one.",
    "NOT_ON": "The council isn't switched on in this channel.",
    "OFF": "An admin has switched the council off in this channel.",
    "NOT_LISTED": "The council isn't open to you in this channel.",
    "ONLY_SLOW": "The profile fast isn't open in this channel. Choose slow.",
}
OPERATOR = "Whoever runs the bot can change that, under [access] in council.toml."
ADMINS = {
    ON_DISCORD: "Somebody with Manage Server, or one of the council's own admins,",
    ON_SLACK: "A workspace admin, or one of the council's own admins,",
}
SWITCH_ON = "can switch it on with /council-config, by setting who to everyone."
CHANGE = "can change that with /council-config."
WAYS = {"NOT_ON": SWITCH_ON, "OFF": SWITCH_ON, "NOT_LISTED": CHANGE, "ONLY_SLOW": CHANGE}
IDS = {
    "SERVER": SERVER,
    "GENERAL": GENERAL,
    "OFFICE": OFFICE,
    "ENGINEER": ENGINEER,
    "ADA": ADA,
    "TEAM": TEAM,
    "ROOM": ROOM,
    "GROUP": GROUP,
    "BOB": BOB,
    "NOBODY": NOBODY["users"][0],
    "ELSEWHERE": "C9999999",
}
TABLES = tomllib.loads(
    re.sub(
        f"'({'|'.join(IDS)})'",
        lambda found: f"'{IDS[found[1]]}'",
        Path(__file__).with_suffix(".toml").read_text("utf-8"),
    )
)


def cases(table: str) -> list[tuple[str, dict[str, Any], str, str, str]]:
    """Return each row of a table for each platform and place: name, row, platform, place, what is said."""
    return [
        (
            name,
            row,
            platform,
            where,
            row["said"] if isinstance(row["said"], str) else row["said"][number],
        )
        for name, row in TABLES[table].items()
        for number, (platform, where) in enumerate(
            itertools.product((ON_DISCORD, ON_SLACK), (IN_CHANNEL, DIRECTLY))
        )
    ]


def refusal(rules: Access | EffectiveSettings, platform: str, where: str) -> str | None:
    """Return what somebody is told who asks there; None where the question is accepted."""
    user = ADA if platform == ON_DISCORD else BOB
    try:
        rules.check(Source(platform=platform, channel="-", user=user), HERE[platform, where], "fast")
    except Refusal as refused:
        return str(refused)
    return None


def test_a_question_is_accepted_or_refused_with_who_can_change_that() -> None:
    """Denying wins; place and person must both be allowed."""
    for name, row, platform, where, said in cases("file"):
        told = refusal(Access.model_validate(row["says"]), platform, where)
        assert told == (SAID[said] and f"{SAID[said]} {OPERATOR}"), (name, platform, where)


def test_a_channel_only_narrows_what_the_file_allows() -> None:
    """Admins', too; a refusal says whether the operator or an admin can change it."""
    profiles = {"fast": profile(name="fast"), "slow": profile(name="slow")}
    for name, row, platform, where, said in cases("channel"):
        operator = Operator(profiles=profiles, access=Access.model_validate(row["says"]))
        here = EffectiveSettings(operator, ChannelSettings.model_validate(row["set"]))
        who = f"{ADMINS[platform]} {WAYS[said]}" if said in WAYS else OPERATOR
        told = refusal(here, platform, where)
        assert told == (SAID[said] and f"{SAID[said]} {who}"), (name, platform, where)


def test_the_terminal_is_open_to_whoever_runs_the_program() -> None:
    """The lists contain Discord's and Slack's ids."""
    Access.model_validate({"allow": NOBODY}).check(Source(platform="terminal"), AT_TERMINAL, "fast")


def test_ids_may_be_written_as_numbers() -> None:
    """People copy Discord's ids as numbers."""
    rules = Access.model_validate({"allow": {"users": [int(ADA)]}})
    assert rules.allow.users == {ADA}


@rows(
    ("key", "value"),
    [
        ("channels", "general"),
        ("channels", "#general"),
        ("channels", "U0000001"),
        ("users", "C0000001"),
        ("groups", ENGINEER),
        ("roles", "S0000001"),
        ("workspaces", "acme.slack.com"),
    ],
)
def test_a_name_is_refused_as_an_id(key: str, value: str) -> None:
    """Others can change a name, so lists need ids."""
    with pytest.raises(ValueError, match="isn't an id of that kind"):
        Access.model_validate({"allow": {key: [value]}})


def test_the_groups_that_matter_are_known() -> None:
    """Slack is asked for the members of these only."""
    assert OPEN.groups == frozenset()
    rules = Access.model_validate(
        {"deny": {"groups": ["S0000002"]}, "profiles": {"fast": {"groups": [GROUP]}}}
    )
    assert rules.groups == {"S0000002", GROUP}
