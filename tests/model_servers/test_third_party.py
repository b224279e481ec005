"""A council works with servers that nobody here wrote; what came of it is in docs/providers.md."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from council import demonstration
from council.calls import Call
from council.document.conversation import AssistantMessage
from council.errors import ModelError
from council.profile import Member
from tests.model_servers import table
from tests.model_servers.matrix import (
    YES,
    Council,
    Row,
    council_at,
    miscounted,
    refused,
    shown_forms,
    shown_thoughts,
    streamed,
    unanswered,
    uncorrected,
    uncounted,
    unlike,
)
from tests.model_servers.stand_in import KEY
from tests.model_servers.third_party import (
    AIMOCK,
    LIMITED,
    MEMBERS,
    NODE,
    Proxy,
    aimock,
    katan,
    litellm_proxy,
)

pytestmark = pytest.mark.soak

MODES: Mapping[str, str | None] = {"named": "litellm", "unnamed": None}
QUESTION = "Should we shard now or buy a bigger machine?"


def written(named: Row, unnamed: Row) -> None:
    """Write a server's line into the table; nothing in it is wrong."""
    table.write(table.THIRD_PARTIES, {named.server: table.line(named, unnamed)})
    assert (named.wrong, unnamed.wrong) == ({}, {})


def lessons(council: Council) -> int:
    """Return the refused requests that the model with most of them took."""
    members = [Member.model_validate({"model": model, **council.seat}) for model in council.models]
    return max(council.client.learned(member).refusals for member in members)


async def proxied(proxy: Proxy, dialect: str | None) -> Row:
    """Fill the row of a LiteLLM proxy."""
    row = Row(server="LiteLLM proxy 1.108.7", dialect="litellm")
    for server in proxy.behind:
        server.taken.clear()
        server.counted.clear()
        server.history.clear()
    async with council_at(proxy.address, [*MEMBERS], key=proxy.key, dialect=dialect) as council:
        message = await council.run({"max_tokens": 4_000})
        taken = [request for server in proxy.behind for request in server.taken]
        counted = [usage for server in proxy.behind for usage in server.counted]
        history = [exchange for server in proxy.behind for exchange in server.history]
        row.show("answers", YES, *unanswered(council, message))
        row.show("ballots_by_schema", shown_forms(taken), uncounted(message))
        row.show("corrections", YES, *uncorrected(message))
        row.show("preview", streamed(council.events), *unlike(council.events, message))
        cost = message.usage.run.cost if message.usage else 0.0
        faults = miscounted(counted, message, cost=cost)
        row.show("usage_and_cost", "counted, cost stated", *faults, None if cost else "no cost")
        row.show("thoughts_hidden", YES, *shown_thoughts(history, council.events, message))
        row.learning = lessons(council)
        row.show("ballots_in_prose", YES, uncounted(await council.run({"structured": False})))
        limited = await council.run(models=[LIMITED, *MEMBERS])
        row.show("rate_limit", YES, alone(limited, LIMITED, "rate_limited"))
        unknown = await council.run(models=["gpt-4o-typo", *MEMBERS])
        row.show("unknown_model", YES, alone(unknown, "gpt-4o-typo", "not_found"))
    async with council_at(proxy.address, [*MEMBERS], key="sk-wrong", dialect=dialect) as council:
        row.show("wrong_key", YES, await refused(council, "key"))
    return row


def alone(message: AssistantMessage, member: str, cause: str) -> str | None:
    """Return the failures, unless this one is the only one."""
    causes = {failure.member: failure.failure.cause for failure in message.failures}
    return None if causes == {member: cause} else str(causes)


async def test_a_litellm_proxy(tmp_path: Path) -> None:
    """It passes calls on to OpenAI, Mistral and DeepSeek, each strict in its own way."""
    async with litellm_proxy(tmp_path) as proxy:
        named, unnamed = [await proxied(proxy, dialect) for dialect in MODES.values()]
    written(named, unnamed)


