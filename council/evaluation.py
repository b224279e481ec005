"""An evaluation's arms: how each answers a question, and how they compare by a rule written first.

Arms share their calls: two that would ask a member the same thing in the same place use one reply, so
they differ by design and not by luck. An arm that never ran is invalid, not zero. Differences are paired
by question and resampled with the evaluation's seed.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from random import Random
from statistics import fmean
from typing import Literal, NamedTuple

from council import consultation_calls
from council.brief import Brief
from council.calls import Ask, AskAgain, Call, Outcome, Reply, Steps
from council.document.conversation import AssistantMessage
from council.document.results import Stage1Result, was_skipped
from council.errors import Failure, NoAnswers
from council.profile import Member, Profile
from council.run import deliberate
from council.session import Request, Session
from council.tasks import Stop
from council.usage import Usage, total
from council.worth.intervals import Interval, exact_share, mean_difference

MEMBER, BEST, SELF_CONSISTENCY = "member:", "best", "self_consistency"
STAGE1, SECOND_LOOK, FULL, AUTO = "stage1", "second_look", "full", "auto"
WITHOUT_CORRECTIONS = "full_without_2_5"
DEFAULT_ARMS = (BEST, SELF_CONSISTENCY, STAGE1, SECOND_LOOK, WITHOUT_CORRECTIONS, FULL)
COUNCILS: Mapping[str, Mapping[str, object]] = {
    STAGE1: {"depth": "quick"},
    "quick": {"depth": "quick"},
    SECOND_LOOK: {"critique_mode": "full"},
    WITHOUT_CORRECTIONS: {"corrects": False},
    FULL: {},
    AUTO: {"depth": "auto"},
}
"""The arms that are a council's answer, with what is set for each; `second_look` has no reviews."""
PILOT_SAMPLES = 3
MOST_SAMPLES = 64
"""Of the best single member, however little each of its answers takes."""
MOST_MISSING = 0.05
"""The share of an arm's questions that may have no result."""
LEAST_COMPARED, LEAST_DECIDED = 3, 10
"""Questions below which nothing is compared, and below which nothing is decided."""

Missing = Literal["no_answer", "no_review", "no_correction", "no_chairman", "no_majority", "not_judged"]
"""Why an arm has no result: what makes the arm didn't happen."""
Decision = Literal["better", "worse", "within_margin", "undecided"]


def read_arms(given: str | None, profile: Profile) -> tuple[str, ...]:
    """Return the arms in a list, separated by commas. Raises `ValueError` for one that there isn't."""
    members = [f"{MEMBER}{member.name}" for member in profile.members]
    known = ("members", *members, BEST, SELF_CONSISTENCY, *COUNCILS)
    names = list(DEFAULT_ARMS) if given is None else [*filter(None, map(str.strip, given.split(",")))]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ValueError(f"There is no arm {unknown[0] if names else ''}; there are {', '.join(known)}.")
    chosen = [each for name in names for each in (members if name == "members" else [name])]
    return tuple(dict.fromkeys(chosen))


class Item(NamedTuple):
    """One question as the council gets it; `is_judged` where no checker can score an answer."""

    id: str
    prompt: str
    is_judged: bool = False


class ArmAnswer(NamedTuple):
    """What an arm answered to one question, and what that took; without a result, `missing` says why.

    `cost` is in US dollars, `None` where a call's price is unknown; `seconds` is how long a person would
    have waited: the slowest call of each stage, added up.
    """

    text: str | None
    used: Usage
    seconds: float
    missing: Missing | None = None

    @property
    def cost(self) -> float | None:
        return None if self.used.unpriced else self.used.cost


class Correction(NamedTuple):
    """A member's answer before and after stage 2.5; both the same where it kept its answer."""

    member: str
    before: str
    after: str


Answers = Mapping[str, ArmAnswer]
"""What the arms answered to one question."""
Scores = Mapping[str, Mapping[str, float]]
"""By arm and question: from 0 to 1, only where there is one."""
NOTHING = ArmAnswer(None, Usage(), 0.0, missing="no_answer")


