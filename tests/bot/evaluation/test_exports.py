"""Exports, read by the programs that own their formats."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from bot.evaluation.exports import every_eval_ever, inspect_logs, write
from tests.bot.evaluation.programs import ARMS, arms_of, evaluated, result, write_questions
from tests.bot.evaluation.sample import CREATED, QUALITY, sample
from tests.council.evaluation.known import KnownModels, numbered

ROOT = Path(__file__).parents[3]
SCHEMAS = Path(__file__).with_name("every_eval_ever")
BROKEN = frozenset({"stage2"})


READ = """
import sys
from inspect_ai.log import read_eval_log
logs = (read_eval_log(path, format="json").model_dump_json() for path in sys.argv[1:])
print("[" + ",".join(logs) + "]")
"""


async def inspected(folder: Path, logs: dict[str, bytes]) -> dict[str, Any]:
    """Return what Inspect's own reader makes of logs, by name.

    In a process of its own: Inspect changes asyncio for the whole process (nest_asyncio2).
    """
    write(logs, folder)
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-c", READ, *(str(folder / name) for name in logs), stdout=subprocess.PIPE
    )
    out, _ = await reader.communicate()
    assert reader.returncode == 0
    return dict(zip(logs, orjson.loads(out), strict=True))


async def test_inspect_reads_its_logs(tmp_path: Path) -> None:
    """By its own reader: the samples and what they scored; of an invalid arm why, and no score.

    Every Eval Ever records scores, so it gets none of an invalid arm.
    """
    summary = await sample(12)
    logs = inspect_logs(summary, "questions", CREATED)
    assert len(logs) == len(ARMS)
    figures = {each.name: each for each in summary.figures}
    broken = await sample(12, models=KnownModels(QUALITY, broken=BROKEN))
    logs["invalid.json"] = inspect_logs(broken, "q", CREATED)["full.json"]
    assert not any("/full/" in name for name in every_eval_ever(broken, "q", CREATED))
    read = await inspected(tmp_path, {name: orjson.dumps(log) for name, log in logs.items()})
    [invalid] = read.pop("invalid.json")["results"]["scores"]
    assert invalid["metrics"] == {}
    assert invalid["metadata"] == {"invalid": "12 of 12 questions have no review"}
    for log in read.values():
        assert log["status"] == "success"
        arm = log["eval"]["model"].removeprefix("council/")
        [score] = log["results"]["scores"]
        assert score["metrics"]["accuracy"]["value"] == figures[arm].score
        values = [sample["scores"]["council"]["value"] for sample in log["samples"]]
        assert values.count("C") / 12 == figures[arm].score
        assert log["samples"][0]["output"]["completion"].startswith("I tried each key.")
        assert log["eval"]["metadata"] == summary.plan.rule


async def test_every_eval_ever_has_its_records() -> None:
    """By its schemas, which are of version 0.3.0: an aggregate and its samples for each arm."""
    items = [one.model_copy(update={"input": f"{one.input}\u2028"}) for one in numbered(12)]
    files = every_eval_ever(await sample(items=(*items,)), "questions", CREATED)
    aggregates = [content for name, content in files.items() if name.endswith(".json")]
    samples = [content for name, content in files.items() if name.endswith("_samples.jsonl")]
    assert len(aggregates) == len(samples) == len(ARMS)
    for content in aggregates:
        record = orjson.loads(content)
        jsonschema.validate(record, orjson.loads((SCHEMAS / "eval.schema.json").read_bytes()))
        assert record["detailed_evaluation_results"]["file_path"] in files
        assert record["detailed_evaluation_results"]["total_rows"] == 12
    instance = orjson.loads((SCHEMAS / "instance_level_eval.schema.json").read_bytes())
    for content in samples:
        for line in content.decode().splitlines():
            jsonschema.validate(orjson.loads(line), instance)


@pytest.mark.soak
def test_every_eval_ever_validates_its_records(tmp_path: Path) -> None:
    """By its own validator, in an environment of its own: it needs Python 3.12, which this needn't be."""
    write(every_eval_ever(asyncio.run(sample(12)), "questions", CREATED), tmp_path)
    # One that pyenv has, else one that uv finds or fetches.
    pythons = sorted((Path.home() / ".pyenv" / "versions").glob("3.1[2-9]*/bin/python3"))
    python = str(pythons[0]) if pythons else "3.12"
    tool = [str(ROOT / ".tools" / "bin" / "uvx"), "--python", python, "--from", "every-eval-ever==0.3.0"]
    files = [str(path) for path in (tmp_path / "data").rglob("*.json*")]
    assert len(files) == 2 * len(ARMS)
    words = [*tool, "every_eval_ever", "validate", *files]
    validated = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert validated.returncode == 0, validated.stdout + validated.stderr


async def test_the_files_are_where_the_command_says(tmp_path: Path) -> None:
    """The page and the export, beside the result on standard output."""
    write_questions(tmp_path, 3)
    async with evaluated(tmp_path) as (council, _):
        words = ("eval", "q.jsonl", "--pilot", "0", "--arms", "best,full", "--json")
        first = await council(*words, "--report", "out.html", "--export", "inspect")
        second = await council(*words, "--export", "every-eval-ever")
        missing = await council(*words, "--report", "nowhere/out.html")
    assert "Report: out.html" in first.err
    assert "Export: q.inspect" in first.err
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in (tmp_path / "q.inspect").iterdir()) == ["best.json", "full.json"]
    assert len([*(tmp_path / "q.every-eval-ever" / "data").rglob("*.json")]) == 2
    assert set(arms_of(result(second))) == {"best", "full"}
    assert missing.code == 2
    assert "nowhere/out.html can't be written: no such file or directory." in missing.err
