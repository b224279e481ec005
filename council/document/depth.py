"""How deep a run went, and why, as its document keeps it."""

from typing import Literal

from council.document.comparisons import DifferingPoint
from council.document.results import Record
from council.profile import Depth

Ran = Literal["quick", "full"]
DepthReason = Literal[
    "asked",
    "agreed",
    "audited",
    "different",
    "undecided",
    "cut_off",
    "steering",
    "no_verdict",
    "one_answer",
    "stopped",
]
"""Why a run went as deep as it did.

`asked`: that depth was chosen. Of `auto`: the answers `agreed`; they did, and were reviewed all the same
(`audited`); they were `different`; the judge couldn't tell (`undecided`); an answer was `cut_off` or was
`steering` its readers; there was `no_verdict`. There was `one_answer`, or the run was `stopped`.
"""


class JudgeReport(Record):
    """What the judge said of the first answers: whether they agree, and the points that differ."""

    model: str
    agree: bool
    points: list[DifferingPoint]


class Saved(Record):
    """About what a run would have taken besides, less what the judge's call took.

    `cost` is in US dollars, `None` where a price isn't known. Either may be below zero.
    """

    tokens: int
    cost: float | None


class RunDepth(Record):
    """How deep a run was to go and went, and why.

    `changed` says of an audited run whether the reviews changed the recommendation, and is `None` where
    the judge couldn't tell.
    """

    asked: Depth
    ran: Ran
    reason: DepthReason
    audited: bool
    judge: JudgeReport | None
    saved: Saved | None = None
    changed: bool | None = None


def was_skipped(depth: RunDepth | None) -> bool:
    """Return whether a run went without reviews by choice, not because it was stopped."""
    return depth is not None and depth.ran == "quick" and depth.reason != "stopped"
