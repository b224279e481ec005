"""What models write is read in time that grows with its length, whatever it repeats."""

import json
import random
import time
from collections.abc import Callable

import pytest

from council.consultation import CodeSnippet, Opinion, fenced, read_opinion
from council.document.changes import ORDERED_LIMIT, share_changed, summarize_changes
from council.reviews.ballot_text import parse_ranking
from council.reviews.ballots import read_ballot, read_scores, read_sections
from council.reviews.extraction import extract_critiques_from_rankings
from council.rounds import CorrectionInputs, fault
from council.text.fence import stripped
from tests.council.reviews.ballots import LABELS

pytestmark = pytest.mark.soak  # time is measured, and a busy machine would fail the suite

SIZE = 25_000  # characters
TIMES = 4
AT_MOST = 8
"""Four times the text may take eight times the work; with the square of it, it would take sixteen."""

UNMEASURED = 0.02
"""Seconds of CPU below which nothing can be told."""

Reader = Callable[[str], object]


def work(read: Reader, text: str) -> float:
    """Return the CPU seconds of reading a text, the best of some tries."""
    tries: list[float] = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        tries.append(time.process_time() - began)
    return max(min(tries), UNMEASURED)


def grows_with_the_text(read: Reader, start: str, repeated: str, size: int = SIZE) -> bool:
    """Whether the work of reading grows in proportion, or nearly so."""
    small, large = (start + repeated * (each // len(repeated)) for each in (size, size * TIMES))
    return work(read, large) <= AT_MOST * work(read, small)


def json_ballot(text: str) -> object:
    """Read a JSON ballot whose every remark is this text."""
    critique = {"text": text, "severity": "high"}
    review = {"label": "A", "strengths": text, "critiques": [critique], "weaknesses": text}
    return read_ballot(json.dumps({"reviews": [review], "ranking": ["A", "B"]}), LABELS)


def merged(text: str) -> object:
    return extract_critiques_from_rankings([{"model": "c", "ranking": text}], dict.fromkeys(LABELS, ""))


READERS: dict[str, Reader] = {
    "ranking": lambda text: parse_ranking(text, LABELS),
    "scores": lambda text: read_scores(text, LABELS, ["Cost", "Time to market"]),
    "points": lambda text: read_sections(text, LABELS),
    "merged": merged,
    "json ballot": json_ballot,
    # a review that may hold ballots in JSON, and so may the answer under review
    "among words": lambda text: read_ballot(f'{text}\n{{"ranking": ["A", "B"]}}', LABELS, question=text),
    "opinion": lambda text: read_opinion(text, Opinion),
    "code": lambda text: fenced(CodeSnippet(code=text)),
    "unfenced": lambda text: stripped("7eb9d05934df77dc", text),
    "judged": lambda text: fault(
        text, CorrectionInputs("Why?", "So.", "Correct it.", [text[:99]], [text[99:]])
    ),
}


@pytest.mark.parametrize(
    ("read", "start", "repeated"),
    [
        ("ranking", "", "FINAL RANKING:\n"),
        ("ranking", "FINAL RANKING:\n1. Response A\n", "so it is\n"),
        ("ranking", "FINAL RANKING: ", "A > "),
        ("ranking", "", "FINAL RANKING: " + "(" * 980 + "\n"),
        ("ranking", "", "FINAL RANKING:\n1." + " " * 980 + "\n"),
        ("ranking", "", "says " * 190 + ":\nFINAL RANKING: A > B\n"),
        ("ranking", "", "C, " * 320 + ":\nFINAL RANKING: A > B\n"),
        ("ranking", "", "revised new " * 80 + "\n"),
        ("ranking", "", "```\n"),
        ("ranking", "", "`"),
        ("ranking", "", "\u0301\u0323"),
        ("scores", "", "SCORES:\n"),
        ("scores", "", "SCORES:\n\n\n\n"),
        ("scores", "SCORES:\n", "Response A: Cost 3\n"),
        ("scores", "", "SCORES:\n- " + ":" * 980 + "3x\n"),
        ("scores", "", "SCORES:\nResponse A: x" + "= " * 450 + "3x\n"),
        ("points", "", "Response A lacks "),
        ("points", "", "a"),
        ("points", "", "- Response A is wrong.\n"),
        ("points", "", '"'),
        ("points", "", "e.g. A "),
        ("points", "### Response A\n", "It lacks a test. "),
        ("points", "### Response A\n", "It lacks a test.\n"),
        ("points", "", "Response A lacks\n"),
        ("points", "", "| Response A | lacks "),
        ("points", "", "no weak part "),
        ("points", "", "what is (a"),
        ("points", "", "**_`"),
        ("points", "", "(" * 900 + "\n"),
        ("json ballot", "", "no. 1 "),
        ("merged", "", "- Response A lacks x.\n"),
        ("json ballot", "", "e.g. A "),
        ("json ballot", "", "\ud83d"),
        ("json ballot", "", "\\"),
        ("among words", "", "{"),
        ("among words", "", '{"a":'),
        ("among words", "", '{"ranking":["A","B"]}'),
        ("among words", "", '{"ranking":["A","B"]}\n'),
        ("among words", "", '> {"ranking":["A","B"]}\n'),
        ("among words", "", '{"ranking":["A","B"],}'),
        ("among words", "", '{"\\"'),
        ("opinion", "", "("),
        ("opinion", "[", "'s "),
        ("opinion", "[", '","a":"'),
        ("opinion", "{", '){"'),
        ("opinion", "", "score "),
        ("code", "", "`"),
        ("unfenced", "", "[begin "),
        ("unfenced", "", "7eb9d05934df77d "),
        ("unfenced", "7eb9d05934df77dc", "*[ "),
        ("unfenced", "7eb9d05934df77dc", "\\n"),
        ("unfenced", "", "a1-"),
        ("judged", "", "\n"),
        ("judged", "", "1. "),
        ("judged", "sorry", ", I can "),
    ],
)  # fmt: skip
def test_work_grows_with_the_text(read: str, start: str, repeated: str) -> None:
    """And not with its square."""
    assert grows_with_the_text(READERS[read], start, repeated)


def test_points_that_all_differ_are_merged_in_time() -> None:
    """A flood of them is compared only as far as anybody would read."""

    def flood(text: str) -> object:
        return merged("".join(f"Response A lacks word{number}.\n" for number in range(len(text) // 24)))

    assert grows_with_the_text(flood, "", " ")


@pytest.mark.parametrize("gap", [" ", "\n"])
def test_very_long_corrections_are_compared_in_time(gap: str) -> None:
    """Where nobody could read them through, the order of words doesn't count."""

    def compare(text: str) -> object:
        words = random.Random(1).choices("abcdefgh", k=len(text))  # noqa: S311 - any will do
        before, after = gap.join(words), gap.join(words[::-1])
        return summarize_changes(before, after), share_changed(before, after)

    assert grows_with_the_text(compare, "", " ", size=ORDERED_LIMIT * 2)
