"""The action table: every command, button and form has its handler, and permissions are checked once."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import cast, get_args

import pytest

from bot.actions import Actions, Incoming, Payload, past
from bot.errors import NotAllowed, Refusal
from bot.past.lookup import Lookup
from bot.past.pages import Verb
from bot.service.commands import ASK, COMMANDS
from bot.service.delivery.chat import LABELS
from bot.service.dispatcher import Dispatcher, Form, ReasonForm
from bot.view.wording.commands import COUNTED_UNHELPFUL
from tests.bot.pressing import Click, RecordingReply, actor, nowhere, press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, office
from tests.council.scripted import FOUR, ScriptedCouncil


def test_every_command_button_and_form_has_its_handler() -> None:
    """Questions alone are asked otherwise; nothing else is in the table."""
    table = Actions(cast("Dispatcher", None), cast("Lookup", None), nowhere).table
    commands = (command.name for command in COMMANDS if command is not ASK)
    verbs = map(past, cast("tuple[Verb, ...]", get_args(Verb)))
    assert {*table} == {*chain(commands, LABELS, verbs, ("reason", "question"))}


async def test_a_button_or_form_counts_only_where_its_run_is(tmp_path: Path) -> None:
    """Forged or copied into another channel, none of them does anything."""
    council = ScriptedCouncil()
    async with office(tmp_path, council) as place:
        run = await place.see(RecordingVenue())
        forged = Click(run.id, TEAM.model_copy(update={"channel": "C-other"}))
        asked = len(council.calls)
        for action in (*LABELS, "reason", "question"):
            with pytest.raises(Refusal, match="isn't on record here"):
                await press(place.dispatcher, action, forged)
        assert len(council.calls) == asked


async def test_only_the_asker_or_an_admin_is_heard_by_stop_and_others_are_not_looked_up(
    tmp_path: Path,
) -> None:
    """Whether somebody is an admin is asked only of whoever isn't the asker."""
    asked: list[str] = []

    async def is_admin() -> bool:
        asked.append("platform")
        return False

    council = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
    async with office(tmp_path, council) as place:
        run = await place.ask()
        assert run is not None
        place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(f"stage1.1:{FOUR[0]}")
        actions = Actions(place.dispatcher, cast("Lookup", None), nowhere)
        for user in ("U2", "U1"):
            who = TEAM.model_copy(update={"user": user})
            incoming = Incoming(
                actor=replace(actor(), is_admin=is_admin),
                place=who,
                action="stop",
                payload=Payload(run_id=run.id),
            )
            reply = RecordingReply(lambda _: None, who)
            if user == "U2":
                with pytest.raises(Refusal, match="Only the person who asked"):
                    await actions.handle(incoming, reply)
            else:
                await actions.handle(incoming, reply)
                assert reply.said[0].startswith("Stopping")
            assert asked == ["platform"]
        council.release(f"stage1.1:{FOUR[0]}")
        await place.dispatcher.tasks.settled()


async def test_a_click_that_is_delivered_twice_is_one_and_a_vote_counts_without_its_form(
    tmp_path: Path,
) -> None:
    """A second press of Stop is another click; the vote is cast before the form, and said where there is none."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        actions = Actions(place.dispatcher, cast("Lookup", None), nowhere)
        assert [await actions.is_first(click) for click in ("1", "1", "2")] == [True, False, True]

    class Formless(RecordingReply):
        async def form(self, form: Form | ReasonForm) -> None:
            del form
            raise NotAllowed("no forms")

    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(RecordingVenue())
        reply = Formless(lambda _: None, TEAM)
        incoming = Incoming(
            actor=actor(), place=TEAM, action="unhelpful", payload=Payload(run_id=run.id)
        )
        await Actions(place.dispatcher, cast("Lookup", None), nowhere).handle(incoming, reply)
        stored = await place.library.store.load(run.conversation_id)
    assert reply.said == [COUNTED_UNHELPFUL]
    [vote] = stored.messages[-1].model_dump()["votes"]
    assert (vote["helpful"], vote["voter"]) == (False, "U1")
