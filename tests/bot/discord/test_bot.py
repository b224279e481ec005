"""Discord end to end: the real discord.py client, real storage, scripted models."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import discord
import pytest
import pytest_asyncio
from discord.http import Route

from bot.app import open_lookup
from bot.discord.bot import DiscordBot
from bot.discord.chat import DiscordChat
from bot.discord.client import DiscordTransport, single_attempts
from bot.discord.incoming import Location
from bot.errors import ConfigurationError, Gone, Malformed, NotAllowed, VenueError
from bot.service.commands import ACTION, COMMANDS
from bot.service.delivery.chat import File, Part
from bot.service.delivery.receipts import unrecorded
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher
from bot.view.wording.discord import HINT
from council.criteria import EvaluationCriteria
from storage.scope import Scope
from tests.bot.discord.office import HELD, Office, impatient
from tests.bot.inputs.pdfs import lines, pdf
from tests.bot.sample_run import accepted
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR, ScriptedCouncil, failure
from tests.discord_server import (
    Channel,
    DiscordServer,
    Impossible,
    Message,
    Permission,
    Ping,
    User,
    wire,
)
from tests.discord_server.state import Intent, World

SEND = "POST /channels/{channel_id}/messages"
EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"
THREAD = "POST /channels/{channel_id}/messages/{message_id}/threads"
RESPOND = "POST /interactions/{interaction_id}/{token}/callback"
REGISTER = "PUT /applications/{application_id}/commands"
LONG = "\n".join(f"Reason {number}: writes grow by a tenth each month." for number in range(60))
ANSWER = "The council's answer, written by chair/man."


def button(card: Message, label: str) -> str:
    """Return the custom id of a button on the card."""
    return next(part["custom_id"] for part in card.buttons if part["label"] == label)


async def transcript(server: DiscordServer, card: Message, reader: User) -> Message:
    """Press *Transcript* and wait for what comes after the acknowledgement."""
    pressed = await server.click(card, button(card, "Transcript"), reader).acknowledged()
    await server.until(lambda: bool(pressed.message and pressed.message.attachments))
    assert pressed.message is not None
    return pressed.message


def texts(server: DiscordServer, channel: Channel) -> list[str]:
    """Return what the bot has written into a channel."""
    return [message.text for message in server.messages(channel, by_bot=True)]


# ── connecting and registering ───────────────────────────────────────────────────────────────


async def test_commands_are_registered_once(server: DiscordServer, quiet: Office) -> None:
    """A second start with the same commands registers nothing."""
    for _ in range(2):
        async with quiet.bot():
            names = {command["name"] for command in server.world.commands[None].values()}
            assert names == {*(command.name for command in COMMANDS), ACTION}
    assert len(server.requests(REGISTER)) == 1


async def test_changed_commands_are_registered_again(server: DiscordServer, quiet: Office) -> None:
    """Another description is enough."""
    async with quiet.bot():
        pass
    [council] = [each for each in server.world.commands[None].values() if each["name"] == "council"]
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


async def test_a_command_becomes_card_thread_answer_and_one_mention(
    server: DiscordServer, team: Office
) -> None:
    """The thread contains a digest; only the asker is pinged, once."""
    card = await team.asked()
    [thread] = server.threads(team.general)
    assert thread.id == card.id
    assert server.messages(team.general) == [card]
    posted = server.messages(thread, by_bot=True)
    ranking, *members = posted
    assert len(members) == len(FOUR)
    assert "## Ranking\n\nAverage vote (1 is best) beside each name. " in ranking.text
    assert ranking.buttons == []
    for name in FOUR:
        [member] = [
            message for message in members if message.text.startswith(f"## {short(name)}\n\nRanked ")
        ]
        assert "### Objections\n\n" in member.text
        assert "### Corrected response\n\nA better and much longer answer" in member.text
        assert "**Changed from**: The first answer of" in member.text
        assert [part["label"] for part in member.buttons] == ["Open"]
    assert [message for message in posted if message.attachments] == []
    assert thread.name == "Shard or scale up?"
    assert ANSWER in card.text
    assert [part["label"] for part in card.buttons] == FINISHED
    said = (
        f"<@{team.ada.id}> The council has answered. "
        f"[See the card](<https://discord.com/channels/{team.general.guild.id}/{team.general.id}/{card.id}>)"  # pyright: ignore[reportOptionalMemberAccess] - it is in a guild
    )
    assert ranking.content.endswith(f"\n\n{said}")
    assert server.pings() == [Ping("user", team.ada.id, "post", ranking.id)]
    assert server.unhandled() == []


async def whole_responses(team: Office) -> None:
    """Let the thread show whole corrected responses in this channel."""
    guild = team.general.guild
    assert guild is not None
    here = Scope("discord", str(guild.id), str(team.general.id))
    await team.library.overrides.change(here, {"thread": "full"}, "discord:1")


def short(name: str) -> str:
    """Return what people call a member."""
    return name.rpartition("/")[2]


@pytest.mark.parametrize("length", [700, 4_000, 12_000])
async def test_a_digest_shows_how_each_response_begins(
    server: DiscordServer, team: Office, council: ScriptedCouncil, length: int
) -> None:
    """Five messages, however long the responses are; nothing is called cut."""
    council.script["stage2_5"] = " ".join(f"Word{number:04}." for number in range(length // 10))
    await team.asked()
    [thread] = server.threads(team.general)
    posted = [message for message in server.messages(thread) if not message.attachments]
    assert len(posted) == 1 + len(FOUR)
    whole = "\n".join(message.text for message in posted)
    assert whole.count("Corrected response: how it begins") == len(FOUR)
    assert sum(len(message.text) for message in posted) < 5_000
    assert "Cut here" not in whole


@pytest.mark.parametrize(("length", "most"), [(700, 5), (4_000, 6), (12_000, 9)])
async def test_how_many_messages_a_thread_of_four_members_has(
    server: DiscordServer, team: Office, council: ScriptedCouncil, length: int, most: int
) -> None:
    """The digest, and one or two per member; each corrected response up to its limit."""
    words = " ".join(f"word{number:04}" for number in range(length // 9))
    council.script["stage2_5"] = words
    await whole_responses(team)
    await team.asked()
    [thread] = server.threads(team.general)
    posted = [message for message in server.messages(thread) if not message.attachments]
    assert len(posted) <= most
    whole = "\n".join(message.text for message in posted)
    shown = [whole.count(word) for word in words.split()]
    kept = len(FOUR) * min(len(shown), 11_000 // 9)
    assert shown == sorted(shown, reverse=True)
    assert sum(shown) >= kept
    assert whole.count("Cut here; the full text is in the transcript.") == (4 if 0 in shown else 0)
    assert server.unhandled() == []


def seat(team: Office, **settings: object) -> None:
    """Give the council's profile these settings."""
    operator = team.dispatcher.channels.operator
    changed = operator.profiles["default"].model_copy(update=settings)
    team.dispatcher.reconfigure(replace(operator, profiles={"default": changed}))


