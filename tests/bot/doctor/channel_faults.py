"""Faults of what admins have set in channels."""

import json
from collections.abc import Callable

from tests.bot.doctor.scene import MEMBERS, Scene

TWO = f"""[profiles.default]
members = {json.dumps(MEMBERS)}

[profiles.fast]
members = ["{MEMBERS[0]}", "{MEMBERS[1]}"]
quorum = 1
"""


def in_slack(text: str = "", /, **settings: object) -> Callable[[Scene], object]:
    """Set something in a channel on Slack; `text` is council.toml, whose default profile is overruled."""

    def plant(scene: Scene) -> None:
        scene.set_in(("slack", "T1", "C0123456"), settings)
        if text:
            scene.write("council.toml", text)

    return plant


_TEN_ANSWERS = (
    """INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)
    SELECT value, value, 'c', '{"platform": "slack", "workspace": "T1", "channel": "C0123456"}',
        '{"profile": {"name": "default", "depth": "full"}}', 'answered', 't'
    FROM json_each('["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]')""",
    """INSERT INTO spending (run, attempt, month, day, user, channel, workspace, amount, settled)
    SELECT id, 1, 'm', 'd', 'u', 'c', 'w', 10000000, 1 FROM runs""",
)


def measured(scene: Scene) -> None:
    """Let ten answers in that channel have cost a cent, of a budget below what one may cost."""
    in_slack(budget_day=0.2)(scene)
    scene.sql(*_TEN_ANSWERS)


def _lost_role(scene: Scene) -> None:
    place = ("discord", str(scene.guild.id), str(scene.general.id))
    scene.set_in(place, {"who": {"roles": ["112233445566778899"]}})


def _unreadable(scene: Scene) -> None:
    scene.set_in(("slack", "T1", "C0123456"), {"retention": 0})


PLANTS: dict[str, Callable[[Scene], object]] = {
    "profile that is gone": in_slack(profile="deep"),
    "no profile left": in_slack(profiles=["deep", "wide"]),
    "one profile of several gone": in_slack(TWO, profiles=["deep", "fast"]),
    "profile closed to its channel": in_slack(
        f'{TWO}\n[access.profiles.fast]\nchannels = ["C7654321"]\n', profile="fast"
    ),
    "budget of a channel under one question": in_slack(budget_day=0.01),
    "budget under one question": lambda s: s.write(
        "council.toml", "[budgets]\nuser_day = 0.01\nchannel_day = 5.0\n"
    ),
    "setting that can't be read": _unreadable,
    "role that is gone": _lost_role,
}
