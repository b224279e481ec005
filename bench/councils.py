"""Ask councils of real models the twelve questions of `councils.jsonl`, and keep all they say.

    python -m bench.councils FILE [--model ID] [--endpoint URL] [--schema] [--only ID,ID]
    python -m bench.councils FILE --replay STORED [--without-ranking]

FILE gets a line of JSON for every reply as it came, one for it as it was kept, and one for every
council. Calls that it holds already aren't made again, so an interrupted run continues where it
was. Labels, reading orders, boundaries and the models' own seeds are fixed by question and step.
With `--replay`, answers and reviews are those of another such file: only the rest is asked.
"""

import argparse
import asyncio
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter

from council.brief import Brief, History
from council.calls import Call, MemorySteps, Outcome, Reply
from council.document.conversation import AssistantMessage
from council.errors import Failure, ModelError
from council.models.event_stream import parse
from council.models.reply import Completion
from council.profile import Member, Profile
from council.run import deliberate

QUESTIONS = Path(__file__).with_suffix(".jsonl")
SEATS = ("a", "b", "c")
TEMPERATURE = 0.7
MOST_TOKENS = 700
HOUR = 3_600.0
STAGES = {"answers": "stage1.", "reviews": "stage2.", "corrections": "stage2_5."}
"""What may be the last that is asked for, and how its steps' names begin, in the stages' order."""
_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Reply | Failure)


class Kept(MemorySteps):
    """One council's calls, kept in the file as they end."""

    def __init__(self, file: Path, question: str, replayed: Path | None = None) -> None:
        super().__init__()
        self._file, self._question = file, question
        stored = filter(_answers_or_reviews, lines(replayed)) if replayed else ()
        for line in (*stored, *lines(file)):
            if line["question"] == question and "outcome" in line:
                self.outcomes[line["step"]] = _OUTCOME.validate_python(line["outcome"])

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call."""
        await super().record(call, outcome)
        kept = outcome.model_dump(mode="json", exclude_defaults=True)
        append(self._file, {"question": self._question, "step": call.step, "outcome": kept})


def _answers_or_reviews(line: dict[str, Any]) -> bool:
    return line.get("step", "").startswith(_up_to("reviews"))


def _up_to(stage: str) -> tuple[str, ...]:
    return tuple(STAGES.values())[: list(STAGES).index(stage) + 1]


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines, one that isn't there as empty."""
    if file.exists():
        yield from map(json.loads, file.read_text().splitlines())


def append(file: Path, line: object) -> None:
    """Add a line of JSON."""
    with file.open("a") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def seed_of(*parts: str) -> int:
    """Return the seed that belongs to some names, the same whenever it is asked for."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=3).digest())


def mark_of(name: str, seed: int) -> str:
    """Return the random mark that belongs to a council, the same whenever it is asked for."""
    return hashlib.blake2b(f"{name} {seed}".encode(), digest_size=8).hexdigest()


def profile(options: argparse.Namespace) -> Profile:
    """Return a council of three seats of one model, with the same model as chairman."""
    model = {"endpoint": options.endpoint, "structured": options.schema}
    return Profile(
        members=tuple(Member(model=f"{options.model}-{seat}", **model) for seat in SEATS),
        chairman=Member(model=options.model, **model),
        critique_mode=options.critiques,
        critiques_with_ranking=not options.without_ranking,
        call_deadline=HOUR,
        stage_deadline=HOUR,
        temperature=TEMPERATURE,
        max_tokens=MOST_TOKENS,
    )


async def ask(
    client: httpx.AsyncClient, question: str, options: argparse.Namespace, call: Call
) -> Reply:
    """Make one call, with the seed that belongs to its question and step."""
    if options.until and not call.step.startswith(_up_to(options.until)):
        raise ModelError(Failure(cause="not_needed", attempts=0))
    body: dict[str, object] = {
        "model": options.model,
        "messages": call.messages,
        "temperature": call.temperature,
        "max_tokens": call.max_tokens,
        "seed": seed_of(question, call.step),
    }
    if call.schema is not None and options.schema:
        shape = {"name": "reply", "strict": True, "schema": call.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    began = time.monotonic()
    try:
        response = await client.post(f"{options.endpoint}/chat/completions", json=body)
    except httpx.HTTPError as error:
        raise ModelError(Failure(cause="connection", detail=type(error).__name__)) from error
    completion = Completion()
    completion.take_body(parse(response.content))
    append(options.file, {"question": question, "raw": call.step, "text": completion.text})
    return completion.reply(call, round((time.monotonic() - began) * 1000), lambda _: None)


async def main() -> None:
    """Hold a council on every question that the file doesn't have an answer to."""
    options = arguments("python -m bench.councils")
    if options.report:
        report(options.file)
        return
    council = profile(options)
    done = {line["question"] for line in lines(options.file) if "message" in line}
    async with httpx.AsyncClient(timeout=HOUR, trust_env=False) as client:
        questions = {line["id"]: line["question"] for line in lines(QUESTIONS)}
        for name in options.only.split(",") if options.only else questions:
            if name in done:
                continue
            began = time.monotonic()
            seed = seed_of(name)
            brief = Brief(
                question=questions[name],
                profile=council,
                seed=seed,
                boundary=mark_of("boundary", seed),
                notes_mark=None if options.without_notes else mark_of("notes", seed),
                started_at="2026-01-01T00:00:00.000Z",
                history=History(left_out=1),  # so that no title is asked for
            )
            held = await deliberate(
                brief,
                ask=lambda call, name=name: ask(client, name, options, call),
                steps=Kept(options.file, name, options.replay),
                emit=lambda _: None,
                now=lambda: datetime.now(UTC),
            )
            message = held.message.model_dump(mode="json", exclude_defaults=True)
            seconds = round(time.monotonic() - began)
            append(options.file, {"question": name, "seconds": seconds, "message": message})
            print(f"{name}: {seconds} s", flush=True)


