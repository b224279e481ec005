"""Results in other programs' formats: Inspect's logs, and Every Eval Ever's records.

One file for each arm. Inspect's `EvalLog` (version 2): https://inspect.aisi.org.uk/eval-logs.html; Every
Eval Ever's schemas, version 0.3.0: https://github.com/evaleval/every_eval_ever. The tests validate both
by those programs.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import orjson

from bot.evaluation.summary import Summary
from bot.view.message import escaped
from council.calls import JsonObject
from council.evaluation.arms import ArmAnswer
from council.evaluation.checkers import checker_of
from council.evaluation.comparison import ArmFigures
from council.evaluation.items import EvalItem

LIBRARY = "council-bot"
SCORER = "council"
EVERY_EVAL_EVER = "0.3.0"
RIGHT = 1.0


def inspect_logs(summary: Summary, name: str, created: str) -> dict[str, JsonObject]:
    """Return an `EvalLog` for each arm, by its file's name. `created` is a time in ISO 8601."""
    return {
        f"{_slug(figures.name)}.json": _log(summary, figures, name, created)
        for figures in summary.figures
    }


def every_eval_ever(summary: Summary, name: str, created: str) -> dict[str, bytes]:
    """Return an aggregate and its samples for each arm, by their paths below the datastore's root."""
    found: dict[str, bytes] = {}
    for figures in summary.figures:
        number = _uuid(summary.plan.id, figures.name)
        folder = f"data/{_slug(name)}/{SCORER}/{_slug(figures.name)}"
        samples = b"".join(
            escaped(f"{orjson.dumps(sample).decode()}\n").encode()  # some readers end a line at U+2028
            for sample in _samples(summary, figures, name, created)
        )
        aggregate = _aggregate(summary, figures, name, created)
        if samples and figures.score is not None:
            aggregate["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{folder}/{number}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(samples).hexdigest(),
                "total_rows": samples.count(b"\n"),
            }
            found[f"{folder}/{number}_samples.jsonl"] = samples
        if figures.score is not None:  # an invalid arm has no score to record
            found[f"{folder}/{number}.json"] = orjson.dumps(aggregate, option=orjson.OPT_INDENT_2)
    return found


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write files below a folder. Raises `OSError`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _log(summary: Summary, figures: ArmFigures, name: str, created: str) -> JsonObject:
    answers = summary.evaluated.answers
    metrics: JsonObject = {}
    if figures.score is not None and figures.interval is not None:
        low, high = figures.interval
        metrics = {
            key: {"name": key, "value": value}
            for key, value in (("accuracy", figures.score), ("ci_lower", low), ("ci_upper", high))
        }
    scored: JsonObject = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": figures.n,
        "unscored_samples": len(answers) - figures.n,
        "metrics": metrics,
        "metadata": {"invalid": summary.reason(figures)},
    }
    return {
        "version": 2,
        "status": "cancelled" if summary.evaluated.stopped else "success",
        "eval": {
            "eval_id": _short(summary.plan.id, figures.name),
            "run_id": summary.plan.id,
            "created": created,
            "task": name,
            "task_id": _short(summary.plan.id, name),
            "dataset": {
                "name": name,
                "samples": len(summary.plan.items),
                "sample_ids": [item.id for item in summary.plan.items],
            },
            "model": f"{SCORER}/{figures.name}",
            "config": {"epochs": 1},
            "packages": {LIBRARY: version(LIBRARY)},
            "metadata": summary.plan.rule,
        },
        "results": {
            "total_samples": len(summary.plan.items),
            "completed_samples": len(answers),
            "scores": [scored],
        },
        "stats": {"started_at": created, "completed_at": created},
        "samples": [
            _sample(summary, figures.name, item, answer)
            for item, answer in _answered(summary, figures.name)
        ],
    }


