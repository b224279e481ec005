"""How often a real judge misses a difference that matters, and what the audit says of it.

    python -m bench.depth --url http://127.0.0.1:18081/v1 --model qwen2.5-coder-1.5b

The judge reads the labelled quartets of `tests/council/worth`, each once, as `auto` asks it. A *miss* is
a quartet whose answers differ and whose reviews would be skipped. *Loss* is the share of misses among
what is skipped: what the audit estimates from the runs that it draws.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from council.brief import Brief
from council.calls import MemorySteps
from council.cancel import Stop
from council.errors import Failure
from council.models.client import ModelClient
from council.models.directory import Directory
from council.profile import Member, Profile
from council.session import Session
from council.worth.depth import is_drawn
from council.worth.intervals import exact_share
from council.worth.judge import compare
from council.worth.steering import steers
from tests.council.scripted import Clock
from tests.council.worth.quartets import Quartet, quartets

LABELS = [f"Response {letter}" for letter in "ABCD"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What `auto` does with a quartet: `said` is the judge's verdict, or why there was none."""

    id: str
    kind: str
    agree: bool
    skips: bool
    said: str


async def look(client: ModelClient, profile: Profile, quartet: Quartet, number: int) -> Seen:
    """Ask the judge about one quartet, unless its answers need no judge."""
    if steers(quartet.answers, LABELS):
        return Seen(quartet.id, quartet.kind, quartet.agree, skips=False, said="steering")
    brief = Brief(question=quartet.question, profile=profile, seed=number, boundary=f"{number:016x}")
    stop, judge = Stop(), profile.judge
    assert judge is not None  # noqa: S101 - `main` has set it
    session = Session(
        brief, ask=client.ask, steps=MemorySteps(), emit=lambda _: None, now=Clock(), stop=stop
    )
    labelled = [*zip(LABELS, quartet.answers, strict=True)]
    found = await compare(session, "judge.1:judge", judge, labelled, stop.members)
    if isinstance(found, Failure):
        return Seen(quartet.id, quartet.kind, quartet.agree, skips=False, said=found.cause)
    said = "agree" if found.agree else f"{found.same}, {len(found.points)} points"
    return Seen(quartet.id, quartet.kind, quartet.agree, skips=found.agree, said=said)


async def measure(url: str, model: str, every: int) -> list[Seen]:
    """Ask about each quartet, or every so many."""
    judge = Member(model=model, endpoint=url, max_tokens=600)
    profile = Profile(
        members=(Member(model="a/one"), Member(model="b/two")),
        chairman=Member(model="a/one"),
        judge_model=judge,
        call_deadline=600,
        depth="auto",
    )
    began, seen = time.monotonic(), list[Seen]()
    directory = Directory([profile])
    async with ModelClient(directory.find, base_url=url, api_key=None) as client:
        for number, quartet in enumerate(quartets()[::every]):
            seen.append(await look(client, profile, quartet, number))
            print(seen[-1], flush=True)
    print(f"{model}: {time.monotonic() - began:.0f} s")
    return seen


def report(seen: Sequence[Seen]) -> None:
    """Print what was missed, by kind, and the audit's estimate over the same runs, many times over."""
    differing = [each for each in seen if not each.agree]
    skipped = [each for each in seen if each.skips]
    misses = [each for each in skipped if not each.agree]
    missed, of = Counter(each.kind for each in misses), Counter(each.kind for each in differing)
    print(
        f"skipped {len(skipped)} of {len(seen)}; of {len(seen) - len(differing)} that agree, "
        f"{len(skipped) - len(misses)}"
    )
    print(f"missed {len(misses)} of {len(differing)} that differ: {len(misses) / len(differing):.0%}")
    for kind, number in of.items():
        print(f"  {kind}: {missed[kind]} of {number}")
    if not skipped:
        print("nothing is skipped, so there is nothing to audit")
        return
    # The same mixture a hundred times over: what a team sees after as many runs.
    runs = [each for _ in range(100) for each in skipped]
    drawn = [each for seed, each in enumerate(runs) if is_drawn(seed, 0.1)]
    changed = sum(not each.agree for each in drawn)
    low, high = exact_share(changed, len(drawn))
    print(
        f"loss among what is skipped: {len(misses) / len(skipped):.0%}; the audit of {len(drawn)} of "
        f"{len(runs)} says {changed / len(drawn):.0%}, {low:.0%} to {high:.0%}"
    )


def main() -> None:
    """Measure one judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--every", type=int, default=1, help="one quartet in so many")
    options = parser.parse_args()
    seen = asyncio.run(measure(options.url, options.model, options.every))
    if options.save:
        options.save.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in seen), "utf-8")
    report(seen)


if __name__ == "__main__":
    main()
