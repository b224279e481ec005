"""Crashes in special cases: failed members, other settings, Stop, a second crash, a queue."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from council.document.results import TerminationReason
from tests.crashes.figures import CALLS, Crash, answers, count, count_calls, crashed, journal, leftovers
from tests.crashes.people import Asked
from tests.crashes.scene import MEMBERS, Scene, scene
from tests.crashes.test_moments import ask_and_die, check, crash, finish, over, shown
from tests.crashes.trap import Moment
from tests.model_server import Exchange, Turn

IN_REVIEW = Moment("call asked", 2 * len(MEMBERS) + 2)
FOREVER = 60.0
*_, LAST = MEMBERS
TWO_ROUNDS = "[profiles.default]\nmax_rounds = 2\n"
CALLS_OF_ONE = 5  # for its answer, and a review and a correction in each round
CALLS_OF_TWO_ROUNDS = CALLS_OF_ONE * len(MEMBERS) + 1
OF_ROUND_1 = 3 * len(MEMBERS)
CORRECTED = "having read its peers"


def calls_of(played: Scene, model: str, question: str = "") -> int:
    """Count the calls that a model got, over all starts, of all questions or of one."""
    return sum(each.model == model and question in each.prompt for each in played.models.history)


async def two_of_three_have_answered(played: Scene) -> list[Asked]:
    """Ask, and wait until only one member is missing, which won't ever answer."""
    played.models.always(LAST, Turn(latency=FOREVER))
    asked = played.people.ask()

    def there() -> bool:
        runs = journal(played.data)
        return all(each.text in runs and len(runs[each.text].replies) == 2 for each in asked)

    await played.until(there)
    return asked


async def all_but_one_have_reviewed_again(played: Scene) -> list[Asked]:
    """Ask, and wait until in round 2 one member is at its review and its correction, for ever."""

    def never_in_round_2(exchange: Exchange) -> Turn:
        return Turn(latency=FOREVER if CORRECTED in exchange.prompt else 0)

    played.models.always(LAST, never_in_round_2)
    asked = played.people.ask()
    await played.until(lambda: all(calls_of(played, LAST, each.text) == CALLS_OF_ONE for each in asked))
    return asked


def answered(played: Scene) -> bool:
    return all(run.status == "answered" for run in journal(played.data).values())


@pytest.mark.soak
async def test_a_member_that_had_failed_is_not_asked_again(tmp_path: Path) -> None:
    """Its failure is as final as an answer: one call a run, before the crash and after."""
    async with scene(tmp_path) as played:
        played.models.always(LAST, Turn(status=400))
        await played.start()
        # One run may be done after 8 calls; with the 12th, the other has left stage 1, too.
        asked, _ = await ask_and_die(played, Moment("call asked", 12))
        left = crashed(played, asked)
        await finish(played, asked)
        assert calls_of(played, LAST) == 2
        check(count(played, asked, left, calls=CALLS - 2))


BUDGET = "[budgets]\nworkspace_day = 50\nunpriced_call = 0.5\n"


def spending(played: Scene) -> list[tuple[int, int, bool]]:
    """Read what counts for each run, what of it was in flight, in calls, and whether that is final."""
    query = "SELECT amount / 500000000, in_flight / 500000000, settled FROM spending ORDER BY run"
    with closing(sqlite3.connect(f"file:{played.data}/council.db?mode=ro", uri=True)) as database:
        return [(amount, flying, bool(done)) for amount, flying, done in database.execute(query)]


async def test_a_crash_leaks_no_reservation(tmp_path: Path) -> None:
    """What is reserved stays so until the next start has continued the run; then it is what was paid.

    Calls that were in flight are paid for twice: by the process that was killed, and by the next.
    """
    (tmp_path / "council.toml").write_text(BUDGET)
    async with scene(tmp_path) as played:
        await played.start()
        asked, _ = await ask_and_die(played, IN_REVIEW)
        left = crashed(played, asked)
        reserved = spending(played)
        assert {(amount, settled) for amount, _, settled in reserved} == {(CALLS, False)}
        lost = [flying for _, flying, _ in reserved]
        assert sum(lost) >= len(played.models.history) - len(left.recorded) > 0
        await finish(played, asked)
        check(count(played, asked, left))
        assert spending(played) == [(CALLS + flying, flying, True) for flying in lost]


