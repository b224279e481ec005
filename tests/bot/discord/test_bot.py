"""Discord end to end: the real discord.py client, real storage, scripted models."""

from typing import Any

import pytest

from bot.app import open_lookup
from bot.discord.bot import DiscordBot
from bot.errors import ConfigurationError
from bot.service.commands import ACTION, COMMANDS
from bot.view.wording.discord import HINT
from tests.bot.discord.office import HELD, Office
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Impossible, Message, Permission, wire
from tests.discord_server.state import Intent, World

RESPOND = "POST /interactions/{interaction_id}/{token}/callback"
REGISTER = "PUT /applications/{application_id}/commands"
ANSWER = "The council's answer, written by chair/man."


def button(card: Message, label: str) -> str:
    return next(part["custom_id"] for part in card.buttons if part["label"] == label)


def texts(server: DiscordServer, channel: Channel) -> list[str]:
    return [message.text for message in server.messages(channel, by_bot=True)]


# ── connecting and registering ───────────────────────────────────────────────────────────────


async def test_commands_are_registered_once(server: DiscordServer, quiet: Office) -> None:
    """A second start with the same commands registers nothing."""
    for _ in range(2):
        async with quiet.bot():
            names = {command["name"] for command in server.world.commands.values()}
            assert names == {*(command.name for command in COMMANDS), ACTION}
    assert len(server.requests(REGISTER)) == 1


async def test_changed_commands_are_registered_again(server: DiscordServer, quiet: Office) -> None:
    """Another description is enough."""
    async with quiet.bot():
        pass
    [council] = [each for each in server.world.commands.values() if each["name"] == "council"]
    council["options"][0]["description"] = "Something older"
    async with quiet.bot():
        pass
    assert len(server.requests(REGISTER)) == 2


@pytest.mark.parametrize("is_reconnecting", [False, True])
async def test_a_bot_that_has_hung_up_hears_nothing_until_it_listens_again(
    server: DiscordServer, quiet: Office, *, is_reconnecting: bool
) -> None:
    """Then it listens once, also where it was about to reconnect when it hung up."""
    gateway = server.gateway
    async with quiet.bot() as bot:
        card = await quiet.ask()
        if is_reconnecting:
            gateway.drop(1000)  # discord.py waits a moment before it connects again
            await server.until(lambda: not gateway.connections)
        await bot.hang_up()
        await server.until(lambda: not gateway.connections)
        await quiet.dispatcher.tasks.settled()
        assert ANSWER in card.text
        assert not await bot.is_connected()
        await bot.listen()
        assert await bot.is_connected()
        assert ANSWER in (await quiet.asked("And now?")).text
        assert (len(gateway.connections), gateway.identified) == (1, 2)


async def test_a_wrong_token_is_a_configuration_problem(quiet: Office) -> None:
    """It names the variable."""
    with pytest.raises(ConfigurationError, match="DISCORD_TOKEN: Discord refuses it"):
        async with DiscordBot(
            quiet.dispatcher,
            open_lookup(quiet.library),
            token="wrong",  # noqa: S106 - a fake's
            api_base=quiet.server.url,
        ):
            pass


async def test_an_unreachable_discord_is_a_problem_in_words(quiet: Office) -> None:
    """No error of the network library is shown."""
    base = "http://127.0.0.1:9/api/v10"
    with pytest.raises(ConfigurationError, match="Discord could not be reached"):
        async with DiscordBot(quiet.dispatcher, open_lookup(quiet.library), token="x", api_base=base):  # noqa: S106 - a fake's
            pass


# ── a run ────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_outlives_the_interactions_token(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """After 15 minutes the card is still edited."""
    council.held.add(HELD["Reviews"])
    card = await team.ask()
    await council.until_called(HELD["Reviews"])
    server.advance(16 * 60)
    council.release(HELD["Reviews"])
    await team.dispatcher.tasks.settled()
    assert ANSWER in card.text
    assert {version.by for version in card.history[1:]} == {"bot"}
    assert len(server.pings()) == 1


async def test_a_response_that_comes_too_late_is_posted_instead(
    server: DiscordServer, team: Office
) -> None:
    """The run is in the journal by then, so the card is posted into the channel."""
    server.fail(RESPOND, 404, code=10062)
    server.slash(team.general, team.ada, "council", question="Why?")
    [card] = await server.until(lambda: server.messages(team.general))
    await team.dispatcher.tasks.settled()
    assert card.history[0].by == "bot"
    assert ANSWER in card.text


async def test_a_response_whose_confirmation_is_lost_is_found(
    server: DiscordServer, team: Office
) -> None:
    """There is no second card."""
    server.fail(RESPOND, 400, code=40060, applied=True)
    server.slash(team.general, team.ada, "council", question="Why?")
    [card] = await server.until(lambda: server.messages(team.general))
    await server.until(lambda: len(card.history) > 1)
    await team.dispatcher.tasks.settled()
    assert server.messages(team.general) == [card]
    assert ANSWER in card.text


