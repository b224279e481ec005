"""Ask twenty simple facts of the built-in model, plainly and as a council, and count right answers.

    python -m bench.first_run [--runs 2] [--only ID,ID] [--say]

Asked plainly, the model gets the question and nothing else, at the temperature and with the room that
its council has. An answer contains a fact if the fact's pattern is in it. Labels and reading orders
are fixed by question and run. `--say` prints what was answered.
"""

import argparse
import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from council.brief import Brief
from council.calls import Call, MemorySteps
from council.document.conversation import AssistantMessage
from council.models import builtin
from council.models.client import ModelClient
from council.models.directory import Directory
from council.profile import Profile
from council.run import deliberate

FACTS = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, and the pattern that an answer with the fact matches."""

    id: str
    question: str
    accepted: str

    def is_in(self, answer: str) -> bool:
        """Whether an answer contains the fact."""
        return re.search(self.accepted, answer, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a fact: asked plainly, at each stage of the council, and in its final answer."""

    fact: Fact
    plain: str
    answers: tuple[str, ...]
    corrected: tuple[str, ...]
    final: str

    def row(self) -> str:
        """Return it in a line."""
        held = [self.fact.is_in(text) for text in (self.plain, self.final)]
        stages = [sum(map(self.fact.is_in, texts)) for texts in (self.answers, self.corrected)]
        marks = ["yes" if each else "no" for each in held]
        return f"{self.fact.id:<12} {marks[0]:<6} {stages[0]:>7} {stages[1]:>10}  {marks[1]}"


def facts(only: str) -> list[Fact]:
    """Read the facts, or only those with these ids."""
    listed = [Fact(**json.loads(line)) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    return [fact for fact in listed if not only or fact.id in only.split(",")]


async def plainly(fact: Fact, client: ModelClient, profile: Profile) -> str:
    """Ask the model without a council."""
    call = Call(
        step="plain",
        member=profile.chairman,
        prompt=lambda: ({"role": "user", "content": fact.question},),
        deadline=profile.call_deadline,
        temperature=profile.temperature,
        max_tokens=profile.max_tokens,
    )
    return (await client.ask(call)).text


async def together(fact: Fact, client: ModelClient, profile: Profile, run: int) -> AssistantMessage:
    """Ask the council."""
    seed = f"{fact.id}:{run}".encode().hex()
    brief = Brief(
        question=fact.question,
        profile=profile,
        seed=int(seed, 16) % 2**53,
        boundary=f"{seed:0>16}"[-16:],
        started_at=datetime.now(UTC).isoformat(),
    )
    deliberation = await deliberate(
        brief,
        ask=client.ask,
        steps=MemorySteps(),
        emit=lambda _: None,
        now=lambda: datetime.now(UTC),
    )
    return deliberation.message


async def ask(fact: Fact, client: ModelClient, profile: Profile, run: int) -> Asked:
    """Ask a fact in both ways."""
    plain = await plainly(fact, client, profile)
    message = await together(fact, client, profile, run)
    return Asked(
        fact=fact,
        plain=plain,
        answers=tuple(each.response for each in message.stage1),
        corrected=tuple(each.corrected_response for each in message.stage2_5 or ()),
        final=message.stage3.response,
    )


def summary(asked: Sequence[Asked], seconds: float) -> str:
    """Count a run's facts."""
    plain = sum(each.fact.is_in(each.plain) for each in asked)
    final = sum(each.fact.is_in(each.final) for each in asked)
    return f"of {len(asked)}: plainly {plain}, as a council {final}; {seconds:.0f} s"


async def measure(options: argparse.Namespace) -> None:
    """Ask all facts, as often as wanted, and print each."""
    async with builtin.serve() as addresses:
        profile = builtin.demonstration_profile([*addresses])
        directory = Directory([profile])
        async with ModelClient(directory.find, addresses=addresses) as client:
            for run in range(1, options.runs + 1):
                print(f"\nRun {run}\n{'fact':<12} plain  answers  corrected  council", flush=True)
                started, done = time.monotonic(), list[Asked]()
                for fact in facts(options.only):
                    done.append(asked := await ask(fact, client, profile, run))
                    print(asked.row(), flush=True)
                    if options.say:
                        said = (asked.plain, *asked.answers, *asked.corrected, asked.final)
                        names = ("plain", *["answer"] * 3, *["corrected"] * 3, "final")
                        for name, text in zip(names, said, strict=False):
                            print(f"    {name}: {' '.join(text.split())}", flush=True)
                print(summary(done, time.monotonic() - started), flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--say", action="store_true")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
