"""`council run` killed with -9 at any moment: nothing paid is lost, nothing is posted twice."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crashes.figures import CALLS, Figures, count, crashed, journal
from tests.crashes.moments import CHOSEN, drawn
from tests.crashes.people import Asked
from tests.crashes.scene import Scene, scene
from tests.crashes.trap import Moment

AT_ONCE = 4
SEED = 4


def shown(asked: Sequence[Asked]) -> bool:
    """Return whether everybody who asked has been told that the answer is there."""
    return all(any(each.pings for each in question.thread()) for question in asked)


def over(played: Scene, asked: Sequence[Asked]) -> bool:
    """Return whether all of these runs are over and shown, and the program at rest."""
    if not shown(asked):
        return False
    runs = journal(played.data)
    delivered = all(runs[question.text].delivery == "shown" for question in asked)
    return delivered and not played.trap.is_committing


async def ask_and_die(played: Scene, moment: Moment, each: int = 1) -> tuple[list[Asked], bool]:
    """Ask this many questions on each platform and kill at the moment; tells whether it came.

    A moment that doesn't come is replaced by the one at which everything is over.
    """
    played.trap.arm(moment)
    asked = played.people.ask(each)
    await played.until(lambda: not played.trap.is_armed or over(played, asked))
    came = not played.trap.is_armed
    played.trap.spring(moment)
    await played.died()
    return asked, came


async def finish(played: Scene, asked: Sequence[Asked]) -> None:
    """Start again, and wait until all that was taken is over."""
    runs = journal(played.data)
    taken = [question for question in asked if question.text in runs]
    await played.start()
    await played.until(lambda: over(played, taken))


async def crash(played: Scene, moment: Moment, each: int = 1, calls: int = CALLS) -> Figures:
    """Ask, kill at the moment, start again, wait until all is over, and count."""
    asked, came = await ask_and_die(played, moment, each)
    left = crashed(played, asked)
    await finish(played, asked)
    figures = count(played, asked, left, calls=calls)
    # By the clock, a quick machine may be done: it is killed at rest, then.
    figures.too_late += not came and moment.seconds is None
    return figures


def check(figures: Figures) -> None:
    """Check the figures against the promises; on Slack, each question may see one message twice."""
    assert not figures.wrong, figures
    assert figures.recorded_repeated == figures.posted_twice_on_discord == 0
    assert figures.repeated <= figures.in_flight


async def in_a_row(folder: Path, moments: Sequence[Moment]) -> Figures:
    """Crash at one moment after the other; each start finishes what the one before has left."""
    figures = Figures()
    async with scene(folder) as played:
        await played.start()
        for moment in moments:
            try:
                figures.add(await crash(played, moment))
            except AssertionError as error:
                error.add_note(f"at the moment {moment}; {figures}")
                raise
    return figures


async def at_once(folder: Path, moments: Sequence[Moment]) -> Figures:
    """Crash at all moments, in a few data folders side by side."""
    rows = [moments[number::AT_ONCE] for number in range(AT_ONCE)]
    folders = [folder / str(number) for number in range(AT_ONCE)]
    for each in folders:
        each.mkdir()
    figures = Figures()
    for row in await asyncio.gather(*map(in_a_row, folders, rows)):
        figures.add(row)
    print(figures)  # noqa: T201 - what the test is for, read with -s
    return figures


@pytest.mark.soak
async def test_chosen_moments(tmp_path: Path) -> None:
    """No recorded call is repeated, no message posted twice, every run finished, every document whole."""
    figures = await at_once(tmp_path, CHOSEN)
    assert figures.crashes == len(CHOSEN)
    assert not figures.too_late
    check(figures)


@pytest.mark.soak
async def test_two_hundred_moments(tmp_path: Path) -> None:
    """The same at moments drawn by a seed, half of them by the clock alone."""
    figures = await at_once(tmp_path, [*drawn(200, SEED)])
    assert figures.crashes == 200
    check(figures)