async def test_profiles_are_proposed_while_somebody_types(server: DiscordServer, team: Office) -> None:
    """Those that contain the typed text; an unknown one is refused with the list."""
    for typed, proposed in (("", ["default"]), ("DEF", ["default"]), ("x", [])):
        typing = server.autocomplete(
            team.general, team.ada, "council", "profile", typed, question="Why?"
        )
        await typing.acknowledged()
        assert [choice["value"] for choice in typing.choices] == proposed
    for gone in ({"depth": "deep"}, {"rounds": 2}, {"strategy": "coverage"}, {"mode": "council"}):
        with pytest.raises(Impossible):
            server.slash(team.general, team.ada, "council", question="Why?", **gone)
    asked = server.slash(team.general, team.ada, "council", question="Why?", profile="x")
    assert await team.refused(asked) == (
        "There is no profile \u201cx\u201d. Available: default. Nothing was asked."
    )


# ── buttons ──────────────────────────────────────────────────────────────────────────────────


def digest(server: DiscordServer, channel: Channel, label: str) -> Message:
    return next(
        message
        for message in server.messages(channel, by_bot=True)
        if label in [part["label"] for part in message.buttons]
    )


async def test_a_button_for_a_member_who_does_not_exist_finds_nothing(
    server: DiscordServer, team: Office
) -> None:
    """The reply says so; an invalid number isn't looked up."""
    await team.asked()
    [thread] = server.threads(team.general)
    posted = digest(server, thread, "Open")
    run = button(posted, "Open").split(":")[2]
    for action in ("open", "reviews"):  # below threads of earlier versions
        custom_id = f"council:{action}:{run}:99"
        posted.now.components[0]["components"][0]["custom_id"] = custom_id
        pressed = server.click(posted, custom_id, team.ada)
        assert await team.refused(pressed) == "This member's answer is not on record."
    posted.now.components[0]["components"][0]["custom_id"] = f"council:reviews:{run}:1000"
    pressed = server.click(posted, f"council:reviews:{run}:1000", team.ada)
    with pytest.raises(TimeoutError):
        await pressed.acknowledged(within=0.005)


async def test_a_forged_button_is_ignored(server: DiscordServer, team: Office) -> None:
    """Only a button of our form that is on the message is looked up."""
    card = await team.asked()
    for custom_id in ("council:delete:1", "council:stop:../../x", button(card, "Transcript") + "0"):
        forged = server.click(card, custom_id, team.ada, forged=True)
        with pytest.raises(TimeoutError):
            await forged.acknowledged(within=0.005)
    assert await team.refused(server.slash(team.general, team.ada, "council-help"))


# ── where there can be no thread ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("denied", "name"),
    [
        (Permission.CREATE_PUBLIC_THREADS, "Create Public Threads"),
        (Permission.SEND_MESSAGES_IN_THREADS, "Send Messages in Threads"),
    ],
)
async def test_without_the_permission_for_threads_the_parts_go_into_the_channel(
    server: DiscordServer, quiet: Office, denied: Permission, name: str
) -> None:
    """The line that says why names the permission."""
    server.overwrite(quiet.general, server.bot, deny=denied)
    async with quiet.bot():
        await quiet.asked()
    assert f"No thread here: the bot lacks {name}." in texts(server, quiet.general)[-1]
    assert server.threads(quiet.general) == []


@pytest.mark.parametrize("kind", ["text", "forum"])
async def test_inside_a_thread_the_parts_go_into_it(
    server: DiscordServer, quiet: Office, kind: str
) -> None:
    """A forum post counts as one."""
    assert quiet.general.guild is not None
    parent = server.channel(quiet.general.guild, "ideas", kind)
    thread = server.thread(parent, "An idea", quiet.ada)
    async with quiet.bot():
        card = await quiet.card(server.slash(thread, quiet.ada, "council", question="Is it good?"))
        await quiet.dispatcher.tasks.settled()
    shown = server.messages(thread, by_bot=True)
    assert shown[0] is card
    assert len(shown) == 2
    assert server.threads(parent) == [thread]
    assert len(server.pings()) == 1


@pytest.mark.parametrize("denied", [Permission.SEND_MESSAGES, Permission.EMBED_LINKS])
async def test_where_the_bot_may_not_post_only_the_asker_is_told(
    server: DiscordServer, quiet: Office, denied: Permission
) -> None:
    """The reply names the missing permission, and nothing is asked."""
    server.overwrite(quiet.general, server.bot, deny=denied)
    async with quiet.bot():
        said = await quiet.refused(server.slash(quiet.general, quiet.ada, "council", question="Why?"))
    assert said.startswith("I need these permissions here: ")
    assert (denied.name or "").replace("_", " ").title() in said
    assert quiet.council.calls == []


async def test_a_mention_where_the_bot_may_not_post_is_answered_directly(
    server: DiscordServer, quiet: Office
) -> None:
    """Its author is told in direct messages."""
    server.overwrite(quiet.general, server.bot, deny=Permission.SEND_MESSAGES)
    async with quiet.bot():
        server.mention(quiet.general, quiet.ada, "Why?")
        [told] = await server.until(lambda: server.messages(server.dm(quiet.ada)))
    assert told.content == (
        "I need these permissions here: Send Messages and Embed Links. "
        "An admin can grant them in the channel's settings, under Permissions."
    )
    assert quiet.council.calls == []


