"""Depth as a team meets it: an option, a channel's setting, a card that says what was skipped, a button."""

from pathlib import Path

import pytest

from bot.errors import UsageError
from bot.service.admission.channels import Operator
from bot.service.commands import RunOptions
from bot.view.wording import worth
from council.profile import Profile
from council.usage import Price
from storage.journal.rows import RunRow
from tests.bot.pressing import Click, press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, Office, office
from tests.council.scripted import ScriptedCouncil, profile
from tests.council.worth.test_depth import AGREED, DIFFERENT

AUTO = RunOptions(own={"depth": "auto"})
QUICK = RunOptions(own={"depth": "quick"})


def judged(**settings: object) -> Profile:
    """Return a profile with a judge that audits nothing."""
    return profile(judge_model="judge/model", depth_audit=0.0, **settings)


def use(place: Office, seats: Profile) -> None:
    """Let this profile answer from now on."""
    place.dispatcher.reconfigure(Operator(profiles={"default": seats}))


def dime(profile: str, member: object) -> Price:
    """Return the price of a call, in which no token costs anything."""
    del profile, member
    return Price(prompt=0.0, completion=0.0, request=0.1)


async def test_the_card_says_that_reviews_were_skipped_and_offers_them(tmp_path: Path) -> None:
    """Eight calls at a dime each less the judge's call; *Ask again in full* asks everybody everything."""
    council = ScriptedCouncil(script={"judge": AGREED})
    async with office(tmp_path, council, prices=dime) as place:
        use(place, judged())
        venue = RecordingVenue()
        run = await place.see(venue, options=AUTO)
        assert "The answers agree; reviews skipped, about $0.80 saved.\n\n# Shard" in venue.texts[-1]
        assert [button.action for button in venue.cards[-1].buttons] == [
            "follow",
            "transcript",
            "full",
            "helpful",
            "unhelpful",
        ]
        [label] = [button.label for button in venue.cards[-1].buttons if button.action == "full"]
        assert label == "Ask again in full"
        shown: list[RunRow] = []

        def show(row: RunRow) -> RecordingVenue:
            shown.append(row)
            return venue

        await press(place.dispatcher, "full", Click(run.id, TEAM), show)
        await place.dispatcher.tasks.settled()
        [again] = shown
        assert (again.brief.question, again.brief.profile.depth) == (run.brief.question, "full")
        assert "skipped" not in venue.texts[-1]
        assert "again" in [button.action for button in venue.cards[-1].buttons]


async def test_asked_again_a_run_goes_as_deep_as_before(tmp_path: Path) -> None:
    """*Ask again* keeps the option."""
    async with office(tmp_path, ScriptedCouncil(script={"judge": DIFFERENT})) as place:
        use(place, judged())
        venue, shown = RecordingVenue(), list[RunRow]()
        run = await place.see(venue, options=AUTO)
        assert "the answers differ in 1 point" in venue.texts[-1]

        def show(row: RunRow) -> RecordingVenue:
            shown.append(row)
            return venue

        await press(place.dispatcher, "again", Click(run.id, TEAM), show)
        await place.dispatcher.tasks.settled()
        assert [row.brief.profile.depth for row in shown] == ["auto"]


async def test_a_quick_answer_says_that_nobody_has_checked_it(tmp_path: Path) -> None:
    """It needs no judge."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        venue = RecordingVenue()
        await place.see(venue, options=QUICK)
        assert "Reviews skipped, as asked: nobody has checked the answers." in venue.texts[-1]


async def test_a_judge_that_is_a_member_is_named(tmp_path: Path) -> None:
    """Beside what it said."""
    async with office(tmp_path, ScriptedCouncil(script={"judge": AGREED})) as place:
        seats = judged()
        own = seats.members[0].model
        use(place, seats.model_copy(update={"judge_model": seats.members[0]}))
        venue = RecordingVenue()
        await place.see(venue, options=AUTO)
        assert own
        assert "The answers agree (the judge is one of the members); reviews skipped" in venue.texts[-1]


@pytest.mark.parametrize("title_model", [None, "openai/gpt-5"])
async def test_auto_without_a_judge_is_refused_with_the_setting(
    tmp_path: Path, title_model: str | None
) -> None:
    """However it is chosen; a title model that is a member's judges nobody by accident."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        use(place, profile(title_model=title_model))
        with pytest.raises(UsageError) as refused:
            await place.ask(options=AUTO)
        assert (
            str(refused.value)
            == worth.NO_JUDGE
            == (
                "Depth auto needs a judge that compares the answers: set judge_model (COUNCIL_JUDGE_MODEL), or "
                "a title_model that isn't a member's model."
            )
        )
        await place.dispatcher.channels.change(TEAM, {"depth": "auto"})
        with pytest.raises(UsageError):
            await place.ask("2")
        assert await place.ask("3", options=QUICK)  # the question's own option comes first