async def test_calls_that_stop_ends_are_paid_for(tmp_path: Path) -> None:
    """A member's at the first press, the chairman's at the second: the provider bills both."""
    (tmp_path / "council.toml").write_text(BUDGET)
    first, *_ = MEMBERS
    async with scene(tmp_path) as played:
        await played.start()
        asked = await two_of_three_have_answered(played)
        played.models.always(first, Turn("It depends on", stall=True))
        for question in asked:
            question.press("Stop")
        await played.until(lambda: calls_of(played, first) == 2 * len(asked))
        for question in asked:
            question.press("Stop")
        await played.until(lambda: all(settled for *_, settled in spending(played)))
        assert [(amount, flying) for amount, flying, _ in spending(played)] == [
            (len(MEMBERS) + 1, 0) for _ in asked
        ]


async def test_other_settings_are_for_the_next_question(tmp_path: Path) -> None:
    """A changed `.env` and a changed `council.toml` don't affect a run that continues."""
    async with scene(tmp_path) as played:
        await played.start()
        asked, _ = await ask_and_die(played, IN_REVIEW)
        left = crashed(played, asked)
        (tmp_path / ".env").write_text(
            f"COUNCIL_MEMBERS=x-ai/grok,{','.join(MEMBERS)}\nCOUNCIL_CHAIRMAN=x-ai/grok\n"
        )
        (tmp_path / "council.toml").write_text("[profiles.default]\ntemperature = 0.5\n")
        await finish(played, asked)
        check(count(played, asked, left))
        assert not any("temperature" in each.request for each in played.models.history)
        later = played.people.ask()
        await played.until(lambda: shown(later))
        assert calls_of(played, "x-ai/grok") == 4 * 2
        assert [each.request.get("temperature") for each in played.models.history[-26:]] == [0.5] * 26


async def test_a_stopped_run_stays_stopped(tmp_path: Path) -> None:
    """Once somebody was told that it stops, or the chairman is at it, no member is asked again."""
    async with scene(tmp_path) as played:
        await played.start()
        for moment in (
            Moment("discord whisper accepted"),
            Moment("slack whisper answered"),
            Moment("call asked", 2),
        ):
            asked = await two_of_three_have_answered(played)
            played.trap.arm(moment)
            for question in asked:
                question.press("Stop")
            await played.died()
            played.models.always(LAST, Turn())
            await finish(played, asked)
            written = answers(played.data)
            for question in asked:
                if question.platform in moment.what or moment.what == "call asked":
                    assert calls_of(played, LAST, question.text) == 1
                    assert len(written[question.text].stage1) == 2
                    assert written[question.text].stage3.stopped_early


@pytest.mark.soak
async def test_a_crash_in_a_further_round(tmp_path: Path) -> None:
    """The same figures in round 2's reviews, its corrections, and while it is told, on each platform."""
    async with scene(tmp_path) as played:
        (tmp_path / "council.toml").write_text(TWO_ROUNDS)
        await played.start()
        for moment in (
            # Two runs continue side by side: this many calls, and one of them at least is in round 2.
            Moment("call asked", 2 * OF_ROUND_1 + 1),
            Moment("call answered", 2 * (OF_ROUND_1 + len(MEMBERS)) + 4),
            Moment("discord part accepted", 2),
            Moment("slack part answered", 3),
        ):
            figures = await crash(played, moment, calls=CALLS_OF_TWO_ROUNDS)
            assert not figures.too_late
            check(figures)
        for answer in answers(played.data).values():
            assert answer.iteration
            assert len(answer.iteration.rounds) == 2