@dataclass(frozen=True, slots=True)
class _ItemSteps:
    """The steps of an evaluation's run that belong to one question; a `council.calls.Steps`.

    Each is keyed by the question, by a digest of what is asked, and by its place in the council. Where
    nothing `is_reviewed`, no review is asked for.
    """

    steps: Steps
    item: str
    is_reviewed: bool = True

    def recall(self, call: Call) -> Outcome | None:
        if not self.is_reviewed and call.step.startswith("stage2."):
            return Failure(cause="not_needed", attempts=0)
        return self.steps.recall(self.keyed(call))

    async def record(self, call: Call, outcome: Outcome) -> None:
        await self.steps.record(self.keyed(call), outcome)

    def has_begun(self, stage: str) -> bool:
        """Return false: an evaluation is never asked to stop and conclude."""
        del stage
        return False

    def keyed(self, call: Call) -> Call:
        key = f"{self.item}/{call.digest[:16]}/{call.step}"
        return replace(call, step=key, prompt=lambda: call.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """Answers questions by every arm; `brief` has the council, the seed and the boundary of all of them.

    `judge` reads what no checker can score.
    """

    brief: Brief
    ask: Ask
    steps: Steps
    now: Callable[[], datetime]
    judge: Member | None = None

    async def pilot(self, item: Item) -> dict[str, list[str | None]]:
        """Return three first answers of every member to a question, `None` for one that failed.

        They aren't used again: who was lucky here gains nothing from it later.
        """
        session, numbers = self._session(item, f"pilot/{item.id}"), range(1, PILOT_SAMPLES + 1)

        async def ask(member: Member) -> list[str | None]:
            given = await asyncio.gather(*(_sample(session, member, number) for number in numbers))
            return [sample.text if sample else None for sample in given]

        members = self.brief.profile.members
        found = await asyncio.gather(*map(ask, members))
        return dict(zip((member.name for member in members), found, strict=True))

    async def answer(
        self, item: Item, names: Sequence[str], best: str
    ) -> tuple[Answers, list[Correction]]:
        """Answer a question by each of these arms, and return the full council's corrections with it.

        `best` names the best single member.
        """
        councils = dict.fromkeys(name for name in names if name in COUNCILS)
        if SELF_CONSISTENCY in names:
            councils[FULL] = None
        messages = {name: await self._deliberate(item, name) for name in councils or (STAGE1,)}
        any_message, full = next(iter(messages.values())), messages.get(FULL)
        found: dict[str, ArmAnswer] = {}
        for name in names:
            if name in COUNCILS:
                found[name] = _council(name, messages[name])
            elif name == SELF_CONSISTENCY:
                found[name] = await self._self_consistency(item, full, best)
            else:
                found[name] = _member(any_message, best if name == BEST else name.removeprefix(MEMBER))
        corrections = (full.stage2_5 if full else None) or ()
        return found, [
            Correction(each.model, each.original_response, each.corrected_response)
            for each in corrections
            if each.fallback is None
        ]

    async def verdict(self, item: Item, prompt: str) -> str | None:
        """Return what the judge replies to a prompt about an answer; `None` if it doesn't."""
        if self.judge is None:
            return None
        session, step = self._session(item, item.id), f"judge.1:{self.judge.model}:grade"
        request = Request(prompt=lambda: ({"role": "user", "content": prompt},))

        async def read(reply: Reply) -> str:
            return reply.text

        said = await session.ask_beside(step, self.judge, request, read, session.stop.members)
        return None if isinstance(said, Failure) else said

    def _session(self, item: Item, key: str) -> Session:
        steps, brief = _ItemSteps(self.steps, key), self._brief(item, {})
        ask = partial(self._ask, steps)
        return Session(brief, ask=ask, steps=steps, emit=lambda _: None, now=self.now, stop=Stop())

    async def _ask(self, steps: _ItemSteps, call: Call) -> Reply:
        return await self.ask(steps.keyed(call))

    def _brief(self, item: Item, settings: Mapping[str, object]) -> Brief:
        drawn = Random(f"{self.brief.seed}:{item.id}")  # noqa: S311 - a resumed evaluation draws the same
        # A run that audits `auto` answers in full: that is another arm.
        alike = {"depth": "full", "depth_audit": 0.0, "corrects": True}
        judge = {"judge_model": self.judge} if settings.get("depth") == "auto" else {}
        profile = self.brief.profile.model_copy(update={**alike, **settings, **judge})
        update = {"question": item.prompt, "seed": drawn.getrandbits(53), "profile": profile}
        return self.brief.model_copy(update=update)

    async def _deliberate(self, item: Item, name: str) -> AssistantMessage | None:
        steps = _ItemSteps(self.steps, item.id, is_reviewed=name != SECOND_LOOK)
        brief, ask = self._brief(item, COUNCILS[name]), partial(self._ask, steps)
        try:
            found = await deliberate(brief, ask=ask, steps=steps, emit=lambda _: None, now=self.now)
        except NoAnswers:
            return None
        return found.message

    async def _self_consistency(self, item: Item, full: AssistantMessage | None, best: str) -> ArmAnswer:
        """Sample the best single member until it has spent what the council did; return the majority's.

        The first sample is its answer in the council. Prose can't be counted: nothing is asked.
        """
        if item.is_judged:
            return NOTHING._replace(missing="no_majority")
        if full is None or full.usage is None:
            return NOTHING
        member = next(each for each in self.brief.profile.members if each.name == best)
        session, samples, spent = self._session(item, item.id), list[ArmAnswer](), 0
        while len(samples) < MOST_SAMPLES:
            if samples and spent + spent / len(samples) > full.usage.run.tokens:
                break
            sample = await _sample(session, member, len(samples) + 1)
            if sample is None:
                break
            samples.append(sample)
            spent += sample.used.tokens
        if not samples:
            return NOTHING
        used, seconds = total(each.used for each in samples), sum(each.seconds for each in samples)
        chosen = majority([each.text or "" for each in samples])
        return ArmAnswer(samples[chosen].text, used, seconds)


async def _sample(session: Session, member: Member, number: int) -> ArmAnswer | None:
    async def read(reply: Reply) -> Stage1Result | AskAgain[Stage1Result]:
        said = await consultation_calls.read(session, member, reply)
        nonlocal sample
        sample = ArmAnswer(said.text, reply.usage, reply.latency_ms / 1000)
        result = Stage1Result(model=member.name, response=said.text, unstructured=said.unstructured)
        return consultation_calls.or_again(result)

    sample: ArmAnswer | None = None
    prompt = partial(session.prompts.answer, member)
    request = Request(prompt=prompt, schema=consultation_calls.schema(session.brief.profile))
    with session.open("stage1", number) as stage:
        result = await session.ask(stage, member, request, read)
    return None if isinstance(result, Failure) or sample is None else sample


FINAL_LINE = "The last line of your reply should be of the form ANSWER: X, where X is the answer alone."
_FINAL = re.compile(r"(?im)^[^\w\n]*(?:final )?answer[^\w\n:]*:(?P<answer>[^\w\n]*\w.*)$")


def final(text: str) -> str:
    """Return what an answer gives as its result: its last line `ANSWER: …`, else all of it."""
    found = [*_FINAL.finditer(text)]
    return found[-1]["answer"].strip() if found else text


def majority(texts: Sequence[str]) -> int:
    """Return the first text with the result that most have: their final line, else their last."""
    lines = [(final(text).strip().splitlines() or [""])[-1].casefold() for text in texts]
    results = ["".join(re.findall(r"[\w.%-]", line)).strip(".") for line in lines]
    votes = Counter(filter(None, results))
    return results.index(votes.most_common(1)[0][0]) if votes else 0


def _council(name: str, message: AssistantMessage | None) -> ArmAnswer:
    if message is None or message.usage is None:
        return NOTHING
    slowest: dict[str, int] = {}
    for step, milliseconds in message.usage.latencies.items():
        stage = step.partition(":")[0]
        slowest[stage] = max(slowest.get(stage, 0), milliseconds)
    missing, seconds = _never_ran(name, message), sum(slowest.values()) / 1000
    return ArmAnswer(message.stage3.response, message.usage.run, seconds, missing)


def _member(message: AssistantMessage | None, name: str) -> ArmAnswer:
    if message is None or message.usage is None:
        return NOTHING
    key = f"stage1.1:{name}"
    calls = [key, f"{key}:again", f"{key}:plain", f"{key}:plain:again"]
    used = total(message.usage.calls[call] for call in calls if call in message.usage.calls)
    seconds = sum(message.usage.latencies.get(call, 0) for call in calls) / 1000
    text = next((each.response for each in message.stage1 if each.model == name), None)
    return ArmAnswer(text, used, seconds, "no_answer" if text is None else None)


def _never_ran(name: str, message: AssistantMessage) -> Missing | None:
    """Return why an answer isn't one of its arm: what makes the arm didn't happen."""
    is_short = len(message.stage1) < 2 or was_skipped(message.depth)
    corrections = message.stage2_5 or ()
    if message.stage3.source == "verbatim":
        return "no_chairman"
    if not (is_short or message.stage2 or name == SECOND_LOOK):
        return "no_review"
    is_corrected = any(each.fallback is None for each in corrections)
    if name == WITHOUT_CORRECTIONS or is_corrected or (not corrections and name != SECOND_LOOK):
        return None
    return "no_correction"


class Against(NamedTuple):
    """An arm's difference from the baseline over the questions that both have a score for."""

    difference: float
    interval: Interval
    decision: Decision
    pairs: int


class Invalid(NamedTuple):
    """Why an arm can't be compared: so many of its questions have no result, mostly for this cause."""

    missing: int
    of: int
    cause: Missing


class ArmFigures(NamedTuple):
    """One arm's figures: over `n` scored questions; cost (US dollars), tokens and seconds over all."""

    name: str
    n: int
    score: float | None
    interval: Interval | None
    against: Against | None
    cost: float | None
    tokens: int
    seconds: float
    invalid: Invalid | None


def compare_arms(
    names: Sequence[str],
    answers: Mapping[str, Answers],
    scores: Scores,
    *,
    baseline: str,
    margin: float,
    seed: int,
) -> list[ArmFigures]:
    """Return the figures of every arm, each but the baseline compared with it; `answers` by question."""
    nothing: Mapping[str, float] = {}
    invalid = {name: _invalid(name, answers, scores.get(name, nothing)) for name in names}
    found: list[ArmFigures] = []
    for name in names:
        given = [each.get(name, NOTHING) for each in answers.values()]
        own = nothing if invalid[name] else scores.get(name, nothing)
        others = nothing if invalid[baseline] or name == baseline else scores.get(baseline, nothing)
        both = own.keys() & others.keys()
        pairs = [own[id_] - others[id_] for id_ in answers if id_ in both]
        costs, seconds = [answer.cost for answer in given], sum(answer.seconds for answer in given)
        against = None
        if len(pairs) >= LEAST_COMPARED:
            interval = _interval(pairs, seed, -1.0)
            decision = decide(interval, margin, len(pairs))
            against = Against(fmean(pairs), interval, decision, len(pairs))
        found.append(
            ArmFigures(
                name,
                len(own),
                fmean(own.values()) if own else None,
                _interval([*own.values()], seed, 0.0) if own else None,
                against,
                None if None in costs else sum(cost or 0 for cost in costs),
                sum(answer.used.tokens for answer in given),
                round(seconds, 3),
                invalid[name],
            )
        )
    return found


def decide(interval: Interval, margin: float, pairs: int) -> Decision:
    """Return what an interval says of a difference, by the margin that doesn't matter."""
    if pairs < LEAST_DECIDED:
        return "undecided"
    if -margin <= interval.low and interval.high <= margin:
        return "within_margin"
    if interval.low > 0:
        return "better"
    return "worse" if interval.high < 0 else "undecided"


def _invalid(name: str, answers: Mapping[str, Answers], own: Mapping[str, float]) -> Invalid | None:
    causes: list[Missing] = []
    for id_, each in answers.items():
        if id_ not in own:
            causes.append(each.get(name, NOTHING).missing or "not_judged")
    if own and len(causes) <= MOST_MISSING * len(answers):
        return None
    cause: Missing = max(causes, key=causes.count) if causes else "no_answer"
    return Invalid(len(causes), len(answers), cause)


def _interval(values: Sequence[float], seed: int, lowest: float) -> Interval:
    """Return the interval of a mean: exact for a share, else resampled.

    Resampling alike values finds nothing else, as if there were nothing: then it is the share of other
    values that so many questions can't rule out.
    """
    if not lowest and all(value in (0.0, 1.0) for value in values):
        return exact_share(round(sum(values)), len(values))
    if len({*values}) > 1:
        low, high = mean_difference(values, seed)
    else:
        [only], other = {*values}, exact_share(0, len(values)).high
        low, high = only - other * (only - lowest), only + other * (1 - only)
    return Interval(max(lowest, low), min(1.0, high))


FLIPS = ("wrong_to_right", "right_to_wrong", "unjudged")
Scored = tuple[Correction, float | None, float | None]
"""A correction with its scores before and after."""


def flips(scored: Iterable[Scored]) -> dict[str, dict[str, int]]:
    """Count by member what corrections did: put right, spoilt, or changed and nobody can say."""
    found: dict[str, dict[str, int]] = {}
    for each, was, now in scored:
        counts = found.setdefault(each.member, dict.fromkeys(FLIPS, 0))
        counts["wrong_to_right"] += (was, now) == (0, 1)
        counts["right_to_wrong"] += (was, now) == (1, 0)
        counts["unjudged"] += None in (was, now) and each.before != each.after
    return found
