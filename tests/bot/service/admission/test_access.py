"""Who may ask: every kind of list, opt-in and a channel's own settings, on both platforms."""

import itertools

import pytest

from bot.errors import Refusal
from bot.service.admission.access import AT_TERMINAL, OPEN, Access, Requester
from bot.service.admission.channels import ChannelSettings, EffectiveSettings, Operator
from council.document.conversation import Source
from tests.council.scripted import profile
from tests.pairs import rows

SERVER, GENERAL, OFFICE, ENGINEER, ADA = (f"{kind}{'0' * 16}" for kind in range(11, 16))
"""Discord's ids: a server, a channel, its category, a role, a person."""
TEAM, ROOM, GROUP, BOB = "T0000001", "C0000001", "S0000001", "U0000001"
"""Slack's: a workspace, a channel, a user group, a person."""
NOBODY = {"users": [f"99{'0' * 16}"]}
ELSEWHERE = {"channels": ["C9999999"]}

IN_CHANNEL, DIRECTLY = "in a channel", "directly"
ON_DISCORD, ON_SLACK = "discord", "slack"
HERE: dict[tuple[str, str], Requester] = {
    (ON_DISCORD, IN_CHANNEL): Requester(
        workspace=SERVER,
        places=frozenset({GENERAL, OFFICE}),
        memberships=frozenset({ENGINEER}),
    ),
    (ON_DISCORD, DIRECTLY): Requester(places=frozenset({f"77{'0' * 16}"}), is_direct=True),
    (ON_SLACK, IN_CHANNEL): Requester(
        workspace=TEAM, places=frozenset({ROOM}), memberships=frozenset({GROUP})
    ),
    (ON_SLACK, DIRECTLY): Requester(
        workspace=TEAM,
        places=frozenset({"D0000001"}),
        memberships=frozenset({GROUP}),
        is_direct=True,
    ),
}
WORKSPACE = "The council isn't open to this server or workspace."
CHANNEL = "The council isn't open in this channel."
PERSON = "The council isn't open to you here."
DIRECT = "The council isn't open to you in direct messages. Ask in a channel."
PROFILE = "The profile fast isn't open to you here. Choose another one."
OPERATOR = "Whoever runs the bot can change that, under [access] in council.toml."
ADMINS = {
    ON_DISCORD: "Somebody with Manage Server, or one of the council's own admins,",
    ON_SLACK: "A workspace admin, or one of the council's own admins,",
}
NOT_ON = "The council isn't switched on in this channel."
OFF = "An admin has switched the council off in this channel."
NOT_LISTED = "The council isn't open to you in this channel."
ONLY_SLOW = "The profile fast isn't open in this channel. Choose slow."

