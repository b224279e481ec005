"""A scripted council: a fake `ask` that replies as a test says and remembers its calls."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from council.brief import Brief
from council.calls import Call, MemorySteps, Reply
from council.errors import Cause, Failure, ModelError
from council.events import Event
from council.models.costs import PriceOf
from council.profile import Member, Persona, Profile
from council.run import Deliberation, deliberate
from council.tasks import Stop
from council.usage import Usage

FOUR = ("openai/gpt-5", "anthropic/claude", "google/gemini", "x-ai/grok")

Script = str | Failure | Callable[[Call], str]


def as_called(call: Call) -> Member:
    """Return a call's member unchanged, as if it were configured that way."""
    return call.member


def profile(*models: str, **settings: object) -> Profile:
    """Return a profile of these models; the first is also the chairman unless said otherwise."""
    names = models or FOUR
    return Profile.model_validate({"members": names, "chairman": "chair/man", **settings})


def failure(cause: Cause = "unavailable", detail: str = "down for maintenance") -> Failure:
    return Failure(cause=cause, detail=detail, attempts=1)


async def no_list() -> list[dict[str, object]]:
    raise ModelError(failure("not_found"))


def labels_in(call: Call) -> list[str]:
    """Return the labels that a review prompt shows, in reading order."""
    fence = r"^\[begin \w+\]\n(Response [A-Z]):$"
    return re.findall(fence, call.messages[-1]["content"], re.MULTILINE)


def ballot(call: Call) -> str:
    labels = labels_in(call)
    reviews = "\n".join(f"{label} is sound but brief." for label in labels)
    ranking = "\n".join(f"{place}. {label}" for place, label in enumerate(sorted(labels), 1))
    return f"{reviews}\n\nFINAL RANKING:\n{ranking}"


def mark_in(call: Call) -> str:
    """Return the mark that a prompt for a correction gives."""
    return re.findall(r"holds this mark alone:\n\n(\w+)\n", call.messages[-1]["content"])[0]


def in_form(call: Call, answer: str, verdict: str = "holds") -> str:
    """Write a corrected answer below replies that find every objection right, as the form has it."""
    numbered = re.findall(r"^(\d+)\. ", objections_in(call), re.MULTILINE) or ["1"]
    if call.schema is not None:
        replies = [
            {"objection": int(number), "holds": verdict == "holds", "reason": "It says so itself."}
            for number in numbered
        ]
        whole = json.loads(answer) if answer.lstrip().startswith("{") else answer
        return json.dumps({"replies": replies, "answer": whole})
    lines = "\n".join(f"{number}. {verdict}: it says so itself." for number in numbered)
    return f"{lines}\n\n{mark_in(call)}\n\n{answer}"


def objections_in(call: Call) -> str:
    """Return the objections that a prompt for a correction numbers, its own words apart."""
    prompts = "\n\n".join(each["content"] for each in call.messages)
    found = re.findall(
        r"^Objections to your answer:\n\n(.*?)\n\[end ", prompts, re.DOTALL | re.MULTILINE
    )
    return found[-1] if found else ""


def asking(question: str) -> Callable[[Call], str]:
    """Return a chairman whose notes name a fact it would want to know."""

    def say(call: Call) -> str:
        [mark] = re.findall(r"holds this mark alone:\n\n(\w+)\n", call.messages[-1]["content"])
        return f"{ScriptedCouncil.default(call, 'stage3')}\n\n{mark}\nASK: {question}"

    return say


