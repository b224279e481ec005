"""Ask a real model twenty simple facts: plainly, and as a member of a council is asked.

    python -m bench.facts FILE [--model ID] [--endpoint URL]

FILE gets a line of JSON for every reply; those already in it aren't asked for again. At the end, the
count of right ones is printed, by the words that each question's line in `facts.jsonl` gives.
"""

import argparse
import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from bench.councils import HOUR, append, arguments, lines, seed_of
from council.brief import Brief
from council.calls import ChatMessage
from council.profile import Member, Profile
from council.prompts.prompts import Prompts

FACTS = Path(__file__).with_suffix(".jsonl")
MOST_TOKENS = 120


def asked(question: str, model: str) -> dict[str, tuple[ChatMessage, ...]]:
    """Return what each way of asking says to the model."""
    member = Member(model=model)
    profile = Profile(members=(member,), chairman=member)
    brief = Brief(question=question, profile=profile, seed=0, boundary="7eb9d05934df77dc")
    return {
        "plain": ({"role": "user", "content": question},),
        "member": Prompts(brief).answer(member),
    }


async def reply(
    client: httpx.AsyncClient, options: argparse.Namespace, messages: object, seed: int
) -> str:
    """Make one call, without any chance in it."""
    body = {
        "model": options.model,
        "messages": messages,
        "temperature": 0,
        "max_tokens": MOST_TOKENS,
        "seed": seed,
    }
    response = await client.post(f"{options.endpoint}/chat/completions", json=body)
    said: dict[str, Any] = response.json()
    return str(said["choices"][0]["message"]["content"])


async def main() -> None:
    """Ask what isn't in the file yet, and count the right answers."""
    options = arguments("python -m bench.facts")
    known = {(line["question"], line["way"]): line["text"] for line in lines(options.file)}
    right: Counter[str] = Counter()
    async with httpx.AsyncClient(timeout=HOUR, trust_env=False) as client:
        for fact in lines(FACTS):
            for way, messages in asked(fact["question"], options.model).items():
                name = fact["id"]
                if (name, way) not in known:
                    known[name, way] = await reply(client, options, messages, seed_of(name))
                    append(options.file, {"question": name, "way": way, "text": known[name, way]})
                right[way] += re.search(str(fact["right"]), known[name, way], re.IGNORECASE) is not None
    print(dict(right))


if __name__ == "__main__":
    asyncio.run(main())
