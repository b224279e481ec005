"""Plays cases of the matrix: asks, makes something fail, and notes what the asker is told and when."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Literal, cast, get_args

import structlog

from bot.errors import ConfigurationError, VenueError
from bot.service.delivery.posts import MOST_POSTS
from tests.faults.cases import EVENTS, LOST, NOBODY_LEFT, Case
from tests.faults.platforms import Asker, DiscordPlatform, Event, Fault, Platform, SlackPlatform
from tests.faults.virtual_time import VirtualLoop, run

Outcome = Literal["told", "told after a restart", "refused", "kept", "never"]
"""What became of an answer; `kept` is marked untold in the journal, for the next start."""
WORDS = ("The council answers", "The council will answer")
"""How the asker of a private run is told where its answer comes, on Discord and on Slack."""
LOOK, WAIT, SETTLE, CHECK = 1.0, 3600.0, 1800.0, 120.0
"""Virtual seconds: between looks, for the answer, for the rest of the run, for a second mention."""
MID_RUN = 3.0
STARTS = 20
"""How often a start is tried, as a process manager does it."""
START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case: how often the asker was told, and the seconds until the first time.

    `said` is what only the asker was told, `hits` how many requests the fault met. `alike` is how often
    the bot posted what it posted most often.
    """

    case: Case
    outcome: Outcome
    times: int
    seconds: float | None
    hits: int
    said: str
    alike: int

    @property
    def is_unsure(self) -> bool:
        """Whether Slack may have carried out a post whose response was lost."""
        target = self.case.target
        is_lost = target.scene in ("mention lost", "schedule lost") or self.case.trouble.is_lost
        return target.platform == "Slack" and is_lost

    @property
    def is_right(self) -> bool:
        """Whether the asker was told once, or where Slack lost responses at most twice.

        Whatever went wrong, nothing was posted more than twice.
        """
        if self.alike > MOST_POSTS:
            return False
        if self.outcome == "refused":
            return self.times == 0
        if self.case.trouble.name in NOBODY_LEFT:
            return self.outcome == "kept" or self.times == 1
        most = 2 if self.is_unsure else 1
        return self.outcome not in ("kept", "never") and 1 <= self.times <= most


def quieten() -> None:
    """Log nothing: logging the intended faults takes longer than the cases."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)


def play(cases: Sequence[Case]) -> list[Result]:
    """Play cases of one platform on one bot, and look at all askers again at the end."""
    return run(lambda loop: _play(loop, cases))


def _platform(loop: VirtualLoop, name: str) -> AbstractAsyncContextManager[Platform]:
    return SlackPlatform.open(loop) if name == "Slack" else DiscordPlatform.open(loop)


async def _play(loop: VirtualLoop, cases: Sequence[Case]) -> list[Result]:
    [name] = {case.target.platform for case in cases}
    async with _platform(loop, name) as platform:
        await platform.start()
        played = [await _play_one(platform, case) for case in cases]
        await platform.stop()
        await platform.start()
        await asyncio.sleep(CHECK)
        await platform.stop()
        return [each.result(is_kept=each.asked.user_id in await platform.untold()) for each in played]


@dataclass(slots=True)
class _Played:
    """A case that was played, and what its asker sees now."""

    case: Case
    asked: Asker
    asked_at: float
    told_before: int
    was_refused: bool
    hits: int

    def result(self, *, is_kept: bool) -> Result:
        told = self.asked.told()
        seconds = told[0] - self.asked_at if told else None
        outcome: Outcome = "never"
        if self.told_before:
            outcome = "told"
        elif told:
            outcome = "told after a restart"
        elif self.was_refused:
            outcome = "refused"
        elif is_kept:
            outcome = "kept"
        said, alike = self.asked.refused(), self.asked.alike()
        return Result(self.case, outcome, len(told), seconds, self.hits, said, alike)


async def _play_one(platform: Platform, case: Case) -> _Played:
    scene, paid = case.target.scene, platform.paid
    restarts = scene in ("restart", "new commands")
    asked = platform.asker()
    fault = None if restarts else _fail(platform, case, asked)
    if scene in LOST:
        _lose(platform, asked, *LOST[scene])
    asked_at = platform.now()
    asked.ask(case.target.way)
    if restarts:
        await asyncio.sleep(MID_RUN)
        await platform.stop()
        if scene == "new commands":
            platform.forget_commands()
        fault = _fail(platform, case, asked)
        if not await _started(platform):
            raise AssertionError(f"{case.title}: the bot doesn't start any more")
    elif scene == "event":
        await _upset(asked, *EVENTS[case.trouble.name])
    elif scene in get_args(Event):
        await _upset(asked, cast("Event", scene), None)
    await _within(WAIT, lambda: bool(asked.told()) or _is_refused(platform, asked, paid))
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE):
            await platform.settled()
    await asyncio.sleep(CHECK)
    if fault is not None:
        fault.release()
    was_refused = _is_refused(platform, asked, paid)
    return _Played(case, asked, asked_at, len(asked.told()), was_refused, fault.hits if fault else 0)


def _fail(platform: Platform, case: Case, asked: Asker) -> Fault | None:
    if case.target.scene == "event":
        return None
    how = {**case.trouble.how, **case.target.lengths[case.length], **case.target.narrow}
    if case.target.is_here:
        how["channel"] = asked.here
    return platform.fail(case.target.name, **how)


def _lose(platform: Platform, asked: Asker, applied: bool, methods: Sequence[str]) -> None:
    """Lose the response to the first mention, and to what follows it."""
    for method in methods:
        platform.fail(
            method, breaks="reset", applied=applied, channel=asked.here, says=f"<@{asked.user_id}>"
        )


async def _upset(asked: Asker, event: Event, seconds: float | None) -> None:
    """Let admins change something in mid-run, and undo it later."""
    await _within(MID_RUN, asked.is_there)
    if event != "no threads":
        await asyncio.sleep(MID_RUN)
    asked.upset(event)
    if seconds is not None:
        await asyncio.sleep(seconds)
        asked.mend()


def _is_refused(platform: Platform, asked: Asker, paid: int) -> bool:
    """Return whether only the asker was told that there will be no answer, and nothing was paid."""
    said = asked.refused()
    return platform.paid == paid and bool(said) and not said.startswith(WORDS)


async def _within(seconds: float, condition: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not condition() and loop.time() < begun + seconds:
        await asyncio.sleep(max(LOOK, (loop.time() - begun) / 10))


async def _started(platform: Platform) -> bool:
    """Start the bot as a process manager does: again after a while, if a start fails."""
    for _ in range(STARTS):
        try:
            await platform.start()
        except (ConfigurationError, VenueError):
            await asyncio.sleep(START_SECONDS)
        else:
            return True
    return False
