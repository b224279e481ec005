"""An asker is told exactly once, whatever the platforms answer; see `cases` for all that is tried."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from bot.service.delivery.posts import MOST_POSTS
from tests.faults import stored
from tests.faults.cases import ASIDE, EDIT, NO_METHODS, SEND, TARGETS, Case, PlatformName, event, every
from tests.faults.documented import DISCORD, SLACK
from tests.faults.platforms import Event, SlackPlatform
from tests.faults.playing import MID_RUN, SETTLE, Result, play, quieten
from tests.faults.virtual_time import VirtualLoop, run
from tests.pairs import every_other

PLATFORMS: tuple[PlatformName, ...] = ("Slack", "Discord")
ON_ONE_BOT = 50
QUICK: dict[PlatformName, dict[str, tuple[tuple[str, str], ...]]] = {
    "Slack": {
        "chat.update": (
            ("internal_error", "once"),
            ("message_not_found", "a minute"),
            ("ekm_access_denied", "a minute"),
            ("invalid_blocks", "five times"),
            ("an error that isn't documented", "a minute"),
            ("500 as HTML", "a minute"),
            ("reset", "five times"),
            ("hang", "once"),
        ),
        "chat.postMessage (in the thread)": (
            ("429, 1 s", "five times"),
            ("429, 30 s", "a minute"),
            ("lost response", "once"),
            ("lost response", "five times"),
            ("lost response", "half an hour"),
            ("reset", "five times"),
        ),
        "chat.scheduleMessage (the mention arrived)": (
            ("lost response", "five times"),
            ("time_in_past", "half an hour"),
        ),
        "chat.scheduledMessages.list (no mention arrived)": (("reset", "a minute"),),
    },
    "Discord": {
        EDIT: (
            ("130000", "five times"),
            ("10008", "a minute"),
            ("50013", "a minute"),
            ("50035", "five times"),
            ("a code that isn't documented", "a minute"),
            ("403 as HTML", "once"),
            ("500 as HTML", "a minute"),
            ("reset", "five times"),
            ("hang", "once"),
        ),
        f"{SEND} (the card)": (("50068", "once"),),
        f"{SEND} (everywhere)": (
            ("429, 1 s", "five times"),
            ("429, 30 s", "a minute"),
            ("global 429, 30 s", "once"),
            ("lost response", "once"),
        ),
    },
}
"""One case of each class of errors, for the two things that an answer takes: an edit and a post."""
QUICK_EVENTS = ("card deleted", "access lost for 1.5 s")


def quick(platform: PlatformName) -> Iterator[Case]:
    wanted = {(title, *how) for title, troubles in QUICK[platform].items() for how in troubles}
    cases = (case for case in every() if case.target.platform == platform)
    found = [case for case in cases if (case.target.title, case.trouble.name, case.length) in wanted]
    assert len(found) == len(wanted)
    yield from found
    for name in QUICK_EVENTS:
        yield event(platform, name)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_one_case_of_each_class(platform: PlatformName) -> None:
    """Through the real client, from the question to the mention."""
    assert told_wrong(play([*quick(platform)])) == []


def told_wrong(results: Sequence[Result]) -> list[str]:
    """Return the cases whose asker was not told as they should be, or told the same too often."""
    return [
        f"{one.case.title}: {one.outcome}, {one.times} times, {one.alike} alike {one.said}"
        for one in results
        if not one.is_right
    ]


@pytest.mark.parametrize("event", every_other(["thread deleted", "card deleted", "closed"], str))
def test_pages_in_place_of_responses_hide_no_lost_place(event: Event) -> None:
    """A proxy's, with status 200, from when the card's place is lost: the asker is mentioned once.

    Slack schedules a message into a thread that isn't there, and drops it when it is due.
    """

    async def mentions(loop: VirtualLoop) -> list[int]:
        """Count the mentions of one asker after the other, each with a page more than the one before."""
        async with SlackPlatform.open(loop) as platform:
            await platform.start()
            asked = [platform.asker() for _ in range(2)]
            for pages, each in enumerate(asked, 1):
                each.ask("command")
                await asyncio.sleep(MID_RUN)
                each.upset(event)
                fault = platform.fail("chat.postMessage", status=200, html=True, times=pages)
                await asyncio.sleep(SETTLE)
                assert fault.hits == pages
            await platform.stop()
            return [len(each.told()) for each in asked]

    assert run(mentions) == [1] * 2


def test_everything_that_is_used_fails_in_the_matrix() -> None:
    """Every method and endpoint is in it, or is set aside with a reason."""
    named = {target.name for target in TARGETS}
    assert named | ASIDE.keys() == {*SLACK.methods, *DISCORD.endpoints, *NO_METHODS}
    assert not named & ASIDE.keys()


@pytest.mark.soak
def test_the_whole_matrix() -> None:
    """Everything that may fail fails, once, five times and for a minute; stored, with its tables."""
    chunks: list[list[Case]] = []
    for platform in PLATFORMS:
        cases = [case for case in every() if case.target.platform == platform]
        chunks += [cases[at : at + ON_ONE_BOT] for at in range(0, len(cases), ON_ONE_BOT)]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn, initializer=quieten) as processes:
        results = [result for played in processes.map(play, chunks) for result in played]
    met = {result.case.target.title for result in results if result.hits}
    assert [target.title for target in TARGETS if target.title not in met] == []
    stored.summarized(results).write()
    stored.write_tables()
    assert told_wrong(results) == []


def test_the_tables_show_the_stored_result() -> None:
    """`bench/faults.md` says what `bench/faults.json` holds, and nothing in it went wrong."""
    result = stored.read()
    text = stored.TABLES.read_text()
    assert stored.with_tables(text, result) == text
    assert sum(row.wrong for row in result.rows) == 0
    assert max(row.most for row in result.rows) == 2
    assert max(row.alike for row in result.rows) == MOST_POSTS
    assert all(row.twice <= row.unsure for row in result.rows)
