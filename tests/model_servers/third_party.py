"""Model servers that nobody here wrote, each run as a process on 127.0.0.1.

The Python ones are installed into environments of their own below `.tools`: they want libraries that
this program doesn't. A LiteLLM proxy is given stand-ins to pass calls on to, so it has members that
play a council behind it.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx

from tests.model_servers.stand_in import KEY, StandIn
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
AIMOCK = ROOT / "tests/aimock/node_modules/@copilotkit/aimock/dist/cli.js"
FIXTURES = Path(__file__).parent / "aimock_council.json"
NODE = shutil.which("node")
LITELLM = "litellm[proxy]==1.108.7"
KATAN = "llm-katan==0.22.0"
START_SECONDS = 240.0
POLL_SECONDS = 0.25
MEMBERS = {"gpt-4o": "openai", "mistral-large-latest": "mistral", "deepseek-chat": "deepseek"}
LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A LiteLLM proxy, and the servers behind it."""

    address: str
    key: str
    behind: Sequence[StandIn]


@asynccontextmanager
async def litellm_proxy(folder: Path) -> AsyncGenerator[Proxy]:
    """Run a LiteLLM proxy in front of three stand-ins; one more model of it is at its limit."""
    port = free_port()
    proxy_key = "sk-team-0123456789"
    async with AsyncExitStack() as stack:
        behind = [await stack.enter_async_context(StandIn(name)) for name in MEMBERS.values()]
        models: list[object] = [
            {
                "model_name": model,
                "litellm_params": {
                    "model": f"{provider}/{model}",
                    "api_base": server.base_url,
                    "api_key": KEY,
                },
            }
            for (model, provider), server in zip(MEMBERS.items(), behind, strict=True)
        ]
        mocked = {
            "model": f"openai/{LIMITED}",
            "api_key": KEY,
            "mock_response": "litellm.RateLimitError",
        }
        models.append({"model_name": LIMITED, "litellm_params": mocked})
        config = folder / "litellm.yaml"  # JSON is YAML, too
        settings = {"model_list": models, "general_settings": {"master_key": proxy_key}}
        config.write_text(json.dumps(settings), encoding="utf-8")
        program = await installed(LITELLM) / "litellm"
        command = [program, "--config", config, "--host", "127.0.0.1", "--port", str(port)]
        url = f"http://127.0.0.1:{port}"
        await stack.enter_async_context(_running(command, f"{url}/health/liveliness", folder))
        yield Proxy(f"{url}/v1", proxy_key, behind)


@asynccontextmanager
async def katan(folder: Path, key: str, *more: str) -> AsyncGenerator[str]:
    """Run llm-katan, which echoes its prompts; yield its base URL."""
    port = free_port()
    program = await installed(KATAN) / "llm-katan"
    keys = ["--validate-keys", "--api-keys", f"openai={key}"]
    command = [
        program,
        "--model",
        "any/echo",
        "--backend",
        "echo",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    stored = ["--stats-file", str(folder / "stats.json")]
    url = f"http://127.0.0.1:{port}"
    async with _running([*command, *keys, *stored, *more], f"{url}/health", folder):
        yield f"{url}/v1"


@asynccontextmanager
async def aimock(folder: Path) -> AsyncGenerator[str]:
    """Run aimock with the replies of a council; yield its base URL."""
    assert NODE is not None
    port = free_port()
    command = [NODE, AIMOCK, "--port", str(port), "--fixtures", FIXTURES]
    url = f"http://127.0.0.1:{port}"
    async with _running(command, f"{url}/health", folder):
        yield f"{url}/v1"


async def installed(requirement: str, *beside: str) -> Path:
    """Install a package into an environment of its own, unless it is there; return its programs' folder.

    `beside` is what it needs and doesn't declare.
    """
    place = ROOT / ".tools" / requirement.replace("[proxy]", "").replace("==", "-")
    if not (place / ".made").exists():
        uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
        await _done(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place))
        await _done(
            uv, "pip", "install", "--quiet", "--python", str(place / "bin/python"), requirement, *beside
        )
        (place / ".made").touch()
    return place / "bin"


async def _done(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0, command


@asynccontextmanager
async def _running(command: Sequence[str | Path], page: str, folder: Path) -> AsyncGenerator[None]:
    """Run a server from when this page of it is there."""
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}
    with (folder / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            ends_at = time.monotonic() + START_SECONDS
            while not await _is_up(page):
                log_so_far = (folder / "server.log").read_text(errors="replace")
                assert process.returncode is None, log_so_far
                assert time.monotonic() < ends_at, log_so_far
                await asyncio.sleep(POLL_SECONDS)
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _is_up(page: str) -> bool:
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.get(page)).status_code == HTTPStatus.OK
        except httpx.TransportError:
            return False
