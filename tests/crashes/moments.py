"""The moments at which the program is killed."""

import random
from collections.abc import Iterator

from tests.crashes.trap import Moment

ONCE = 1
CALLS = 20  # of two runs of three members
STEPS_COMMITS = 5  # at least; calls that end together share one
PARTS = 4  # the ranking and three members
FULL_LENGTH = 0.4  # seconds, about, that two runs take

CHOSEN = (
    # A call is on its way, or has come back and isn't recorded yet: in every stage (reviews: test_cases.py).
    Moment("call asked", 1),
    Moment("call answered", 3),
    Moment("call asked", 15),
    Moment("call answered", 20),
    Moment("before commit of steps", 1),
    Moment("after commit of steps", 1),
    # A run is about to be accepted; it is accepted, and nobody has been told.
    Moment("before commit of runs", 1),
    Moment("after commit of runs", 1),
    # A message is there, and the program doesn't know.
    Moment("discord card accepted"),
    Moment("slack card accepted"),
    Moment("slack card answered"),
    Moment("discord thread accepted"),
    Moment("slack part accepted", 2),
    Moment("discord part answered", 3),
    Moment("discord last edit accepted"),
    Moment("slack last edit answered"),
    Moment("discord mention accepted"),
    Moment("slack mention accepted"),
    # A document is being replaced, and put into the index.
    Moment("before rename", 1),
    Moment("after rename", 1),
    Moment("after rename", 2),
    Moment("before commit of conversations", 1),
)

LASTS = {
    **{f"call {phase}": CALLS for phase in ("asked", "answered")},
    **{f"{when} commit of steps": STEPS_COMMITS for when in ("before", "after")},
    **{f"{when} commit of runs": STEPS_COMMITS for when in ("before", "after")},
    **{f"{when} commit of conversations": ONCE for when in ("before", "after")},
    **{f"{when} rename": 2 for when in ("before", "after")},
    **{
        f"{platform} {what} {phase}": times
        for platform in ("discord", "slack")
        for what, times in (("card", 1), ("edit", 3), ("part", PARTS), ("last edit", 1), ("mention", 1))
        for phase in ("asked", "accepted", "answered")
    },
    **{f"discord thread {phase}": ONCE for phase in ("asked", "accepted", "answered")},
}
"""How often each thing happens at least while one question is answered on each platform."""


def drawn(times: int, seed: int) -> Iterator[Moment]:
    """Draw moments: every second one by the clock alone, the others as something happens."""
    source = random.Random(seed)  # noqa: S311 - moments, not secrets
    for number in range(times):
        if number % 2:
            yield Moment("question", seconds=source.uniform(0, FULL_LENGTH))
        else:
            what = source.choice(sorted(LASTS))
            yield Moment(what, source.randint(1, LASTS[what]))
