"""Slow proofs of the doors: many conversations of other scopes, many programs beside a chat, two harnesses."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import orjson
import pytest

from council.document.conversation import Source
from tests.bot.doors.ports import port
from tests.bot.doors.test_mcp import refused, said
from tests.model_server import Turn
from tests.model_servers.third_party import installed
from tests.ports import free_port
from tests.storage.examples import answer, new_id
from tests.test_program import Program, asked
from tests.test_programs_served import served, token_of
from tests.test_team_chat import running, servers

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

CONVERSATIONS = 10_000
MARK = "xylophonequartz"
AT_ONCE = 200
ACKNOWLEDGED_SECONDS = 3.0
INSPECT = "inspect-ai==0.3.285"
LM_EVAL = "lm-eval==0.4.13"
LM_EVAL_API = "lm-eval[api]==0.4.13"
CLIENT = "openai==3.57.0"

TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

@task
def second_opinion():
    samples = [Sample(input=f"Question {n}: shard or scale up?", target="concludes") for n in range(3)]
    return Task(dataset=samples, scorer=includes())
"""
ITEMS = """
task: second_opinion
dataset_path: json
dataset_kwargs:
  data_files:
    test: {items}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: []
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
filter_list:
  - name: word
    filter:
      - function: regex
        regex_pattern: "(concludes)"
      - function: take_first
"""


def conversation(number: int) -> tuple[str, bytes]:
    """Write a conversation of another channel, workspace or platform, or of the terminal."""
    sources = (
        Source(platform="slack", workspace="T1AAAAAA", channel="C2AAAAAA", user="U1"),
        Source(platform="slack", workspace="T2AAAAAA", channel="C1AAAAAA", user="U1"),
        Source(platform="discord", workspace="1" * 18, channel="2" * 18, user="3" * 18),
        Source(platform="terminal", user="ada"),
    )
    conversation_id = new_id()
    document = {
        "id": conversation_id,
        "created_at": "2026-01-20T10:30:00.000Z",
        "title": f"Shard {MARK} {number}",
        "source": sources[number % len(sources)].dump(),
        "messages": [
            {"role": "user", "content": f"Shard or scale up? {MARK} {number}"},
            answer(f"Shard, says {MARK}.").dump(),
        ],
    }
    return conversation_id, orjson.dumps(document)


