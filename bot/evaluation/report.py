"""An evaluation as one HTML file that needs nothing else: no network and no script."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.evaluation.charts import IntervalRow, bars, intervals
from bot.evaluation.summary import Summary
from bot.transcript.template import Drawing, asset, environment, policy
from bot.view.message import printable
from bot.view.wording import evaluation as wording
from council.evaluation.comparison import LEAST_DECIDED, ArmFigures

PACKAGE = "bot.evaluation"
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """One question with every arm's answer: name, verdict, text."""

    id: str
    said: str
    text: str
    wanted: str
    answers: tuple[tuple[str, str, str], ...]


def to_page(summary: Summary, name: str, created: str) -> str:
    """Return the page. Long evaluations take a while: don't call it on an event loop."""
    style = asset("style.css") + asset("report.css", PACKAGE)
    return (
        environment(PACKAGE)
        .get_template("report.html")
        .render(
            title=printable(name),
            facts=[*_facts(summary, created)],
            sentences=summary.sentences,
            charts=[*_charts(summary)],
            heads=wording.HEADS,
            rows=[wording.figures_row(each, summary.reason(each)) for each in summary.figures],
            questions=[*_questions(summary)],
            footer=wording.FOOTER,
            style=style,
            policy=policy(style),
        )
    )


def _facts(summary: Summary, created: str) -> Iterator[tuple[str, str]]:
    plan, piloted = summary.plan, summary.evaluated.piloted
    yield wording.WHEN, created[:10]
    yield wording.ASKED, wording.asked(len(summary.evaluated.answers), len(plan.items))
    yield wording.MEMBERS, ", ".join(member.name for member in plan.profile.members)
    yield wording.CHAIRMAN, plan.profile.chairman.name
    yield wording.RULE, wording.rule(plan.baseline, plan.margin)
    if piloted:
        yield wording.CHOSEN, piloted.best
        yield wording.SATURATED, ", ".join(piloted.saturated) or wording.NONE
    if judge := summary.result.judge:
        yield wording.JUDGE, wording.judged_by(judge.model, judge.order_bias, judge.kappa)
    yield wording.SEED, str(plan.seed)


def _charts(summary: Summary) -> Iterator[Drawing]:
    figures = summary.figures
    yield Drawing(
        wording.SCORES,
        intervals(
            [_score_row(each) for each in figures],
            first=0.0,
            last=1.0,
            ticks=[(each, f"{each:.0%}") for each in QUARTERS],
        ),
        wording.SCORES_NOTE,
    )
    compared = [each for each in figures if each.against]
    if compared:
        widest = max(
            max(abs(bound) for bound in each.against.interval) for each in compared if each.against
        )
        edge = max(0.25, -(-widest // 0.25) * 0.25)
        yield Drawing(
            wording.differences(summary.plan.baseline),
            intervals(
                [_difference_row(each) for each in compared],
                first=-edge,
                last=edge,
                ticks=[(each, wording.points(each)) for each in (-edge, -edge / 2, 0.0, edge / 2, edge)],
                margin=summary.plan.margin,
            ),
            wording.DIFFERENCES_NOTE,
        )
    asked = max(len(summary.evaluated.answers), 1)
    yield Drawing(
        wording.TOKENS,
        bars([(each.name, each.tokens / asked, f"{each.tokens / asked:,.0f}") for each in figures]),
        wording.TOKENS_NOTE,
    )


def _score_row(figures: ArmFigures) -> IntervalRow:
    if figures.score is None or figures.interval is None:
        return IntervalRow(figures.name, wording.INVALID)
    said = f"{figures.score * figures.n:g} of {figures.n}"
    if figures.n >= LEAST_DECIDED:
        said = f"{figures.score:.0%}"
    return IntervalRow(figures.name, said, figures.score, *figures.interval)


def _difference_row(figures: ArmFigures) -> IntervalRow:
    found = figures.against
    if found is None:
        return IntervalRow(figures.name, wording.INVALID)
    said = wording.decided(found)
    return IntervalRow(figures.name, said, found.difference, *found.interval)


def _questions(summary: Summary) -> Iterator[QuestionPart]:
    items = {item.id: item for item in summary.plan.items}
    for answered in summary.evaluated.answers:
        item = items[answered.id]
        scores = {arm: summary.scores.get(arm, {}).get(item.id) for arm in answered.arms}
        answers = tuple(
            (arm, wording.verdict(scores[arm], answer.missing), printable(answer.text or ""))
            for arm, answer in answered.arms.items()
        )
        yield QuestionPart(
            printable(item.id),
            wording.right_arms([arm for arm, score in scores.items() if score == 1.0], len(scores)),
            printable(item.prompt),
            wording.wanted(item),
            answers,
        )
