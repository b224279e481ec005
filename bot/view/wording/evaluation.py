"""What `council eval` says: its result in words, its progress, and why it can't run."""

from collections.abc import Iterator, Sequence

from bot.view.wording import figures
from council.evaluation.arms import Missing
from council.evaluation.comparison import LEAST_DECIDED, Against, ArmFigures, Flips, Invalid, detectable
from council.evaluation.items import EvalItem

RUNS_ELSEWHERE = "This evaluation is running in another process."
NO_FILE = "Name a file of questions, or use --from-history."
FILE_AND_HISTORY = "Name a file of questions or use --from-history, not both."
NO_HISTORY = "No question asked in this terminal has people's votes yet: there is nothing to evaluate."
NEEDS_JUDGE = (
    "Some questions can't be checked without a judge: set judge_model in council.toml, or use --judge."
)
AUTO_NEEDS_JUDGE = "The arm auto needs a judge: set judge_model in council.toml, or use --judge."
NOT_BELIEVED = "judge not trusted"
TRUSTED = 0.6
"""Cohen's kappa below which a judge's verdicts count for nothing."""
PILOT, QUESTIONS = "Pilot", "Questions"
_WHY: dict[Missing, str] = {
    "no_answer": "have no answer",
    "no_review": "have no review",
    "no_correction": "have no correction",
    "no_chairman": "have no answer by the chairman",
    "no_ranking": "have no ranking",
    "not_judged": "have no verdict",
}
_DECIDED = {
    "better": "better",
    "worse": "worse",
    "within_margin": "no different by more than the margin",
    "undecided": "undecided",
}


def no_such_profile(name: str, known: Sequence[str]) -> str:
    return f"There is no profile {name}; there are {', '.join(known)}."


def unreadable(path: str, why: str) -> str:
    return f"{path} can't be read: {why}."


def problems(path: str, found: Sequence[str]) -> str:
    shown = [f"  {each}" for each in found[:20]]
    more = [f"  and {len(found) - 20} more"] if len(found) > 20 else []
    return "\n".join([f"{path} can't be used:", *shown, *more])


def plan(questions: int, members: int, arms: int, pilot: int, judged: int) -> str:
    """Return what is about to run, before the first call."""
    by = "" if not judged else f", {judged} of them by the judge"
    first = f"The pilot asks each member {pilot} of them three times. " if pilot else ""
    return (
        f"{figures.count(questions, 'question')}{by}, {figures.count(members, 'member')}, "
        f"{figures.count(arms, 'arm')}. {first}The rule is on record. Ctrl-C stops; the same command "
        "continues."
    )


def progress(done: int, of: int, seconds: float | None, dollars: float | None) -> str:
    if done == of:
        return f"{done} of {of}"
    left = "" if seconds is None else f", about {figures.duration(seconds)} left"
    cost = "" if not dollars else f", about {figures.dollars(dollars)} more"
    return f"{done} of {of}{left}{cost}"


def invalid(found: Invalid) -> str:
    return f"{found.missing} of {found.of} questions {_WHY[found.cause]}"


def written(what: str, path: str) -> str:
    return f"{what}: {path}"


def may_pass(max_cost: float, reply_tokens: int) -> str:
    return (
        f"Without max_tokens a reply is taken to be {reply_tokens:,} tokens long: "
        f"longer ones can pass {figures.dollars(max_cost)} by the difference."
    )


def stopped(why: str, max_cost: float | None) -> str:
    if why == "max_cost":
        most = figures.dollars(max_cost or 0)
        return f"Stopped before {most} were passed; the same command with a higher --max-cost continues."
    return "Stopped; the same command continues."


def points(value: float) -> str:
    """Return a difference of shares in points: `+4`, `\u221212`, `0`."""
    whole = round(100 * value)
    return f"{whole:+d}".replace("-", "\u2212") if whole else "0"


def share(figure: ArmFigures) -> str:
    """Return a score as a share, from ten questions on; below, as a count."""
    if figure.score is None or figure.interval is None:
        return "invalid"
    if figure.n < LEAST_DECIDED:
        return f"{figure.score * figure.n:g} of {figure.n}"
    low, high = figure.interval
    return f"{figure.score:.0%} ({low:.0%} to {high:.0%})"


def against(found: Against | None) -> str:
    if found is None:
        return ""
    if found.pairs < LEAST_DECIDED:
        return _counted(found)
    low, high = found.interval
    decided = _DECIDED[found.decision]
    return f"{points(found.difference)} ({points(low)} to {points(high)}), {decided}"


def _counted(found: Against) -> str:
    """Return a difference as a count: `+2 of 9`."""
    more = found.difference * found.pairs
    return f"{more:+.3g} of {found.pairs}".replace("-", "\u2212") if more else f"0 of {found.pairs}"


def cost(dollars: float | None) -> str:
    if dollars is None:
        return "unknown"
    return figures.dollars(dollars) if dollars else figures.NO_COST


def flipped(found: Flips) -> str:
    """Return what stage 2.5 did to members' answers."""
    said = (
        f"Stage 2.5 put {figures.count(found.wrong_to_right, 'wrong answer')} right and spoilt "
        f"{figures.count(found.right_to_wrong, 'right one')}"
    )
    changed = f"; {found.unjudged} more changed, and nobody can say which way" if found.unjudged else ""
    return f"{said}{changed}."


