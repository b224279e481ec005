"""Follow-ups on Discord, through the real client: *Follow up*, *Answer the question*, and the form they open."""

from council.document.conversation import AssistantMessage, Conversation, UserMessage
from tests.bot.discord.office import Office
from tests.bot.discord.test_bot import button
from tests.bot.inputs.pdfs import lines, pdf
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Interaction, Message, User


async def opened(
    server: DiscordServer, card: Message, reader: User, label: str = "Follow up"
) -> Interaction:
    pressed = await server.click(card, button(card, label), reader).acknowledged()
    assert pressed.callback == 9
    return pressed


async def told(server: DiscordServer, submitted: Interaction) -> str:
    """Wait for what whoever sent a form is told, alone."""
    await submitted.acknowledged()
    await server.until(lambda: bool(submitted.message and submitted.message.content))
    assert submitted.message is not None
    assert submitted.message.visible_to is submitted.user
    return submitted.message.text


def cards(server: DiscordServer, channel: Channel) -> list[Message]:
    posted = server.messages(channel, by_bot=True)
    return [m for m in posted if "Follow up" in [part["label"] for part in m.buttons]]


async def conversation(team: Office) -> Conversation:
    [one] = await team.documents()
    return await team.library.store.load(one)


def questions(told: Conversation) -> list[str]:
    """Return what was asked, in order."""
    return [each.content for each in told.messages if isinstance(each, UserMessage)]


async def test_a_form_takes_files(server: DiscordServer, team: Office, council: ScriptedCouncil) -> None:
    """They are read with its question, and the card says so."""
    card = await team.asked()
    council.calls.clear()
    plan = server.upload("plan.pdf", pdf([lines("Shards: 2")]), "application/pdf")
    note = server.upload("note.md", b"3 TB")
    form = await opened(server, card, team.ada)
    await told(server, server.submit(form, files=[plan, note], text="And with this?"))
    await team.dispatcher.tasks.settled()
    prompt = council.prompt(f"stage1.1:{FOUR[0]}")
    assert "Attachment plan.pdf:\n\n[p. 1]\nShards: 2" in prompt
    assert "Attachment note.md:\n\n3 TB" in prompt


async def test_a_forged_form_reaches_no_other_channel(server: DiscordServer, team: Office) -> None:
    """Nothing is asked or counted, nor by one that names no run at all."""
    run = button(await team.asked(), "Follow up").rpartition(":")[2]
    assert team.general.guild is not None
    other = server.channel(team.general.guild, "other")
    for channel, form, values in (
        (other, f"council-follow:{run}:1", {"text": "x", "profile": "default"}),
        (other, f"council-why:{run}", {"reason": "x"}),
        (team.general, f"council-why:{run[:-4]}0000", {"reason": "x"}),
    ):
        sent = server.submit_forged(channel, team.ada, form, **values)
        assert await team.refused(sent) == "This run isn't on record here; it may have been deleted."
    told = await conversation(team)
    assert questions(told) == ["Shard or scale up?"]
    assert [each.votes for each in told.messages if isinstance(each, AssistantMessage)] == [[]]
