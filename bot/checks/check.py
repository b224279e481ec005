"""One check, what it finds, and how many run at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

import structlog

from bot.errors import Problem, Weight
from storage.errors import StorageError

log = structlog.get_logger()

SECONDS = 15.0
"""How long a check may take."""

MARKS = {"ok": "\u2713", "skipped": "\u2013", "warning": "!", "error": "\u2717"}
TROUBLE = "docs/run.md says what to do, under What the errors mean"
"""What to do about an error of storage."""
WIDTH = 20
MOST_COLUMNS = 100_000
"""Where nobody reads at a terminal, a line is whole."""


class Advice(NamedTuple):
    """What is wrong, and how to fix it."""

    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found; a `skipped` one couldn't run, and its `note` says why.

    `details` are lines below it that name no fault.
    """

    note: str = ""
    findings: tuple[Problem, ...] = ()
    skipped: bool = False
    details: tuple[str, ...] = ()

    @property
    def allows_others(self) -> bool:
        return not self.skipped and all(one.weight == "warning" for one in self.findings)

    @property
    def state(self) -> str:
        if any(finding.weight == "error" for finding in self.findings):
            return "error"
        if self.findings:
            return "warning"
        return "skipped" if self.skipped else "ok"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one thing.

    It is skipped unless the checks it `needs`, by name, found nothing serious. It begins when those
    named in `after` are over, whatever they found.
    """

    name: str
    look: Callable[[], Awaitable[Outcome]]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finished check."""

    name: str
    outcome: Outcome

    def lines(self, width: int = MOST_COLUMNS, hide: Callable[[str], str] = str) -> list[str]:
        """Write it for people: a line, and what is wrong with its fix below; no word is broken.

        `hide` takes secrets out of a line.
        """
        note = "" if self.outcome.findings else self.outcome.note
        lines = [(f"{MARKS[self.outcome.state]} {self.name:<{WIDTH}}{note}".rstrip(), WIDTH + 2)]
        lines += [(f"    {detail}.", 6) for detail in self.outcome.details]
        for finding in self.outcome.findings:
            fix = finding.fix if finding.fix.endswith("?") else f"{finding.fix}."
            lines += [(f"    {finding.where}: {finding.what}.", 6), (f"    Fix: {fix}", 6)]
        return [part for line, indent in lines for part in wrapped(hide(line), indent, width)]


def wrapped(line: str, indent: int, width: int) -> list[str]:
    """Break a line between words, with what follows indented; addresses and ids stay whole."""
    rest = " " * indent
    return wrap(line, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def found(*rows: tuple[object, Problem]) -> tuple[Problem, ...]:
    """Return what is wrong, by rows of whether it is and what to do then."""
    return tuple(finding for is_wrong, finding in rows if is_wrong)


def wrong(where: str, what: str, fix: str, weight: Weight = "error") -> Outcome:
    return Outcome(findings=(Problem(where, what, fix, weight),))


def unanswered(platform: str, why: str | None, address: str, page: str) -> Problem:
    """Return what is wrong where a platform doesn't answer as asked; `why` is `None` for no answer."""
    if why is None:
        fix = f"Check the network, any proxy, and that {address} is unset or right"
        return Problem(platform, "it doesn't answer", fix)
    fix = f"Wait and run `council doctor` again; {page} may say more"
    return Problem(platform, f"it didn't answer as expected ({why})", fix)


def needs(check: str) -> Outcome:
    return Outcome(f"skipped: first fix what is wrong under {check}", skipped=True)


async def carry_out(checks: Sequence[Check]) -> list[CheckResult]:
    """Run all checks at once, unless they need each other; no check hides another.

    A check comes after those it needs in `checks`.
    """
    tasks: dict[str, asyncio.Task[Outcome]] = {}
    async with asyncio.TaskGroup() as group:
        for check in checks:
            tasks[check.name] = group.create_task(_outcome(check, dict(tasks)))
    return [CheckResult(name, task.result()) for name, task in tasks.items()]


async def _outcome(check: Check, before: dict[str, asyncio.Task[Outcome]]) -> Outcome:
    await asyncio.gather(*(before[name] for name in check.after if name in before))
    for name in check.needs:
        if not (await before[name]).allows_others:
            return needs(name)
    try:
        async with asyncio.timeout(check.seconds):
            return await check.look()
    except TimeoutError:
        what = f"there was no result within {check.seconds:g} s"
        fix = "Check the network, then run `council doctor` again"
    except StorageError as error:
        what, fix = str(error), TROUBLE
    except Exception:  # an unforeseen error in one check doesn't hide the others
        log.critical("check_failed", where=check.name.replace(" ", "_"), exc_info=True)
        what = "the check itself failed"
        fix = "Report what was logged; the checks that don't depend on it still ran"
    return wrong(check.name, what, fix)
