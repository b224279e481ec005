"""Four answers to a question each, labelled by hand: whether skipping the reviews would be right."""

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "data" / "quartets.jsonl"


@dataclass(frozen=True, slots=True)
class Quartet:
    """Four answers; they `agree` if they recommend the same and differ in nothing important."""

    id: str
    kind: str
    agree: bool
    question: str
    answers: tuple[str, str, str, str]
    language: str = "en"


def quartets() -> list[Quartet]:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [
        Quartet(**fields | {"answers": tuple(fields["answers"])}) for fields in map(json.loads, lines)
    ]
