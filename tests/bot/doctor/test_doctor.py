"""`council doctor` against fake platforms and a fake OpenRouter, with one fault at a time."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.checks.check import Check
from bot.discord.checks import DiscordChecks
from tests.bot.doctor import channel_faults, discord_faults, machine_faults, model_faults, slack_faults
from tests.bot.doctor.scene import MEMBERS, Planted, Scene, planted
from tests.discord_server import Fault, Permission
from tests.model_server import Json, Turn
from tests.pairs import every_other

FAULTS = planted(
    machine_faults.PLANTS
    | channel_faults.PLANTS
    | model_faults.PLANTS
    | discord_faults.PLANTS
    | slack_faults.PLANTS
)


class TestFaults:
    """Each fault, planted alone in an installation in which all else is well."""

    @pytest.mark.parametrize("fault", every_other(FAULTS, lambda fault: fault.name.replace(" ", "-")))
    async def test_it_is_named_alone_with_its_fix(self, scene: Scene, fault: Planted) -> None:
        """What depends on it is skipped; everything else was looked at and is well."""
        fault.plant(scene)
        [finding] = (await scene.diagnose()).findings
        assert fault.where in finding.where
        assert fault.what in finding.what
        assert fault.fix in finding.fix
        assert finding.weight == fault.weight


@dataclass(frozen=True, slots=True)
class Normal:
    """Something unusual that is no fault, and what is said of it."""

    name: str
    make: Callable[[Scene], object]
    note: str


def _without(*beginnings: str) -> Callable[[Scene], object]:
    def make(scene: Scene) -> None:
        scene.env = {name: value for name, value in scene.env.items() if not name.startswith(beginnings)}

    return make


def _demonstration(scene: Scene) -> None:
    _without("OPENROUTER_", "COUNCIL_MEMBERS")(scene)
    scene.env["COUNCIL_DEMO"] = "1"


def _by_http(scene: Scene) -> None:
    scene.by_http()


def _unpriced(scene: Scene) -> None:
    unpriced: list[Json] = [{"id": name} for name in MEMBERS]
    scene.models.models = unpriced


def _behind_a_proxy(scene: Scene) -> None:
    scene.env["OPENROUTER_DIALECT"] = "litellm"
    scene.refused["/api/v1/key"] = 503


def _only_own(scene: Scene, model: str = MEMBERS[0]) -> None:
    _without("OPENROUTER_", "COUNCIL_MEMBERS")(scene)
    scene.own_server(model)
    file = scene.folder / "council.toml"
    file.write_text(file.read_text().replace("[profiles.own]", "[profiles.default]"))


def _settled(scene: Scene) -> None:
    scene.write("council.toml", f"{channel_faults.TWO}\n[budgets]\nrun = 2.0\n")
    who = {"roles": [str(min(scene.guild.roles))]}
    place = ("discord", str(scene.guild.id), str(scene.general.id))
    scene.set_in(place, {"profile": "fast", "budget_day": 1.5, "who": who})
    scene.set_in(("terminal", "", ""), {"profile": "default", "depth": "quick"})


NORMAL = [
    Normal(
        "empty .env", lambda s: s.write(".env", "# nothing yet\nOPENROUTER_API_KEY=\n", 0o644), "no file"
    ),
    Normal("no platform", _without("DISCORD_", "SLACK_"), "neither Discord nor Slack is configured"),
    Normal("demonstration", _demonstration, "the built-in demonstration model"),
    Normal("no status port", _without("COUNCIL_STATUS"), "COUNCIL_STATUS_PORT isn't set"),
    Normal("channel settings", _settled, "2 channels with settings of their own"),
    Normal("budget that ten answers fit", channel_faults.measured, "none is too small for a question"),
    Normal("HTTP mode", _by_http, "whether Slack reaches its public https address can't be seen"),
    Normal("own provider without a key", _without("OPENROUTER_API_KEY"), "this provider may need none"),
    Normal(
        "own provider that tells nothing of keys",
        lambda s: setattr(s.models, "key", None),
        "doesn't say how much",
    ),
    Normal(
        "key without a limit",
        lambda s: setattr(s.models, "key", {"limit_remaining": None}),
        "no credit limit of its own",
    ),
    Normal("provider without prices", _unpriced, "lists no prices"),
    Normal("a proxy, whose key page is no OpenRouter's", _behind_a_proxy, "doesn't say how much"),
    Normal("own server", lambda s: s.own_server(), "1 server answering"),
    Normal("only own servers", _only_own, "1 server answering"),
    Normal(
        "variant of a model",
        lambda s: s.env.update(COUNCIL_CHAIRMAN=f"{MEMBERS[0]}:nitro"),
        "all 4 configured models are listed",
    ),
]


class TestNormal:
    """What might look like a fault, and is none."""

    @pytest.mark.parametrize("case", NORMAL, ids=lambda case: case.name.replace(" ", "-"))
    async def test_it_is_said_and_all_is_well(self, scene: Scene, case: Normal) -> None:
        """With exit code 0."""
        case.make(scene)
        examination = await scene.diagnose()
        assert examination.is_well, examination.text()
        assert case.note in examination.text()


async def test_no_list_is_fetched_that_says_nothing_of_the_members(scene: Scene) -> None:
    """Where each has a server of its own, the provider isn't asked, for the budgets' sake neither."""
    provider = {name: value for name, value in scene.env.items() if name.startswith("OPENROUTER_")}
    _only_own(scene)
    scene.env |= provider
    assert (await scene.diagnose()).is_well
    assert scene.models.models_asked == 1


async def test_a_model_that_its_own_server_does_not_list_is_asked_all_the_same(scene: Scene) -> None:
    """Servers of one's own serve what they like; whether this one does, its reply tells."""
    _only_own(scene, "openai/gpt-6")
    scene.live = True
    examination = await scene.diagnose()
    assert "openai/gpt-6" in [exchange.model for exchange in scene.models.history]
    assert [finding.weight for finding in examination.findings] == ["warning"]