@dataclass
class ScriptedCouncil:
    """Answers calls by script, keyed by step (`stage1.1:openai/gpt-5`) or by stage (`stage1`).

    `held` names steps whose call doesn't return until `release`d; `calls` is the history.
    """

    script: dict[str, Script] = field(default_factory=dict[str, Script])
    held: set[str] = field(default_factory=set[str])
    calls: list[Call] = field(default_factory=list[Call])
    finished: list[str] = field(default_factory=list[str])
    truncated: set[str] = field(default_factory=set[str])
    """Stages whose replies are cut off by their length."""
    as_written: bool = False
    """Whether scripted corrections are whole replies; else each is the answer below the form."""
    answered_by: str | None = None
    """The fallback that answers in these stages."""
    events: list[Event] = field(default_factory=list[Event])
    steps: MemorySteps = field(default_factory=MemorySteps)
    stop: Stop = field(default_factory=Stop)
    _gates: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    _called: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, call: Call) -> Reply:
        """Answer as the script says; raises `ModelError` for a scripted failure."""
        self.calls.append(call)
        self._called.set()
        if call.step in self.held:
            await self._gate(call.step).wait()
        stage = call.step.partition(".")[0]
        line = self.script.get(call.step, self.script.get(stage, self.default(call, stage)))
        said = line(call) if callable(line) else line
        if isinstance(said, Failure):
            raise ModelError(said)
        if stage == "stage2_5" and not self.as_written:
            said = in_form(call, said)
        if call.on_text:
            call.on_text(said)
        self.finished.append(call.step)
        cut = stage in self.truncated
        return Reply(
            text=said,
            usage=Usage(prompt_tokens=10, completion_tokens=5, cost=0.001),
            latency_ms=5,
            truncated=cut,
            answered_by=self.answered_by if cut else None,
        )

    @staticmethod
    def default(call: Call, stage: str) -> str:
        """Return what a member says without a script."""
        match stage:
            case "stage1":
                return f"The first answer of {call.member.name}."
            case "stage2":
                return ballot(call)
            case "stage2_5":
                return f"A better and much longer answer, by {call.member.name}, with reasons and dates."
            case "title":
                return "A fine title"
            case _:
                return f"The council's answer, written by {call.member.name}."

    def release(self, step: str) -> None:
        self._gate(step).set()

    async def until_called(self, *steps: str) -> None:
        while not set(steps) <= {call.step for call in self.calls}:
            self._called.clear()
            await self._called.wait()

    async def run(
        self, seats: Profile | None = None, price_of: PriceOf = lambda _: None, **brief: object
    ) -> Deliberation:
        return await deliberate(
            self.brief(seats, **brief),
            ask=self.ask,
            steps=self.steps,
            emit=self.events.append,
            now=Clock(),
            stop=self.stop,
            price_of=price_of,
        )

    @staticmethod
    def brief(seats: Profile | None = None, **fields: object) -> Brief:
        """Write a brief with a known seed and boundary."""
        return Brief.model_validate(
            {
                "question": "Should we shard now or buy a bigger machine?",
                "profile": seats or profile(),
                "seed": 7,
                "boundary": "b0undary",
                "started_at": "2026-01-20T10:30:00.000Z",
                **fields,
            }
        )

    def asked(self, stage: str) -> list[str]:
        """Return the members called in a stage, in the order of the calls."""
        return [call.member.name for call in self.calls if call.step.startswith(f"{stage}.")]

    def prompt(self, step: str) -> str:
        """Return what a call said to its model, all messages together."""
        [call] = [call for call in self.calls if call.step == step]
        return "\n\n".join(message["content"] for message in call.messages)

    def _gate(self, step: str) -> asyncio.Event:
        return self._gates.setdefault(step, asyncio.Event())


class Clock:
    """A clock that moves one second each time it is read."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the moment, one second after the last."""
        self.moment += timedelta(seconds=1)
        return self.moment


SKEPTIC = Persona(name="The Devil's Advocate", prompt="Look for what is wrong.")
DREAMER = Persona(name="The Innovator", prompt="Look for what is new.")


def twins() -> Profile:
    """Return a profile that has one model twice, with different personas."""
    return Profile(
        members=(
            Member(model="openai/gpt-5", persona=SKEPTIC),
            Member(model="openai/gpt-5", persona=DREAMER),
            Member(model="anthropic/claude"),
        ),
        chairman=Member(model="chair/man"),
    )
