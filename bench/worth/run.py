"""What the council is worth, one call at a time: every reply is kept as a line, and none is asked twice.

python -m bench.worth.run stage1         the first answers
python -m bench.worth.run reviews        the others' reviews of the strongest member's right answers
python -m bench.worth.run corrections    these, and its corrections of them in one wording
python -m bench.worth.run whole          every call of every question
python -m bench.worth.run count          no call: counts what is kept

Each goes on where it stopped, by the prompts and readers of the product as checked out.
"""

import argparse
import asyncio
import logging
import os
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from string import ascii_uppercase
from typing import Any
from unittest.mock import patch

import orjson
import structlog
from pydantic import BaseModel

from bot.config.configuration import load
from bot.evaluation.questions import EvalQuestion
from council.accounts import Directory
from council.brief import Brief
from council.calls import Call, Outcome, Reply
from council.document.conversation import AssistantMessage
from council.document.results import Stage2_5Result
from council.errors import Failure, ModelError
from council.models.client import ModelClient
from council.profile import Profile
from council.prompts import prompts
from council.run import deliberate

HERE = Path(__file__).parent
WORDINGS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "wordings.toml").read_text())
"""Other words for the parts of the prompt that asks for a correction in plain text, by name."""
STRONGEST = "qwen2.5-coder-1.5b"
PATIENCE = {"call_deadline": 86_400, "stage_deadline": 86_400}
"""Seconds: a busy machine may need minutes for a token, and what was cut off is asked again."""
WITHOUT = "full_without_2_5"
PARTS: dict[str, Callable[[str, str], bool]] = {
    "stage1": lambda stage, _member: stage == "stage1",
    "reviews": lambda stage, member: stage == "stage2" and member != STRONGEST,
    "corrections": lambda stage, member: stage == ("stage2_5" if member == STRONGEST else "stage2"),
    "whole": lambda _stage, _member: True,
    "count": lambda _stage, _member: False,
}
"""Which calls each part makes, by stage and member."""


class Options(BaseModel):
    """The command line. Replies are kept by the names given to how reviews and corrections are asked."""

    part: str
    seed: int
    reviews: str
    wording: list[str]
    at_once: int
    data: Path


def in_plain_text(profile: Profile) -> Profile:
    """Return the council with its strongest member asked for text, and not for JSON."""
    members = (
        each.model_copy(update={"structured": False}) if each.name == STRONGEST else each
        for each in profile.members
    )
    return profile.model_copy(update={"members": (*members,)})


def read_items() -> list[EvalQuestion]:
    """Read the questions as they were first asked: choices are listed, and named by their words."""
    items: list[EvalQuestion] = []
    for line in (HERE / "questions.jsonl").read_bytes().splitlines():
        row, target = orjson.loads(line), str(orjson.loads(line)["target"])
        asked, choices = row["input"], row.get("choices", ())
        if not all(choice in asked for choice in choices):
            listed = (
                f"{letter}) {each}" for letter, each in zip(ascii_uppercase, choices, strict=False)
            )
            asked = "\n".join([asked, "", *listed])
        is_number = target.replace(".", "", 1).isdigit()
        scorer = "match" if is_number else "pattern"
        items.append(EvalQuestion(row["id"], asked, (target,), scorer=scorer))
    return items


async def right(item: EvalQuestion, text: str) -> bool:
    """Score a reply."""
    return await item.score(text, None) == 1


class Kept:
    """The replies to one question, in a file for each stage; a `council.calls.Steps`."""

    def __init__(self, options: Options, item: str, later: str) -> None:
        self._options, self._item = options, item
        self._names = {"stage1": "", "stage2": options.reviews, "stage2_5": later, "stage3": later}
        self._replies: dict[str, Reply] = {}
        for stage, name in self._names.items():
            file = options.data / f"{stage}.jsonl"
            for line in file.read_bytes().splitlines() if file.exists() else ():
                row = orjson.loads(line)
                if (row["question"], row["seed"], row["wording"]) == (item, options.seed, name):
                    self._replies[row["step"]] = Reply(**row["reply"])

    def recall(self, call: Call) -> Outcome | None:
        """Return the kept reply of a call's step."""
        return self._replies.get(call.step)

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep a reply; after a failure, the next run asks again."""
        if isinstance(outcome, Failure):
            return
        self._replies[call.step] = outcome
        stage = call.step.partition(".")[0]
        row = {
            "question": self._item,
            "seed": self._options.seed,
            "wording": self._names[stage],
            "step": call.step,
            "reply": outcome.model_dump(mode="json", exclude_defaults=True),
        }
        with (self._options.data / f"{stage}.jsonl").open("ab") as file:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    def has_begun(self, stage: str) -> bool:
        """Return false: nobody presses Stop."""
        del stage
        return False

    def first(self, member: str) -> str:
        """Return a member's first answer; empty if it isn't kept."""
        reply = self._replies.get(f"stage1.1:{member}")
        return reply.text if reply else ""


class Bench:
    """Asks for one part's calls, as many at once as a server has slots, and refuses the others."""

    def __init__(self, client: ModelClient, options: Options) -> None:
        self._client, self._allows = client, PARTS[options.part]
        self._servers = defaultdict[str, asyncio.Semaphore](partial(asyncio.Semaphore, options.at_once))

    async def ask(self, item: EvalQuestion, call: Call) -> Reply:
        """Make a call. Raises `ModelError` where it isn't one of this part's."""
        if not self._allows(call.step.partition(".")[0], call.member.name):
            raise ModelError(Failure(cause="not_needed", attempts=0))
        async with self._servers[call.member.model]:
            try:
                reply = await self._client.ask(call)
            except ModelError as error:
                print(item.id, call.step, error.failure, flush=True)
                raise
        print(
            f"{datetime.now(UTC):%H:%M:%S} {item.id} {call.step} {reply.latency_ms / 1000:.0f} s",
            flush=True,
        )
        return reply