@pytest.mark.soak
async def test_a_run_stopped_in_a_further_round_stays_stopped(tmp_path: Path) -> None:
    """It ends with that round, for that reason, and the chairman has what was there."""
    async with scene(tmp_path) as played:
        (tmp_path / "council.toml").write_text(TWO_ROUNDS)
        await played.start()
        for moment in (Moment("discord whisper accepted"), Moment("call asked", 2)):
            asked = await all_but_one_have_reviewed_again(played)
            played.trap.arm(moment)
            for question in asked:
                question.press("Stop")
            await played.died()
            played.models.always(LAST, Turn())
            await finish(played, asked)
            written = answers(played.data)
            for question in asked:
                if question.platform in moment.what or moment.what == "call asked":
                    assert calls_of(played, LAST, question.text) == CALLS_OF_ONE
                    answer = written[question.text]
                    assert answer.stage3.stopped_early
                    assert answer.iteration
                    assert answer.iteration.termination_reason is TerminationReason.USER_STOPPED
                    assert len(answer.iteration.rounds) == 2


@pytest.mark.soak
async def test_a_second_crash_while_it_continues(tmp_path: Path) -> None:
    """The same figures as after one."""
    async with scene(tmp_path) as played:
        await played.start()
        for second in (
            Moment("call asked", 1),
            Moment("discord part accepted", 2),
            Moment("after rename", 1),
        ):
            asked, _ = await ask_and_die(played, IN_REVIEW)
            first = crashed(played, asked)
            await played.start(second)
            await played.died()
            between = crashed(played, asked)
            await finish(played, asked)
            check(count(played, asked, first, between))


@pytest.mark.parametrize(
    "moment",
    [Moment("call asked", 1), pytest.param(Moment("after rename", 1), marks=pytest.mark.soak)],
    ids=str,
)
async def test_what_waited_in_the_queue_has_its_turn(tmp_path: Path, moment: Moment) -> None:
    """Questions that were taken and hadn't begun are answered, too."""
    async with scene(tmp_path) as played:
        await played.start()
        check(await crash(played, moment, each=4))


async def test_a_run_too_old_is_closed_and_continues_on_retry(tmp_path: Path) -> None:
    """It costs nothing until somebody wants it, and then nothing that was paid for."""
    async with scene(tmp_path) as played:
        await played.start()
        asked, _ = await ask_and_die(played, IN_REVIEW)
        left = crashed(played, asked)
        made = len(played.models.history)
        (tmp_path / "council.toml").write_text("[durability]\nresume_within = 0\n")
        await played.start()
        await played.until(lambda: all(run.delivery for run in journal(played.data).values()))
        assert all("Continue" in each.cards()[0].text for each in asked)
        assert len(played.models.history) == made
        for question in asked:
            question.press("Continue (finished calls aren't paid twice)")
        await played.until(lambda: answered(played) and over(played, asked))
        check(count_calls(played, [each.text for each in asked], left))
        written = answers(played.data)
        for question in asked:
            [card] = question.cards()
            assert written[question.text].stage3.response in card.text
            texts = [each.text for each in question.thread()]
            assert len(texts) == len(set(texts))


async def test_asked_again_at_the_terminal_it_continues(tmp_path: Path) -> None:
    """The same question finds the run that was interrupted, whatever of it is there."""
    async with scene(tmp_path) as played:
        for number, moment in enumerate(
            (Moment("call asked", 5), Moment("before commit of steps", 2), Moment("before rename"))
        ):
            question = f"Question {number} of Eve"
            assert await played.ask_at_terminal(question, moment) == -signal.SIGKILL
            left = Crash(played.starts, journal(played.data), {})
            assert await played.ask_at_terminal(question) == 0
            check(count_calls(played, [question], left))
            assert question in answers(played.data)
        assert answered(played)
        assert not leftovers(played.data)
