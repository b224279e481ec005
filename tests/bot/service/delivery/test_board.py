"""The port is low: a chat of a page shows a run whole, and is told of what follows from it."""

from pathlib import Path

import pytest

from bot.errors import Gone, NotAllowed, Unreachable, VenueError
from bot.service.delivery.chat import Card, Drawing, Kind, Spot
from bot.service.delivery.outbox import Outbox, Patience
from bot.service.delivery.venue import Venue
from storage.journal.rows import RunRow
from tests.bot.service.delivery.board import Board
from tests.bot.service.test_dispatcher import office
from tests.council.scripted import ScriptedCouncil

DONE = "The council has answered."
GONE, REFUSED = Gone("the note is gone"), NotAllowed("the bot may not write here")
LOST = Unreachable("there was no response", is_lost=True)
IMPATIENT = Patience(request=1.0, recheck=0.0, first=0.0, longest=0.0, lost=0.0, lost_card=0.0)


async def shown(folder: Path, board: Board) -> RunRow:
    async with office(folder, ScriptedCouncil()) as place:
        run = await place.ask()
        assert run is not None
        place.dispatcher.tasks.begin(run, Venue.of(board, run))
        await place.dispatcher.tasks.settled()
        return await place.row(run)


async def test_a_run_is_shown_on_a_chat_of_a_page(tmp_path: Path) -> None:
    """Its card is edited into the answer; a thread is opened on it, and ends the digest with a mention."""
    board = Board()
    run = await shown(tmp_path, board)
    card, *thread = board.notes
    assert card.spot == Spot("C1")
    assert card.edits > 0
    assert "The council's answer, written by chair/man." in card.part.text
    assert [*board.threads] == [card.id]
    assert {each.spot for each in thread} == {Spot("C1", card.id)}
    assert thread[0].part.text.endswith(f"@U1 {DONE} board:T1/C1/{card.id}")
    assert sum("@U1" in each.part.text for each in board.notes) == 1
    assert (run.delivery, run.origin.message, run.origin.thread) == ("shown", card.id, card.id)


@pytest.mark.parametrize(
    ("broken", "where", "copies"),
    [
        ([("edit", GONE)] * 2, "new card", 2),
        ([("thread", REFUSED)] * 2, "in place", 1),
        ([("post", LOST)], "found", 1),
        ([("post", REFUSED)], "told alone", 0),
    ],
    ids=["new card", "in place", "found", "told alone"],
)
async def test_what_a_chat_refuses_leads_to_the_next_place(
    tmp_path: Path, broken: list[tuple[Kind, VenueError]], where: str, copies: int
) -> None:
    """The rules above the port are the same on every chat: nothing is lost, or told twice."""
    board = Board(broken=[*broken], outbox=Outbox("board", patience=IMPATIENT))
    run = await shown(tmp_path, board)
    mentions = [each for each in board.notes if "@U1" in each.part.text]
    cards = [each for each in board.notes if any(b.action != "open" for b in each.part.buttons)]
    assert run.delivery == "shown"
    assert len(cards) == copies
    assert len(mentions) == (where != "told alone")
    assert bool(board.threads) == (where in ("new card", "found"))
    assert board.told == (
        [f"The council can't post here: {REFUSED}. Your question was cancelled."]
        if where == "told alone"
        else []
    )


async def test_an_attempt_that_fails_draws_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same state is drawn once, however often it is sent: a long answer takes long to render."""
    drawn: list[Card] = []
    draw = Board.draw

    async def counted(board: Board, card: Card, continues: str) -> Drawing:
        drawn.append(card)
        return await draw(board, card, continues)

    monkeypatch.setattr(Board, "draw", counted)
    await shown(tmp_path, Board(broken=[("edit", LOST)] * 3, outbox=Outbox("board", patience=IMPATIENT)))
    assert len(drawn) == len(set(map(id, drawn)))


async def test_a_thread_lost_during_a_run_becomes_a_file_beside_the_card(tmp_path: Path) -> None:
    """With the thread's content; the digest and the one mention are beside the card, too."""
    board = Board(locked=True, outbox=Outbox("board", patience=IMPATIENT))
    assert (await shown(tmp_path, board)).delivery == "shown"
    _, mention, file = board.notes
    assert {each.spot for each in board.notes} == {Spot("C1")}
    assert f"@U1 {DONE}" in mention.part.text
    assert file.part.text == "The thread's messages are in this file, because the thread is locked."
    assert [name[-5:] for name in file.files] == [".html"]
