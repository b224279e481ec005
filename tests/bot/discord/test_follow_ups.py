"""Follow-ups on Discord, through the real client: *Follow up*, *Answer it*, and the form they open."""

import asyncio
from dataclasses import replace

from bot.service.admission.access import Access
from bot.service.admission.channels import Operator
from council.document.conversation import Conversation, UserMessage
from tests.bot.discord.office import HELD, Office
from tests.bot.discord.test_bot import ANSWER, button
from tests.bot.inputs.pdfs import lines, pdf
from tests.council.scripted import FOUR, ScriptedCouncil, asking, failure, profile
from tests.discord_server import Channel, DiscordServer, Interaction, Message, User

ASK = "How many jobs run at night?"


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


async def test_a_follow_up_is_answered_in_the_same_thread_and_conversation(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Anybody who may ask may follow up; the members know what was answered before."""
    card = await team.asked()
    [thread] = server.threads(team.general)
    assert team.general.guild is not None
    bob = server.member(team.general.guild, "bob")
    council.calls.clear()
    sent = server.submit(await opened(server, card, bob), text="And in a year?")
    address = f"https://discord.com/channels/{team.general.guild.id}/{thread.id}"
    assert await told(server, sent) == f"Your follow-up was asked: {address}"
    await team.dispatcher.tasks.settled()
    [below] = cards(server, thread)
    assert "**Bob asked**: And in a year?" in below.text
    assert cards(server, team.general) == [card]
    assert questions(await conversation(team)) == ["Shard or scale up?", "And in a year?"]
    assert "Shard or scale up?" in council.prompt(f"stage1.1:{FOUR[0]}")
    assert ANSWER in council.prompt(f"stage1.1:{FOUR[0]}")
    # The card below has buttons of its own, which lead to the same conversation.
    sent = server.submit(await opened(server, below, team.ada), text="And in ten?")
    assert await told(server, sent) == "Your follow-up was asked."
    await team.dispatcher.tasks.settled()
    assert len(cards(server, thread)) == 2
    assert questions(await conversation(team))[2:] == ["And in ten?"]
    assert server.unhandled() == []


async def test_answer_it_opens_the_form_with_the_chairmans_question(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Only where the chairman asks for something."""
    plain = await team.asked()
    assert "Answer it" not in [part["label"] for part in plain.buttons]
    council.script["stage3"] = asking(ASK)
    card = await team.asked("Cron or Temporal?")
    labels = [part["label"] for part in card.buttons]
    assert labels == ["Answer it", "Follow up", "Transcript", "Ask again", "Helpful", "Not helpful"]
    form = await opened(server, card, team.ada, "Answer it")
    assert form.response is not None
    label, upload = form.response["components"]
    assert upload["component"]["type"] == 19
    assert label["component"]["value"] == f"{ASK}\n\n"
    sent = server.submit(form, text=f"{ASK}\n\nAbout forty.")
    await told(server, sent)
    await team.dispatcher.tasks.settled()
    found = [await team.library.store.load(one) for one in await team.documents()]
    [continued] = [one for one in found if len(one.messages) == 4]
    assert questions(continued) == ["Cron or Temporal?", f"{ASK}\n\nAbout forty."]


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


async def test_a_form_asks_once_however_often_it_is_sent(server: DiscordServer, quiet: Office) -> None:
    """Also after a restart, and however often the same submission is delivered."""
    async with quiet.bot():
        card = await quiet.asked()
        form = await opened(server, card, quiet.ada)
        first = server.submit(form, text="And in a year?")
        server.redeliver(first)
        second = server.submit(form, text="And in a year?")
        said = {await told(server, first), await told(server, second)}
        assert "This question was already asked." in said
        await quiet.dispatcher.tasks.settled()
    async with quiet.bot():
        assert await told(server, server.submit(form, text="x")) == "This question was already asked."
        await quiet.dispatcher.tasks.settled()
        assert questions(await conversation(quiet)) == ["Shard or scale up?", "And in a year?"]


async def test_old_buttons_and_forms_are_heard_after_a_restart(
    server: DiscordServer, quiet: Office
) -> None:
    """The form was opened by an earlier process."""
    async with quiet.bot():
        card = await quiet.asked()
        form = await opened(server, card, quiet.ada)
    async with quiet.bot():
        await told(server, server.submit(form, text="And in a year?"))
        await told(server, server.submit(await opened(server, card, quiet.ada), text="And in ten?"))
        await quiet.dispatcher.tasks.settled()
        assert questions(await conversation(quiet))[1:] == ["And in a year?", "And in ten?"]


async def test_two_people_at_once_get_two_runs_one_after_the_other(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """The second knows the first one's answer."""
    card = await team.asked()
    assert team.general.guild is not None
    bob = server.member(team.general.guild, "bob")
    forms = [await opened(server, card, reader) for reader in (team.ada, bob)]
    council.calls.clear()
    sent = [server.submit(form, text=text) for form, text in zip(forms, ("One?", "Two?"), strict=True)]
    await asyncio.gather(*(told(server, each) for each in sent))
    await team.dispatcher.tasks.settled()
    assert sorted(questions(await conversation(team))[1:]) == ["One?", "Two?"]
    prompts = [
        call.messages[-1]["content"] for call in council.calls if call.step == f"stage1.1:{FOUR[0]}"
    ]
    second = questions(await conversation(team))[2]
    first = questions(await conversation(team))[1]
    assert [first in prompt for prompt in prompts if second in prompt] == [True]


async def test_one_of_several_profiles_is_chosen_in_the_form(
    server: DiscordServer, team: Office
) -> None:
    """The conversation's own profile is preselected."""
    fast = profile("openai/gpt-5", "x-ai/grok", name="fast")
    team.dispatcher.reconfigure(Operator(profiles={"default": profile(), "fast": fast}))
    card = await team.asked()
    form = await opened(server, card, team.ada)
    assert form.response is not None
    offered = form.response["components"][2]["component"]["options"]
    assert [(one["value"], one.get("default", False)) for one in offered] == [
        ("default", True),
        ("fast", False),
    ]
    await told(server, server.submit(form, text="And in a year?", profile="fast"))
    await team.dispatcher.tasks.settled()
    [thread] = server.threads(team.general)
    assert "2 members" in cards(server, thread)[0].text


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


async def test_where_the_thread_is_gone_the_follow_up_is_answered_in_the_channel(
    server: DiscordServer, team: Office
) -> None:
    """In the same conversation, with a thread of its own."""
    card = await team.asked()
    [thread] = server.threads(team.general)
    form = await opened(server, card, team.ada)
    server.delete_channel(thread)
    assert await told(server, server.submit(form, text="And in a year?")) == "Your follow-up was asked."
    await team.dispatcher.tasks.settled()
    first, second = cards(server, team.general)
    assert first is card
    assert "And in a year?" in second.text
    assert [each.id for each in server.threads(team.general)] == [second.id]
    assert questions(await conversation(team)) == ["Shard or scale up?", "And in a year?"]


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


async def test_who_may_not_ask_may_not_follow_up(server: DiscordServer, team: Office) -> None:
    """The form opens, since votes and transcripts are open too; nothing is asked with it."""
    card = await team.asked()
    team.dispatcher.channels.operator = replace(
        team.dispatcher.channels.operator,
        access=Access.model_validate({"deny": {"users": [str(team.ada.id)]}}),
    )
    form = await opened(server, card, team.ada)
    said = await told(server, server.submit(form, text="And in a year?"))
    assert "[access] in council.toml" in said
    assert questions(await conversation(team)) == ["Shard or scale up?"]
