"""`/council-help`: ten lines in the words of the platform, and two pages behind buttons."""

import re
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from bot.actions import Payload, past
from bot.render.markdown import render
from bot.service.channels import Operator
from bot.service.commands import HELP
from council.document.conversation import Source
from council.models.costs import Price
from council.profile import Member, Persona
from storage.scope import TERMINAL
from tests.bot.pressing import act
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, Office, office
from tests.council.scripted import ScriptedCouncil, profile

FOUR_SEATS = profile(
    members=(
        Member(model="a/one", fallbacks=("a/two", "a/three")),
        Member(model="b/four", persona=Persona(name="The Skeptic", prompt="Doubt.")),
    ),
    chairman=Member(model="c/five"),
    chairman_fallbacks=("d/six",),
    title_model="t/seven",
)


async def page(place: Office, here: Source, name: str = "") -> str:
    """Return what the command shows, or the page that a button below it turns to."""
    if name:
        shown = await act(place, past("help"), here, Payload(about=name))
    else:
        shown = await act(place, HELP.name, here)
    [sheet] = shown.sheets
    return render(sheet.message)


async def test_what_a_question_cost_here_comes_before_any_estimate(tmp_path: Path) -> None:
    """By the median of this channel's last answers; another channel's don't count."""
    elsewhere = TEAM.model_copy(update={"channel": "C2"})
    async with office(tmp_path, ScriptedCouncil()) as place:
        for number in range(3):
            assert "- Cost: At most $" in await page(place, TEAM)
            await place.see(RecordingVenue(), key=str(number))
        assert re.search(
            r"- Cost: Usually [\d.]+ s, \$0\.013, at most \$\d\.\d\d for a short question\.",
            await page(place, TEAM),
        )
        assert "- Cost: At most $" in await page(place, elsewhere)
        assert "A short question" not in await page(place, TEAM, "models")


async def test_a_council_without_prices_has_no_cost(tmp_path: Path) -> None:
    """Where all its models are free; a price that isn't known is a stated estimate."""

    def prices(profile: str, member: Member) -> Price | None:
        del profile
        known = Price(0.000_001, 0.000_01)
        return None if member.model == "chair/man" else Price(0, 0) if member.model == "me" else known

    own = profile("me", chairman="me", quorum=1)
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        place.dispatcher.reconfigure(Operator(profiles={"default": profile(), "own": own}))
        models = await page(place, TEAM, "models")
        place.dispatcher.reconfigure(Operator(profiles={"default": own}))
        assert "- Cost: no cost." in await page(place, TEAM)
    assert re.search(
        r"A short question costs at most \$0\.4\d, by the models' prices\. "
        r"1 call has no known price and is assumed to cost \$0\.10\.",
        models,
    )
    assert "A short question has no cost." in models


async def test_models_and_limits_has_every_council(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """With the models that step in for others, the limits, and what was spent here."""
    quiet = profile(name="quiet", context="message", web=True, max_rounds=2, criteria="Cost:3")
    async with office(tmp_path, ScriptedCouncil()) as place:
        await place.see(RecordingVenue())
        place.dispatcher.reconfigure(Operator(profiles={"quiet": quiet, "default": FOUR_SEATS}))
        said = await page(place, TEAM, "models")
        away = await page(place, TEAM.model_copy(update={"channel": "C2"}), "models")
    cost = r"A short question costs .*"
    assert re.sub(cost, "COST", said) == snapshot
    assert "Here so far" not in away


async def test_options_are_those_of_the_platform(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Slack has no option for a file, and the terminal none for a private answer."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        discord, slack, terminal = [
            await page(place, TEAM.model_copy(update={"platform": each}), "options")
            for each in ("discord", "slack", TERMINAL)
        ]
    assert [each.partition("\n\n")[2] for each in (discord, slack, terminal)] == snapshot
    has = [
        [name in text for name in ("- attachment:", "- private:")] for text in (discord, slack, terminal)
    ]
    assert has == [[True, True], [False, True], [False, False]]
