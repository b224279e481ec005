"""A council works with servers that nobody here wrote; what came of it is in bench/servers.md."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from council import demonstration
from council.calls import Call
from council.document.conversation import AssistantMessage
from council.errors import ModelError
from council.profile import Member
from tests.model_servers import table
from tests.model_servers.matrix import (
    ANY_NAME,
    CHECKS,
    YES,
    Council,
    Faults,
    Row,
    Seen,
    council_at,
    refused,
    streamed,
    uncounted,
    unless,
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
    table.write_lines(table.THIRD_PARTIES, {named.server: table.line(named, unnamed)})
    assert (named.wrong, unnamed.wrong) == ({}, {})


def lessons(council: Council) -> int:
    """Return the refused requests that the model with most of them took."""
    members = [Member.model_validate({"model": model, **council.seat}) for model in council.models]
    return max(council.client.endpoint(member).requests[member.model] for member in members)


async def proxied(proxy: Proxy, dialect: str | None) -> Row:
    row = Row("LiteLLM proxy 1.108.7")
    for server in proxy.behind:
        server.taken.clear()
        server.counted.clear()
        server.history.clear()
    async with council_at(proxy.address, [*MEMBERS], key=proxy.key, dialect=dialect) as council:
        message = await council.run({"max_tokens": 4_000})
        taken = [request for server in proxy.behind for request in server.taken]
        counted = [usage for server in proxy.behind for usage in server.counted]
        history = [exchange for server in proxy.behind for exchange in server.history]
        seen = Seen(council, message, history, taken, counted, None)
        for cell, shown, faults in CHECKS:
            row.show(cell, shown(seen), faults(seen))
        row.learning = lessons(council)
        prose = await council.run({"structured": False})
        row.show("ballots_in_prose", YES, uncounted(replace(seen, message=prose)))
        limited = await council.run(models=[LIMITED, *MEMBERS])
        row.show("rate_limit", YES, alone(limited, LIMITED, "rate_limited"))
        unknown = await council.run(models=["gpt-4o-typo", *MEMBERS])
        row.show("unknown_model", YES, alone(unknown, "gpt-4o-typo", "not_found"))
    async with council_at(proxy.address, [*MEMBERS], key="sk-wrong", dialect=dialect) as council:
        row.show("wrong_key", YES, await refused(council, "key"))
    return row


def alone(message: AssistantMessage, member: str, cause: str) -> Faults:
    """Return the failures, unless this one is the only one."""
    causes = {failure.member: failure.failure.cause for failure in message.failures}
    return unless(causes == {member: cause}, str(causes))


async def test_a_litellm_proxy(tmp_path: Path) -> None:
    """It passes calls on to OpenAI, Mistral and DeepSeek, each strict in its own way."""
    async with litellm_proxy(tmp_path) as proxy:
        named, unnamed = [await proxied(proxy, dialect) for dialect in MODES.values()]
    written(named, unnamed)


async def echoed(address: str, key: str) -> Row:
    """Fill the row of a server that repeats what it is asked."""
    row = Row("llm-katan 0.22")
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
            row.show("wrong_key", YES, unless(error.failure.cause == "key", str(error)))
            row.show("rate_limit", YES, unless(error.failure.cause == "rate_limited", str(error)))
            return row
        row.show("answers", YES, unless(reply.text.endswith(f"User: {QUESTION}"), reply.text))
        streams = len(heard) > 1 and "".join(heard) == reply.text
        row.show("preview", YES, unless(streams, str(heard)))
        measured = reply.usage.source == "measured"
        row.show("usage_and_cost", "counted", unless(measured, str(reply.usage)))
        row.cells["unknown_model"] = ANY_NAME
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
    for cell, other in (("wrong_key", wrong), ("rate_limit", limited)):
        row.cells[cell] = other.cells[cell]
        row.wrong |= {name: why for name, why in other.wrong.items() if name == cell}
    written(row, row)


@pytest.mark.skipif(NODE is None or not AIMOCK.exists(), reason="npm ci --prefix tests/aimock")
async def test_aimock(tmp_path: Path) -> None:
    """Its models say what its fixtures have."""
    row = Row("aimock 1.43")
    async with (
        aimock(tmp_path) as address,
        council_at(address, ["lab/one", "lab/two", "lab/three"], key=KEY) as council,
    ):
        message = await council.run({"max_tokens": 4_000})
        seen = Seen(council, message, (), (), (), None)
        final = message.stage3.response
        wanted = {"It depends on the load, says aimock, and on who is on call."}
        answers = unless({answer.response for answer in message.stage1} == wanted, str(message.stage1))
        ends = unless(final.startswith("In the end it depends on the load"), final)
        row.show("answers", YES, [*answers, *ends])
        row.show("ballots_by_schema", "schema", uncounted(seen))
        corrections = {each.corrected_response for each in message.stage2_5 or ()}
        again = {"It still depends on the load, says aimock, having read its peers."}
        row.show("corrections", YES, unless(corrections == again, str(corrections)))
        row.show("preview", streamed(seen), unlike(seen))
        row.show("usage_and_cost", "counted", unmeasured(message))
        prose = await council.run({"structured": False})
        row.show("ballots_in_prose", YES, uncounted(replace(seen, message=prose)))
        row.learning = lessons(council)
    written(row, row)


@pytest.mark.skipif(not demonstration.available(), reason="the extra `local`")
async def test_llama_cpp() -> None:
    """The built-in model's own server, addressed as anybody's: a model of 135M says what it can."""
    row = Row("llama.cpp (xllamacpp), SmolLM2-135M")
    personas = [
        {"name": f"Reader {number}", "prompt": "You answer in one sentence."} for number in (1, 2, 3)
    ]
    async with demonstration.serve() as addresses:
        address = next(iter(addresses.values()))
        async with council_at(address, [demonstration.MODEL], key=None, dialect="llamacpp") as council:
            council.call_deadline = 900.0  # on a busy machine
            message = await council.deliberated(council.profile({"max_tokens": 120}, personas=personas))
            seen = Seen(council, message, (), (), (), None)
            failures = [failure for failure in message.failures if failure.stage == "stage1"]
            row.show("answers", YES, [str(failure.failure) for failure in failures])
            counted = message.aggregate_ranking.ballots if message.aggregate_ranking else 0
            reviews = unless(counted > 0, str([failure.failure for failure in message.failures]))
            row.show("ballots_by_schema", f"{counted} of 3 counted", reviews)
            row.show("preview", streamed(seen), unlike(seen))
            row.show("usage_and_cost", "counted", unmeasured(message))
            row.cells["unknown_model"] = ANY_NAME
            row.learning = lessons(council)
    written(row, row)


def unmeasured(message: AssistantMessage) -> Faults:
    """Return a run's usage, unless its servers counted it."""
    run = message.usage.run if message.usage else None
    return unless(run is not None and run.source == "measured", str(run))
