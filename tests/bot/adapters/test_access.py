"""Who may ask, on both platforms."""

from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import failure

REFUSED = "Whoever runs the bot can change that, under [access] in council.toml."
CLOSED = f"The council isn't open to you here. {REFUSED}"


async def test_a_group_lets_its_members_ask_and_nobody_else(team: AnyTeam) -> None:
    """Only the asker is told, and nothing is asked of any model."""
    _, named = team.group(team.ada)
    team.admit(allow={team.groups: [named.rpartition(" ")[2]]})
    assert await team.refused(who=team.bob) == CLOSED
    assert not team.council.asked("stage1")
    await team.ask()
    assert len(await team.conversations()) == 1


async def test_a_listed_person_asks_in_a_listed_channel_and_nobody_else(team: AnyTeam) -> None:
    """Direct messages are in no channel; a private question is judged where it is asked."""
    channel = team.channel.strip("<#>")
    team.admit(allow={"channels": [channel], "users": [team.ada]})
    await team.ask()
    assert await team.refused(who=team.bob) == CLOSED
    team.admit(allow={"channels": [channel]})
    assert (await team.private()).startswith("The council ")
    await team.dispatcher.tasks.settled()
    assert len(await team.conversations()) == 2
    assert team.text(await team.message("Shard or scale up?")).endswith(
        f"The council isn't open to you in direct messages. Ask in a channel. {REFUSED}"
    )


async def test_continuing_is_refused_to_those_who_may_not_ask(team: AnyTeam) -> None:
    """It costs as much as a question."""
    team.council.script["stage1"] = failure("rate_limited")
    card = await team.ask()
    team.admit(deny={"users": [team.ada]})
    assert await team.press(card, team.labels(card)[0], team.ada) == CLOSED


async def test_a_profile_may_be_restricted(team: AnyTeam) -> None:
    """Others are told to choose another profile."""
    team.admit(profiles={"default": {"users": ["990000000000000000"]}})
    assert await team.refused() == (
        f"The profile default isn't open to you here. Choose another one. {REFUSED}"
    )
