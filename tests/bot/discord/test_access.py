"""Who may ask on Discord, through the real client."""

from dataclasses import replace

from bot.service.access import Access
from tests.bot.discord.office import Office
from tests.discord_server import DiscordServer

REFUSED = "Whoever runs the bot can change that, under [access] in council.toml."


def admit(team: Office, **access: object) -> None:
    """Put these lists in force."""
    team.dispatcher.channels.operator = replace(
        team.dispatcher.channels.operator, access=Access.model_validate(access)
    )


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
