"""A run that was killed after its judge spoke draws the same, asks it nothing twice, and ends as deep."""

import signal
from pathlib import Path

import pytest

from tests.crashes.figures import answers
from tests.crashes.scene import MEMBERS, scene
from tests.crashes.trap import Moment
from tests.model_server import Turn

JUDGE = "judge/model"
AGREED = '{"differences": [], "recommendation": "same", "steering": [], "better": "tie"}'
AFTER_JUDGE = Moment("call asked", len(MEMBERS) + 2)
"""The first call after the judge's: the chairman's, or a review."""


@pytest.mark.parametrize(
    ("audit", "ran"),
    [pytest.param(0.0, "quick", marks=pytest.mark.soak), (1.0, "full")],
    ids=["skipped", "audited"],
)
async def test_the_judge_is_not_asked_again_after_a_kill(tmp_path: Path, audit: float, ran: str) -> None:
    """Even if the settings are others by then: what was drawn stays drawn."""
    (tmp_path / "council.toml").write_text(
        f'[profiles.default]\ndepth = "auto"\njudge_model = "{JUDGE}"\ndepth_audit = {audit}\n'
    )
    async with scene(tmp_path) as played:
        played.models.always(JUDGE, Turn(AGREED))
        assert await played.ask_at_terminal("Should we shard?", AFTER_JUDGE) == -signal.SIGKILL
        before = [each.model for each in played.models.history]
        assert before.count(JUDGE) == 1
        (tmp_path / "council.toml").write_text(
            f'[profiles.default]\ndepth = "full"\njudge_model = "{JUDGE}"\ndepth_audit = {1 - audit}\n'
        )
        assert await played.ask_at_terminal("Should we shard?") == 0
        [answer] = answers(played.data).values()
        asked = [each.model for each in played.models.history]
    assert answer.depth is not None
    assert (answer.depth.asked, answer.depth.ran) == ("auto", ran)
    assert (answer.depth.audited, bool(answer.stage2)) == (audit > 0, audit > 0)
    compared = [each for each in answer.usage.calls if each.startswith("judge.")] if answer.usage else []
    assert asked.count(JUDGE) == len(compared)
    assert f"judge.1:{JUDGE}" in compared
    # Of the members, only what was in flight at the kill is asked once more.
    needed = len(answer.usage.calls) if answer.usage else 0
    assert needed <= len(asked) <= needed + len(MEMBERS)


async def test_replies_to_objections_survive_a_kill(tmp_path: Path) -> None:
    """What authors found of each objection comes from the journal: nobody is asked for it twice."""
    async with scene(tmp_path) as played:
        at_the_chairman = Moment("call asked", 3 * len(MEMBERS) + 1)
        assert await played.ask_at_terminal("Should we shard?", at_the_chairman) == -signal.SIGKILL
        before = [each.model for each in played.models.history]
        assert await played.ask_at_terminal("Should we shard?") == 0
        [answer] = answers(played.data).values()
        after = [each.model for each in played.models.history][len(before) :]
    assert [[reply.holds for reply in each.replies or ()][:1] for each in answer.stage2_5 or ()] == [
        [True]
    ] * len(MEMBERS)
    assert all("having read its peers" in each.corrected_response for each in answer.stage2_5 or ())
    assert len(after) <= 1  # the chairman's, which was in flight
