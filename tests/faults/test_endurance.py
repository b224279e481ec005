"""Two thousand runs with long answers leave nothing behind: the bot's process stays as it was."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.faults.cases import PlatformName
from tests.faults.endurance import WAVE, endure
from tests.faults.playing import quieten

RUNS, SETTLED_AFTER = 2000, 200
SPARE_KILOBYTES = 6000
"""A twentieth of what the process holds; discord.py keeps a rate limit's bucket per thread for minutes."""
SPARE = 3
"""Descriptors, threads and tasks that may come and go."""


@pytest.mark.soak
@pytest.mark.parametrize("platform", ["Slack", "Discord"])
def test_runs_leave_nothing_behind(platform: PlatformName) -> None:
    """Memory, descriptors, threads and tasks are flat from the 200th run on, the fake's own included."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=quieten) as process:
        waves = process.submit(endure, platform, RUNS).result()
    first, last = waves[SETTLED_AFTER // WAVE - 1], waves[-1]
    print(platform, first, last)  # noqa: T201 - the figure that the proof is for
    assert last.descriptors <= first.descriptors + SPARE
    assert last.threads <= first.threads + SPARE
    assert last.tasks <= first.tasks + SPARE
    assert last.kilobytes <= first.kilobytes + SPARE_KILOBYTES
