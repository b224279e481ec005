"""`inspect eval TASK --model council/default`: any task of Inspect's asks a council."""

from pathlib import Path
from typing import Any

import pytest

from tests.bot.evaluation.programs import evaluated, stage_of
from tests.model_server import Exchange

TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import think

@task
def doors(tools=False):
    samples = [Sample(input=f"What is the code of door {n}?", target=str(n)) for n in range(1, 4)]
    first = [use_tools(think())] if tools else [system_message("Be brief about keys.")]
    return Task(dataset=samples, solver=[*first, generate()], scorer=match(numeric=True))
"""


async def inspected(
    folder: Path, patch: pytest.MonkeyPatch, model: str = "council/default", *, tools: bool = False
) -> tuple[Any, list[Exchange]]:
    """Evaluate the task with a council; return its log, and what the council's models were asked."""
    from inspect_ai import eval_async  # pyright: ignore[reportUnknownVariableType] - of an extra

    patch.chdir(folder)
    (folder / "doors.py").write_text(TASK, encoding="utf-8")
    async with evaluated(folder) as (council, server):
        for name, value in council.environment.items():
            patch.setenv(name, value)
        [log] = await eval_async("doors.py", model=model, task_args={"tools": tools})
    return log, server.history


async def test_a_task_runs_through_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With journal, budgets and conversations; tokens and cost are the whole council's."""
    log, history = await inspected(tmp_path, monkeypatch)
    asked = [stage_of(each) for each in history]
    assert log.status == "success"
    assert (len(asked), asked.count("synthesis")) == (3 * 10, 3)
    assert "Be brief about keys." in history[0].prompt
    for sample in log.samples or ():
        assert sample.output.model == "council/default"
        assert sample.output.metadata is not None
        assert sample.output.metadata["source"] == "chairman"
        assert sample.output.usage is not None
        assert (sample.output.usage.total_cost or 0) > 0
    assert len([*(tmp_path / "data" / "conversations").glob("*.json")]) == 3


@pytest.mark.parametrize(("model", "tools"), [("council/default", True), ("council/nobody", False)])
async def test_what_a_council_cannot_do_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, *, tools: bool
) -> None:
    """The sample fails with a sentence, and no model is asked."""
    log, history = await inspected(tmp_path, monkeypatch, model, tools=tools)
    assert log.status == "error"
    assert log.error is not None
    assert ("tool" if tools else "nobody") in log.error.message
    assert history == []