async def echoed(address: str, key: str) -> Row:
    """Fill the row of a server that repeats what it is asked."""
    row = Row(server="llm-katan 0.22", dialect="generic")
    heard: list[str] = []
    async with council_at(address, ["any/echo"], key=key) as council:
        call = Call(
            step="stage1.1:any/echo",
            member=Member.model_validate({"model": "any/echo", **council.seat}),
            prompt=lambda: ({"role": "user", "content": QUESTION},),
            deadline=30.0,
            max_tokens=4_000,
            on_text=heard.append,
        )
        try:
            council.profile()
            reply = await council.client.ask(call)
        except ModelError as error:
            row.show("wrong_key", YES, None if error.failure.cause == "key" else str(error))
            row.show("rate_limit", YES, None if error.failure.cause == "rate_limited" else str(error))
            return row
        row.show("answers", YES, None if reply.text.endswith(f"User: {QUESTION}") else reply.text)
        row.show("preview", YES, None if len(heard) > 1 and "".join(heard) == reply.text else str(heard))
        row.show(
            "usage_and_cost", "counted", None if reply.usage.source == "measured" else str(reply.usage)
        )
        row.unknown_model = "any name is served"
        row.learning = lessons(council)
    return row


async def test_llm_katan(tmp_path: Path) -> None:
    """It echoes: its answers, their count, its refusals."""
    async with katan(tmp_path, KEY) as address:
        row = await echoed(address, KEY)
        wrong = await echoed(address, "sk-wrong")
    async with katan(tmp_path, KEY, "--rate-limit-after", "1") as address:
        await echoed(address, KEY)
        limited = await echoed(address, KEY)
    row.wrong_key, row.rate_limit = wrong.wrong_key, limited.rate_limit
    row.wrong |= {name: why for name, why in wrong.wrong.items() if name == "wrong_key"}
    row.wrong |= {name: why for name, why in limited.wrong.items() if name == "rate_limit"}
    written(row, row)


@pytest.mark.skipif(NODE is None or not AIMOCK.exists(), reason="npm ci --prefix tests/aimock")
async def test_aimock(tmp_path: Path) -> None:
    """Its models say what its fixtures have."""
    row = Row(server="aimock 1.43", dialect="openrouter")
    async with (
        aimock(tmp_path) as address,
        council_at(address, ["lab/one", "lab/two", "lab/three"], key=KEY) as council,
    ):
        message = await council.run({"max_tokens": 4_000})
        answers = {answer.response for answer in message.stage1}
        final = message.stage3.response
        row.show(
            "answers",
            YES,
            None
            if answers == {"It depends on the load, says aimock, and on who is on call."}
            else str(answers),
            None if final.startswith("In the end it depends on the load") else final,
        )
        row.show("ballots_by_schema", "schema", uncounted(message))
        corrections = {each.corrected_response for each in message.stage2_5 or ()}
        said_again = {"It still depends on the load, says aimock, having read its peers."}
        row.show("corrections", YES, None if corrections == said_again else str(corrections))
        row.show("preview", streamed(council.events), *unlike(council.events, message))
        counted = message.usage.run if message.usage else None
        row.show(
            "usage_and_cost",
            "counted",
            None if counted and counted.source == "measured" else str(counted),
        )
        row.show("ballots_in_prose", YES, uncounted(await council.run({"structured": False})))
        row.learning = lessons(council)
    written(row, row)


@pytest.mark.skipif(not demonstration.available(), reason="the extra `local`")
async def test_llama_cpp() -> None:
    """The built-in model's own server, addressed as anybody's: a model of 135M says what it can."""
    row = Row(server="llama.cpp (xllamacpp), SmolLM2-135M", dialect="llamacpp")
    personas = [
        {"name": f"Reader {number}", "prompt": "You answer in one sentence."} for number in (1, 2, 3)
    ]
    async with demonstration.serve() as addresses:
        address = next(iter(addresses.values()))
        async with council_at(address, [demonstration.MODEL], key=None, dialect="llamacpp") as council:
            council.call_deadline = 900.0  # on a busy machine
            message = await council.run({"max_tokens": 120}, personas=personas)
            row.show(
                "answers",
                YES,
                *(str(failure.failure) for failure in message.failures if failure.stage == "stage1"),
            )
            counted = message.aggregate_ranking.ballots if message.aggregate_ranking else 0
            row.show(
                "ballots_by_schema", f"{counted} of 3 counted", None if counted else said_of(message)
            )
            row.show("preview", streamed(council.events), *unlike(council.events, message))
            usage = message.usage.run if message.usage else None
            row.show(
                "usage_and_cost", "counted", None if usage and usage.source == "measured" else str(usage)
            )
            row.unknown_model = "any name is served"
            row.learning = lessons(council)
    written(row, row)


def said_of(message: AssistantMessage) -> str:
    """Return what became of the reviews."""
    return str([failure.failure for failure in message.failures])
