"""What a question may cost, before it is asked: calls, tokens and dollars by stage.

Prompts are measured as `council.prompts` writes them, with the question's own texts; what members will
say isn't known, so every reply is assumed to be as long as `reply_tokens` says. Each call counts once:
retries and replies that are asked for again aren't included.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from council.brief import Brief
from council.calls import ChatMessage
from council.models.costs import REPLY_TOKENS, UNPRICED_CALL, PriceOf, search_cost
from council.profile import Member, Profile
from council.prompts.builtin import prompts_of
from council.prompts.chair import STRATEGIES, Material
from council.usage import BYTES_PER_TOKEN, Price, tokens

TITLE_TOKENS = 50
VERDICT_TOKENS = 600
WITHDRAWN_TOKENS = 1_500
"""What the chairman reads at most of sentences that members withdrew, and of objections they reject."""
RANKING_TOKENS = 60
"""Of the ranking in the chairman's prompt, for each member: its place, its ballot, its differences."""

StageName = Literal["stage1", "stage2", "stage2_5", "stage3", "title", "judge"]
PARTS: tuple[StageName, ...] = ("stage1", "judge", "stage2", "stage2_5", "stage3", "title")


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What the calls of one stage may cost, in all rounds.

    `cost` is in US dollars and includes a stated estimate for each of the `unpriced` calls.
    """

    stage: StageName
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    unpriced: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a question may cost.

    Replies are assumed to be `reply_tokens` long, and calls without a known price to cost
    `unpriced_call` dollars each.
    """

    stages: tuple[StageEstimate, ...]
    reply_tokens: int
    unpriced_call: float
    may_skip: bool = False
    """Whether reviews and corrections are made only if the answers differ; they are counted here."""

    @property
    def agreed_cost(self) -> float:
        """US dollars if the answers agree: the judge is asked once, and nobody reviews or corrects."""
        once = {"judge": max((each.calls for each in self.stages if each.stage == "judge"), default=1)}
        kept = (each for each in self.stages if each.stage not in ("stage2", "stage2_5"))
        return sum(each.cost / once.get(each.stage, 1) for each in kept)

    def reserving(self, worst: float | None) -> float:
        """Return the dollars to reserve, by the `worst` that was measured lately: `None` if it wasn't.

        Never less than the run may cost without reviews and corrections: if there is no room for those
        later, it has an answer all the same.
        """
        return self.cost if worst is None else min(self.cost, max(worst, self.agreed_cost))

    @property
    def calls(self) -> int:
        return sum(stage.calls for stage in self.stages)

    @property
    def tokens(self) -> int:
        return sum(stage.tokens for stage in self.stages)

    @property
    def cost(self) -> float:
        return sum(stage.cost for stage in self.stages)

    @property
    def unpriced(self) -> int:
        return sum(stage.unpriced for stage in self.stages)

    def of(self, stage: StageName) -> float:
        return sum(each.cost for each in self.stages if each.stage == stage)


class _ExpectedCall(NamedTuple):
    stage: StageName
    member: Member
    prompt: int
    reply: int
    web: bool = False


def estimate(brief: Brief, price_of: PriceOf, unpriced_call: float = UNPRICED_CALL) -> Estimate:
    given, is_first = _given(brief), brief.history.is_empty
    shown = sum(picture.tokens for picture in brief.pictures)
    asked = [
        call._replace(
            prompt=call.prompt + given + (shown if call.member.vision and call.stage != "title" else 0)
        )
        for call in _calls(brief.profile)
        if call.stage != "title" or is_first
    ]
    # A fallback is asked instead of the chairman, so the dearest of them counts.
    line = [call for call in asked if call.stage == "stage3"]
    dearest = max(line, key=lambda call: _cost(call, price_of(call.member), unpriced_call), default=None)
    counted = [call for call in asked if call.stage != "stage3" or call is dearest]
    stages: list[StageEstimate] = []
    for part in PARTS:
        if calls := [(call, price_of(call.member)) for call in counted if call.stage == part]:
            stage = StageEstimate(
                part,
                len(calls),
                sum(call.prompt for call, _ in calls),
                sum(call.reply for call, _ in calls),
                sum(_cost(call, price, unpriced_call) for call, price in calls),
                sum(price is None for _, price in calls),
            )
            stages.append(stage)
    return Estimate(
        tuple(stages),
        reply_tokens(brief.profile),
        unpriced_call,
        brief.profile.asks_judge,
    )


