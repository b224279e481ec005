"""`inspect eval TASK --model council/default`: any task of Inspect's asks a council."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bot.evaluation.programs import evaluated, stage_of
from tests.test_program import Program

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


async def inspected(council: Program) -> Any:
    """Return the log of an evaluation in its own process: in a running loop, Inspect patches asyncio."""
    from inspect_ai.log import read_eval_log_async

    (council.folder / "doors.py").write_text(TASK, encoding="utf-8")
    inspect = replace(
        council,
        environment={**council.environment, "XDG_DATA_HOME": str(council.folder / "inspect")},
        first="from inspect_ai._cli.main import main; main()",
    )
    assert (
        await inspect("eval", "doors.py", "--model", "council/default", "--display", "plain")
    ).code == 0
    [log] = (council.folder / "logs").glob("*.eval")
    return await read_eval_log_async(log)


async def test_a_task_runs_through_a_profile(tmp_path: Path) -> None:
    """In process, with journal, budgets and conversations; tokens and cost are the whole council's."""
    async with evaluated(tmp_path) as (council, server):
        log = await inspected(council)
        asked = [stage_of(each) for each in server.history]
        prompt = server.history[0].prompt
    assert log.status == "success"
    assert (len(asked), asked.count("synthesis")) == (3 * 10, 3)
    assert "Be brief about keys." in prompt
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
    from inspect_ai import eval_async  # pyright: ignore[reportUnknownVariableType] - of an extra

    monkeypatch.chdir(tmp_path)
    (tmp_path / "doors.py").write_text(TASK, encoding="utf-8")
    async with evaluated(tmp_path) as (council, server):
        for name, value in council.environment.items():
            monkeypatch.setenv(name, value)
        [log] = await eval_async("doors.py", model=model, task_args={"tools": tools})
    assert log.status == "error"
    assert log.error is not None
    assert ("tool" if tools else "nobody") in log.error.message
    assert server.history == []
