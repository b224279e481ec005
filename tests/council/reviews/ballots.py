"""Reviews as models write them, and how a careful human reads their ballots.

The rule is in `council/reviews/ballot_text.py`: an order that has to be guessed isn't counted.
"""

import tomllib
from pathlib import Path

LABELS = ("Response A", "Response B", "Response C")
LIST = "1. Response B\n2. Response A\n3. Response C"
_ROWS: dict[str, tuple[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
CASES = [(name, text, letters) for name, (letters, text) in _ROWS.items()]
"""Each case: its name, the review's text, and the letters of the answers it ranks."""
