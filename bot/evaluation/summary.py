"""The result of an evaluation: figures, sentences, and what `--json` prints."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.evaluation.plan import EvalPlan
from bot.evaluation.runner import Evaluated
from bot.view.wording import evaluation as wording
from council.evaluation.arms import AUTO
from council.evaluation.comparison import ArmFigures, Flips, checked, compare_arms, flips
from council.evaluation.comparison import kappa as cohens_kappa
from council.evaluation.judging import HandLabel, JudgedArm, order_bias, paired_labels
from council.evaluation.result import EvalJudge, EvalResult, EvalRule, counted, told


@dataclass(frozen=True, slots=True)
class Summary:
    """An evaluation with its figures; `scores` are by arm and question."""

    plan: EvalPlan
    evaluated: Evaluated
    scores: dict[str, dict[str, float]]
    figures: tuple[ArmFigures, ...]
    flips: Flips
    said: tuple[str, ...]
    result: EvalResult

    @property
    def sentences(self) -> list[str]:
        """What came out, sentence by sentence."""
        return [*self.said]

    def reason(self, figures: ArmFigures) -> str | None:
        """Return why an arm is invalid, `None` where it is valid."""
        return wording.invalid(figures.invalid) if figures.invalid else None

    @property
    def has_valid_arm(self) -> bool:
        """Whether any arm can be compared."""
        return any(each.invalid is None and each.n for each in self.figures)


def summarize(plan: EvalPlan, evaluated: Evaluated, labels: Sequence[HandLabel] = ()) -> Summary:
    """Score, compare and word what an evaluation found."""
    scores = checked(plan.items, evaluated.answers)
    judged = [each for each in evaluated.judged if each.arm in plan.arms]
    for each in judged:
        scores.setdefault(each.arm, {})[each.item] = each.score
    figures = compare_arms(
        plan.arms,
        evaluated.answers,
        scores,
        baseline=plan.baseline,
        margin=plan.margin,
        seed=plan.seed,
    )
    flipped = flips(plan.items, evaluated.answers)
    judge = _judge(plan, judged, labels)
    said = wording.says(
        figures,
        flipped,
        questions=len(evaluated.answers),
        baseline=plan.baseline,
        kappa=judge.kappa if judge else None,
        judged_by_member=plan.profile.judged_by_a_member and (bool(judge) or AUTO in plan.arms),
        stopped_for=evaluated.stopped,
    )
    result = EvalResult(
        questions=len(plan.items),
        seed=plan.seed,
        rule=EvalRule(baseline=plan.baseline, margin=plan.margin),
        arms=told(
            figures, {each.name: wording.invalid(each.invalid) for each in figures if each.invalid}
        ),
        flips=counted(flipped),
        saturated=evaluated.piloted.saturated if evaluated.piloted else (),
        judge=judge,
        stopped=evaluated.stopped,
        says=" ".join(said),
    )
    return Summary(plan, evaluated, scores, tuple(figures), flipped, said, result)


def _judge(plan: EvalPlan, judged: Sequence[JudgedArm], labels: Sequence[HandLabel]) -> EvalJudge | None:
    if plan.profile.judge is None or not judged:
        return None
    compared = [each for each in judged if each.arm != plan.baseline]
    agreed = cohens_kappa([*paired_labels(labels, judged)])
    return EvalJudge(model=plan.profile.judge.model, order_bias=order_bias(compared), kappa=agreed)


def table(summary: Summary) -> str:
    """Return the figures as a table of plain text, the sentences below."""
    heads = ("arm", "score", f"against {summary.plan.baseline}", "cost", "tokens", "seconds", "words")
    rows = [
        (
            each.name,
            wording.share(each),
            wording.against(each.against),
            wording.cost(each.cost),
            f"{each.tokens:,}",
            f"{each.seconds:,.0f}",
            f"{each.words:.0f}",
        )
        for each in summary.figures
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join([*lines, "", *summary.said])