def _sample(summary: Summary, arm: str, item: EvalItem, answer: ArmAnswer) -> JsonObject:
    text, model = answer.text or "", f"{SCORER}/{arm}"
    score = summary.scores.get(arm, {}).get(item.id)
    value = {None: "N", 1.0: "C", 0.0: "I"}.get(score, score)
    choice = {
        "message": {"role": "assistant", "content": text},
        "stop_reason": "max_tokens" if answer.truncated else "stop",
    }
    return {
        "id": item.id,
        "epoch": 1,
        "input": item.prompt,
        "choices": [*item.choices] or None,
        "target": [*(item.target or item.rubric)],
        "messages": [{"role": "user", "content": item.prompt}, choice["message"]],
        "output": {"model": model, "choices": [choice], "completion": text},
        "scores": {SCORER: {"value": value, "answer": text, "explanation": checker_of(item)}},
        "metadata": {**item.metadata, "missing": answer.missing, "members_missing": answer.absent},
        "model_usage": {model: {"total_tokens": answer.tokens}},
        "total_time": answer.seconds,
    }


def _aggregate(summary: Summary, figures: ArmFigures, name: str, created: str) -> JsonObject:
    low, high = figures.interval or (None, None)
    is_binary = all(score in (0.0, 1.0) for score in summary.scores.get(figures.name, {}).values())
    kind: JsonObject = {"score_type": "binary"}
    if not is_binary:
        kind = {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    return {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": _evaluation_id(figures.name, name, created),
        "evaluation_timestamp": created,
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": name,
            "source_type": "evaluation_run",
            "source_organization_name": LIBRARY,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": LIBRARY, "version": version(LIBRARY)},
        "model_info": {
            "name": figures.name,
            "id": f"{SCORER}/{_slug(figures.name)}",
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "members": ", ".join(member.name for member in summary.plan.profile.members),
                "chairman": summary.plan.profile.chairman.name,
                "best": summary.evaluated.piloted.best if summary.evaluated.piloted else "",
            },
        },
        "evaluation_results": [
            {
                "evaluation_name": name,
                "source_data": {"dataset_name": name, "source_type": "other"},
                "metric_config": {
                    "metric_id": "accuracy",
                    "metric_name": "Accuracy",
                    "metric_kind": "accuracy",
                    "metric_unit": "proportion",
                    "lower_is_better": False,
                    **kind,
                },
                "score_details": {
                    "score": figures.score,
                    "uncertainty": {
                        "confidence_interval": {
                            "lower": low,
                            "upper": high,
                            "confidence_level": 0.95,
                            "method": "Clopper-Pearson" if is_binary else "bootstrap",
                        },
                        "num_samples": figures.n,
                    },
                },
            }
        ],
    }


def _samples(summary: Summary, figures: ArmFigures, name: str, created: str) -> Iterator[JsonObject]:
    for item, answer in _answered(summary, figures.name):
        score = summary.scores.get(figures.name, {}).get(item.id)
        if score is None or answer.text is None:
            continue
        asked = item.prompt.encode() + b"\0" + orjson.dumps(item.target)
        yield {
            "schema_version": EVERY_EVAL_EVER,
            "evaluation_id": _evaluation_id(figures.name, name, created),
            "model_id": f"{SCORER}/{_slug(figures.name)}",
            "evaluation_name": name,
            "sample_id": item.id,
            "sample_hash": hashlib.sha256(asked).hexdigest(),
            "interaction_type": "single_turn",
            "input": {
                "raw": item.prompt,
                "reference": [*(item.target or item.rubric)],
                "choices": [*item.choices] or None,
            },
            "output": {"raw": [answer.text]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": answer.text,
                    "extraction_method": checker_of(item),
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": score == RIGHT},
            "performance": {"latency_ms": answer.seconds * 1000},
        }


def _answered(summary: Summary, arm: str) -> Iterator[tuple[EvalItem, ArmAnswer]]:
    items = {item.id: item for item in summary.plan.items}
    for answered in summary.evaluated.answers:
        if (answer := answered.arms.get(arm)) is not None:
            yield items[answered.id], answer


def _evaluation_id(arm: str, name: str, created: str) -> str:
    return f"{_slug(name)}/{SCORER}/{_slug(arm)}/{created}"


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "council"


def _short(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=11).hexdigest()


def _uuid(*parts: str) -> uuid.UUID:
    """Return a UUID of version 4, as the datastore wants it, that is the same for the same arm."""
    drawn = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()
    return uuid.UUID(bytes=drawn, version=4)