TABLE: list[tuple[str, dict[str, object], tuple[str | None, str | None, str | None, str | None]]] = [
    # what the file says; what is said on Discord in a channel and directly, on Slack likewise
    ("nothing", {}, (None, None, None, None)),
    ("allow the workspaces", {"allow": {"workspaces": [SERVER, TEAM]}}, (None, DIRECT, None, None)),
    ("allow a workspace", {"allow": {"workspaces": [TEAM]}}, (WORKSPACE, DIRECT, None, None)),
    (
        "allow the workspaces and the people",
        {"allow": {"workspaces": [SERVER, TEAM], "users": [ADA, BOB]}},
        (None, None, None, None),
    ),
    ("allow the channels", {"allow": {"channels": [GENERAL, ROOM]}}, (None, DIRECT, None, DIRECT)),
    ("allow another channel", {"allow": ELSEWHERE}, (CHANNEL, DIRECT, CHANNEL, DIRECT)),
    ("allow the category", {"allow": {"categories": [OFFICE]}}, (None, DIRECT, CHANNEL, DIRECT)),
    (
        "allow another channel and the category",
        {"allow": ELSEWHERE | {"categories": [OFFICE]}},
        (None, DIRECT, CHANNEL, DIRECT),
    ),
    (
        "allow the channels and the people",
        {"allow": {"channels": [GENERAL, ROOM], "users": [ADA, BOB]}},
        (None, None, None, None),
    ),
    (
        "allow another channel and the people",
        {"allow": ELSEWHERE | {"users": [ADA, BOB]}},
        (CHANNEL, None, CHANNEL, None),
    ),
    ("allow the people", {"allow": {"users": [ADA, BOB]}}, (None, None, None, None)),
    ("allow other people", {"allow": NOBODY}, (PERSON, PERSON, PERSON, PERSON)),
    ("allow the role", {"allow": {"roles": [ENGINEER]}}, (None, DIRECT, PERSON, PERSON)),
    ("allow the group", {"allow": {"groups": [GROUP]}}, (PERSON, PERSON, None, None)),
    (
        "allow role and group",
        {"allow": {"roles": [ENGINEER], "groups": [GROUP]}},
        (None, DIRECT, None, None),
    ),
    (
        "allow role, group and people",
        {"allow": {"roles": [ENGINEER], "groups": [GROUP], "users": [ADA, BOB]}},
        (None, None, None, None),
    ),
    (
        "allow the channels and other people",
        {"allow": {"channels": [GENERAL, ROOM]} | NOBODY},
        (PERSON, DIRECT, PERSON, DIRECT),
    ),
    (
        "deny the workspaces",
        {"deny": {"workspaces": [SERVER, TEAM]}},
        (WORKSPACE, None, WORKSPACE, WORKSPACE),
    ),
    ("deny the channels", {"deny": {"channels": [GENERAL, ROOM]}}, (CHANNEL, None, CHANNEL, None)),
    ("deny the category", {"deny": {"categories": [OFFICE]}}, (CHANNEL, None, None, None)),
    ("deny the people", {"deny": {"users": [ADA, BOB]}}, (PERSON, PERSON, PERSON, PERSON)),
    ("deny the role", {"deny": {"roles": [ENGINEER]}}, (PERSON, DIRECT, None, None)),
    ("deny the group", {"deny": {"groups": [GROUP]}}, (None, None, PERSON, PERSON)),
    ("deny others", {"deny": NOBODY}, (None, None, None, None)),
    (
        "deny the role, allow the people",
        {"deny": {"roles": [ENGINEER]}, "allow": {"users": [ADA, BOB]}},
        (PERSON, None, None, None),
    ),
    (
        "deny and allow the same people",
        {"deny": {"users": [ADA, BOB]}, "allow": {"users": [ADA, BOB]}},
        (PERSON, PERSON, PERSON, PERSON),
    ),
    (
        "deny the channels, allow the people",
        {"deny": {"channels": [GENERAL, ROOM]}, "allow": {"users": [ADA, BOB]}},
        (CHANNEL, None, CHANNEL, None),
    ),
    (
        "narrow the profile to the channels",
        {"profiles": {"fast": {"channels": [GENERAL, ROOM]}}},
        (None, PROFILE, None, PROFILE),
    ),
    (
        "narrow the profile to other people",
        {"profiles": {"fast": NOBODY}},
        (PROFILE, PROFILE, PROFILE, PROFILE),
    ),
    (
        "narrow the profile to role and group",
        {"profiles": {"fast": {"roles": [ENGINEER], "groups": [GROUP]}}},
        (None, PROFILE, None, None),
    ),
    ("narrow another profile", {"profiles": {"slow": NOBODY}}, (None, None, None, None)),
]
CASES = [
    (name, access, platform, where, said)
    for name, access, expected in TABLE
    for (platform, where), said in zip(
        itertools.product((ON_DISCORD, ON_SLACK), (IN_CHANNEL, DIRECTLY)), expected, strict=True
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
    change = "Whoever runs the bot can change that, under [access] in council.toml."
    for name, access, platform, where, said in CASES:
        told = refusal(Access.model_validate(access), platform, where)
        assert told == (said and f"{said} {change}"), (name, platform, where)


OPT_IN: dict[str, object] = {"opt_in": True}
ENGINEERS = {"roles": [ENGINEER], "groups": [GROUP]}
STRANGERS = {"users": [f"99{'0' * 16}"]}
CHANNEL_TABLE: list[
    tuple[
        str,
        dict[str, object],
        dict[str, object],
        tuple[str | None, str | None, str | None, str | None],
    ]
] = [
    # what the file says, what is set in the channel; what is said as above
    ("opt-in, not switched on", OPT_IN, {}, (NOT_ON, NOT_ON, NOT_ON, NOT_ON)),
    ("opt-in, switched on", OPT_IN, {"who": "everyone"}, (None, None, None, None)),
    ("opt-in, switched off again", OPT_IN, {"who": "nobody"}, (OFF, OFF, OFF, OFF)),
    ("opt-in for role and group", OPT_IN, {"who": ENGINEERS}, (None, NOT_LISTED, None, None)),
    (
        "opt-in, other settings alone",
        OPT_IN,
        {"depth": "full", "profile": "fast"},
        (NOT_ON, NOT_ON, NOT_ON, NOT_ON),
    ),
    (
        "opt-in, the people allowed by the file",
        OPT_IN | {"allow": {"users": [ADA, BOB]}},
        {},
        (NOT_ON, None, NOT_ON, None),
    ),
    (
        "opt-in, switched on, denied by the file",
        OPT_IN | {"deny": {"channels": [GENERAL, ROOM]}},
        {"who": "everyone"},
        (CHANNEL, None, CHANNEL, None),
    ),
    (
        "opt-in, switched on, allowed elsewhere by the file",
        OPT_IN | {"allow": ELSEWHERE},
        {"who": "everyone"},
        (CHANNEL, DIRECT, CHANNEL, DIRECT),
    ),
    ("switched off", {}, {"who": "nobody"}, (OFF, OFF, OFF, OFF)),
    ("for the people", {}, {"who": {"users": [ADA, BOB]}}, (None, None, None, None)),
    (
        "for other people",
        {},
        {"who": STRANGERS},
        (NOT_LISTED, NOT_LISTED, NOT_LISTED, NOT_LISTED),
    ),
    ("for role and group", {}, {"who": ENGINEERS}, (None, NOT_LISTED, None, None)),
    (
        "for other people, though the file allows these",
        {"allow": {"users": [ADA, BOB]}},
        {"who": STRANGERS},
        (NOT_LISTED, NOT_LISTED, NOT_LISTED, NOT_LISTED),
    ),
    (
        "for the people, though the file allows others",
        {"allow": NOBODY},
        {"who": {"users": [ADA, BOB]}},
        (PERSON, PERSON, PERSON, PERSON),
    ),
    (
        "for everyone, though the file denies the people",
        {"deny": {"users": [ADA, BOB]}},
        {"who": "everyone"},
        (PERSON, PERSON, PERSON, PERSON),
    ),
    ("the profile is open", {}, {"profiles": ["fast"]}, (None, None, None, None)),
    (
        "another profile is open",
        {},
        {"profiles": ["slow"]},
        (ONLY_SLOW, ONLY_SLOW, ONLY_SLOW, ONLY_SLOW),
    ),
    (
        "the profile is open, though the file narrows it to others",
        {"profiles": {"fast": NOBODY}},
        {"profiles": ["fast"]},
        (PROFILE, PROFILE, PROFILE, PROFILE),
    ),
]
CHANNEL_CASES = [
    (name, access, own, platform, where, said)
    for name, access, own, expected in CHANNEL_TABLE
    for (platform, where), said in zip(
        itertools.product((ON_DISCORD, ON_SLACK), (IN_CHANNEL, DIRECTLY)), expected, strict=True
    )
]


def test_a_channel_only_narrows_what_the_file_allows() -> None:
    """Whoever asks, admins, too; a refusal says whether the operator or an admin can change it."""
    ways = {
        NOT_ON: "can switch it on with /council-config, by setting who to everyone."
    } | dict.fromkeys((NOT_LISTED, ONLY_SLOW), "can change that with /council-config.")
    ways[OFF] = ways[NOT_ON]
    profiles = {"fast": profile(name="fast"), "slow": profile(name="slow")}
    for name, access, own, platform, where, said in CHANNEL_CASES:
        operator = Operator(profiles=profiles, access=Access.model_validate(access))
        here = EffectiveSettings(operator, ChannelSettings.model_validate(own))
        who = f"{ADMINS[platform]} {ways[said]}" if said in ways else OPERATOR
        told = refusal(here, platform, where)
        assert told == (said and f"{said} {who}"), (name, platform, where)


def test_the_tables_have_enough_cases() -> None:
    """Sixty at least, and each refusal in them."""
    assert len(CASES) + len(CHANNEL_CASES) >= 60
    assert {said for *_, said in CHANNEL_CASES} == {
        *(None, NOT_ON, OFF, NOT_LISTED, ONLY_SLOW, CHANNEL, PERSON, DIRECT, PROFILE)
    }
    assert {said for *_, said in CASES} == {None, WORKSPACE, CHANNEL, PERSON, DIRECT, PROFILE}


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
