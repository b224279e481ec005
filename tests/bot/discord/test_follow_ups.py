"""Follow-ups on Discord, through the real client: *Follow up*, *Answer the question*, and the form they open."""

from council.document.conversation import Conversation, UserMessage
from tests.bot.discord.office import HELD, Office
from tests.bot.discord.test_bot import button
from tests.bot.inputs.pdfs import lines, pdf
from tests.council.scripted import FOUR, ScriptedCouncil, failure
from tests.discord_server import Channel, DiscordServer, Interaction, Message, User


async def opened(
    server: DiscordServer, card: Message, reader: User, label: str = "Follow up"
) -> Interaction:
    """Open the form."""
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
    """Return the finished cards in a channel or thread."""
    posted = server.messages(channel, by_bot=True)
    return [m for m in posted if "Follow up" in [part["label"] for part in m.buttons]]


async def conversation(team: Office) -> Conversation:
    """Return the only conversation there is."""
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


async def test_forged_buttons_and_forms_reach_no_other_channel(
    server: DiscordServer, team: Office
) -> None:
    """Nothing is asked, and nothing is said of what is there."""
    card = await team.asked()
    assert team.general.guild is not None
    other = server.channel(team.general.guild, "other")
    posted = server.say(other, server.bot, "look")
    posted.now.components.extend(card.now.components)
    refused = "This run isn't on record here; it may have been deleted."
    assert await team.refused(server.click(posted, button(card, "Follow up"), team.ada)) == refused
    run_id = button(card, "Follow up").rpartition(":")[2]
    sent = server.submit_forged(
        other, team.ada, f"council-follow:{run_id}:1", text="x", profile="default"
    )
    assert await team.refused(sent) == refused
    assert questions(await conversation(team)) == ["Shard or scale up?"]


async def test_what_cannot_be_followed_up_says_why(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """A run that is under way, one that failed, and one that was forgotten since its form was opened."""
    council.held.add(HELD["Answers"])
    card = await team.ask()
    stop = button(card, "Stop")
    for part in card.buttons:
        part["custom_id"] = stop.replace(":stop:", ":follow:")
    said = await team.refused(server.click(card, button(card, "Stop"), team.ada))
    assert said == "This question is still being answered. Follow up once its answer is there."
    council.release(HELD["Answers"])
    await team.dispatcher.tasks.settled()
    form = await opened(server, card, team.ada)
    selection = await team.library.forgetting.select.user("discord", str(team.ada.id))
    await team.library.forgetting.forget(selection, by="discord:1")
    said = await team.refused(server.submit(form, text="And in a year?"))
    assert said == "This run isn't on record here; it may have been deleted."
    council.script["stage1"] = failure("not_found")
    failed = await team.asked()
    for part in failed.buttons:
        part["custom_id"] = part["custom_id"].replace(":over:", ":follow:")
    said = await team.refused(server.click(failed, button(failed, "Start over"), team.ada))
    assert said.startswith("This run gave no answer, so there is nothing to follow up.")


async def test_in_direct_messages_a_follow_up_is_answered_in_place(
    server: DiscordServer, team: Office
) -> None:
    """There is no thread, and still it is the same conversation."""
    direct = server.dm(team.ada)
    [card, *_] = await team.mentioned(direct, "Shard or scale up?")
    assert await told(server, server.submit(await opened(server, card, team.ada), text="And then?"))
    await team.dispatcher.tasks.settled()
    assert len(cards(server, direct)) == 2
    assert questions(await conversation(team)) == ["Shard or scale up?", "And then?"]
