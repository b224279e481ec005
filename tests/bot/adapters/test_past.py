"""Past answers on both platforms: people press what they see and what they forge."""

from bot.view.wording.past import NO_SUCH
from tests.bot.adapters.teams import QUESTION, AnyTeam

ANSWER = "The council's answer, written by chair/man."


async def test_an_answer_is_found_shown_and_shared(team: AnyTeam) -> None:
    """Everything is private until it is shared; then it says by whom, and mentions nobody."""
    card = await team.ask()
    pings = team.pings()
    listed = await team.use("history", count=3)
    assert team.labels(listed) == ["Open 1", "Share here"]
    assert team.strong("1. Shard or scale up?") in team.read(listed)
    assert f"{team.dated}{team.name('ada')}" in team.read(listed)
    assert ANSWER in team.read(listed)
    assert team.leads_to(listed, card)
    shown = await team.look(listed, "Open 1")
    assert team.is_private(shown, team.ada)
    assert ANSWER in team.read(shown)
    reviews = await team.look(shown, "Open")
    assert team.is_private(reviews, team.ada)
    assert await team.look(reviews, team.labels(reviews)[0]) is reviews
    assert len(reviews.history) == 2
    assert await team.transcript(shown) == team.transcript_shown
    public = await team.look(shown, "Share here")
    shared = f"{team.name('ada')} shared this from the council's past answers."
    assert shared in team.read(public).splitlines()[0]
    assert team.labels(public) == ["Open", "Transcript"]
    assert team.public() == [card, public]
    await team.press_together(shown, "Share here", [team.ada])
    await team.dispatcher.tasks.settled()
    assert len(team.public()) == 3
    looked = await team.look(public, "Open", team.bob)
    assert team.is_private(looked, team.bob)
    assert "Corrected response" in team.plain(looked)
    assert len(team.public()) == 3
    assert team.pings() == pings
    assert team.refusals() == []


async def test_nothing_reaches_another_channel_or_guild(team: AnyTeam) -> None:
    """Not by command or prefix, nor by any button that a modified client sends."""
    await team.ask()
    listed = await team.use("history")
    shown = await team.look(listed, "Open 1")
    public = await team.look(shown, "Share here")
    [answer] = [one.id for one in await team.conversations()]
    values = {value for note in (listed, shown, public) for value in team.values(note)}
    values |= {f"{verb}:reviews:{answer}:0:0" for verb in team.verbs}
    for place in team.elsewhere():
        assert "There is no answer here yet." in team.read(await team.use("history", where=place))
        for wanted in (answer, answer[:8], QUESTION, "scale"):
            assert team.read(await team.use("show", where=place, answer=wanted)) == NO_SUCH
        for value in sorted(values):
            said = await team.forge(place, value)
            assert said
            assert "Shard" not in said
            assert ANSWER not in said


async def test_an_answer_is_deleted_after_a_second_press(team: AnyTeam) -> None:
    """By whoever asked; nobody else, in whose hand the button would come, can press it."""
    await team.ask()
    asked = await team.use("forget", what="scale")
    refused = await team.use("forget", team.bob, what="shard")
    assert team.text(refused) == "Only the person who asked, or an admin, can delete this answer."
    said = await team.delete(asked)
    assert said.startswith("Deleted \u201cShard or scale up?\u201d and")
    assert "There is no answer here yet." in team.read(await team.use("history"))


async def test_an_admin_deletes_all_that_somebody_asked(team: AnyTeam) -> None:
    """Named by a mention."""
    await team.ask()
    team.promote(team.bob)
    refused = await team.use("forget", what=team.tag(team.bob))
    assert team.text(refused) == "Only an admin can delete everything somebody else asked."
    asked = await team.use("forget", team.bob, what=team.tag(team.ada))
    name = team.name("ada")
    assert f"Delete everything {name} asked {team.inside}?" in team.read(asked)
    said = await team.delete(asked, team.bob)
    assert said.startswith(f"Deleted everything {name} asked {team.inside} and")
    assert "There is no answer here yet." in team.read(await team.use("history"))
