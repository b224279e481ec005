"""Plays an example in place of a model client, at a pace that people can follow."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.demo.scenario import TITLE_MODEL, Example, TextKind
from council.calls import Call, Reply
from council.profile import Member, Profile
from council.usage import Usage, estimate_tokens

_THINKING: Mapping[str, Mapping[TextKind, float]] = {
    "openai/gpt-5": {"answer": 3.1, "review": 3.0, "correction": 2.8},
    "anthropic/claude-sonnet-4.5": {"answer": 2.3, "review": 3.5, "correction": 3.4},
    "google/gemini-2.5-pro": {"answer": 4.0, "review": 2.4, "correction": 4.0},
    "x-ai/grok-4": {"answer": 1.7, "review": 3.9, "correction": 2.4},
    "anthropic/claude-opus-4.1": {"final": 1.5},
    TITLE_MODEL: {"title": 1.0},
}
_WRITING = 6.0
"""Seconds from the first to the last word of what streams."""
SECONDS = _WRITING + sum(
    max(paces.get(part, 0.0) for paces in _THINKING.values())
    for part in ("answer", "review", "correction", "final")
)
"""How long an example takes at most: each stage waits for its slowest member."""
_PARTS: Mapping[str, TextKind] = {
    "stage1": "answer",
    "stage2": "review",
    "stage2_5": "correction",
    "stage3": "final",
    "title": "title",
}
_PIECE = re.compile(r"\s*\S+")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Player:
    """Replies with an example's texts; `speed` 2 takes half the time. Nothing is ever sent."""

    example: Example
    speed: float = 1.0
    sleep: Sleep = asyncio.sleep

    @property
    def profile(self) -> Profile:
        return Profile(
            name="example",
            members=tuple(Member(model=model, structured=True) for model in self.example.members),
            chairman=Member(model=self.example.cast.chairman),
            title_model=Member(model=TITLE_MODEL),
            example=True,
        )

    async def ask(self, call: Call) -> Reply:
        """Return what the called member says in this stage."""
        clock = asyncio.get_running_loop().time
        started = clock()
        part = _PARTS[call.step.partition(".")[0]]
        prompt = call.messages[-1]["content"]
        text = self.example.says(part, call.member.model, prompt)
        await self.sleep(_THINKING[call.member.model][part] / self.speed)
        if call.on_text:
            await self._stream(text, call.on_text)
        return Reply(
            text=text,
            usage=Usage(
                prompt_tokens=sum(estimate_tokens(each["content"]) for each in call.messages),
                completion_tokens=estimate_tokens(text),
                source="estimated",
            ),
            latency_ms=round((clock() - started) * 1000),
        )

    async def _stream(self, text: str, hear: Callable[[str], None]) -> None:
        """Pass on a text word by word; long words take longer."""
        second = len(text) / _WRITING * self.speed
        for piece in _PIECE.findall(text):
            hear(piece)
            await self.sleep(len(piece) / second)
