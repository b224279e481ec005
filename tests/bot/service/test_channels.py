"""What is in force in a channel, and where each value comes from."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs
from syrupy.assertion import SnapshotAssertion

from bot.app import Library
from bot.errors import Refusal, UsageError
from bot.service.access import AT_TERMINAL, Access, Requester
from bot.service.channels import (
    Channels,
    ChannelSettings,
    EffectiveSettings,
    Operator,
    configure,
    resolve,
)
from bot.service.commands import CONFIG, PROFILE_DEFAULTS, RunOptions, parse_options
from bot.service.limits import Budgets
from bot.view.message import Line, Message, Pairs
from council.document.conversation import Source
from storage.database import Database
from storage.errors import Used
from storage.scope import Scope
from tests.council.scripted import profile
from tests.library import open_library
from tests.pairs import data, rows

QUICK = ChannelSettings.model_validate({"depth": "quick"})
HERE = Source(platform="discord", workspace="1" * 17, channel="2" * 17, user="3" * 17)
PLACE = Requester(workspace="1" * 17, places=frozenset({"2" * 17}))
FAST = profile(name="fast", depth="auto")
OPERATOR = Operator(
    profiles={"default": profile(), "fast": FAST},
    budgets=Budgets(channel_day=10, workspace_day=50),
    retention=30,
    origins={
        "profiles.default.depth": "/etc/council/council.toml",
        "profiles.fast.depth": "/etc/council/council.toml",
        "budgets.channel_day": "/etc/council/council.toml",
        "COUNCIL_RETENTION_DAYS": ".env",
    },
)
UNCHANGED = "Nothing was changed."


def shown(message: Message) -> dict[str, str]:
    [pairs] = [block for block in message.blocks if isinstance(block, Pairs)]
    return dict(pairs.rows)


def lines(message: Message) -> list[str]:
    return [block.text for block in message.blocks if isinstance(block, Line)]


async def change(
    channels: Channels, typed: str, here: Source = HERE, standing: Requester = PLACE
) -> Message:
    return await configure(
        channels, parse_options(CONFIG, typed), here, standing, is_admin=True, used=nothing_used
    )


async def refused(channels: Channels, typed: str, here: Source = HERE) -> str:
    """Try to change settings; return the reason why not."""
    with pytest.raises(UsageError) as caught:
        await change(channels, typed, here)
    return str(caught.value)


async def nothing_used(_: Source) -> list[Used]:
    return []


def opened(library: Library, operator: Operator = OPERATOR) -> Channels:
    return Channels(operator, library.overrides)


def moved(option: str) -> str:
    """Return what an option is refused with that profiles have now."""
    return (
        f"--{option} belongs to a profile now, in council.toml. This council's profiles: default, fast. "
        "Choose one with --profile."
    )


async def test_each_value_says_where_it_comes_from(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Nothing where nobody set it; else the operator's file or variable without its folder, or this channel."""
    async with open_library(tmp_path) as library:
        channels = opened(library)
        before = await configure(channels, {}, HERE, PLACE, is_admin=False, used=nothing_used)
        assert shown(before) == snapshot
        assert lines(before)[-1] == (
            "Somebody with Manage Server, or one of the council's own admins, can change these."
        )
        after = await change(
            channels,
            "--profile fast --depth Quick --context message --thread full --links on --who <@&4444444444444444> "
            "--budget_day $2.50 --budget-month 20 --retention 7",
        )
        assert shown(after) == snapshot
        assert lines(after)[0] == "Council that answers: it was default, and is now fast."
        assert (
            "Conversations whose last answer is older than 7 days are deleted for good, the first in an hour at "
            "the earliest. Reset retention before then to keep them."
        ) in lines(after)
        again = await change(channels, "--depth quick")
        assert lines(again)[0] == "Nothing changed: it was already set that way."
        reset = await change(channels, "--reset depth, who")
        assert shown(reset)["How deep a question is taken"] == "auto (council.toml, [profiles.fast])"
        assert shown(reset)["Who may ask"] == "everyone"
        assert shown(await change(channels, "--reset all")) == shown(before)
    async with open_library(tmp_path) as library:
        assert await library.overrides.of(Scope.of(HERE)) == {}


