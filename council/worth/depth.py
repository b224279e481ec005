"""Depth: whether a run's answers are reviewed and corrected, and what it costs not to.

`auto` asks the judge once, after stage 1. Only where the answers recommend the same and differ in
nothing important are reviews skipped; every doubt and every failure leads to full. Unanimous answers
may be wrong together (of 47 questions that debate would have corrected, 31 were: arXiv 2605.09618), so
a share of the runs that would be skipped is reviewed all the same, drawn from the run's seed, and the
judge says what the reviews changed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from council.cancel import Cancellation
from council.consultation import for_reviewers
from council.document.results import (
    Comparison,
    DepthReason,
    JudgeReport,
    Ran,
    RunDepth,
    Savings,
    Stage1Result,
    Stage2_5Result,
    Stage3Result,
)
from council.errors import Failure
from council.models.costs import PriceOf, search_cost
from council.offload import offload
from council.profile import Depth, Member
from council.reviews.labels import label_answers
from council.session import Session
from council.usage import Usage, tokens
from council.worth.judge import Labelled, compare
from council.worth.steering import steers

AUDIT_SECONDS = 30.0
"""How long the end of an audited run waits for what the judge says of the reviews."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What `auto` would do, why, and what the judge reported, if it was asked."""

    ran: Ran
    reason: DepthReason
    report: JudgeReport | None = None


class DepthChoice:
    """How deep one run goes: decided after its answers, and settled when it has its final one."""

    def __init__(
        self, session: Session, answers: Sequence[Stage1Result], price_of: PriceOf = lambda _: None
    ) -> None:
        self._session = session
        self._answers = answers
        self._price_of = price_of
        self._ends = Cancellation(session.stop.members)
        self._chosen: RunDepth | None = None

    async def decide(self) -> RunDepth | None:
        """Return how deep the run goes; `None` for a full one that nobody compares with anything."""
        profile, alone = self._session.brief.profile, len(self._answers) == 1
        match profile.depth:
            case "full":
                return None
            case _ if alone:
                self._chosen = _chosen(profile.depth, _Verdict("quick", "one_answer"))
            case "quick":
                self._chosen = _chosen("quick", _Verdict("quick", "asked"))
            case "auto":
                self._chosen = await self._auto(profile.judge)
        return self._chosen

    async def settle(
        self, corrections: Sequence[Stage2_5Result], final: Stage3Result, *, reviewed: bool
    ) -> RunDepth | None:
        """Return what the document keeps, with the audit's verdict."""
        chosen = self._chosen
        if chosen is None:
            return None
        if chosen.ran == "full" and not reviewed:  # stopped before the first review
            return chosen.model_copy(update={"ran": "quick", "reason": "stopped"})
        if chosen.audited:
            return chosen.model_copy(update={"changed": await self._changed(corrections, final)})
        return chosen

    async def _auto(self, judge: Member | None) -> RunDepth:
        verdict = await self._verdict(judge)
        if verdict.ran == "full":
            return _chosen("auto", verdict)
        profile, seed = self._session.brief.profile, self._session.brief.seed
        if is_drawn(seed, profile.depth_audit):
            audited = _Verdict("full", "audited", verdict.report)
            return _chosen("auto", audited).model_copy(update={"audited": True})
        saved = _saved(self._session, self._answers, self._price_of)
        return _chosen("auto", verdict).model_copy(update={"saved": saved})

    async def _verdict(self, judge: Member | None) -> _Verdict:
        """Return what `auto` does with these answers."""
        session, names = self._session, [answer.model for answer in self._answers]
        labels = label_answers(names, session.brief.seed)
        texts = {each.model: for_reviewers(each.text, each.consultation) for each in self._answers}
        labelled: Labelled = [(label, texts[name]) for label, name in labels.items()]
        if any(answer.truncated for answer in self._answers):
            return _Verdict("full", "cut_off")
        if await offload(sum(map(len, texts.values())), steers, [*texts.values()], [*labels]):
            return _Verdict("full", "steering")
        if judge is None:
            return _Verdict("full", "no_verdict")
        if session.skips("judge"):
            return _Verdict("full", "stopped")
        found = await compare(session, f"judge.1:{judge.model}", judge, labelled, self._ends)
        if isinstance(found, Failure):
            return _Verdict("full", "stopped" if found.cause == "stopped" else "no_verdict")
        report = JudgeReport(model=judge.model, agree=found.agree, points=[*found.points])
        return _Verdict("quick" if found.agree else "full", _why(found), report)

    async def _changed(self, corrections: Sequence[Stage2_5Result], final: Stage3Result) -> bool | None:
        """Return whether the reviews changed what an audited run recommends.

        The first answers agreed, so any of them will do: the one of the first label.
        """
        session, profile = self._session, self._session.brief.profile
        if all(correction.fallback for correction in corrections) or profile.judge is None:
            return None
        # Without corrections, reviews change the final answer by the ranking alone.
        if profile.corrects and not any(each.changed for each in corrections):
            return False
        judge = profile.judge
        [first, *_] = label_answers([each.model for each in self._answers], session.brief.seed).values()
        before = next(each.text for each in self._answers if each.model == first)
        answers = (("Response A", before), ("Response B", final.response))
        ends = Cancellation(session.stop.everything)
        ends.expire("not_needed", AUDIT_SECONDS)
        try:
            found = await compare(session, f"judge.2:{judge.model}", judge, answers, ends)
        finally:
            ends.close()
        if isinstance(found, Failure) or found.same is None:
            return None
        return not found.same


def is_drawn(seed: int, share: float) -> bool:
    """Return whether a run's seed draws it for the audit: the same for every replay."""
    source = random.Random(f"audit {seed}")  # noqa: S311 - a replayed run must draw the same
    return source.random() < share


def _chosen(asked: Depth, verdict: _Verdict) -> RunDepth:
    return RunDepth(
        asked=asked,
        ran=verdict.ran,
        reason=verdict.reason,
        audited=False,
        judge=verdict.report,
    )


def _why(found: Comparison) -> DepthReason:
    if found.agree:
        return "agreed"
    if found.steering:
        return "steering"
    return "undecided" if found.same is None and not found.points else "different"


def _saved(session: Session, answers: Sequence[Stage1Result], price_of: PriceOf) -> Savings:
    """Return about what one round of reviews and corrections of these answers would have taken.

    Every reply is taken to be as long as the answers were, thoughts included.
    """
    profile, calls = session.brief.profile, session.usage().calls
    used = {answer.model: calls.get(f"stage1.1:{answer.model}", Usage()) for answer in answers}
    sizes = {answer.model: tokens(answer.text) for answer in answers}
    replies = {name: used[name].completion_tokens or sizes[name] for name in sizes}
    reply = round(fmean(replies.values()))
    critiques = min(profile.critique_tokens, (len(answers) - 1) * reply)
    members = {member.name: member for member in profile.members}
    judged = session.usage().stages.get("judge", Usage())
    saved, cost = -judged.tokens, None if judged.unpriced else -judged.cost
    for name, own in sizes.items():
        member = members[name]
        asked = sum(tokens(message["content"]) for message in session.prompts.answer(member))
        review = asked + sum(sizes.values()) - own, reply
        correction = asked + own + critiques, replies[name]
        saved += sum(review) + sum(correction)
        price = price_of(member)
        if price is None or cost is None:
            cost = None
            continue
        cost += price.cost(*review) + price.cost(*correction) + search_cost(member, web=profile.web)
    return Savings(tokens=saved, cost=cost)
