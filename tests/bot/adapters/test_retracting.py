"""The bot's messages about what was forgotten, on both platforms: they are deleted, and only they."""

from tests.bot.adapters.teams import AnyTeam

CHAIRMAN = "stage3.1:chair/man:chairman"


async def forget(team: AnyTeam, what: str) -> str:
    """Have something deleted; return what whoever pressed the button reads."""
    said = await team.delete(await team.use("forget", what=what))
    await team.dispatcher.tasks.settled()
    return said


async def test_card_thread_and_copies_are_deleted_and_peoples_words_stay(team: AnyTeam) -> None:
    """So are the files; the thread stays for what people said in it."""
    card = await team.ask()
    listed = await team.use("history")
    await team.look(await team.look(listed, "Open 1"), "Share here")
    await team.look(listed, "Share here")
    await team.transcript(card)
    assert len(team.public()) == 3
    assert bool(team.files()) == (team.platform == "slack")  # Discord shows it to one person
    reply = team.say_below(card, team.bob, "I disagree.")
    heard = await forget(team, "shard")
    assert heard == "Deleted \u201cShard or scale up?\u201d and the council's messages about it."
    assert team.left() == []
    assert team.files() == 0
    assert team.said_below(card) == [reply]
    assert {*team.refusals()} <= {"message_not_found"}  # two of Slack's files are in one message
    assert await team.library.database.read("SELECT * FROM work WHERE kind = 'retract'") == []
    assert await team.library.database.read("SELECT * FROM copies") == []


async def test_a_run_under_way_is_stopped_and_nothing_of_it_stays(team: AnyTeam) -> None:
    """Whatever it posts until it is over is deleted, too."""
    team.council.held.add(CHAIRMAN)
    await team.begin()
    await team.council.until_called(CHAIRMAN)
    assert team.left()
    await forget(team, "me")
    await team.dispatcher.retracted(team.platform, "")
    assert team.left() == []


async def test_a_refusal_is_told_and_the_messages_stay_listed(team: AnyTeam) -> None:
    """As ids, without a word of what was deleted."""
    await team.ask()
    asked = await team.use("forget", what="shard")
    there = team.left()
    number = len(there) + team.also_listed
    why = team.forbid_deleting()
    said = await team.delete(asked)
    assert said.startswith(
        f"Deleted \u201cShard or scale up?\u201d. {number} messages couldn't be deleted: {why}. "
        "The council tries again every hour for seven days"
    )
    assert team.left() == there
    rows = await team.library.database.read("SELECT * FROM work WHERE kind = 'retract'")
    assert len(rows) == number
    assert "hard" not in "".join(str(dict(row)) for row in rows)


async def test_cancel_deletes_nothing(team: AnyTeam) -> None:
    """It takes the place of the question."""
    await team.ask()
    there = team.left()
    asked = await team.use("forget", what="shard")
    assert team.labels(asked) == ["Delete", "Cancel"]
    assert await team.look(asked, "Cancel") is asked
    assert team.text(asked) == "Nothing was deleted."
    assert len(asked.history) == 2
    assert team.left() == there
    assert "There is no answer here yet." not in team.read(await team.use("history"))
