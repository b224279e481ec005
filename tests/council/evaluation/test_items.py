"""Questions, as files have them."""

import orjson
import pytest

from council.evaluation.items import EvalItem, UnreadableItems, digest, read_items


def lines(*rows: object) -> str:
    """Return JSON lines."""
    return "\n".join(orjson.dumps(row).decode() for row in rows)


def test_a_question_has_an_id_a_text_and_what_is_right() -> None:
    """A target may be one answer or several, a number or a text."""
    first, second, third = read_items(
        lines(
            {"id": "a", "input": "6 * 7?", "target": 42, "difficulty": "low", "metadata": None},
            {"id": 2, "input": "Which?", "choices": ["red", "blue"], "target": "blue"},
            {"id": "c", "input": "Why?\u2028\x85", "rubric": ["names the lock", "says when"]},
        ).replace("\n", "\r\n")
    )
    assert third.input == "Why?\u2028\x85"  # Unicode's line ends are text within JSON
    assert (first.target, second.id, second.choices) == (("42",), "2", ("red", "blue"))
    assert third.rubric == ("names the lock", "says when")


def test_choices_are_asked_with_the_question() -> None:
    """Unless its text has them already."""
    bare = EvalItem(id="1", input="Which?", choices=("red", "blue"), target=("B",))
    told = bare.model_copy(update={"input": "Is it red or blue?"})
    assert bare.prompt == "Which?\n\nA) red\nB) blue"
    assert told.prompt == "Is it red or blue?"


def test_every_problem_of_a_file_is_told_at_once() -> None:
    """With its line."""
    content = lines(
        {"id": "a", "input": "?", "target": "1"},
        {"id": "a", "input": "?", "target": "1"},
        {"id": "b", "input": "?"},
        {"id": "c", "input": "?", "target": "red", "choices": ["blue"]},
        {"id": "d", "input": "?", "target": "1", "metadata": {"checker": "guess"}},
        {"id": "e", "target": "1"},
        ["no object"],
    )
    with pytest.raises(UnreadableItems) as problems:
        read_items(f"{content}\nno JSON")
    assert problems.value.problems == [
        "line 3: it has neither a target nor a rubric",
        "line 4: its target is none of its choices",
        "line 5: there is no checker guess; there are number, choice, date, code, exact, judge",
        "line 6: input: Field required",
        "line 7: it isn't an object",
        "line 8: it isn't JSON: invalid literal, expected 'null': line 1 column 1 (char 0)",
        "the id a is there twice",
    ]


def test_a_file_without_questions_is_none() -> None:
    """An evaluation of nothing would find nothing."""
    with pytest.raises(UnreadableItems, match="there is no question in it"):
        read_items("\n\n")


def test_questions_are_identified_by_what_they_say() -> None:
    """However their file is written."""
    one = read_items('{"id": "a", "input": "?", "target": "1"}')
    same = read_items('[{"target": ["1"], "input": "?", "id": "a"}]')
    other = read_items('{"id": "a", "input": "?", "target": "2"}')
    assert digest(one) == digest(same) != digest(other)


def test_samples_of_inspect_are_read() -> None:
    """As JSON lines or a table; several messages are one question.

    Source: https://inspect.aisi.org.uk/datasets.html
    """
    first, second = read_items(
        lines(
            {"input": "Which?", "choices": ["red", "blue"], "target": "B", "id": 7},
            {
                "input": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "6 * 7?"},
                ],
                "target": "42",
            },
        ),
        "inspect",
    )
    [third] = read_items("input,target\nCapital of France?,Paris\n", "inspect")
    assert (first.id, first.chosen(first.target[0])) == ("7", 1)
    assert (second.id, second.input) == ("2", "Be brief.\n\n6 * 7?")
    assert (third.input, third.target) == ("Capital of France?", ("Paris",))


def test_goldens_of_deepeval_are_read() -> None:
    """A list or JSON lines; what they are to be answered from comes first.

    Source: https://deepeval.com/docs/evaluation-datasets
    """
    rows = [
        {"input": "6 * 7?", "expected_output": "42", "actual_output": None},
        {"input": "Who?", "expected_output": "Ivo", "context": ["Ivo moved it."], "name": "mover"},
    ]
    first, second = read_items(orjson.dumps(rows).decode(), "deepeval")
    assert (first.id, first.target) == ("1", ("42",))
    assert (second.id, second.input) == ("mover", "Ivo moved it.\n\nWho?")
