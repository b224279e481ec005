"""How many tokens a run reads and writes, by stage, beside the usual way, and what a cache could save.

    python -m bench.tokens            prints the tables of docs/dev/performance.md
    python -m bench.tokens --write    writes them there

No model is asked: every reply is a text of the given length, and prompts are counted at four characters
a token. The usual way has the same stages and replies: reviewers read all answers, their own included,
authors all reviews of the others, and the chairman the first answers, the reviews and the corrections.
"""

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from council.brief import Attachment, Brief
from council.calls import Call, MemorySteps, Reply
from council.profile import Depth, Profile
from council.run import deliberate
from council.usage import Usage, estimate_tokens
from tests.council.scripted import Clock, in_form, labels_in

PAGE = Path(__file__).parent.parent / "docs" / "dev" / "performance.md"
BEGIN, END = "<!-- counted by bench.tokens: begin -->\n", "<!-- counted by bench.tokens: end -->\n"
MEMBERS, LENGTHS = (3, 4, 6, 8), (1_000, 4_000)
QUESTION = "Should we shard the orders database now, or buy a bigger machine first and shard in a year?"
FILE = 20_000  # characters of a file that comes with the question
STAGES = {"stage1": "answers", "stage2": "reviews", "stage2_5": "corrections", "stage3": "final"}
SENTENCE = "The table grows by a tenth each month, so a larger machine lasts about two years. "
SHARES = (
    "The share of a call's prompt that its model has read before in the same run, four members, the "
    "first of them in the chair:"
)
AGREED = '{"differences": [], "recommendation": "same", "steering": [], "better": "tie"}'


@dataclass(slots=True)
class TokenCount:
    """What one run read and wrote, by stage, and how much of each prompt its model had read before."""

    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    written: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    shared: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def total(self) -> int:
        """All tokens."""
        return sum(self.read.values()) + sum(self.written.values())

    def stage(self, stage: str) -> int:
        """Return the tokens of one stage."""
        return self.read[stage] + self.written[stage]


def text(length: int, number: int) -> str:
    """Return a text of so many characters, another one for each number."""
    said = f"Answer {number}: {SENTENCE * (length // len(SENTENCE) + 1)}"
    return said[:length]


async def counted(members: int, length: int, depth: Depth = "full", attached: int = 0) -> TokenCount:
    """Run a council whose replies are so long, and count."""
    found, seen, numbers = TokenCount(), defaultdict[str, list[str]](list), iter(range(10_000))

    async def ask(call: Call) -> Reply:
        stage = call.step.partition(".")[0]
        prompt = "\n".join(message["content"] for message in call.messages)
        before = max((shared(prompt, each) for each in seen[call.member.model]), default=0)
        seen[call.member.model].append(prompt)
        reply = _reply(call, stage, length, next(numbers))
        found.read[stage] += estimate_tokens(prompt)
        found.written[stage] += estimate_tokens(reply)
        found.calls[stage] += 1
        found.shared[stage].append(before / len(prompt))
        return Reply(text=reply, usage=Usage(), latency_ms=1)

    names = tuple(f"maker/model-{number}" for number in range(members))
    profile = Profile.model_validate(
        {
            "members": names,
            "chairman": names[0],
            "judge_model": "judge/model",
            "depth": depth,
            "depth_audit": 0.0,
        }
    )
    brief = Brief(
        question=QUESTION,
        profile=profile,
        seed=7,
        boundary="0123456789abcdef",
        notes_mark="fedcba9876543210",
        attachments=(Attachment(name="plan.txt", text=text(attached, 0)),) if attached else (),
    )
    await deliberate(brief, ask=ask, steps=MemorySteps(), emit=lambda _: None, now=Clock())
    return found


def shared(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))


def _reply(call: Call, stage: str, length: int, number: int) -> str:
    if stage == "judge":
        return AGREED
    if stage == "stage2_5":
        return in_form(call, text(length - len(in_form(call, "")), number))
    if stage != "stage2":
        return text(length, number)
    places = "\n".join(f"{at}. {label}" for at, label in enumerate(sorted(labels_in(call)), 1))
    ballot = f"\n\nFINAL RANKING:\n{places}"
    return text(length - len(ballot), number) + ballot


def usual(members: int, length: int) -> Mapping[str, int]:
    """Return the tokens of the same run the usual way, by stage; only texts count, no instructions."""
    question, reply = estimate_tokens(QUESTION), length // 4
    read = {
        "stage1": members * question,
        "stage2": members * (question + members * reply),
        "stage2_5": members * (question + reply + (members - 1) * reply),
        "stage3": question + 3 * members * reply,
    }
    written = {stage: (1 if stage == "stage3" else members) * reply for stage in STAGES}
    return {stage: read[stage] + written[stage] for stage in STAGES}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def tables() -> str:
    """Return all tables, with a sentence before each."""
    by_stage: list[list[str]] = []
    by_depth: list[list[str]] = []
    for length in LENGTHS:
        for members in MEMBERS:
            full, other = await counted(members, length), usual(members, length)
            ratio = full.total / sum(other.values())
            of = [f"{full.stage(stage):,} ({other[stage]:,})" for stage in STAGES]
            size = [f"{members}", f"{length:,}"]
            by_stage.append([*size, *of, f"{full.total:,} ({sum(other.values()):,})", f"{ratio:.2f}"])
            quick, auto = await counted(members, length, "quick"), await counted(members, length, "auto")
            by_depth.append(
                [
                    *size,
                    *(
                        f"{each.total:,} in {sum(each.calls.values())} calls"
                        for each in (quick, auto, full)
                    ),
                    f"{1 - auto.total / full.total:.0%}",
                ]
            )
    shares: list[list[str]] = []
    for attached in (0, FILE):
        for length in LENGTHS:
            full = await counted(4, length, attached=attached)
            of = [f"{fmean(full.shared[stage]):.0%}" for stage in STAGES]
            shares.append([f"{attached:,}" if attached else "none", f"{length:,}", *of])
    size = ("members", "characters a reply")
    return (
        "\n\n".join(
            (
                "Tokens of a full run, read and written, and in brackets the usual way's:",
                table((*size, *STAGES.values(), "in all", "ratio"), by_stage),
                "The same by depth; `auto` where the answers agree, its judge's call included:",
                table((*size, "quick", "auto, skipped", "full", "auto saves"), by_depth),
                SHARES,
                table(("file with the question, characters", size[1], *STAGES.values()), shares),
            )
        )
        + "\n"
    )


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    found = asyncio.run(tables())
    if not parser.parse_args().write:
        print(found)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{found}{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