# ── other ways in ────────────────────────────────────────────────────────────────────────────


async def test_a_forward_in_direct_messages_is_a_question(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """As its words are a snapshot's; of the poll beside it, all answers are asked about."""
    direct = server.dm(team.ada)
    forward = server.say(direct, team.ada, server.bot.mention)
    [hint] = await server.until(lambda: server.messages(direct, by_bot=True))
    assert hint.content == HINT
    snapshot: dict[str, Any] = {
        "content": "Should RED-7 go?",
        "embeds": [],
        "attachments": [],
        "type": 0,
    }
    snapshot |= {"timestamp": "2026-11-01T10:00:00+00:00", "edited_timestamp": None, "flags": 0}
    forward.carries = {"content": "", "message_snapshots": [{"message": snapshot}]}
    server.redeliver(forward, times=1)
    await server.until(lambda: council.calls)
    await team.dispatcher.tasks.settled()
    assert "Should RED-7 go?" in council.prompt(f"stage1.1:{FOUR[0]}")


def own_role(team: Office) -> str:
    """Return what mentions the role that Discord manages for the bot."""
    assert team.general.guild is not None
    [role] = [each for each in team.general.guild.roles.values() if each.bot_id]
    role.mentionable = True
    return f"<@&{role.id}>"


async def test_its_own_role_is_the_bot(server: DiscordServer, quiet: Office) -> None:
    """Discord's picker offers it under the same name; another bot's role, and one it holds, aren't."""
    server.world.privileged |= Intent.MESSAGE_CONTENT
    async with quiet.bot(reads_messages=True):
        assert quiet.general.guild is not None
        others = server.role(quiet.general.guild, "council", mentionable=True)
        quiet.general.guild.members[server.bot.id].roles.append(others)
        server.say(quiet.general, quiet.ada, f"<@&{others.id}> lunch?")
        server.say(quiet.general, quiet.ada, f"{own_role(quiet)} Shard now?")
        [card] = await server.until(lambda: server.messages(quiet.general, by_bot=True))
        await quiet.dispatcher.tasks.settled()
    assert "**Ada asked**: Shard now?" in card.text
    assert len(await quiet.documents()) == 1


def two_of(messages: list[Message]) -> list[Message]:
    return messages if len(messages) == 2 else []


async def test_a_text_that_discord_hides_is_answered_with_a_reason(
    server: DiscordServer, team: Office, council: ScriptedCouncil, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a mention of the bot itself brings the text along, and only that message's."""
    server.say(team.general, team.ada, f"{own_role(team)} Shard now?")
    [said] = await server.until(lambda: server.messages(team.general, by_bot=True))
    assert said.content.startswith("Discord hides your text from me if you mention my role.")
    usual = wire.message

    def hiding(entry: Message, world: World) -> dict[str, Any]:
        body = usual(entry, world)
        return wire.redacted(body) if entry is alert else body

    assert team.general.guild is not None
    alert = server.say(team.general, server.member(team.general.guild, "bob"), "CPU at 97 %")
    monkeypatch.setattr(wire, "message", hiding)
    server.say(team.general, team.ada, f"{server.bot.mention} And now?", reply_to=alert)
    [_, said] = await server.until(lambda: two_of(server.messages(team.general, by_bot=True)))
    assert said.content.startswith("Discord hides what you replied to from me. ")
    assert council.calls == []


async def test_a_follow_up_reaches_an_archived_thread(server: DiscordServer, quiet: Office) -> None:
    """A restarted bot doesn't know the thread until somebody writes into it."""
    async with quiet.bot():
        await quiet.asked()
    [thread] = server.threads(quiet.general)
    server.archive(thread)
    async with quiet.bot():
        card, *_ = await quiet.mentioned(thread, "And in a year?")
    assert ANSWER in card.text
    assert len(await quiet.documents()) == 1


@pytest.mark.parametrize("invited", [True, False])
async def test_a_private_thread_has_its_own_scope(
    server: DiscordServer, team: Office, invited: bool
) -> None:
    """Its conversation doesn't belong to the channel it is in; a mention brings the bot into it."""
    secret = server.thread(team.general, "secret", team.ada, private=True, with_bot=invited)
    await team.mentioned(secret, "Shard now?")
    [document] = await team.documents()
    source = (await team.library.store.load(document)).source
    assert source is not None
    assert (source.channel, source.thread) == (str(secret.id), str(secret.id))


# ── files and private runs ───────────────────────────────────────────────────────────────────


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────


async def test_the_card_is_left_alone_for_about_a_second(
    quiet: Office, council: ScriptedCouncil
) -> None:
    """However much happens; here the second is an hour."""
    council.held.add(HELD["Final answer"])
    async with quiet.bot(edit_seconds=3600):
        card = await quiet.ask()
        await council.until_called(HELD["Final answer"])
        assert len(card.history) == 1
        await quiet.dispatcher.tasks.drain(0)
