"""Faults of what admins have set in channels."""

import json
from collections.abc import Callable

from tests.bot.doctor.scene import MEMBERS, Planted, Scene

TWO = f"""[profiles.default]
members = {json.dumps(MEMBERS)}

[profiles.fast]
members = ["{MEMBERS[0]}"]
quorum = 1
"""


def in_slack(text: str = "", /, **settings: object) -> Callable[[Scene], object]:
    """Set something in a channel on Slack; `text` is council.toml, whose default profile is overruled."""

    def plant(scene: Scene) -> None:
        scene.set_in(("slack", "T1", "C0123456"), settings)
        if text:
            scene.write("council.toml", text)

    return plant


def _lost_role(scene: Scene) -> None:
    place = ("discord", str(scene.guild.id), str(scene.general.id))
    scene.set_in(place, {"who": {"roles": ["112233445566778899"]}})


def _unreadable(scene: Scene) -> None:
    scene.set_in(("slack", "T1", "C0123456"), {"rounds": 99})


WHERE = "Channel C0123456 on Slack"
FAULTS = [
    Planted(
        "profile that is gone",
        in_slack(profile="deep"),
        WHERE,
        "its profile is deep, which council.toml no longer has; default answers there",
        "Reset profile there with /council-config, or put [profiles.deep] back",
        "warning",
    ),
    Planted(
        "no profile left",
        in_slack(profiles=["deep", "wide"]),
        WHERE,
        "council.toml has none of its profiles (deep, wide), so each question is refused",
        "Reset profiles there",
    ),
    Planted(
        "one profile of several gone",
        in_slack(TWO, profiles=["deep", "fast"]),
        WHERE,
        "its profiles include deep, which council.toml no longer has",
        "Set profiles there",
        "warning",
    ),
    Planted(
        "profile closed to its channel",
        in_slack(f'{TWO}\n[access.profiles.fast]\nchannels = ["C7654321"]\n', profile="fast"),
        WHERE,
        "[access.profiles.fast] doesn't let fast be asked there",
        "add the channel to that list",
    ),
    Planted(
        "budget of a channel under one question",
        in_slack(budget_day=0.01),
        WHERE,
        "more than budget_day of $0.01, so each is refused",
        "Raise budget_day there, or set fewer rounds",
    ),
    Planted(
        "rounds over the operator's budget",
        in_slack("[budgets]\nrun = 0.5\n", rounds=5),
        WHERE,
        "more than run of $0.50, so each is refused",
        "Raise run in council.toml, or set fewer rounds",
    ),
    Planted(
        "budget under one question",
        lambda s: s.write("council.toml", "[budgets]\nuser_day = 0.01\nchannel_day = 5.0\n"),
        "[budgets] in council.toml",
        "a question to default may cost",
        "Raise user_day, or in [profiles.default] set max_tokens",
    ),
    Planted(
        "setting that can't be read",
        _unreadable,
        WHERE,
        "its settings can't be read",
        "Restore a backup",
    ),
    Planted(
        "role that is gone",
        _lost_role,
        "Channel ",
        "names role 112233445566778899, which the server no longer has",
        "Set who there with /council-config",
        "warning",
    ),
]
