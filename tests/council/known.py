"""Models of known quality: right as often as a test says, by chance that a seed repeats."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from council.brief import Brief
from council.calls import Call, MemorySteps, Reply
from council.errors import Failure, ModelError
from council.evaluation import Arms, Item
from council.profile import Profile
from council.usage import Usage
from tests.council.scripted import ballot, in_form, profile

CHAIR = "chair/man"
WRONG = "Answer: 999"


def numbered(count: int) -> tuple[Item, ...]:
    return tuple(
        Item(f"q{number}", f"What is the code of door {number}?") for number in range(1, count + 1)
    )


@dataclass
class KnownModels:
    """Answers each question right with its model's quality; `calls` counts by stage.

    A correction keeps the answer before, but mends and spoils as often as `mends` and `spoils` say.
    `broken` names stages whose calls all fail.
    """

    quality: Mapping[str, float]
    seed: int = 0
    mends: float = 0.0
    spoils: float = 0.0
    broken: frozenset[str] = frozenset()
    calls: Counter[str] = field(default_factory=Counter[str])

    async def ask(self, call: Call) -> Reply:
        """Reply as the quality has it; raises `ModelError` in a broken stage."""
        stage = call.step.split("/", 2)[2].partition(".")[0] if "pilot/" not in call.step else "stage1"
        self.calls[stage] += 1
        if stage in self.broken:
            raise ModelError(Failure(cause="bad_request", attempts=1))
        return Reply(
            text=self._said(call, stage),
            usage=Usage(prompt_tokens=10, completion_tokens=5, cost=0.001),
            latency_ms=100,
        )

    def _said(self, call: Call, stage: str) -> str:
        if stage == "stage2":
            return ballot(call)
        if stage == "judge":
            return '{"differences": [], "recommendation": "same", "steering": [], "better": "tie"}'
        [door, *_] = re.findall(r"code of door (\d+)", call.messages[-1]["content"] + str(call.messages))
        draw = Random(f"{self.seed} {call.step}").random()  # noqa: S311 - chance that a seed repeats
        if stage == "stage2_5":
            before = call.messages[-2]["content"]
            was_right = before.endswith(f" {door}")
            is_right = draw >= self.spoils if was_right else draw < self.mends
        else:
            is_right = draw < self.quality[call.member.name]
        text = f"I tried each key.\n{f'Answer: {door}' if is_right else WRONG}"
        return in_form(call, text) if stage == "stage2_5" else text


def answering(models: KnownModels, seats: Profile | None = None, *, seed: int = 0) -> Arms:
    council = seats or profile(*(name for name in models.quality if name != CHAIR))
    brief = Brief(question="?", profile=council, seed=seed, boundary="0" * 16)
    return Arms(
        brief=brief,
        ask=models.ask,
        steps=MemorySteps(),
        now=lambda: datetime(2026, 11, 1, tzinfo=UTC),
        judge=council.judge,
    )