async def test_the_thread_shows_the_last_of_two_rounds(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """With its ranking and corrections; a long response is cut and says so, and the transcript is complete."""
    council.script = {f"stage2_5.2:{name}": f"{name} corrects itself again. {LONG * 5}" for name in FOUR}
    await whole_responses(team)
    seat(team, max_rounds=2)
    card = await team.asked()
    [thread] = server.threads(team.general)
    posted = texts(server, thread)
    assert [text for text in posted if "## Ranking" in text] == [posted[0]]
    assert posted[0].startswith("## Ranking, round 2\n\n")
    for name in FOUR:
        [number] = [at for at, text in enumerate(posted) if text.startswith(f"## {short(name)}\n\n")]
        assert f"{name} corrects itself again." in posted[number]
        assert posted[number + 1].endswith("\n\n*Cut here; the full text is in the transcript.*")
    file = next(iter((await transcript(server, card, team.ada)).attachments))
    whole = re.sub("<[^>]+>", "", file.data.decode())
    assert whole.count(LONG.splitlines()[-1]) >= 5 * len(FOUR)
    assert "2 review rounds, the limit" in card.text
    assert server.unhandled() == []


async def test_the_card_is_edited_in_every_stage(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """It shows each stage under way, and the streamed answer, before the run ends."""
    council.held |= {*HELD.values()}
    card = await team.ask()
    assert "Shard or scale up?" in card.text
    assert "Asked by Ada" in card.text
    assert [part["label"] for part in card.buttons] == ["Stop"]
    for stage, step in HELD.items():
        await council.until_called(step)
        await server.until(lambda stage=stage: f"**{stage}**: waiting" not in card.text)
        council.release(step)
    await team.dispatcher.tasks.settled()
    assert len(card.history) > len(HELD)
    assert ANSWER in card.text


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


async def test_a_redelivered_command_is_one_run(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """One card, one set of calls, one mention."""
    asked = server.slash(team.general, team.ada, "council", question="Why?")
    server.redeliver(asked, times=3)
    card = await team.card(asked)
    await team.dispatcher.tasks.settled()
    server.redeliver(asked)
    await team.asked("Something else")
    assert server.messages(team.general)[0] is card
    assert len(server.messages(team.general)) == 2
    assert len(council.calls) == 2 * len({call.step for call in council.calls})
    assert len(server.pings()) == 2


async def test_the_card_is_answered_in_time(server: DiscordServer, team: Office) -> None:
    """Before any model answers."""
    asked = server.slash(team.general, team.ada, "council", question="Why?")
    await team.card(asked)
    assert asked.acknowledged_after is not None
    assert asked.acknowledged_after < 3
    await team.dispatcher.tasks.settled()


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


async def test_the_cards_colour_tells_the_runs_state(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Blue while it runs, green with an answer, gold with a weakened one, red without one."""

    def colours(card: Message) -> tuple[int, int]:
        """Return the first and the last colour."""
        return card.history[0].embeds[0]["color"], card.now.embeds[0]["color"]

    blue, green, gold, red = (
        colour.value
        for colour in (
            discord.Colour.blurple(),
            discord.Colour.green(),
            discord.Colour.gold(),
            discord.Colour.red(),
        )
    )
    assert colours(await team.asked()) == (blue, green)
    council.script[f"stage1.1:{FOUR[0]}"] = failure()
    assert colours(await team.asked("With three?")) == (blue, gold)
    council.script["stage1"] = failure()
    council.script.pop(f"stage1.1:{FOUR[0]}")
    assert colours(await team.asked("With none?")) == (blue, red)
    [thread, _] = server.threads(team.general)
    assert not any("color" in embed for one in server.messages(thread) for embed in one.embeds)


async def test_the_asker_is_told_why_there_is_no_answer(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """The card has the cause of each member and *Ask again*."""
    council.script["stage1"] = failure("rate_limited")
    card = await team.asked()
    assert "No member of the council answered. Wait a minute, then press Continue." in card.text
    assert [part["label"] for part in card.buttons] == [
        "Continue (finished calls aren't paid twice)",
        "Start over",
    ]
    assert len(server.pings()) == 1


async def test_the_options_change_the_run_and_are_kept_when_it_is_asked_again(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Discord offers them as real options; a profile has all the others."""
    council.held |= {HELD["Answers"]}
    criteria = EvaluationCriteria.model_validate("Cost:3, Security!")
    seat(team, max_rounds=2, strategy="coverage", criteria=criteria)
    card = await team.ask(profile="default", depth="full")
    asked_for = "4 members, up to 2 rounds, strategy coverage. Criteria: Cost:3, Security!."
    assert asked_for in card.text
    council.release(HELD["Answers"])
    await team.dispatcher.tasks.settled()
    assert "Criteria" in council.prompt(f"stage1.1:{FOUR[0]}")
    council.calls.clear()
    council.held = {HELD["Reviews"]}
    again = await team.card(server.click(card, button(card, "Ask again"), team.ada))
    assert asked_for in again.text
    council.release(HELD["Reviews"])
    await team.dispatcher.tasks.settled()
    assert "- Cost (weight 3)" in council.prompt(f"stage1.1:{FOUR[0]}")
    for gone in ({"depth": "deep"}, {"rounds": 2}, {"strategy": "coverage"}, {"mode": "council"}):
        with pytest.raises(Impossible):
            server.slash(team.general, team.ada, "council", question="Why?", **gone)


async def test_a_bare_word_for_help_asks_nothing(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Privately after the command; below a message, with the buttons, since Discord has no other way."""
    for text, options in (("help", {}), ("--help", {"private": True}), (" ? ", {})):
        typed = server.slash(team.general, team.ada, "council", question=text, **options)
        assert "Several models answer" in await team.refused(typed)
    *_, said = await team.mentioned(team.general, "help")
    assert "Several models answer" in said.text
    assert [pressed["label"] for pressed in said.buttons] == ["Options", "Models and limits"]
    assert (council.calls, await team.documents()) == ([], [])


async def test_profiles_are_proposed_while_somebody_types(server: DiscordServer, team: Office) -> None:
    """Those that contain the typed text; an unknown one is refused with the list."""
    for typed, proposed in (("", ["default"]), ("DEF", ["default"]), ("x", [])):
        typing = server.autocomplete(
            team.general, team.ada, "council", "profile", typed, question="Why?"
        )
        await typing.acknowledged()
        assert [choice["value"] for choice in typing.choices] == proposed
    asked = server.slash(team.general, team.ada, "council", question="Why?", profile="x")
    assert await team.refused(asked) == (
        "There is no profile \u201cx\u201d. Available: default. Nothing was asked."
    )


async def test_help_is_shown_only_to_its_asker(server: DiscordServer, team: Office) -> None:
    """It names the models and what was spent in this channel."""
    said = await team.refused(server.slash(team.general, team.ada, "council-help"))
    assert "gpt-5" in said
    assert "Who sees it" in said


# ── buttons ──────────────────────────────────────────────────────────────────────────────────


async def held(team: Office) -> Message:
    """Ask, with two members who have answered and two who haven't."""
    steps = [f"stage1.1:{name}" for name in FOUR]
    team.council.held |= {*steps[2:]}
    card = await team.ask()
    await team.council.until_called(*steps)
    return card


async def test_the_transcript_is_a_file_for_the_person_who_presses(
    server: DiscordServer, team: Office
) -> None:
    """It contains the whole conversation."""
    card = await team.asked()
    given = await transcript(server, card, team.ada)
    assert given.ephemeral
    names = [file.filename for file in given.attachments]
    assert [name.rpartition(".")[2] for name in names] == ["html", "md"]
    assert all(ANSWER in file.data.decode() for file in given.attachments)


async def test_asking_again_begins_a_new_run(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """With the same question and files and a new card; the person who presses is the asker."""
    notes = server.upload("notes.md", b"Two shards.")
    card = await team.asked(attachment=notes)
    assert team.general.guild is not None
    bob = server.member(team.general.guild, "bob")
    council.calls.clear()
    again = await team.card(server.click(card, button(card, "Ask again"), bob))
    await team.dispatcher.tasks.settled()
    assert again is not card
    assert ANSWER in again.text
    assert "Two shards." in council.prompt(f"stage1.1:{FOUR[0]}")
    assert [ping.id for ping in server.pings()] == [team.ada.id, bob.id]
    assert len(await team.documents()) == 2


async def test_buttons_survive_a_restart(server: DiscordServer, quiet: Office) -> None:
    """A new client answers the buttons of the previous one."""
    async with quiet.bot():
        card = await quiet.asked()
    async with quiet.bot():
        assert (await transcript(server, card, quiet.ada)).attachments
        again = await quiet.card(server.click(card, button(card, "Ask again"), quiet.ada))
        await quiet.dispatcher.tasks.settled()
        assert ANSWER in again.text


def digest(server: DiscordServer, channel: Channel, label: str) -> Message:
    """Return the first message of a thread that has this button."""
    return next(
        message
        for message in server.messages(channel, by_bot=True)
        if label in [part["label"] for part in message.buttons]
    )


async def test_a_long_review_comes_in_several_private_messages(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """In full."""
    words = "\n\n".join(f"Point {number}: this is what matters." for number in range(150))
    council.script["stage2"] = words
    await team.asked()
    [thread] = server.threads(team.general)
    posted = digest(server, thread, "Open")
    await server.click(posted, button(posted, "Open"), team.ada).acknowledged()

    def whole() -> str:
        return "\n".join(message.text for message in server.messages(thread) if message.visible_to)

    await server.until(lambda: whole().count("Point 149:") == len(FOUR) - 1)
    assert [whole().count(f"Point {number}:") for number in (0, 77)] == [len(FOUR) - 1] * 2
    assert {message.visible_to for message in server.messages(thread)} == {None, team.ada}


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


async def test_direct_messages_get_the_parts_in_place(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """There are no threads, so a long answer continues below."""
    council.script["stage3"] = f"{ANSWER}\n\n{LONG}{LONG}"
    direct = server.dm(team.ada)
    card = await team.card(server.slash(direct, team.ada, "council", question="Why?"))
    await team.dispatcher.tasks.settled()
    shown = texts(server, direct)
    assert ANSWER in card.text
    assert "continues below" in card.text
    assert shown[1].startswith("No thread here: direct messages have no threads.\n")
    link = f"https://discord.com/channels/@me/{direct.id}/{card.id}"
    assert shown[-1].endswith(f"<@{team.ada.id}> The council has answered. [See the card](<{link}>)")


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


async def test_a_mention_asks(server: DiscordServer, team: Office, council: ScriptedCouncil) -> None:
    """The card is a new message; the question is the text beside the mention."""
    card, *_ = await team.mentioned(team.general, "Shard now?")
    assert ANSWER in card.text
    assert "Shard now?" in council.prompt(f"stage1.1:{FOUR[0]}")
    assert f"<@{server.bot.id}>" not in council.prompt(f"stage1.1:{FOUR[0]}")
    assert len(server.pings()) == 1


async def test_flags_beside_a_mention_count(team: Office) -> None:
    """As on Slack; mistakes in them are explained in a reply."""
    card, *_ = await team.mentioned(team.general, "--depth quick --profile default Shard now?")
    assert "> Shard now?" in card.history[0].embeds[0]["description"]
    said = await team.mentioned(team.general, "--rounds 2 Why?")
    assert "--rounds belongs to a profile now" in said[-1].content
    assert "This council's profiles: default." in said[-1].content
    said = await team.mentioned(team.general, "--privat Why?")
    assert said[-1].content == (
        "Unknown option --privat. Did you mean --private? Options come before the question."
    )


async def test_a_redelivered_mention_is_one_run(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """One card, one set of calls."""
    server.redeliver(server.mention(team.general, team.ada, "Shard now?"), times=3)
    await server.until(lambda: server.messages(team.general, by_bot=True))
    await team.dispatcher.tasks.settled()
    assert len(server.messages(team.general, by_bot=True)) == 1
    assert len(council.calls) == len({call.step for call in council.calls})


async def test_an_empty_mention_gets_a_hint(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """In a reply that pings nobody."""
    [hint] = await team.mentioned(team.general, "")
    assert "/council" in hint.content
    assert hint.reply_to is not None
    assert server.pings() == []
    assert council.calls == []


async def test_a_direct_message_is_a_question(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Card, parts and mention are direct messages; one without words and files gets a hint."""
    direct = server.dm(team.ada)
    server.say(direct, team.ada, server.bot.mention)
    [hint] = await server.until(lambda: server.messages(direct, by_bot=True))
    assert hint.content == HINT
    assert council.calls == []
    server.say(direct, team.ada, "Shard now?")
    [card, *_] = await server.until(lambda: server.messages(direct, by_bot=True)[1:])
    await team.dispatcher.tasks.settled()
    assert ANSWER in card.text
    assert "Asked by Ada" in card.history[0].embeds[0]["description"]
    assert [ping.id for ping in server.pings()] == [team.ada.id]
    assert server.messages(team.general) == []


async def test_a_forward_in_direct_messages_is_a_question(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """As its words are a snapshot's; of the poll beside it, all answers are asked about."""
    direct = server.dm(team.ada)
    forward = server.say(direct, team.ada, server.bot.mention)
    await server.until(lambda: server.messages(direct, by_bot=True))
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
    """Return messages once there are two."""
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


async def test_messages_between_people_start_nothing(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Nor do replies between people, mentions without text, and other bots."""
    await team.mentioned(team.general, "Shard now?")
    council.calls.clear()
    assert team.general.guild is not None
    other = server.member(team.general.guild, "other bot")
    other.bot = True
    word = server.say(team.general, team.ada, "just talking")
    server.say(team.general, team.ada, "I disagree", reply_to=word)
    server.mention(team.general, other, "Shard now?")
    await team.mentioned(team.general, "")
    assert council.calls == []


async def test_a_mention_that_is_refused_says_why(server: DiscordServer, team: Office) -> None:
    """In a reply."""
    await team.dispatcher.tasks.drain(0)
    [said] = await team.mentioned(team.general, "Shard now?")
    assert "restarting" in said.content
    assert server.pings() == []


async def test_the_message_action_asks_what_the_message_says(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """At once, whoever wrote it; the person who uses the action is the asker."""
    assert team.general.guild is not None
    bob = server.member(team.general.guild, "bob")
    message = server.say(team.general, team.ada, "Is P equal to NP?")
    card = await team.card(server.menu("Ask the council", message, bob))
    await team.dispatcher.tasks.settled()
    assert ANSWER in card.text
    assert "Asked by Bob" in card.history[0].embeds[0]["description"]
    assert "Is P equal to NP?" in council.prompt(f"stage1.1:{FOUR[0]}")
    assert [ping.id for ping in server.pings()] == [bob.id]


async def test_a_follow_up_in_the_thread_continues_the_conversation(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """The models read the earlier question, and both are in one document."""
    await team.asked()
    [thread] = server.threads(team.general)
    council.calls.clear()
    card, *parts = await team.mentioned(thread, "And in a year?")
    assert ANSWER in card.text
    [digest] = parts
    assert {part["label"] for part in digest.buttons} == {f"Open {short(name)}" for name in FOUR}
    assert "Shard or scale up?" in council.prompt(f"stage1.1:{FOUR[0]}")
    [document] = await team.documents()
    assert len((await team.library.store.load(document)).messages) == 4
    assert server.messages(team.general, by_bot=True) == [server.world.messages[thread.id]]


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


async def test_a_text_file_reaches_the_members(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Whatever it is called, as long as it is text."""
    await team.asked(attachment=server.upload("Plan.cfg", "Größe: 2".encode(), "application/x-cfg"))
    prompt = council.prompt(f"stage1.1:{FOUR[0]}")
    assert "\nAttachment Plan.cfg:\n" in prompt
    assert "Größe: 2" in prompt


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x89PNG\r\n\x1a\n\xff", "damaged or incomplete"),
        (b"a\0b", "neither text, PDF nor a picture"),
        (b"x" * 200_001, "larger than 200 kB"),
    ],
)
async def test_a_question_whose_file_cannot_be_read_is_refused(
    server: DiscordServer, team: Office, council: ScriptedCouncil, data: bytes, why: str
) -> None:
    """Before any call is made; the card says why."""
    file = server.upload("file.bin", data, "application/octet-stream")
    card = await team.asked(attachment=file)
    assert (
        "Nothing that came with the question can be read, so nobody was asked and nothing paid. "
        f"file.bin: {why}."
    ) in card.text
    assert council.calls == []


async def test_a_file_that_cannot_be_fetched_is_refused(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """In words; and nothing is fetched that isn't Discord's."""
    file = server.upload("notes.md", b"Two shards.")
    server.slash(team.general, team.ada, "council", question="Why?", attachment=file)
    del server.world.attachments[file.id]
    await server.until(lambda: server.messages(team.general, by_bot=True))
    await team.dispatcher.tasks.settled()
    [card] = server.messages(team.general, by_bot=True)[:1]
    assert "notes.md: it can't be fetched." in card.text
    assert council.calls == []


TOO_MUCH = {"plan.md": b"Two shards.", "logo.bin": b"\x89\xff", "huge.log": b"x" * 200_001}
READ = "Read plan.md.\n\nNot read: logo.bin (neither text, PDF nor a picture), huge.log (larger than 200 kB)."


async def test_files_of_a_mention_reach_the_members(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """The card names what was read and what was left out."""
    question = f"{server.bot.mention} Does it hold?"
    server.say(team.general, team.ada, question, files=TOO_MUCH)
    [card] = await server.until(lambda: server.messages(team.general, by_bot=True))
    await team.dispatcher.tasks.settled()
    assert READ in card.text
    assert "Two shards." in council.prompt(f"stage1.1:{FOUR[0]}")
    assert [ping.id for ping in server.pings()] == [team.ada.id]


async def test_a_pdf_is_cited_by_page(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Its pages reach the members as an answer cites them, and the citation reaches people."""
    council.script["stage3"] = "Two shards, as [p. 2] says."
    plan = pdf([lines("Load: 3 TB"), lines("Shards: 2")])
    card = await team.asked(attachment=server.upload("plan.pdf", plan, "application/pdf"))
    assert "[p. 2]\nShards: 2" in council.prompt(f"stage1.1:{FOUR[0]}")
    assert "cite it as its text names it, such as [p. 4]" in council.prompt(f"stage1.1:{FOUR[0]}")
    assert "Read plan.pdf, 2 pages." in card.text
    assert r"as \[p. 2\] says" in card.text  # Discord shows the brackets alone


async def test_files_of_a_message_reach_the_members_by_the_action(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Files without text are the question."""
    message = server.say(team.general, team.ada, "", files=TOO_MUCH)
    server.menu(ACTION, message, team.ada)
    [card] = await server.until(lambda: server.messages(team.general, by_bot=True))
    await team.dispatcher.tasks.settled()
    assert (
        "The question is in plan.md, logo.bin and huge.log." in card.history[0].embeds[0]["description"]
    )
    assert "Two shards." in council.prompt(f"stage1.1:{FOUR[0]}")


async def test_a_private_run_stays_in_direct_messages(server: DiscordServer, team: Office) -> None:
    """The channel sees nothing; the asker is told where to look, with a link."""
    asked = server.slash(team.general, team.ada, "council", question="Why?", private=True)
    server.redeliver(asked)
    direct = server.dm(team.ada)
    [card] = await server.until(lambda: server.messages(direct))
    await server.until(lambda: asked.message and asked.message.content)
    await team.dispatcher.tasks.settled()
    said = await team.refused(asked)
    assert said.endswith(f"https://discord.com/channels/@me/{direct.id}/{card.id}")
    assert [message for message in server.messages(team.general) if not message.ephemeral] == []
    assert ANSWER in card.text
    assert len(server.messages(direct)) == 2
    [document] = await team.documents()
    source = (await team.library.store.load(document)).source
    assert source is not None
    assert (source.workspace, source.channel) == (None, str(direct.id))


async def test_closed_direct_messages_refuse_a_private_run(
    server: DiscordServer, team: Office, council: ScriptedCouncil
) -> None:
    """Nothing is asked."""
    team.ada.takes_dms = False
    asked = server.slash(team.general, team.ada, "council", question="Why?", private=True)
    await server.until(lambda: asked.message and asked.message.content)
    assert "Your direct messages are closed" in await team.refused(asked)
    assert council.calls == []


async def test_a_refused_private_question_leaves_nothing_behind(
    server: DiscordServer, team: Office
) -> None:
    """The note in the direct messages is deleted."""
    await team.dispatcher.tasks.drain(0)
    asked = server.slash(team.general, team.ada, "council", question="Why?", private=True)
    await server.until(lambda: asked.message and asked.message.content)
    assert "restarting" in await team.refused(asked)
    assert server.messages(server.dm(team.ada)) == []


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["card", "channel", "guild"])
async def test_deleted_messages_during_a_run_cost_no_answer(
    server: DiscordServer, team: Office, council: ScriptedCouncil, what: str
) -> None:
    """Nothing is raised, and the conversation is saved."""
    step = HELD["Final answer"]
    council.held.add(step)
    card = await team.ask()
    await council.until_called(step)
    match what:
        case "card":
            server.delete_message(card)
        case "channel":
            server.delete_channel(team.general)
        case _:
            assert team.general.guild is not None
            server.kick_bot(team.general.guild)
    council.release(step)
    await team.dispatcher.tasks.settled()
    [document] = await team.documents()
    assert len((await team.library.store.load(document)).messages) == 2


@pytest.mark.parametrize("reason", ["old", "archived"])
async def test_a_card_that_can_no_longer_be_edited_is_posted_again(
    server: DiscordServer, quiet: Office, council: ScriptedCouncil, reason: str
) -> None:
    """After an hour of edits, or in an archived thread: the answer isn't lost."""
    thread = server.thread(quiet.general, "a thread", quiet.ada)
    council.held.add(HELD["Answers"])
    async with quiet.bot():
        card = await quiet.card(server.slash(thread, quiet.ada, "council", question="Why?"))
        await council.until_called(HELD["Answers"])
        await server.until(lambda: "running" in card.text)
        if reason == "old":
            server.old_edits(0, retry_after=0.001)
            server.advance(3601)
        else:
            server.archive(thread)
        council.release(HELD["Answers"])
        await quiet.dispatcher.tasks.settled()
    assert ANSWER not in card.text
    assert len([text for text in texts(server, thread) if ANSWER in text]) == 1


async def test_an_unexpected_error_shows_only_an_id(
    server: DiscordServer,
    team: Office,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """To the person who used the command or mentioned the bot; the log has the rest."""

    async def broken(*_: object) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("the secret insides")

    monkeypatch.setattr(Dispatcher, "accept", broken)
    asked = server.slash(team.general, team.ada, "council", question="Why?")
    said = [await team.refused(asked)]
    said += [message.content for message in await team.mentioned(team.general, "Why?")]
    assert len(said) == 2
    for text in said:
        assert "Something unexpected went wrong." in text
        assert "insides" not in text
    assert str(asked.id) in said[0]
    assert "the secret insides" in capsys.readouterr().out


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


# ── the venue alone ──────────────────────────────────────────────────────────────────────────


@pytest_asyncio.fixture
async def client(server: DiscordServer, quiet: Office) -> AsyncIterator[discord.Client]:
    """A client that can post, without a gateway connection."""
    Route.BASE = server.url  # put back by `server`
    client = discord.Client(intents=discord.Intents.none(), http_trace=single_attempts())
    async with client:
        await client.login(quiet.server.world.token)
        yield client


def venue(client: discord.Client, team: Office) -> Venue:
    """A run's venue in the channel, without a card."""
    assert team.general.guild is not None
    where = Location(team.general.id, team.general.guild.id).source(team.ada.id)
    return Venue.of(DiscordChat(client, DiscordTransport(impatient())), accepted(where))


async def test_a_file_is_posted_once_with_its_note(
    server: DiscordServer, quiet: Office, client: discord.Client
) -> None:
    """Even if the confirmation of the first attempt was lost."""
    server.fail(SEND, 503, applied=True)
    await venue(client, quiet).attach(
        "The transcript.", unrecorded("any"), File("council.md", "# Größe")
    )
    [message] = server.messages(quiet.general)
    assert message.content == "The transcript."
    assert [(file.filename, file.data.decode()) for file in message.attachments] == [
        ("council.md", "# Größe")
    ]


@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (404, 10003, Gone, "the channel is gone"),
        (403, 50001, NotAllowed, "the bot has no access to this channel"),
        (403, 50013, NotAllowed, "the bot lacks Send Messages"),
        (403, 160005, NotAllowed, "the thread is locked"),
        (400, 50035, Malformed, "Discord doesn't accept its content"),
    ],
)
async def test_refusals_are_put_into_words(
    server: DiscordServer,
    quiet: Office,
    client: discord.Client,
    status: int,
    code: int,
    kind: type[VenueError],
    said: str,
) -> None:
    """No discord.py error leaves the adapter."""
    server.fail(SEND, status, code=code, times=2)
    with pytest.raises(VenueError) as caught:
        await venue(client, quiet).post(Part("Ranking"), "ranking.0", unrecorded("any"))
    assert (type(caught.value), str(caught.value)) == (kind, said)
