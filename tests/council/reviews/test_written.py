"""Ballots written by real small models, as a careful reader understands them.

`data/written.jsonl` has a review a line: its `model`, what it was `asked`, the letters of the answers that it
`read`, its `text` (a long one's beginning) and the letters that it `ranks`, best first, "" where its form isn't
one that is asked for: then it is asked once more. Models of 0.5 and 1.5 billion parameters wrote the texts.
"""

import json
from pathlib import Path
from typing import Any

from council.reviews.ballots import read_ballot
from tests.pairs import rows

WRITTEN: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "written.jsonl").read_text().splitlines()
]


@rows("review", WRITTEN, ids=[f"{each['model']}, {each['asked']}" for each in WRITTEN])
def test_a_ballot_that_a_model_wrote_is_read(review: dict[str, Any]) -> None:
    """It ranks the answers that its author read."""
    order = [f"Response {letter}" for letter in review["read"]]
    assert "".join(label[-1] for label in read_ballot(review["text"], order).ranking) == review["ranks"]
