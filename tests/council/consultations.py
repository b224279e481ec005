"""Consultations for tests: a whole one as the consultants' schema has it, and what models reply."""

import json
from typing import Any, cast

from jsonschema import Draft7Validator

from council.consultation import Consultation, json_schema

REPLY: dict[str, dict[str, object]] = {
    "response": {
        "summary": "Buy the bigger machine first.",
        "detailed": "Buy the **bigger machine**, then measure for a month.",
        "approach": "Scale up",
        "code_snippets": [
            {"language": "sql", "code": "SELECT count(*) FROM orders;", "description": "What to measure"}
        ],
        "pros": ["No new moving parts", "Done this week"],
        "cons": ["It ends at the largest machine"],
        "alternatives": [{"name": "Shard now", "reason_not_chosen": "Every query changes"}],
        "caveats": ["Assumes the load grows as it did"],
        "references": ["RFC 7231"],
    },
    "confidence": {
        "score": 8,
        "reasoning": "The load is known.",
        "uncertainty_factors": ["Next year's growth"],
    },
}
DEBATE: dict[str, object] = {
    "position_changed": True,
    "critiques": [
        {"target": "anthropic/claude", "critique": "Backups were left out", "severity": "major"}
    ],
    "incorporated_from": [{"source": "google/gemini", "idea": "A test of the restore"}],
}
FIRST = json.dumps(REPLY)
AGAIN = json.dumps({**REPLY, "debate": DEBATE})


def consultation(**changes: object) -> Consultation:
    """Return a whole consultation, with these fields changed."""
    return Consultation.model_validate(
        {
            "consultant": "openai/gpt-5",
            "model": "openai/gpt-5",
            "persona": "The Pragmatist",
            **REPLY,
            "metadata": {
                "tokens_used": 1250,
                "latency_ms": 1850,
                "model_version": "openai/gpt-5",
                "timestamp": "2026-01-20T10:30:00.000Z",
            },
            **changes,
        }
    )


def faults(instance: object, schema: dict[str, object] | None = None) -> list[str]:
    """Return what draft-07 finds wrong with an object; by the schema of consultations unless given one."""
    validator = cast("Any", Draft7Validator(schema or json_schema()))
    return [error.message for error in validator.iter_errors(instance)]
