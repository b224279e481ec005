"""One question through the arms of an evaluation, its calls shared by all of them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random

from council import consultation_calls
from council.brief import Brief
from council.calls import Ask, AskAgain, Reply, Steps
from council.cancel import Stop
from council.document.conversation import AssistantMessage, RunUsage
from council.document.corrections import rounds_of
from council.document.results import Stage1Result, was_skipped
from council.errors import Failure, NoAnswers
from council.evaluation import arms
from council.evaluation.arms import ArmAnswer, Correction, ItemAnswers, Missing
from council.evaluation.checkers import checker_of, read_answer
from council.evaluation.items import EvalItem
from council.evaluation.judging import JudgedArm, asked_of_judge, best_of, judge_arms
from council.evaluation.shared_steps import SharedSteps
from council.events import Event
from council.profile import Member, Profile
from council.run import deliberate
from council.session import Request, Session
from council.usage import Usage, total

PILOT_SAMPLES = 3
MOST_SAMPLES = 64
"""Of the best single member, however little each of its answers takes."""
COUNCILS: Mapping[str, Mapping[str, object]] = {
    arms.STAGE1: {"depth": "quick"},
    arms.WITHOUT_CORRECTIONS: {"corrects": False},
    arms.FULL: {},
    arms.UNION: {"strategy": "coverage"},
    arms.AUTO: {"depth": "auto"},
    **{f"{arms.STRATEGY}{name}": {"strategy": name} for name in arms.STRATEGIES},
}
"""The arms that are a council's answer, with what is set for each."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One more first answer of a member."""

    text: str
    usage: Usage
    latency_ms: int


