"""Thousands of runs with long answers in one process, and its memory after each hundred."""

import asyncio
import ctypes
import gc
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from bot.service.limits import Limits
from council.calls import Call, Reply
from council.usage import Usage
from tests.council.scripted import ScriptedCouncil
from tests.faults.cases import PlatformName
from tests.faults.platforms import Asker, DiscordPlatform, SlackPlatform
from tests.faults.virtual_time import VirtualLoop, run

WAVE, AT_ONCE = 100, 20
PARAGRAPH = (
    "Writes grow by a **tenth** each month, so the `orders` table outgrows one machine in a year. "
    "Sharding by tenant keeps every join on one node, at the price of a migration that takes a quarter.\n\n"
)
LONG = PARAGRAPH * 30


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds."""

    kilobytes: int
    descriptors: int
    threads: int
    tasks: int


async def answer(call: Call) -> Reply:
    """Answer at length, and remember nothing."""
    await asyncio.sleep(2)
    stage = call.step.partition(".")[0]
    said = ScriptedCouncil.default(call, stage)
    text = f"{said}\n\n{LONG}" if stage in ("stage1", "stage2_5", "stage3") else said
    if call.on_text:
        call.on_text(text)
    return Reply(text=text, usage=Usage(prompt_tokens=10, completion_tokens=5, cost=0.001), latency_ms=5)


def endure(platform: PlatformName, runs: int) -> list[Held]:
    """Let this many questions be answered; return what the process held after each wave."""
    return run(lambda loop: _endure(loop, platform, runs))


async def _endure(loop: VirtualLoop, name: PlatformName, runs: int) -> list[Held]:
    opened = SlackPlatform if name == "Slack" else DiscordPlatform
    waves: list[Held] = []
    async with opened.open(loop, Limits(runs=AT_ONCE)) as platform:
        platform.office.answer = answer
        await platform.start()
        people = [platform.asker() for _ in range(AT_ONCE)]
        for _ in range(runs // WAVE):
            await asyncio.gather(*(_ask(one, WAVE // AT_ONCE) for one in people))
            await platform.settled()
            platform.forget()
            waves.append(_held())
        await platform.stop()
    return waves


async def _ask(one: Asker, times: int) -> None:
    for _ in range(times):
        before = len(one.told())
        one.ask("command")
        while len(one.told()) == before:
            await asyncio.sleep(1)


def _held() -> Held:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator could give back isn't held
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(
        kilobytes=pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        descriptors=len([*Path("/proc/self/fd").iterdir()]),
        threads=threading.active_count(),
        tasks=len(asyncio.all_tasks()),
    )
