"""Replies to the bot's messages on Discord: a follow-up where their text arrives."""

from council.document.conversation import UserMessage
from tests.bot.discord.office import Office
from tests.bot.discord.test_bot import button
from tests.bot.discord.test_follow_ups import cards, conversation, questions
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer

POINTER = "Discord doesn't show me the text of this reply. Press Follow up below the answer instead."


async def test_a_reply_that_pings_the_bot_is_a_follow_up(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """To the card, or to any message of its thread; the answer appears in the thread."""
    card, *_ = await team.mentioned(team.general, "Shard now?")
    [thread] = server.threads(team.general)
    asked = server.say(team.general, team.ada, "--depth full And in a year?", reply_to=card)
    server.redeliver(asked)
    await server.until(lambda: len(cards(server, thread)) == 1)
    await team.dispatcher.tasks.settled()
    assert "And in a year?" in cards(server, thread)[0].text
    assert council.asked("stage2")[-1] in council.asked("stage1")
    ranking = next(m for m in server.messages(thread, by_bot=True) if "Ranking" in m.text)
    server.say(thread, team.ada, "And in ten?", reply_to=ranking)
    await server.until(lambda: len(cards(server, thread)) == 2)
    await team.dispatcher.tasks.settled()
    assert questions(await conversation(team)) == ["Shard now?", "And in a year?", "And in ten?"]


async def test_a_reply_to_a_commands_response_is_pointed_to_the_button(
    server: DiscordServer, team: Office
) -> None:
    """Its text never arrives; the button works."""
    card = await team.asked()
    asked = server.say(team.general, team.ada, "And in a year?", reply_to=card)
    [said] = await server.until(
        lambda: [m for m in server.messages(team.general, by_bot=True) if m.reply_to is asked]
    )
    assert said.text == POINTER
    assert said.pinged == []
    assert button(card, "Follow up")
    told = (await conversation(team)).messages
    assert [each.content for each in told if isinstance(each, UserMessage)] == ["Shard or scale up?"]


async def test_people_who_talk_start_no_run(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Not in the thread, not in replies to each other, not in one that doesn't ping the bot; nor other bots."""
    card, *_ = await team.mentioned(team.general, "Shard now?")
    [thread] = server.threads(team.general)
    council.calls.clear()
    word = server.say(thread, team.ada, "I disagree")
    server.say(thread, team.ada, "So do I", reply_to=word)
    server.say(team.general, team.ada, "Read this", reply_to=card, pings=False)
    assert team.general.guild is not None
    other = server.member(team.general.guild, "other bot")
    other.bot = True
    server.mention(team.general, other, "Shard now?")
    await team.mentioned(team.general, "")
    assert council.calls == []


async def test_a_reply_to_what_belongs_to_no_run_is_told_how_to_ask(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Such as a hint, or a card that was forgotten."""
    [hint] = await team.mentioned(team.general, "")
    council.calls.clear()
    server.say(team.general, team.ada, "Shard now?", reply_to=hint)
    await server.until(lambda: len(server.messages(team.general, by_bot=True)) == 2)
    assert server.messages(team.general, by_bot=True)[1].text == hint.text
    assert council.calls == []
