"""Ballots and critique written by real small models, as a careful reader understands them.

`data/written.jsonl` has a review a line: its `model`, what it was `asked`, the letters of the answers that it
`read`, its `text` (a long one's beginning), the letters that it `ranks`, best first, "" where they can't be told,
and what it holds `against` which answer, behind its severity: the rules are those of `ballots.py` and
`reviews.py`. Models of 0.5 and 1.5 billion parameters wrote the texts.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from council.reviews.ballots import read_ballot
from tests.council.reviews.test_prose import objections

WRITTEN: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "written.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize(
    "review", WRITTEN, ids=[f"{each['model']}, {each['asked']}" for each in WRITTEN]
)
def test_a_ballot_that_a_model_wrote_is_read(review: dict[str, Any]) -> None:
    """It ranks the answers that its author read."""
    order = [f"Response {letter}" for letter in review["read"]]
    assert "".join(label[-1] for label in read_ballot(review["text"], order).ranking) == review["ranks"]


def test_critique_that_models_wrote_is_read() -> None:
    """Precision and recall of the points; shown with `pytest -s`."""
    read = right = wanted = found = 0
    for review in WRITTEN:
        known = {(letter, words) for letter, said in review["against"].items() for words in said}
        hits = set[tuple[str, str]]()
        for point in objections(review["text"]):
            said = {
                (letter, words)
                for letter, words in known
                if letter == point.label[-1]
                and words[2:] in point.text
                and words[0] == (point.severity or "medium")[0]
            }
            read += 1
            right += bool(said)
            hits |= said
        wanted += len(known)
        found += len(hits)
    models = sorted({review["model"] for review in WRITTEN})
    print(  # noqa: T201 - the figures are for people
        f"\n{len(WRITTEN)} reviews by {' and '.join(models)}, {wanted} points: "
        f"precision {right / read:.2f}, recall {found / wanted:.2f}"
    )
    assert right / read >= 0.95
    assert found / wanted >= 0.8
