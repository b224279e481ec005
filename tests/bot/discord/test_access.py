"""Who may ask on Discord, through the real client."""

from dataclasses import replace

from bot.service.admission.access import Access
from council.document.conversation import Source
from tests.bot.discord.office import Office
from tests.bot.discord.test_bot import button
from tests.council.scripted import failure
from tests.discord_server import DiscordServer

REFUSED = "Whoever runs the bot can change that, under [access] in council.toml."


def admit(team: Office, **access: object) -> None:
    """Put these lists in force."""
    team.dispatcher.channels.operator = replace(
        team.dispatcher.channels.operator, access=Access.model_validate(access)
    )


async def test_a_role_lets_its_members_ask_and_nobody_else(server: DiscordServer, team: Office) -> None:
    """Only the asker is told, and nothing is asked of any model."""
    assert team.general.guild is not None
    engineers = server.role(team.general.guild, "engineers")
    bob = server.member(team.general.guild, "bob")
    team.general.guild.members[team.ada.id].roles.append(engineers)
    admit(team, allow={"roles": [str(engineers.id)]})
    said = await team.refused(server.slash(team.general, bob, "council", question="Shard?"))
    assert said == f"The council isn't open to you here. {REFUSED}"
    assert not team.council.asked("stage1")
    await team.asked()
    assert await team.documents()


async def test_a_thread_belongs_to_its_channel(server: DiscordServer, team: Office) -> None:
    """Allowing a channel allows its threads, private ones, too."""
    admit(team, allow={"channels": [str(team.general.id)]})
    for private in (False, True):
        thread = server.thread(team.general, "a talk", team.ada, private=private)
        [card, *_] = await team.mentioned(thread, f"<@{server.bot.id}> Shard or scale up?")
        assert "isn't open" not in card.text
    admit(team, deny={"channels": [str(team.general.id)]})
    [told] = await team.mentioned(thread, f"<@{server.bot.id}> And now?")
    assert told.text.endswith(f"The council isn't open in this channel. {REFUSED}")


async def test_a_private_run_is_judged_where_it_was_asked_for(
    server: DiscordServer, team: Office
) -> None:
    """It is asked in the asker's direct messages, which are in no channel."""
    admit(team, allow={"channels": [str(team.general.id)]})
    asked = server.slash(team.general, team.ada, "council", question="Shard?", private=True)
    await server.until(lambda: asked.message and asked.message.content)
    assert "The council answers in your direct messages" in await team.refused(asked)
    await team.dispatcher.tasks.settled()
    assert await team.documents()


async def test_retry_is_refused_to_those_who_may_not_ask(server: DiscordServer, team: Office) -> None:
    """It costs as much as a question."""
    team.council.script["stage1"] = failure("rate_limited")
    card = await team.asked()
    admit(team, deny={"users": [str(team.ada.id)]})
    said = await team.refused(
        server.click(card, button(card, "Continue (finished calls aren't paid twice)"), team.ada)
    )
    assert said == f"The council isn't open to you here. {REFUSED}"


async def test_a_profile_may_be_restricted(server: DiscordServer, team: Office) -> None:
    """Others are told to choose another profile."""
    admit(team, profiles={"default": {"users": ["990000000000000000"]}})
    said = await team.refused(server.slash(team.general, team.ada, "council", question="Shard?"))
    assert said == f"The profile default isn't open to you here. Choose another one. {REFUSED}"
    assert await team.dispatcher.help(Source(platform="discord"))
