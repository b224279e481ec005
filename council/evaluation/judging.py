"""Answers that no checker can score, compared by the judge: with the baseline's, in both orders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from council.errors import Failure
from council.evaluation.arms import ItemAnswers
from council.evaluation.items import EvalItem
from council.profile import Member
from council.session import Session
from council.worth.judge import compare, prefer

MOST_COMPARED = 8
"""Answers that a judge is shown at once."""
WON, TIED, LOST = 1.0, 0.5, 0.0


@dataclass(frozen=True, slots=True)
class JudgedArm:
    """The judge's verdict on an arm's answer beside the baseline's: 1 better, 0.5 a tie, 0 worse.

    `depends_on_order`: it preferred the same place both times, which counts as a tie.
    """

    item: str
    arm: str
    score: float
    depends_on_order: bool = False


def asked_of_judge(item: EvalItem) -> str:
    """Return the question as the judge reads it: with the reference, and what a good answer says."""
    parts = [item.prompt]
    if item.target:
        parts.append("The reference answer is:\n" + "\n".join(item.target))
    if item.rubric:
        points = "\n".join(f"- {each}" for each in item.rubric)
        parts.append(f"A good answer makes these points:\n{points}")
    return "\n\n".join(parts)


async def judge_arms(
    session: Session, judge: Member, answers: ItemAnswers, baseline: str
) -> list[JudgedArm]:
    """Compare every arm's answer with the baseline's; none where either has no result.

    `session` asks the question as `asked_of_judge` writes it. The baseline itself ties, and so does an
    arm that says the same. A comparison that failed is left out.
    """
    base = answers.arms.get(baseline)
    if base is None or base.text is None or base.missing:
        return []
    found: list[JudgedArm] = []
    for arm, answer in answers.arms.items():
        if answer.text is None or answer.missing:
            continue
        if answer.text == base.text:
            found.append(JudgedArm(answers.id, arm, TIED))
            continue
        verdict = await prefer(
            session, f"judge.1:{judge.model}", judge, answer.text, base.text, session.stop.members
        )
        if not isinstance(verdict, Failure):
            score = {"first": WON, "second": LOST}.get(verdict.better or "", TIED)
            found.append(JudgedArm(answers.id, arm, score, verdict.favours is not None))
    return found


async def best_of(session: Session, judge: Member, texts: Sequence[str]) -> int | None:
    """Return which of some texts the judge calls the best in both orders; `None` if it doesn't say.

    Only the first eight are shown to it.
    """
    shown = [*enumerate(texts)][:MOST_COMPARED]
    if len({*texts}) < 2:
        return 0
    verdicts: list[int] = []
    for number, order in enumerate((shown, shown[::-1])):
        labels = [f"Response {letter}" for letter in ascii_uppercase[: len(order)]]
        labelled = [(label, text) for label, (_, text) in zip(labels, order, strict=True)]
        step = f"judge.{number + 1}:{judge.model}:best"
        said = await compare(session, step, judge, labelled, session.stop.members)
        if isinstance(said, Failure) or said.better is None:
            return None
        verdicts.append(order[labels.index(said.better)][0])
    first, second = verdicts
    return first if first == second else None


def order_bias(judged: Sequence[JudgedArm]) -> float | None:
    """Return the share of comparisons that the order decided; `None` without any."""
    return sum(each.depends_on_order for each in judged) / len(judged) if judged else None


@dataclass(frozen=True, slots=True)
class HandLabel:
    """A person's verdict on an arm's answer beside the baseline's."""

    item: str
    arm: str
    better: str


def paired_labels(labels: Sequence[HandLabel], judged: Sequence[JudgedArm]) -> Iterator[tuple[str, str]]:
    """Yield what the judge and a person said of the same comparison."""
    names: Mapping[float, str] = {WON: "arm", TIED: "tie", LOST: "baseline"}
    verdicts = {(each.item, each.arm): names[each.score] for each in judged}
    for label in labels:
        if (verdict := verdicts.get((label.item, label.arm))) is not None:
            yield verdict, label.better
