"""Votes on both platforms: *Helpful*, *Not helpful*, and the line for why."""

from tests.bot.adapters.teams import AnyTeam

COUNTED = "Your vote: {}. Press the other button to change it."
HELPFUL, UNHELPFUL = COUNTED.format("helpful"), COUNTED.format("not helpful")


async def test_a_reader_votes_and_changes_the_vote(team: AnyTeam) -> None:
    """Only the voter is told; the vote counts before a reason is given, and without one."""
    card = await team.ask()
    assert await team.press(card, "👍 Helpful", team.ada) == HELPFUL
    assert await team.votes() == [(team.ada, True, None)]
    form = await team.open(card, "👎 Not helpful", team.ada)
    assert await team.votes() == [(team.ada, False, None)]
    assert await team.said(team.send(form)) == UNHELPFUL
    said = await team.said(team.send(form, reason="Too vague.\n  Say how."))
    assert said == "Your vote: not helpful. Your reason is kept with the answer, without your name."
    assert await team.votes() == [(team.ada, False, "Too vague. Say how.")]
    await team.press(card, "👍 Helpful", team.ada)
    assert await team.votes() == [(team.ada, True, None)]
    assert team.refusals() == []


async def test_anyone_in_the_channel_votes_once(team: AnyTeam) -> None:
    """Strangers, too, all at once, and however often the same click is delivered."""
    card = await team.ask()
    readers = team.newcomers(5)
    await team.press_together(card, "👍 Helpful", readers)
    await team.press(card, "👍 Helpful", readers[0])
    assert sorted(await team.votes()) == sorted((reader, True, None) for reader in readers)


async def test_old_buttons_and_forms_are_heard_after_a_restart(team: AnyTeam) -> None:
    """The form was opened by an earlier process."""
    card = await team.ask()
    form = await team.open(card, "👎 Not helpful", team.ada)
    await team.restart()
    await team.press(card, "👍 Helpful", team.ada)
    assert await team.votes() == [(team.ada, True, None)]
    await team.said(sent := team.send(form, reason="Wrong"))
    await team.redeliver(sent)
    assert await team.votes() == [(team.ada, False, "Wrong")]