def says(
    arms: Sequence[ArmFigures],
    flips: Flips,
    *,
    questions: int,
    baseline: str,
    kappa: float | None,
    judged_by_member: bool,
    stopped_for: str | None,
) -> tuple[str, ...]:
    """Return in a few sentences what came out, and what that can't show."""
    return tuple(
        _said(arms, flips, questions, baseline, kappa, judged_by_member, stopped_for is not None)
    )


def _said(
    arms: Sequence[ArmFigures],
    flips: Flips,
    questions: int,
    baseline: str,
    kappa: float | None,
    judged_by_member: bool,
    is_stopped: bool,
) -> Iterator[str]:
    if flips.right_to_wrong > flips.wrong_to_right:
        yield f"Stage 2.5 spoils more than it mends: {_lower(flipped(flips))}"
    elif any(each.name.startswith("full") or each.name == "pick" for each in arms):
        yield flipped(flips)
    compared = [each for each in arms if each.against]
    for each in sorted(compared, key=lambda one: one.name != "full")[:1]:
        yield f"{each.name} against {baseline}: {against(each.against)}."
    for each in arms:
        if each.invalid:
            yield f"{each.name} is invalid: {invalid(each.invalid)}."
    if kappa is not None and kappa < TRUSTED:
        agreed = f"its verdicts agree with the hand labels by a kappa of {kappa:.2f}"
        yield f"{NOT_BELIEVED.capitalize()}: {agreed}."
    if judged_by_member:
        yield "The judge is a member's model and judged its own answers."
    if is_stopped:
        yield "The evaluation was stopped, so these are the questions that it reached."
    if questions < LEAST_DECIDED:
        asked = figures.count(questions, "question")
        yield f"{asked} can't show a difference; from ten on one can be decided."
    elif width := detectable(arms):
        yield (
            f"{figures.count(questions, 'question')} can't show a difference below about "
            f"{max(1, round(100 * width))} points, nor what other questions would give."
        )


def _lower(sentence: str) -> str:
    return sentence.removeprefix("Stage 2.5 ").replace("put ", "it put ", 1)


def no_such_arm(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def no_label(line: int) -> str:
    return f"line {line}: it needs id, arm, and better, which is arm, baseline or tie"


WHEN, ASKED, MEMBERS, CHAIRMAN, RULE = "Date", "Questions", "Members", "Chairman", "Rule"
CHOSEN, SATURATED, JUDGE, SEED, NONE = "Best member", "Saturated", "Judge", "Seed", "none"
INVALID = "invalid"
SCORES = "Share of right answers"
SCORES_NOTE = "A dot is an arm's score, its line the 95 % interval."
DIFFERENCES_NOTE = (
    "Points above or below the baseline, paired by question, with 95 % intervals. A difference in the "
    "shaded margin doesn't matter."
)
TOKENS = "Tokens for one question"
TOKENS_NOTE = "All tokens of an arm, prompts and replies, as if it had been run alone."
FOOTER = "Answers are by AI models. This file is self-contained."
HEADS = (
    "Arm",
    "Questions",
    "Score",
    "Against the baseline",
    "At equal length",
    "Words",
    "Cost",
    "Tokens",
    "Seconds",
    "Cut off",
    "Member missing",
)


def report_title(questions: str) -> str:
    return f"What the council was worth on {questions}"


def differences(baseline: str) -> str:
    return f"Difference from {baseline}"


def asked(reached: int, of: int) -> str:
    return str(of) if reached == of else f"{reached} of {of}"


def rule(baseline: str, margin: float) -> str:
    return f"against {baseline}, margin {100 * margin:g} points"


def judged_by(model: str, order_bias: float | None, kappa: float | None) -> str:
    bias = "" if order_bias is None else f", the order decided {order_bias:.0%}"
    agreed = "no hand labels" if kappa is None else f"kappa {kappa:.2f}"
    return f"{model}{bias}, {agreed}"


def figures_row(each: ArmFigures, why_invalid: str | None) -> tuple[str, ...]:
    """Return an arm's row of the table of all figures."""
    controlled = "" if each.length_controlled is None else points(each.length_controlled)
    return (
        each.name,
        str(each.n),
        f"{INVALID}: {why_invalid}" if why_invalid else share(each),
        against(each.against),
        controlled,
        f"{each.words:.0f}",
        cost(each.cost),
        f"{each.tokens:,}",
        f"{each.seconds:,.0f}",
        str(each.truncated),
        str(each.absent),
    )


def decided(found: Against) -> str:
    if found.pairs < LEAST_DECIDED:
        return _counted(found)
    word = "within margin" if found.decision == "within_margin" else found.decision
    return f"{points(found.difference)}, {word}"


def verdict(score: float | None, missing: Missing | None) -> str:
    if missing:
        return f"no result: {_WHY[missing].replace('have', 'has', 1)}"
    if score is None:
        return "not judged"
    return {1.0: "right", 0.0: "wrong"}.get(score, "tie")


def right_arms(right: Sequence[str], of: int) -> str:
    return f"{len(right)} of {of} arms right"


def wanted(item: EvalItem) -> str:
    """Return what a right answer is."""
    if item.target:
        return f"Right: {' or '.join(item.target)}"
    return f"A good answer says: {'; '.join(item.rubric)}"


REPORT, EXPORT, HISTORY = "Report", "Export", "history"


def not_written(path: str, why: str) -> str:
    return f"{path} can't be written: {why.lower()}."


def better_than(answer: str, reasons: Sequence[str]) -> Iterator[str]:
    """Return what an answer has to do where people didn't find the council's helpful."""
    yield f"It is more helpful than this answer, which people voted against: {answer}"
    for reason in reasons:
        yield f"It doesn't have this fault that somebody named: {reason}"
