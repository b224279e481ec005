"""The audit finds the loss that was planted: its interval covers it, whatever the seeds."""

from random import Random

import pytest

from council.worth.depth import is_drawn
from council.worth.intervals import exact_share
from tests.council.scripted import ScriptedCouncil
from tests.council.worth.test_depth import AFTER, AGREED, DIFFERENT, JUDGE, auto
from tests.pairs import rows

RUNS = 300
SHARE = 0.1


@rows("loss", [0.02, 0.3])
def test_the_interval_covers_a_planted_loss(loss: float) -> None:
    """For at least 90 of the seeds 0 to 99, with the runs that their own seeds draw for the audit."""
    covered = audited = 0
    for seed in range(100):
        team = Random(seed)  # noqa: S311 - a test draws the same each time
        drawn = [team.random() < loss for _ in range(RUNS) if is_drawn(team.getrandbits(53), SHARE)]
        low, high = exact_share(sum(drawn), len(drawn))
        covered += low <= loss <= high
        audited += len(drawn)
    assert covered >= 90
    assert audited == pytest.approx(100 * RUNS * SHARE, rel=0.1)


async def test_what_the_pipeline_audits_is_what_the_seeds_draw() -> None:
    """And what it says of each is what was planted; what it doesn't audit, it doesn't judge again."""
    for seed in range(40):
        planted = seed % 3 == 0
        scripted = ScriptedCouncil(
            script={"stage1": "Shard.", JUDGE: AGREED, AFTER: DIFFERENT if planted else AGREED}
        )
        depth = (await scripted.run(auto(depth_audit=SHARE * 3), seed=seed)).message.depth
        assert depth is not None
        drawn = is_drawn(seed, SHARE * 3)
        assert (depth.audited, depth.ran) == (drawn, "full" if drawn else "quick")
        assert depth.changed is (planted if drawn else None)