async def answered(
    bench: Bench, options: Options, profile: Profile, item: EvalQuestion, wording: str
) -> dict[str, AssistantMessage]:
    """Take one question as far as this part goes, with corrections and, in `whole`, without; by arm."""
    kept = Kept(options, item.id, wording)
    if options.part not in ("stage1", "whole") and not all(
        kept.first(each.name) for each in profile.members
    ):
        return {}
    if options.part in ("reviews", "corrections") and not await right(item, kept.first(STRONGEST)):
        return {}
    drawn = Random(f"{options.seed}:{item.id}")  # noqa: S311 - a run that continues draws the same
    drawn_seed, boundary = drawn.getrandbits(53), f"{drawn.getrandbits(64):016x}"

    async def arm(name: str, kept: Kept) -> AssistantMessage:
        done = await deliberate(
            Brief(
                question=item.asked,
                profile=profile.model_copy(update={"corrects": name != WITHOUT}),
                seed=drawn_seed,
                boundary=boundary,
            ),
            ask=partial(bench.ask, item),
            steps=kept,
            emit=lambda _: None,
            now=lambda: datetime.now(UTC),
        )
        return done.message

    found = {"full": await arm("full", kept)}
    if options.part == "whole":
        found[WITHOUT] = await arm(WITHOUT, Kept(options, item.id, WITHOUT))
    return found


async def became(item: EvalQuestion, correction: Stage2_5Result) -> str:
    """Return in a few words what became of a first answer."""
    if correction.fallback:
        return f"no correction: {correction.fallback.cause}"
    if correction.original_response == correction.text:
        return "kept"
    before = await right(item, correction.original_response)
    after = await right(item, correction.text)
    if before == after:
        return f"rewritten, {'right' if after else 'wrong'} as before"
    return "mended" if after else "spoilt"


async def count(found: Counter[str], item: EvalQuestion, arms: Mapping[str, AssistantMessage]) -> None:
    """Add what is known of a question to the counts."""
    for name, message in arms.items():
        if message.stage3.source == "chairman":
            found[f"{name}: answers"] += 1
            found[f"{name}: right answers"] += await right(item, message.stage3.response)
    if not (full := arms.get("full")):
        return
    for answer in full.stage1:
        found[f"{answer.model}: first answers"] += 1
        found[f"{answer.model}: right first answers"] += await right(item, answer.response)
    for review in full.stage2:
        found[f"{review.model}: reviews"] += 1
        found[f"{review.model}: reviews cut off"] += review.truncated
        found[f"{review.model}: reviews without a ranking"] += not review.parsed_ranking
        for point in review.points or ():
            if point.kind == "objection":
                author = (full.label_to_model or {})[point.label]
                found[f"{author}: objections"] += 1
                found[f"{author}: objections that quote its answer"] += point.found is True
                found[f"{author}: objections that quote what isn't there"] += point.found is False
    for each in full.stage2_5 or ():
        was = "right" if await right(item, each.original_response) else "wrong"
        found[f"{each.model}: {was} first answers, {await became(item, each)}"] += 1
        for reply in each.replies or ():
            found[f"{each.model}: objections it answered"] += 1
            found[f"{each.model}: objections it said hold"] += reply.holds


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reviews", default="new")
    parser.add_argument("--wording", nargs="+", default=["new"])
    parser.add_argument("--at-once", type=int, default=1, help="slots of a server")
    parser.add_argument("--data", type=Path, default=HERE)
    options = Options.model_validate(vars(parser.parse_args()))
    if options.at_once > 1 and WORDINGS.keys() & options.wording:
        parser.error("the prompt has one wording at a time: ask with --at-once 1")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    os.environ["COUNCIL_CONFIG"] = str(HERE / "council.toml")
    profile = load().profiles["default"].model_copy(update=PATIENCE)
    items = read_items()
    found = {wording: Counter[str]() for wording in options.wording}
    async with ModelClient(Directory([profile]).find) as client:
        bench = Bench(client, options)
        free = asyncio.Semaphore(options.at_once)

        async def take(item: EvalQuestion) -> None:
            async with free:
                # Its wordings follow each other: the server has just read how they all begin.
                for wording in options.wording:
                    words = WORDINGS.get(wording, {})
                    with patch.multiple(prompts, **words) if words else nullcontext():
                        seats = in_plain_text(profile) if words else profile
                        arms = await answered(bench, options, seats, item, wording)
                    await count(found[wording], item, arms)

        await asyncio.gather(*map(take, items))
    for wording, counts in found.items():
        print(f"\n{wording}, seed {options.seed}")
        print(*(f"{number:5} {name}" for name, number in sorted(counts.items())), sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