SLOW = 0.05


class TestReport:
    """What is shown, and what is left as it is."""

    async def test_all_is_well_on_one_screen(self, scene: Scene) -> None:
        """A line a check, and one below them."""
        examination = await scene.diagnose()
        assert examination.is_well, examination.text()
        lines = examination.text().replace(str(scene.folder), "folder").splitlines()
        assert len(lines) <= 24
        assert all(len(line) <= 100 for line in lines)
        assert all(line.startswith("\u2713") for line in lines[:-2]), examination.text()
        well = "Everything is fine. No model was asked anything; --live asks each member for one word."
        assert lines[-1] == well
        assert scene.models.history == []

    async def test_live_asks_each_model_once(self, scene: Scene) -> None:
        """Also one that sits twice; the calls are short, never repeated, and what they cost is said. Thoughts fill the little room."""
        scene.live = True
        scene.env["COUNCIL_CHAIRMAN"] = MEMBERS[0]
        examination = await scene.diagnose()
        assert examination.is_well, examination.text()
        assert sorted(exchange.model for exchange in scene.models.history) == sorted(MEMBERS)
        assert {exchange.request["max_tokens"] for exchange in scene.models.history} == {64}
        assert re.search(r"Live calls +3 calls answered, (under )?\$0\.\d+", examination.text())
        assert examination.text().endswith("Everything is fine.")
        scene.live = True
        scene.models.script(MEMBERS[0], Turn("", finish_reason="length"))
        assert (await scene.diagnose()).is_well

    async def test_live_asks_whoever_may_be_there(self, scene: Scene) -> None:
        """Not a model that the list lacks; and all of them where there is no list."""
        scene.live = True
        scene.env["COUNCIL_CHAIRMAN"] = "openai/gpt5"
        [finding] = (await scene.diagnose()).findings
        assert finding.where == "openai/gpt5"
        assert sorted(exchange.model for exchange in scene.models.history) == sorted(MEMBERS)
        scene.models.models, scene.models.key = None, None
        examination = await scene.diagnose()
        [finding] = examination.findings
        assert "no model list" in finding.what
        assert "4 calls answered" in examination.text()

    async def test_faults_do_not_hide_each_other(self, scene: Scene) -> None:
        """Not even one that breaks a check itself."""

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        for fault in FAULTS:
            if fault.name in ("public bot", "in no channel", "misspelt member", "folder for all"):
                fault.plant(scene)
        scene.patch.setattr("bot.checks.machine.inspect", broken)
        findings = (await scene.diagnose()).findings
        said = [(finding.where, finding.what) for finding in findings]
        assert [where for where, _ in said] == [
            "COUNCIL_DATA_DIR (data)",
            "Database",
            "openai/gpt5",
            "the application",
            "the bot",
        ]
        assert said[1][1] == "the check itself failed"

    async def test_what_takes_too_long_is_said(self, scene: Scene) -> None:
        """The others are shown in any case, and what needs it is skipped."""
        scene.discord.api.faults.append(fault := Fault("GET /users/@me", None, gate=asyncio.Event()))
        whole = DiscordChecks.checks

        def hasty(checks: DiscordChecks) -> list[Check]:
            return [replace(check, seconds=SLOW) for check in whole(checks)]

        scene.patch.setattr(DiscordChecks, "checks", hasty)
        examination = await scene.diagnose()
        fault.release()
        [finding] = examination.findings
        assert (finding.where, finding.what) == ("Discord token", "there was no result within 0.05 s")
        states = {one.name: one.outcome.note for one in examination.checked if one.outcome.skipped}
        assert states == dict.fromkeys(
            ("Discord application", "Discord commands", "Discord servers"),
            "skipped: first fix what is wrong under Discord token",
        )

    async def test_it_changes_nothing_and_makes_no_folder(self, scene: Scene) -> None:
        """Neither in the data folder nor on a platform: it posts, registers and connects nothing; the first start makes the folder."""

        def content() -> dict[Path, bytes]:
            return {path: path.read_bytes() for path in scene.data.rglob("*") if path.is_file()}

        before = content()
        await scene.diagnose()
        assert {path for path in content() if path.suffix in (".db", ".json")} == {
            path for path in before if path.suffix in (".db", ".json")
        }
        assert all(request.route.startswith("GET ") for request in scene.discord.api.requests)
        assert scene.slack.courier.sockets == 0
        assert {call.method for call in scene.slack.requests} == {
            "auth.test",
            "apps.connections.open",
            "users.conversations",
        }
        scene.env["COUNCIL_DATA_DIR"] = "new/data"
        assert (await scene.diagnose()).is_well
        assert not (scene.folder / "new").exists()

    async def test_what_only_looks_like_a_fault_is_none(self, scene: Scene) -> None:
        """An older database is migrated by the next start; rules and announcements are read."""
        scene.sql("DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)")
        examination = await scene.diagnose()
        assert examination.is_well
        assert "the next start brings it up to date" in examination.text()
        rules = scene.discord.channel(scene.guild, "rules")
        everyone = scene.guild.roles[scene.guild.id]
        scene.discord.overwrite(rules, everyone, deny=Permission.SEND_MESSAGES)
        hidden = scene.discord.channel(scene.guild, "staff")
        scene.discord.hide(hidden)
        assert (await scene.diagnose()).is_well


async def test_no_line_is_broken_inside_a_word(scene: Scene) -> None:
    """At a terminal of so many columns, only a word that is longer sticks out."""
    scene.env |= {
        "COUNCIL_MEMBERS": "openai/gpt-5",
        "COUNCIL_STATUS_HOST": "192.0.2.1",
        "SLAK_BOT_TOKEN": "x",
    }
    examination = await scene.diagnose()
    for columns in (40, 60, 80):
        narrow = examination.text(columns)
        assert narrow.split() == examination.text().split()
        for line in narrow.splitlines():
            assert len(line) <= columns or len(line.split()) == 1, line
