"""The checkers, against replies that people labelled right or wrong, in three languages."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from council.evaluation.checkers import checker_of, is_right, read_answer
from council.evaluation.items import EvalItem

LABELLED = Path(__file__).with_name("replies.jsonl")


def labelled() -> Iterator[tuple[EvalItem, str, bool]]:
    """Yield each reply with its question and its label."""
    for line in LABELLED.read_bytes().splitlines():
        row = orjson.loads(line)
        item = EvalItem.model_validate(row["item"])
        yield from ((item, reply, True) for reply in row["right"])
        yield from ((item, reply, False) for reply in row["wrong"])


def test_what_a_checker_calls_right_is_right() -> None:
    """Over 200 replies in English, German and French: precision 1.00; the recall is printed."""
    replies = [*labelled()]
    verdicts = [(item, reply, label, bool(is_right(item, reply))) for item, reply, label in replies]
    called = [(item.id, reply) for item, reply, label, verdict in verdicts if verdict and not label]
    missed = [(item.id, reply) for item, reply, label, verdict in verdicts if label and not verdict]
    right = sum(label for _, _, label, _ in verdicts)
    print(f"{len(replies)} replies, {right} right: precision 1.00, recall {1 - len(missed) / right:.2f}")  # noqa: T201
    assert len(replies) >= 200
    assert called == []
    assert missed == []


@pytest.mark.parametrize(
    ("target", "choices", "checker"),
    [
        ("42", (), "number"),
        ("1,234.5 km", (), "number"),
        ("$19.50", (), "number"),
        ("2024-03-01", (), "date"),
        ("1 March 2024", (), "date"),
        ("B", ("red", "blue"), "choice"),
        ("Paris", (), "exact"),
        ("It depends on whether the queue keeps its order when a consumer fails.", (), "judge"),
    ],
)
def test_the_checker_follows_from_the_target(
    target: str, choices: tuple[str, ...], checker: str
) -> None:
    """Unless the question names one."""
    item = EvalItem(id="1", input="?", target=(target,), choices=choices)
    assert checker_of(item) == checker
    assert checker_of(item.model_copy(update={"metadata": {"checker": "code"}})) == "code"


def test_a_question_of_points_is_the_judges() -> None:
    """No checker calls anything right or wrong that only a reader can say."""
    item = EvalItem(id="1", input="Why?", rubric=("names the lock",))
    assert (checker_of(item), is_right(item, "Because of the lock.")) == ("judge", None)


def test_like_answers_count_together() -> None:
    """Whatever they are written like; what can't be read counts with nothing."""
    item = EvalItem(id="1", input="How long is it?", target=("2 km",))
    said = ["Answer: 2 km", "Answer: 2,000 m", "It is 2.0 kilometres.", "2 or 3 km"]
    first, second, third, unread = (read_answer(item, reply) for reply in said)
    assert first == second == third
    assert unread is None


def test_a_number_may_be_as_far_off_as_its_question_says() -> None:
    """And by what a computer's arithmetic leaves."""
    exact = EvalItem(id="1", input="?", target=("25",))
    near = exact.model_copy(update={"metadata": {"tolerance": 0.5}})
    assert is_right(exact, "Answer: 25.000000000000004")
    assert not is_right(exact, "Answer: 25.4")
    assert is_right(near, "Answer: 25.4")
    assert not is_right(near, "Answer: 25.6")
