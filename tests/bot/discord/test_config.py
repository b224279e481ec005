"""A channel's settings on Discord, through the real client."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.service.access import Access
from bot.upkeep import look_after
from tests.bot.discord.office import Office
from tests.council.scripted import profile
from tests.discord_server import DiscordServer, Interaction, User
from tests.discord_server.permissions import Permission

ADMINS = "Somebody with Manage Server, or one of the council's own admins,"


def boss(team: Office) -> User:
    assert team.general.guild is not None
    return team.server.member(team.general.guild, "grace", Permission.MANAGE_GUILD)


def configure(team: Office, user: User, **options: object) -> Interaction:
    return team.server.slash(team.general, user, "council-config", **options)


def seat(team: Office, **operator: object) -> None:
    """Put a configuration of the operator's in force."""
    team.dispatcher.reconfigure(replace(team.dispatcher.channels.operator, **operator))  # pyright: ignore[reportArgumentType] - a test


async def test_opt_in_closes_private_threads_and_other_channels(
    server: DiscordServer, team: Office
) -> None:
    """A private thread is open with its channel; another channel stays closed."""
    seat(team, access=Access(opt_in=True))
    assert team.general.guild is not None
    random = server.channel(team.general.guild, "random")
    refusal = (
        "The council isn't switched on in this channel. "
        f"{ADMINS} can switch it on with /council-config, by setting who to everyone."
    )
    private = server.thread(team.general, "a talk", team.ada, private=True)
    [told] = await team.mentioned(private, f"<@{server.bot.id}> Shard?")
    assert told.text.endswith(refusal)
    assert not team.council.asked("stage1")
    await team.refused(configure(team, boss(team), who="@everyone"))
    [card, *_] = await team.mentioned(private, f"<@{server.bot.id}> Shard?")
    assert "isn't switched on" not in card.text
    elsewhere = server.slash(random, team.ada, "council", question="Shard?")
    assert await team.refused(elsewhere) == refusal


async def test_only_the_profiles_that_are_open_here_are_proposed(
    server: DiscordServer, team: Office
) -> None:
    """While somebody types a question's profile."""
    seat(team, profiles={"default": profile(), "fast": profile(name="fast")})
    await team.refused(configure(team, boss(team), profiles="fast"))
    typed = server.autocomplete(team.general, team.ada, "council", "profile", "", question="Why?")
    await server.until(lambda: typed.choices)
    assert [choice["name"] for choice in typed.choices] == ["fast"]


async def test_a_channel_s_retention_deletes_what_is_older(team: Office) -> None:
    """In private threads, too; other channels stay. It waits a day after the clock has jumped."""
    now = datetime.now(UTC)
    assert team.general.guild is not None
    other = team.server.channel(team.general.guild, "random")
    private = team.server.thread(team.general, "a talk", team.ada, private=True)
    await team.asked()
    await team.mentioned(private, f"<@{team.server.bot.id}> Shard?")
    await team.mentioned(other, f"<@{team.server.bot.id}> Shard?")
    assert len(await team.documents()) == 3
    await team.refused(configure(team, boss(team), retention=1))
    # The scripted clock, by which the answers were written, is months behind.
    for hours, left in ((0, 3), (2, 3), (25, 1)):
        later = now + timedelta(hours=hours)
        await look_after(team.library, None, now=lambda later=later: later)
        assert len(await team.documents()) == left
