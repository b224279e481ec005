"""The arms of an evaluation: the ways to answer a question that are compared.

They share their calls: two arms that would ask a member the same thing in the same place use one reply,
so they differ by design and not by luck.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from council.profile import Profile, Strategy

MEMBER = "member:"
STRATEGY = "strategy:"
BEST = "best"
SELF_CONSISTENCY = "self_consistency"
PICK = "pick"
UNION = "union"
STAGE1 = "stage1"
WITHOUT_CORRECTIONS = "full_without_2_5"
FULL = "full"
AUTO = "auto"
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def default_arms(profile: Profile) -> tuple[str, ...]:
    """Return every arm but the strategies, which are run when they are named; `auto` needs a judge."""
    members = (f"{MEMBER}{member.name}" for member in profile.members)
    auto = (AUTO,) if profile.judge else ()
    return (*members, BEST, SELF_CONSISTENCY, PICK, UNION, STAGE1, WITHOUT_CORRECTIONS, FULL, *auto)


def read_arms(given: str | None, profile: Profile) -> tuple[str, ...]:
    """Read a list of arms, separated by commas; `members` means each of them.

    Raises `ValueError` with a sentence for an arm that there isn't.
    """
    if given is None:
        return default_arms(profile)
    members = [f"{MEMBER}{member.name}" for member in profile.members]
    known = {*default_arms(profile), AUTO, *(f"{STRATEGY}{name}" for name in STRATEGIES)}
    chosen: dict[str, None] = {}
    for name in filter(None, map(str.strip, given.split(","))):
        if name == "members":
            chosen |= dict.fromkeys(members)
        elif name in known:
            chosen[name] = None
        else:
            raise ValueError(f"there is no arm {name}; there are members, {', '.join(sorted(known))}")
    if not chosen:
        raise ValueError("no arm is named")
    return tuple(chosen)


Missing = Literal["no_answer", "no_review", "no_correction", "no_chairman", "no_ranking", "not_judged"]
"""Why an arm has no result: what makes it didn't happen."""


@dataclass(frozen=True, slots=True)
class ArmAnswer:
    """What an arm answered to one question.

    `text` is `None` where it gave no result, and `missing` says why. `cost` is in US dollars, `None`
    where a call's price is unknown; `seconds` is how long a person would have waited: the slowest call
    of each stage, added up. `absent` counts the members without an answer.
    """

    text: str | None
    tokens: int
    cost: float | None
    seconds: float
    truncated: bool = False
    absent: int = 0
    missing: Missing | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """A member's answer before and after stage 2.5; both the same where it kept its answer."""

    member: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether the text is another one."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class ItemAnswers:
    """What all arms answered to one question, by arm, with the corrections of the full council."""

    id: str
    arms: dict[str, ArmAnswer]
    corrections: Sequence[Correction] = ()
