"""What `council eval --json` prints: field for field as the specification names it."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from council.evaluation.comparison import ArmFigures, Decision, Flips

SCHEMA = 1
Bounds = tuple[float, float]


class EvalRule(BaseModel):
    """By which the arms are compared, written before the first call."""

    model_config = ConfigDict(frozen=True)

    baseline: str
    margin: float


class EvalDifference(BaseModel):
    """An arm's difference from the baseline."""

    model_config = ConfigDict(frozen=True)

    difference: float
    interval: Bounds
    decision: Decision


class EvalArm(BaseModel):
    """One arm; an unknown figure is null, and so are those of an invalid arm."""

    model_config = ConfigDict(frozen=True)

    name: str
    n: int
    score: float | None
    interval: Bounds | None
    against_baseline: EvalDifference | None
    cost: float | None
    tokens: int | None
    seconds: float | None
    invalid: str | None


class EvalFlips(BaseModel):
    """What corrections did to members' answers."""

    model_config = ConfigDict(frozen=True)

    wrong_to_right: int
    right_to_wrong: int
    unjudged: int


class EvalJudge(BaseModel):
    """The judge: the share of its comparisons that the order decided, and how it agrees with people."""

    model_config = ConfigDict(frozen=True)

    model: str
    order_bias: float | None
    kappa: float | None


class EvalResult(BaseModel):
    """The result of an evaluation."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    version: int = Field(default=SCHEMA, alias="schema")
    questions: int
    seed: int
    rule: EvalRule
    arms: tuple[EvalArm, ...]
    flips: EvalFlips
    saturated: tuple[str, ...]
    judge: EvalJudge | None
    stopped: Literal["max_cost", "interrupted"] | None
    says: str

    def to_json(self) -> str:
        """Return it as JSON, indented."""
        return self.model_dump_json(by_alias=True, indent=2)


def told(figures: Sequence[ArmFigures], reasons: dict[str, str]) -> tuple[EvalArm, ...]:
    """Return the arms as the result has them; `reasons` are the sentences for invalid ones."""
    return tuple(
        EvalArm(
            name=each.name,
            n=each.n,
            score=_rounded(each.score),
            interval=_bounds(each.interval),
            against_baseline=None
            if each.against is None
            else EvalDifference(
                difference=round(each.against.difference, 6),
                interval=(round(each.against.interval.low, 6), round(each.against.interval.high, 6)),
                decision=each.against.decision,
            ),
            cost=_rounded(each.cost, 9),
            tokens=each.tokens,
            seconds=each.seconds,
            invalid=reasons.get(each.name),
        )
        for each in figures
    )


def counted(found: Flips) -> EvalFlips:
    """Return the flips as the result has them."""
    return EvalFlips(
        wrong_to_right=found.wrong_to_right,
        right_to_wrong=found.right_to_wrong,
        unjudged=found.unjudged,
    )


def _rounded(value: float | None, places: int = 6) -> float | None:
    return None if value is None else round(value, places)


def _bounds(interval: Bounds | None) -> Bounds | None:
    return None if interval is None else (round(interval[0], 6), round(interval[1], 6))