def _to_nobody(event: Event) -> None:
    del event


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Answers questions by every arm; `brief` has the council, the seed and the boundary of all of them.

    `judge` reads what no checker can score; without one, such questions can't be answered.
    """

    brief: Brief
    ask: Ask
    steps: Steps
    now: Callable[[], datetime]
    judge: Member | None = None
    emit: Callable[[Event], None] = field(default=_to_nobody)

    @property
    def profile(self) -> Profile:
        """The council."""
        return self.brief.profile

    async def pilot(self, item: EvalItem) -> dict[str, list[str | None]]:
        """Return three first answers of every member to a question, `None` for one that failed."""
        session = self._session(item, f"pilot/{item.id}", {})
        members = self.profile.members
        asked = [
            _sample(session, member, number)
            for member in members
            for number in range(1, PILOT_SAMPLES + 1)
        ]
        samples = [sample.text if sample else None for sample in await asyncio.gather(*asked)]
        return {
            member.name: samples[seat * PILOT_SAMPLES : (seat + 1) * PILOT_SAMPLES]
            for seat, member in enumerate(members)
        }

    async def answer(self, item: EvalItem, names: Sequence[str], best: str) -> ItemAnswers:
        """Answer a question by each of these arms."""
        councils = dict.fromkeys(name for name in names if name in COUNCILS)
        if {arms.PICK, arms.SELF_CONSISTENCY} & {*names}:
            councils |= {arms.FULL: None}
        if not councils:
            councils[arms.STAGE1] = None
        messages = {name: await self._deliberate(item, COUNCILS[name]) for name in councils}
        found: dict[str, ArmAnswer] = {}
        any_message = next(iter(messages.values()))
        full = messages.get(arms.FULL)
        for name in names:
            if name in COUNCILS:
                found[name] = self._council(name, messages[name])
            elif name == arms.PICK:
                found[name] = self._pick(full)
            elif name == arms.SELF_CONSISTENCY:
                found[name] = await self._self_consistency(item, full, best)
            else:
                member = best if name == arms.BEST else name.removeprefix(arms.MEMBER)
                found[name] = _member(any_message, member)
        corrections = [
            Correction(each.model, each.original_response, each.corrected_response)
            for each in (full.stage2_5 or () if full else ())
            if each.fallback is None
        ]
        return ItemAnswers(item.id, found, corrections)

    async def first_ranked(self, item: EvalItem) -> str | None:
        """Return whose answer the council ranks first; `None` where no ballot was counted."""
        message = await self._deliberate(item, COUNCILS[arms.FULL])
        ranked = _ranked(message) if message else []
        return ranked[0] if ranked else None

    async def judged(self, item: EvalItem, answers: ItemAnswers, baseline: str) -> list[JudgedArm]:
        """Return the judge's verdicts on a question's answers, none where a checker scores them."""
        if self.judge is None or checker_of(item) != "judge":
            return []
        return await judge_arms(self._judging(item), self.judge, answers, baseline)

    async def best_of(self, item: EvalItem, texts: Sequence[str]) -> int | None:
        """Return which of some answers to a question the judge calls the best, if it says so."""
        return None if self.judge is None else await best_of(self._judging(item), self.judge, texts)

    def _judging(self, item: EvalItem) -> Session:
        asked = item.model_copy(update={"input": asked_of_judge(item), "choices": ()})
        return self._session(asked, item.id, {})

    def _brief(self, item: EvalItem, settings: Mapping[str, object]) -> Brief:
        drawn = Random(f"{self.brief.seed}:{item.id}")  # noqa: S311 - a resumed evaluation draws the same
        seed = drawn.getrandbits(53)
        # A run that audits `auto` answers in full: that is another arm.
        alike = {"depth": "full", "depth_audit": 0.0, "corrects": True}
        judge = {"judge_model": self.judge} if settings.get("depth") == "auto" else {}
        profile = self.profile.model_copy(update={**alike, **settings, **judge})
        return self.brief.model_copy(update={"question": item.prompt, "seed": seed, "profile": profile})

    def _session(self, item: EvalItem, key: str, settings: Mapping[str, object]) -> Session:
        shared = SharedSteps(self.steps, key)
        return Session(
            self._brief(item, settings),
            ask=shared.asked(self.ask),
            steps=shared,
            emit=self.emit,
            now=self.now,
            stop=Stop(),
        )

    async def _deliberate(
        self, item: EvalItem, settings: Mapping[str, object]
    ) -> AssistantMessage | None:
        shared = SharedSteps(self.steps, item.id)
        try:
            deliberation = await deliberate(
                self._brief(item, settings),
                ask=shared.asked(self.ask),
                steps=shared,
                emit=self.emit,
                now=self.now,
            )
        except NoAnswers:
            return None
        return deliberation.message

    def _council(self, name: str, message: AssistantMessage | None) -> ArmAnswer:
        if message is None:
            return NOTHING
        used = message.usage.run if message.usage else Usage()
        return ArmAnswer(
            text=message.stage3.response,
            tokens=used.tokens,
            cost=_cost(used),
            seconds=_seconds(message.usage, self.profile),
            truncated=message.stage3.truncated,
            absent=len(self.profile.members) - len(message.stage1),
            missing=_never_ran(name, message),
        )

    def _pick(self, full: AssistantMessage | None) -> ArmAnswer:
        """Return the top-ranked corrected response, unchanged."""
        if full is None or full.usage is None:
            return NOTHING
        ranked = _ranked(full)
        current = {each.model: each for each in full.stage1} | {
            each.model: each for each in full.stage2_5 or ()
        }
        before = total(used for step, used in full.usage.calls.items() if not step.startswith("stage3"))
        seconds = _seconds(full.usage, self.profile, ("stage1", "stage2", "stage2_5"))
        absent = len(self.profile.members) - len(full.stage1)
        if not ranked:
            return ArmAnswer(
                None, before.tokens, _cost(before), seconds, absent=absent, missing="no_ranking"
            )
        chosen = current[ranked[0]]
        return ArmAnswer(
            chosen.text, before.tokens, _cost(before), seconds, truncated=chosen.truncated, absent=absent
        )

    async def _self_consistency(
        self, item: EvalItem, full: AssistantMessage | None, best: str
    ) -> ArmAnswer:
        """Sample the best single member until it has spent what the council did; return the majority's.

        The first sample is its answer in the council. What can't be counted the judge chooses from; if
        it chooses none, the first sample is the answer.
        """
        if full is None or full.usage is None:
            return NOTHING
        member = next(each for each in self.profile.members if each.name == best)
        session = self._session(item, item.id, {})
        limit, samples, spent = full.usage.run.tokens, list[Sample](), 0
        for number in range(1, MOST_SAMPLES + 1):
            if samples and spent + spent / len(samples) > limit:
                break
            sample = await _sample(session, member, number)
            if sample is None:
                break
            samples.append(sample)
            spent += sample.usage.tokens
        if not samples:
            return NOTHING
        used = total(sample.usage for sample in samples)
        seconds = sum(sample.latency_ms for sample in samples) / 1000
        texts = [sample.text for sample in samples]
        chosen = _majority(item, texts)
        if chosen is None:
            chosen = await self.best_of(item, texts) if checker_of(item) == "judge" else None
        return ArmAnswer(texts[chosen or 0], used.tokens, _cost(used), seconds)


NOTHING = ArmAnswer(None, 0, 0.0, 0.0, missing="no_answer")


async def _sample(session: Session, member: Member, number: int) -> Sample | None:
    async def read(reply: Reply) -> Stage1Result | AskAgain[Stage1Result]:
        said = await consultation_calls.read(session, member, reply)
        nonlocal latency, usage
        latency, usage = reply.latency_ms, reply.usage
        return consultation_calls.or_again(
            Stage1Result(
                model=member.name,
                response=said.text,
                consultation=said.consultation,
                unstructured=said.unstructured,
            )
        )

    latency, usage = 0, Usage()
    prompt = partial(session.prompts.answer, member)
    request = Request(prompt=prompt, schema=consultation_calls.schema(session.brief.profile))
    with session.open("stage1", number) as stage:
        result = await session.ask(stage, member, request, read)
    return None if isinstance(result, Failure) else Sample(result.response, usage, latency)


def _ranked(message: AssistantMessage) -> list[str]:
    """Return the members by the last counted ranking, the best first; none without a ballot."""
    counted = [each for each in rounds_of(message) if each.ranking and each.ranking.ballots]
    return counted[-1].ranked if counted else []


def _majority(item: EvalItem, texts: Sequence[str]) -> int | None:
    """Return the first text with the answer that most have; `None` where none can be read."""
    read = [read_answer(item, text) for text in texts]
    votes = Counter(answer for answer in read if answer is not None)
    return read.index(max(votes, key=lambda answer: votes[answer])) if votes else None


def _member(message: AssistantMessage | None, name: str) -> ArmAnswer:
    if message is None or message.usage is None:
        return NOTHING
    calls = _calls("stage1.1", name)
    used = total(message.usage.calls[call] for call in calls if call in message.usage.calls)
    seconds = sum(message.usage.latencies.get(call, 0) for call in calls) / 1000
    answer = next((each for each in message.stage1 if each.model == name), None)
    if answer is None:
        return ArmAnswer(None, used.tokens, _cost(used), seconds, missing="no_answer")
    return ArmAnswer(answer.response, used.tokens, _cost(used), seconds, truncated=answer.truncated)


def _never_ran(name: str, message: AssistantMessage) -> Missing | None:
    """Return why an answer isn't one of its arm: what makes the arm didn't happen."""
    is_short = len(message.stage1) < 2 or was_skipped(message.depth)
    reviewed = is_short or bool(message.stage2)
    corrections = message.stage2_5 or ()
    corrected = (
        name == arms.WITHOUT_CORRECTIONS
        or not corrections
        or any(each.fallback is None for each in corrections)
    )
    if message.stage3.source == "verbatim":
        return "no_chairman"
    if not reviewed:
        return "no_review"
    return None if corrected else "no_correction"


def _cost(used: Usage) -> float | None:
    return None if used.unpriced else used.cost


def _calls(stage: str, member: str) -> tuple[str, ...]:
    """Return the keys that a member's calls can have in a stage's round."""
    key = f"{stage}:{member}"
    return key, f"{key}:again", f"{key}:plain", f"{key}:plain:again"


def _seconds(
    usage: RunUsage | None,
    profile: Profile,
    stages: Iterable[str] = ("stage1", "judge", "stage2", "stage2_5", "stage3"),
) -> float:
    """Return the slowest member of each stage's round, added up; the chair's calls follow each other."""
    if usage is None:
        return 0.0
    took = usage.latencies
    milliseconds = 0
    for stage in stages:
        rounds = {step.partition(":")[0] for step in took if step.partition(".")[0] == stage}
        for each in rounds:
            if stage in ("judge", "stage3"):
                milliseconds += sum(ms for step, ms in took.items() if step.startswith(f"{each}:"))
            else:
                milliseconds += max(
                    sum(took.get(call, 0) for call in _calls(each, member.name))
                    for member in profile.members
                )
    return milliseconds / 1000
