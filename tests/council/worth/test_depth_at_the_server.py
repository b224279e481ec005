"""What each depth takes, counted at the server: calls, tokens and cost; and what the card says was saved."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import pytest

from council.calls import MemorySteps
from council.document.conversation import AssistantMessage
from council.models.client import ModelClient
from council.run import deliberate
from council.usage import Price
from tests.council.models.scene import opened
from tests.council.scripted import FOUR, Clock, ScriptedCouncil
from tests.council.worth.test_depth import AGREED, DIFFERENT, auto
from tests.model_server import CHARACTERS_PER_TOKEN, Exchange, Json, ModelServer, Turn, council_member
from tests.pairs import rows

JUDGE, CHAIR = "judge/model", "chair/man"
ANSWER = "Shard by customer, in two steps, and keep the old table until both agree. " * 20
CORRECTED = "Move one region at first, measure for a week, then decide whether to go on. " * 20
PRICE = Price(prompt=2e-6, completion=1e-5)
LISTED: list[Json] = [
    {"id": model, "pricing": {"prompt": str(PRICE.prompt), "completion": str(PRICE.completion)}}
    for model in (*FOUR, CHAIR, JUDGE)
]


def talk(request: Json) -> str:
    """Play a council whose replies are as long as real ones; corrections change every sentence."""
    said = council_member(request)
    return f"{said}\n\n{CORRECTED if 'having read its peers' in said else ANSWER}"


def stage(exchange: Exchange) -> str:
    """Tell what a call was for, by its prompt's last line alone, as an outside tool does."""
    task = exchange.prompt.splitlines()[-1]
    if task.startswith("Now compare"):
        return "judge"
    if task.startswith("Write the answer"):
        return "final"
    ends = {"Answer the question in English.": "answer", "3. Response ?": "review"}
    return ends.get(task, "correction")


def prompt_tokens(exchange: Exchange) -> int:
    """Return a call's tokens as the server counts them."""
    messages = cast("list[Json]", exchange.request["messages"])
    return sum(len(str(message["content"])) for message in messages) // CHARACTERS_PER_TOKEN


@asynccontextmanager
async def served(judge: str) -> AsyncGenerator[tuple[ModelServer, ModelClient]]:
    """Open a server whose judge says this, and a client that knows its prices."""
    async with ModelServer(talk, models=LISTED) as server, opened(server) as client:
        server.always(JUDGE, Turn(judge))
        await client.catalog.refresh()
        yield server, client


async def run(client: ModelClient, **settings: object) -> AssistantMessage:
    """Ask a question and return the document's message."""
    brief = ScriptedCouncil.brief(auto(**settings))
    price_of = partial(client.price, "default")
    deliberation = await deliberate(
        brief, ask=client.ask, steps=MemorySteps(), emit=lambda _: None, now=Clock(), price_of=price_of
    )
    return deliberation.message


ONLY = {"answer": 4, "final": 1}
ALL = {**ONLY, "review": 4, "correction": 4}


@rows(
    ("settings", "judge", "calls"),
    [
        ({"depth": "quick"}, AGREED, ONLY),
        ({}, AGREED, {**ONLY, "judge": 1}),
        ({}, DIFFERENT, {**ALL, "judge": 1}),
        ({"depth_audit": 1.0}, AGREED, {**ALL, "judge": 2}),
        ({"depth": "full"}, AGREED, ALL),
    ],
    ids=["quick", "auto, agreed", "auto, different", "audited", "full"],
)
async def test_each_depth_makes_its_calls_and_counts_all_of_them(
    settings: dict[str, object], judge: str, calls: dict[str, int]
) -> None:
    """What the document says was used is what the server counted, the judge's calls included."""
    async with served(judge) as (server, client):
        message = await run(client, **settings)
        history = list(server.history)
    assert Counter(map(stage, history)) == calls
    assert message.usage is not None
    used = message.usage.run
    assert (used.source, used.unpriced) == ("measured", 0)
    assert used.prompt_tokens == sum(map(prompt_tokens, history))
    judged = message.usage.stages.get("judge")
    assert (judged is not None) == ("judge" in calls)
    assert used.cost == pytest.approx(PRICE.cost(used.prompt_tokens, used.completion_tokens))


async def test_what_was_saved_is_about_what_full_costs_more() -> None:
    """The card's figure is an estimate: within a quarter of the difference that the server counted."""
    async with served(AGREED) as (_, client):
        skipped, full = await run(client), await run(client, depth="full")
    assert skipped.depth
    assert skipped.depth.saved
    assert skipped.depth.saved.cost
    assert full.usage
    assert skipped.usage
    difference = full.usage.run.cost - skipped.usage.run.cost
    assert skipped.depth.saved.cost == pytest.approx(difference, rel=0.25)
    assert skipped.depth.saved.tokens == pytest.approx(
        full.usage.run.tokens - skipped.usage.run.tokens, rel=0.25
    )