async def test_changes_last_and_are_audited_without_content(tmp_path: Path) -> None:
    """After a restart they are still there; who, when, which key, from what to what."""
    async with open_library(tmp_path) as library:
        await change(opened(library), "--depth quick --budget_day 5")
        await change(opened(library), "--depth quick")
        await change(opened(library), "--reset depth")
    async with open_library(tmp_path) as library:
        assert (await opened(library).in_force(HERE)).own == ChannelSettings(budget_day=5)
        elsewhere = HERE.model_copy(update={"channel": "9" * 17})
        assert (await opened(library).in_force(elsewhere)).own == ChannelSettings()
    audited = [orjson.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert all(line.pop("at") for line in audited)
    place = {
        "by": f"discord:{HERE.user}",
        "platform": "discord",
        "workspace": "1" * 17,
        "channel": "2" * 17,
    }
    assert audited == [
        {**place, "set": "depth", "from": None, "to": "quick"},
        {**place, "set": "budget_day", "from": None, "to": 5.0},
        {**place, "set": "depth", "from": "quick", "to": None},
    ]


async def test_a_stored_setting_that_profiles_have_now_is_ignored_with_a_line_in_the_log(
    tmp_path: Path,
) -> None:
    """Once; what narrows money or access beside it stays in force, and can be reset."""
    stored: dict[str, object] = {"rounds": 3, "strategy": "coverage", "mode": "consultants"}
    narrow = {"budget_day": 5.0, "profiles": ["fast"]}
    async with open_library(tmp_path) as library:
        await library.overrides.change(Scope.of(HERE), stored | narrow, by="U")
        channels = opened(library)
        with capture_logs() as log:
            await channels.in_force(HERE)
            here = await channels.in_force(HERE)
        assert here.own == ChannelSettings(budget_day=5, profiles=frozenset({"fast"}))
        assert here.profile(PROFILE_DEFAULTS) == FAST
        [line] = log
        assert (line["event"], line["settings"]) == ("channel_settings_ignored", [*stored])
        await change(channels, "--reset budget_day, profiles")
        assert (await channels.in_force(HERE)).own == ChannelSettings()


async def test_a_change_that_a_crash_kept_from_the_audit_is_audited_at_the_next_start(
    tmp_path: Path,
) -> None:
    """It was recorded together with its line."""
    async with open_library(tmp_path) as library:
        (tmp_path / "audit.jsonl").mkdir()  # it can't be written
        await change(opened(library), "--depth quick")
        assert (await opened(library).in_force(HERE)).own == QUICK
    (tmp_path / "audit.jsonl").rmdir()
    async with open_library(tmp_path):
        pass
    async with open_library(tmp_path):
        pass
    [line] = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    assert orjson.loads(line)["set"] == "depth"


@rows(("typed", "said"), data(__file__, "bad_input_says_what_is_allowed"))
async def test_bad_input_says_what_is_allowed(tmp_path: Path, typed: str, said: str) -> None:
    """All of it at once, and nothing is changed."""
    async with open_library(tmp_path) as library:
        assert await refused(opened(library), typed) == f"{said} {UNCHANGED}"
        assert (await opened(library).in_force(HERE)).own == ChannelSettings()


@rows(("typed", "said"), data(__file__, "a_mistyped_command_says_how_it_is_typed"))
def test_a_mistyped_command_says_how_it_is_typed(typed: str, said: str) -> None:
    """As for a question."""
    with pytest.raises(UsageError) as caught:
        parse_options(CONFIG, typed)
    assert str(caught.value) == said


async def test_who_takes_mentions_of_both_platforms(tmp_path: Path) -> None:
    """Slack adds names to them, and they may contain spaces."""
    slack = Source(platform="slack", workspace="T0000001", channel="C0000001", user="U0000001")
    async with open_library(tmp_path) as library:
        channels = opened(library)
        await change(channels, "--who <@U0000001|ada l.>, <!subteam^S0000001|@the team>", slack)
        assert (await channels.in_force(slack)).groups == {"S0000001"}
        said = shown(await configure(channels, {}, slack, PLACE, is_admin=True, used=nothing_used))[
            "Who may ask"
        ]
        assert said == "person U0000001, user group S0000001 (this channel)"
        await change(channels, "--who <!everyone>", slack)
        assert (await channels.in_force(slack)).own.who == "everyone"


def test_the_strictest_limit_counts() -> None:
    """Whichever it is, also where the operator's became stricter later."""
    own = ChannelSettings(budget_day=5, budget_month=100, retention=90)
    narrower = Operator(budgets=Budgets(channel_day=2), retention=None)
    found = resolve(narrower, own)
    assert {key: found[key].value for key in ("budget_day", "budget_month", "retention")} == {
        "budget_day": 2,
        "budget_month": 100,
        "retention": 90,
    }
    assert found["budget_day"].origin != "this channel"
    budgets = EffectiveSettings(OPERATOR, own).budgets
    assert (budgets.channel_day, budgets.channel_month, budgets.workspace_day) == (5, 100, 50)


def test_a_question_s_options_come_before_the_channel_s() -> None:
    """And those before the profile's."""
    here = EffectiveSettings(
        OPERATOR, QUICK.model_copy(update={"profile": "fast", "context": "message", "thread": "full"})
    )
    asked = here.profile(RunOptions(own={"depth": "full"}))
    assert (asked.name, asked.depth, asked.context) == ("fast", "full", "message")
    assert here.profile(RunOptions()).depth == "quick"
    assert here.profile(RunOptions(profile="default")).name == "default"
    assert EffectiveSettings(OPERATOR).profile(RunOptions()).depth == "full"


def test_a_profile_that_is_gone_leaves_the_default() -> None:
    """The operator has removed it from the file."""
    here = EffectiveSettings(OPERATOR, ChannelSettings(profile="gone"))
    assert here.profile(RunOptions()).name == "default"
    assert here.settings["profile"].origin == ""


def test_where_only_some_profiles_are_open_one_of_them_answers() -> None:
    """The first in the file, unless the channel has chosen."""
    here = EffectiveSettings(OPERATOR, ChannelSettings.model_validate({"profiles": ["fast"]}))
    assert here.profile(RunOptions()).name == "fast"
    with pytest.raises(Refusal) as caught:
        here.check(HERE, PLACE, "default")
    assert str(caught.value) == (
        "The profile default isn't open in this channel. Choose fast. Somebody with Manage Server, or one of "
        "the council's own admins, can change that with /council-config."
    )


async def test_a_profile_that_isn_t_open_to_the_channel_can_t_be_its_own(tmp_path: Path) -> None:
    """The operator's lists decide."""
    access = Access.model_validate({"profiles": {"fast": {"channels": ["9" * 17]}}})
    async with open_library(tmp_path) as library:
        channels = opened(library, Operator(profiles=OPERATOR.profiles, access=access))
        assert await refused(channels, "--profile fast") == (
            "profile: the profile fast isn't open to this channel. Whoever runs the bot can open it, under "
            "[access.profiles.fast] in council.toml. Nothing was changed."
        )


async def test_what_the_operator_forbids_no_channel_allows(tmp_path: Path) -> None:
    """Links: unset, an admin may allow them; `false` is the last word."""
    async with open_library(tmp_path) as library:
        channels = opened(library)
        here = await channels.in_force(HERE)
        assert here.profile(PROFILE_DEFAULTS).links is None
        await change(channels, "--links on")
        here = await channels.in_force(HERE)
        assert here.profile(PROFILE_DEFAULTS).links is True
        closed = {
            name: each.model_copy(update={"links": False})
            for name, each in channels.operator.profiles.items()
        }
        channels.operator = replace(channels.operator, profiles=closed)
        here = await channels.in_force(HERE)
        assert here.profile(PROFILE_DEFAULTS).links is False
        assert here.settings["links"].value == "off"
        assert await refused(channels, "--links on") == (
            "links: whoever runs the bot has turned them off for this council. Nothing was changed."
        )


async def test_at_the_terminal_nothing_is_limited(tmp_path: Path) -> None:
    """Its settings are shown without what has no effect there."""
    terminal = Source(platform="terminal", user="ada")
    async with open_library(tmp_path) as library:
        channels = opened(library)
        message = await change(channels, "--depth quick", terminal, AT_TERMINAL)
        assert [*shown(message)] == [
            "Council that answers",
            "How deep a question is taken",
            "What is read with a question",
            "What the thread shows",
            "Links that are read",
            "Old answers",
        ]
        assert await refused(channels, "--who nobody --budget_day 1", terminal) == (
            "At the terminal, nothing limits who may ask or what a question may cost. So who and budget_day can't be "
            "set here. Nothing was changed."
        )
        (await channels.in_force(terminal)).check(terminal, AT_TERMINAL, "default")


async def test_a_private_thread_has_its_channel_s_settings(tmp_path: Path) -> None:
    """It is a channel of its own everywhere else."""
    thread = HERE.model_copy(update={"channel": "8" * 17, "thread": "8" * 17, "parent": HERE.channel})
    async with open_library(tmp_path) as library:
        await change(opened(library), "--depth quick")
        assert (await opened(library).in_force(thread)).own == QUICK


@pytest.mark.parametrize("value", ['"many"', "not json", '{"x": 1}', "null"])
async def test_an_unreadable_setting_lets_nothing_through(tmp_path: Path, value: str) -> None:
    """It may have been the strictest; the command says that nothing was changed."""
    async with open_library(tmp_path) as library:
        await change(opened(library), "--depth quick")
        await spoil(library.database, value)
        with pytest.raises(UsageError, match="couldn't be read or saved"):
            await configure(opened(library), {}, HERE, PLACE, is_admin=True, used=nothing_used)


async def spoil(database: Database, value: str) -> None:
    """Write what this program never does."""
    await database.write(("UPDATE overrides SET value = ?", (value,)))