def report(file: Path) -> None:
    """Print what became of ballots, corrections and answers, and what they took."""
    asked = {line["id"]: line for line in lines(QUESTIONS)}
    held = {line["question"]: line for line in lines(file) if "message" in line}
    sums: Counter[str] = Counter()
    for name, line in held.items():
        message = AssistantMessage.model_validate(line["message"])
        places = message.aggregate_ranking.places if message.aggregate_ranking else []
        corrections = {each.model: each for each in message.stage2_5 or []}
        best = corrections[places[0].model].text if places else ""
        firsts = [each.response for each in message.stage1]
        lasts = [each.text for each in corrections.values()]
        known = asked[name]["right"]
        told = [
            bool(known) and _holds(known, text)
            for text in (*firsts, *lasts, best, message.stage3.response)
        ]
        members = len(firsts)
        shown = (*firsts, *lasts, *(each.ranking for each in message.stage2), message.stage3.response)
        sums.update(
            {
                "councils": 1,
                "ballots": len(message.stage2),
                "ballots counted": sum(bool(each.parsed_ranking) for each in message.stage2),
                "corrections": len(lasts),
                "corrections refused": sum(each.fallback is not None for each in corrections.values()),
                "answers kept with a reason": sum(
                    each.kept_because is not None for each in corrections.values()
                ),
                "with a right answer known": bool(known),
                "first answers right": sum(told[:members]),
                "last answers right": sum(told[members : 2 * members]),
                "right, then not": sum(
                    a and not b for a, b in zip(told, told[members:-2], strict=False)
                ),
                "wrong, then right": sum(
                    b and not a for a, b in zip(told, told[members:-2], strict=False)
                ),
                "best-ranked answer right": told[-2],
                "final answer right": told[-1],
                "marks shown": sum(len(_MARK.findall(text)) for text in shown),
                "seconds": line["seconds"],
            }
        )
        for stage, usage in (message.usage.stages if message.usage else {}).items():
            sums[f"tokens read in {stage}"] += usage.prompt_tokens
            sums[f"tokens written in {stage}"] += usage.completion_tokens
        for step, took in (message.usage.latencies if message.usage else {}).items():
            sums[f"seconds of calls in {step.partition('.')[0]}"] += round(took / 1000)
    for what, count in sums.items():
        print(f"{what:<34} {count:>7,}")


_MARK = re.compile(r"\[(?:begin|end) [0-9a-f]|\b(?=\w*\d)[0-9a-f]{16}\b")


def _holds(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def arguments(command: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog=command)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--endpoint", default="http://127.0.0.1:18081/v1")
    parser.add_argument("--schema", action="store_true", help="ask for ballots by JSON schema")
    parser.add_argument("--only", help="ids of questions, by commas, in their order")
    parser.add_argument(
        "--replay", type=Path, help="a file whose answers and reviews are taken, not asked for again"
    )
    parser.add_argument("--until", choices=STAGES, help="the last that is asked for, if not all")
    parser.add_argument("--critiques", choices=("full", "extracted"), default="full")
    parser.add_argument("--without-ranking", action="store_true", help="authors don't read who won")
    parser.add_argument("--without-notes", action="store_true", help="the chairman only answers")
    parser.add_argument(
        "--report", action="store_true", help="print the file's figures, and ask nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
