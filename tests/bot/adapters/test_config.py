"""A channel's settings on both platforms."""

from bot.service.access import Access
from tests.bot.adapters.teams import AnyTeam


async def test_others_see_the_settings_and_change_nothing(team: AnyTeam) -> None:
    """Both privately; an admin that the operator has listed may, whatever the platform says."""
    seen = team.read(await team.use("config"))
    assert f"{team.admins} can change these." in seen
    said = await team.use("config", depth="quick")
    assert team.text(said) == "Only an admin can change this channel's settings. Nothing was changed."
    assert team.read(await team.use("config")) == seen
    await team.restart(admins=[team.ada])
    assert "How deep a question is taken: it was full, and is now quick." in team.read(
        await team.use("config", depth="quick")
    )


async def test_opt_in_lets_nobody_ask_until_an_admin_switches_the_channel_on(team: AnyTeam) -> None:
    """The refusal is private and says who can; a group's members alone may ask then."""
    team.configure(access=Access(opt_in=True))
    team.promote(team.ada)
    for who in (team.ada, team.bob):
        assert await team.refused("Shard?", who) == (
            "The council isn't switched on in this channel. "
            f"{team.admins} can switch it on with /council-config, by setting who to everyone."
        )
    assert not team.council.asked("stage1")
    said = team.read(await team.use("config", who=team.everyone))
    assert "Who may ask: it was nobody, and is now everyone." in said
    await team.ask()
    group, named = team.group(team.ada)
    said = team.read(await team.use("config", who=group))
    assert f"Who may ask: it was everyone, and is now {named}." in said
    await team.ask()
    assert await team.refused("Shard?", team.bob) == (
        f"The council isn't open to you in this channel. {team.admins} can change that with "
        "/council-config."
    )
    await team.use("config", who="nobody")
    assert (await team.refused()).startswith("An admin has switched the council off")
