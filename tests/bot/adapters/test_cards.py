"""A run's card and thread, as its channel sees them on either platform."""

import re

import pytest

from bot.service.dispatcher import Dispatcher
from tests.bot.adapters.teams import QUESTION, AnyTeam
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR

FIRST, CHAIR = f"stage1.1:{FOUR[0]}", "stage3.1:chair/man:chairman"
ANSWER = "The council's answer, written by chair/man."


async def test_what_people_and_models_write_notifies_nobody(team: AnyTeam) -> None:
    """In the question, its title, the answers and the corrections: the only ping is the asker's."""
    hostile = (
        f"@everyone @here {team.tag(team.bob)} <!channel> <!here> <!subteam^S1> [x](https://x.example)"
    )
    stages = ("stage1", "stage2_5", "stage3", "title")
    team.council.script |= {stage: f"{hostile} in {stage}" for stage in stages}
    await team.ask(hostile)
    assert team.pings() == [team.ada]


async def test_an_answer_too_long_for_the_card_continues_in_the_thread(team: AnyTeam) -> None:
    """In full, in ordered parts; the card says so."""
    reasons = [f"Reason {number} is that {'it matters and ' * 20}stays." for number in range(200)]
    team.council.script["stage3"] = "\n\n".join(reasons)
    card = await team.ask()
    assert "continues in the thread" in team.read(card)
    whole = "\n".join(team.read(each) for each in team.said_below(card))
    assert re.findall(r"^Reason (\d+) ", whole, re.MULTILINE) == [f"{number}" for number in range(200)]
    assert team.refusals() == []


async def test_open_answers_only_the_person_who_presses(team: AnyTeam) -> None:
    """Also somebody other than the asker; the thread doesn't change, and nobody is pinged."""
    card = await team.ask()
    before = [team.read(each) for each in team.said_below(card)]
    [message, *_] = [each for each in team.said_below(card) if "Open" in team.labels(each)]
    shown = await team.look(message, "Open", team.bob)
    for part in ("Changes", "Corrected response", "Original response\nThe first answer of ", "By "):
        assert f"\n{part}" in team.plain(shown)
    assert (team.is_private(shown, team.bob), team.labels(shown)) == (True, [])
    below = [each for each in team.said_below(card) if not team.is_private(each, team.bob)]
    assert [team.read(each) for each in below] == before
    assert team.pings() == [team.ada]


async def test_an_unexpected_error_shows_only_an_id(
    team: AnyTeam, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has the rest, under the same id."""

    async def broken(*_: object) -> None:
        raise RuntimeError("the secret insides")

    monkeypatch.setattr(Dispatcher, "accept", broken)
    said, _, number = (await team.refused(QUESTION)).rpartition(" ")
    assert said == "Something unexpected went wrong. Try again; if it happens again, report this id:"
    assert "Something unexpected went wrong." in team.read(await team.mention(QUESTION))
    logged = capsys.readouterr().out
    assert "the secret insides" in logged
    assert number in logged


@pytest.mark.parametrize("who", ["asker", "admin of the place", "listed admin"])
async def test_asker_and_admins_stop_a_run_and_nobody_else(team: AnyTeam, who: str) -> None:
    """The chairman concludes from what there is; a press that is delivered again isn't a second one."""
    if who == "listed admin":
        await team.restart([team.bob])
    team.council.held |= {FIRST, CHAIR}
    card = await team.begin()
    await team.council.until_called(FIRST)
    said = await team.press_amid(card, "Stop", team.join("eve"))
    assert said == "Only the person who asked, or an admin, can stop this run."
    if who == "admin of the place":
        team.promote(team.bob)
    await team.press_together(card, "Stop", [team.ada if who == "asker" else team.bob])
    await team.council.until_called(CHAIR)
    team.council.release(CHAIR)
    await team.dispatcher.tasks.settled()
    assert "stopped early" in team.read(card).lower()
    assert ANSWER in team.read(card)
    assert team.labels(card) == FINISHED


async def test_a_quick_answer_is_asked_again_in_full(team: AnyTeam) -> None:
    """By the button beside what says that nobody has checked it, whoever presses."""
    card = await team.ask(depth="quick")
    assert "Reviews skipped, as asked: nobody has checked the answers." in team.read(card)
    assert team.council.asked("stage2") == []
    await team.look(card, "Ask again in full", team.bob)
    await team.dispatcher.tasks.settled()
    assert len(team.council.asked("stage2")) == 4