async def test_no_tool_reaches_ten_thousand_conversations_of_other_scopes(tmp_path: Path) -> None:
    """Neither by words nor by ids, whole or begun, nor by titles."""
    folder = tmp_path / "conversations"
    folder.mkdir(mode=0o700)
    ids: list[str] = []
    for number in range(CONVERSATIONS):
        conversation_id, content = conversation(number)
        ids.append(conversation_id)
        (folder / f"{conversation_id}.json").write_bytes(content)
    async with port(tmp_path) as at:
        library = at.doorway.office.library
        report = await library.index.rebuild(library.store)
        assert report.documents == CONVERSATIONS
        async with at.agent() as agent:
            mine = said(await agent.call_tool("council_ask", {"question": "Shard?", "max_cost": 1}))
            await at.doorway.office.dispatcher.tasks.settled()
            for words in (MARK, "shard", "scale up", "says", f'"{MARK}" OR shard', "*", "a"):
                found = said(await agent.call_tool("council_search", {"words": words}))
                assert MARK not in found["untrusted"]["text"].replace(f"“{words}”", "")
                assert not {*found["ids"]} & {*ids}
            for conversation_id in ids[:: CONVERSATIONS // 400]:
                for given in (conversation_id, conversation_id[:8]):
                    result = await agent.call_tool("council_show", {"id": given})
                    assert MARK not in refused(result)
            for title in ("Shard", f"Shard {MARK}", f"Shard {MARK} 7"):
                result = await agent.call_tool("council_show", {"id": title})
                assert MARK not in str(result.content).replace(title, "")
            for run_id in ids[:50]:
                refused(await agent.call_tool("council_result", {"id": run_id, "wait_seconds": 0}))
            assert mine["state"] == "answered"


async def test_two_hundred_programs_ask_at_once_beside_a_chat(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """In the same data folder; people are acknowledged within Slack's three seconds."""
    (tmp_path / "council.toml").write_text(
        "[limits]\nruns = 64\nruns_per_user = 32\nruns_per_channel = 64\n"
        "waiting_per_user = 400\nwaiting_per_channel = 400\n"
    )
    async with servers() as (discord, slack, models):
        models.always("*", Turn(latency=0.3))
        async with running(tmp_path, discord, slack, models) as team:
            bob = slack.add_user("bob")
            room = slack.add_channel("room", bob)
            environment = {
                "OPENROUTER_BASE_URL": models.base_url,
                "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
                "COUNCIL_MEMBERS": "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok",
                "COUNCIL_DATA_DIR": str(team.data),
            }
            council, number = Program(tmp_path, environment), free_port()
            scope = f"slack:{slack.team.id}/{room.id}"
            token = await council(
                "token", "new", "--name", "ci", "--scope", scope, "--max-cost-day", "none"
            )
            async with served(council, number):
                asking = asyncio.create_task(ask_at_once(number, token.out.strip()))
                waits: list[float] = []
                while not asking.done():
                    delivery = await slack.slash(room, bob, "/council-help", "")
                    assert delivery.acked
                    assert delivery.latency is not None
                    waits.append(delivery.latency)
                    await asyncio.sleep(0.1)
                answered, seconds = asking.result()
    record_property("seconds", round(seconds, 1))
    record_property("acknowledgements", len(waits))
    record_property("slowest_acknowledgement", round(max(waits), 2))
    assert answered == AT_ONCE
    assert max(waits) < ACKNOWLEDGED_SECONDS


async def ask_at_once(number: int, token: str) -> tuple[int, float]:
    """Ask as many questions at once; return how many were answered, and how long all of it took."""
    from openai import AsyncOpenAI

    began = perf_counter()
    client = AsyncOpenAI(
        base_url=f"http://127.0.0.1:{number}/v1", api_key=token, max_retries=0, timeout=600
    )
    replies = await asyncio.gather(
        *(
            client.chat.completions.create(
                model="council/default",
                messages=[{"role": "user", "content": f"Question {each}: shard or scale up?"}],
            )
            for each in range(AT_ONCE)
        )
    )
    await client.close()
    ids = {reply.id for reply in replies if reply.choices[0].message.content}
    return len(ids), perf_counter() - began


async def run(folder: Path, environment: dict[str, str], *command: str) -> str:
    """Run another's program to its end; return what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-4000:]
    return out.decode()


async def test_inspect_uses_a_council_as_a_model(tmp_path: Path) -> None:
    """Three samples, each answered by a run of its own."""
    program = await installed(INSPECT, CLIENT) / "inspect"
    (tmp_path / "second_opinion.py").write_text(TASK)
    async with asked(tmp_path) as (council, _):
        token, number = await token_of(council), free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "COUNCIL_API_KEY": token,
            "COUNCIL_BASE_URL": f"http://127.0.0.1:{number}/v1",
        }
        options = ("--model", "openai-api/council/council/default", "--display", "plain")
        logs = ("--log-dir", str(tmp_path / "logs"), "--log-format", "json")
        async with served(council, number):
            await run(tmp_path, environment, str(program), "eval", "second_opinion.py", *options, *logs)
        [log] = (tmp_path / "logs").glob("*.json")
        found = json.loads(log.read_bytes())
        assert found["status"] == "success"
        assert found["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
        assert len([*(tmp_path / "data" / "conversations").glob("*.json")]) == 3


async def test_lm_eval_uses_a_council_as_a_model(tmp_path: Path) -> None:
    """Three items of a task in a file."""
    program = await installed(LM_EVAL, LM_EVAL_API) / "lm_eval"
    items = tmp_path / "items.jsonl"
    items.write_text(
        "".join(
            json.dumps({"question": f"Item {n}: shard or scale up?", "answer": "concludes"}) + "\n"
            for n in range(3)
        )
    )
    (tmp_path / "second_opinion.yaml").write_text(ITEMS.format(items=items))
    async with asked(tmp_path) as (council, _):
        token, number = await token_of(council), free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "OPENAI_API_KEY": token,
            "HF_HUB_OFFLINE": "1",
        }
        address = f"http://127.0.0.1:{number}/v1/chat/completions"
        model = f"model=council/default,base_url={address},num_concurrent=2"
        async with served(council, number):
            await run(
                tmp_path,
                environment,
                *(str(program), "run", "--model", "local-chat-completions", "--model_args", model),
                *("--tasks", "second_opinion", "--include_path", str(tmp_path)),
                *("--apply_chat_template", "--output_path", str(tmp_path / "out")),
            )
        [results] = (tmp_path / "out").rglob("results*.json")
        assert json.loads(results.read_bytes())["results"]["second_opinion"]["exact_match,word"] == 1.0
        assert len([*(tmp_path / "data" / "conversations").glob("*.json")]) == 3