def reply_tokens(profile: Profile) -> int:
    return profile.max_tokens or REPLY_TOKENS


@lru_cache(maxsize=64)  # the same councils are asked again and again
def _calls(profile: Profile) -> Sequence[_ExpectedCall]:
    """Return every call of a run, its prompt without the question's texts."""
    bare = Brief(question="?", profile=profile, seed=0, boundary="0" * 16, notes_mark="0" * 16)
    prompts = prompts_of(bare)
    calls: list[_ExpectedCall] = []
    reply, seats = reply_tokens(profile), len(profile.members)
    labels = [(f"Response {number}", "") for number in range(1, seats + 1)]
    read = seats - 1 if seats > 2 else seats
    critiques = min(profile.critique_tokens, (seats - 1) * reply)
    rounds = profile.rounds if seats > 1 else 0
    for member in profile.members:
        first = _written(prompts.answer(member))
        calls.append(_ExpectedCall("stage1", member, first, reply, profile.web))
        review = _written(prompts.review(member, labels[: max(read, 1)])) + read * reply
        again = prompts.correction(
            member,
            original="",
            label=labels[0][0],
            critiques=[(name, "") for name, _ in labels[1:]],
            objections=[""],
            is_json=bool(member.structured),
        )
        # Beside the reviews, which are of all answers, it reads what they hold against its own.
        correction = _written(again) + reply + critiques + critiques // max(seats - 1, 1)
        for _ in range(rounds):
            calls.append(_ExpectedCall("stage2", member, review, reply))
            if profile.corrects and prompts.corrects:
                calls.append(_ExpectedCall("stage2_5", member, correction, reply, profile.web))
    if seats > 1:
        reviews = min(profile.critique_tokens, seats * reply)
        material = seats * (reply + RANKING_TOKENS) + 2 * WITHDRAWN_TOKENS
        material += reviews if STRATEGIES[profile.strategy].reads_reviews else 0
        given = Material(responses=[(label, label, "") for label, _ in labels])
        calls += [
            _ExpectedCall("stage3", member, material + _written(prompts.synthesis(member, given)), reply)
            for member in (profile.chairman, *profile.chairman_fallbacks)
        ]
    if (judge := profile.judge) and seats > 1:
        compared = _written(prompts.comparison(judge, labels)) + seats * reply
        # Once before the reviews, once after an audited run.
        times = 1 + bool(profile.depth_audit) if profile.asks_judge else 0
        calls += [_ExpectedCall("judge", judge, compared, VERDICT_TOKENS)] * times
    if profile.title_model:
        titled = _written(prompts.title(profile.title_model))
        calls.append(_ExpectedCall("title", profile.title_model, titled, TITLE_TOKENS))
    return tuple(calls)


def _given(brief: Brief) -> int:
    """Return the tokens of what every prompt repeats: question, files, conversation and thread."""
    fence = 2 * (len(brief.boundary) + 12) // BYTES_PER_TOKEN
    texts = [brief.question, *(file.text for file in (*brief.earlier, *brief.attachments))]
    for turn in brief.history.turns:
        texts += (turn.question, turn.answer or "")
    texts += brief.context.texts if brief.context else ()
    return sum(tokens(text) + fence for text in texts)


def _written(messages: Iterable[ChatMessage]) -> int:
    return sum(tokens(message["content"]) for message in messages)


def _cost(call: _ExpectedCall, price: Price | None, unpriced_call: float) -> float:
    cost = price.cost(call.prompt, call.reply) if price else unpriced_call
    return cost + search_cost(call.member, web=call.web)
