"""Votes on Discord, through the real client: *Helpful*, *Not helpful*, and the line for why."""

from council.document.conversation import AssistantMessage
from tests.bot.discord.office import Office
from tests.bot.discord.test_bot import button
from tests.council.scripted import ScriptedCouncil, failure
from tests.discord_server import DiscordServer, Message

Vote = tuple[int, bool, str | None]


async def votes(team: Office) -> list[Vote]:
    """Return the votes on the one answer there is, as its document has them."""
    [conversation] = await team.documents()
    [answer] = [
        message
        for message in (await team.library.store.load(conversation)).messages
        if isinstance(message, AssistantMessage)
    ]
    assert {vote.platform for vote in answer.votes} <= {"discord"}
    return [(int(vote.voter), vote.helpful, vote.reason) for vote in answer.votes]


async def test_forged_buttons_and_forms_reach_no_other_channel(
    server: DiscordServer, team: Office
) -> None:
    """Nor does one that names no run at all."""
    card = await team.asked()
    guild = team.general.guild
    assert guild is not None
    elsewhere = server.channel(guild, "elsewhere")
    theirs: Message = server.say(elsewhere, server.bot, "look")
    theirs.now.components.extend(card.now.components)
    run_id = button(card, "👍 Helpful").rpartition(":")[2]
    for forged in (button(card, "👍 Helpful"), button(card, "👎 Not helpful")):
        said = await team.refused(server.click(theirs, forged, team.ada))
        assert said.startswith("This run isn't on record here")
    sent = server.submit_forged(elsewhere, team.ada, f"council-why:{run_id}", reason="x")
    assert (await team.refused(sent)).startswith("This run isn't on record here")
    unknown = f"council-why:{run_id[:-4]}0000"
    said = await team.refused(server.submit_forged(team.general, team.ada, unknown, reason="x"))
    assert said.startswith("This run isn't on record here")
    assert await votes(team) == []


async def test_a_run_without_an_answer_takes_no_vote(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Its card has no such buttons; a forged one is answered in words."""
    council.script["stage1"] = failure("not_found")
    card = await team.asked()
    for part in card.buttons:
        part["custom_id"] = part["custom_id"].replace(":over:", ":helpful:")
    said = await team.refused(server.click(card, button(card, "Start over"), team.ada))
    assert said == "This run has no answer to vote on."
