"""Questions as people have them in files, and how Inspect scores what models reply."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from bot.errors import UsageError

if TYPE_CHECKING:
    from bot.evaluation.questions import EvalQuestion

CHOICES = '{"input": "Which?", "choices": ["a queue", "a set"], "target": "a set"}'
LONG = "because the certificate had expired on Sunday and nobody was warned"


def read_questions(path: Path) -> "tuple[EvalQuestion, ...]":
    from bot.evaluation import questions

    return questions.read_questions(path)


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.csv", "question,answer\nHow many?,7\nWhere?,Oslo\n", [("1", ["7"], "match"), ("2", ["Oslo"], "pattern")]),
        ("b.csv", "input,target\r\nHow many?,7\r\n", [("1", ["7"], "match")]),
        ("b.CSV", "\ufeffID;Question;Answer\nx;How much?;1,234.50\ny;How much?;12 %\n",
         [("x", ["1,234.50"], "match"), ("y", ["12"], "match")]),
        ("tabs.tsv", "question\tanswer\nHow many?\t7\n", [("1", ["7"], "match")]),
        ("c.jsonl", CHOICES, [("1", ["B"], "choice")]),
        ("cell.csv", 'question,answer,choices\nWhich?,B,"a queue|a set"\n', [("1", ["B"], "choice")]),
        ("several.csv", 'question,answer\nWhich?,"[""a"", ""b""]"\n', [("1", ["a", "b"], "pattern")]),
        ("d.json", '[{"id": 0, "question": "How many?", "answer": [7, "seven"]}]', [("0", ["7", "seven"], "pattern")]),
        ("e.jsonl", '{"input": [{"role": "user", "content": "How?"}], "target": "東京"}', [("1", ["東京"], "includes")]),
        ("f.jsonl", f'{{"input": "Why?", "target": "{LONG}"}}', [("1", [LONG], "model_graded_qa")]),
        ("g.jsonl", '{"input": "?", "target": "x", "pattern": "is (.)"}', [("1", ["x"], "pattern")]),
        ("h.jsonl", '{"input": "?", "target": "x", "scorer": "model_graded_qa"}', [("1", ["x"], "model_graded_qa")]),
    ],
)  # fmt: skip
def test_a_file_is_read(
    tmp_path: Path, name: str, content: str, wanted: list[tuple[str, list[str], str]]
) -> None:
    """Ids are the rows' numbers where there are none, and the scorer follows from the right answer."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_questions(tmp_path / name)
    assert [(each.id, [*each.targets], each.scorer) for each in found] == wanted


def test_our_own_questions_are_read() -> None:
    found = read_questions(Path("bench/worth/questions.jsonl"))
    assert len(found) == 60
    assert {each.scorer for each in found} == {"match", "choice", "pattern"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "question,answer\n" + "Q?,1\n" * 6 + "Q?,1,2\n", "line 8 has 3 fields, the header has 2."),
        ("b.jsonl", '{"question": "Q?", "answer": "1"}\n' * 6 + "{broken\n", "line 7"),
        ("c.csv", "question,answer\nQ?,1\nQ?,\n,1\n", "row 2: it has no right answer"),
        ("c.csv", "question,answer\nQ?,1\nQ?,\n,1\n", "row 3: it has no question"),
        ("blank.jsonl", orjson.dumps({"input": "?", "target": " " * 1200}).decode(), "row 1: it has no right"),
        ("d.csv", "id,question,answer\nx,Q?,1\nx,Q?,1\n", "row 2: its id, x, is an earlier row's"),
        ("e.jsonl", '{"input": "?", "choices": ["a", "b"], "target": "c"}', "none of its choices"),
        ("f.jsonl", '{"input": "?", "target": "c", "scorer": "kappa"}', "it can't be scored by kappa"),
        ("f.jsonl", '{"input": "?", "target": "c", "scorer": "choice"}', "choice is for choices"),
        ("g.jsonl", '{"input": "?", "target": "c", "pattern": "is"}', "no group"),
        ("h.jsonl", '{"input": "?", "target": "c", "pattern": "("}', "row 1: "),
        ("i.csv", "question,answer\n", "it has no question"),
        ("j.jsonl", "[1]", "line 1"),
        ("j.json", "[1]", "row 1: "),
        ("j.json", '{"input": [1], "target": "1"}', "row 1: "),
        ("j.json", '{"input": "\\ud800", "target": "1"}', "row 1: "),
        ("j.json", "1", "json"),
        ("missing.csv", None, "can't be read: no such file or directory."),
        ("k.csv", b"question,answer\nM\xfcnchen?,1\n", "can't be read: it isn't UTF-8."),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_by_its_row(
    tmp_path: Path, name: str, content: str | bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError) as refused:
        read_questions(tmp_path / name)
    assert said in str(refused.value)


def asked(target: str | list[str], **fields: object) -> "EvalQuestion":
    """Return the question of a row with this right answer."""
    path = Path(str(fields.pop("folder"))) / "one.jsonl"
    path.write_bytes(orjson.dumps({"input": "?", "target": target, **fields}))
    return read_questions(path)[0]


@pytest.mark.parametrize(
    ("target", "reply", "right"),
    [
        ("1,234.50", "It comes to this.\nANSWER: 1234.5", True),
        ("1,234.50", "**Answer:** $1,234.50", True),
        ("12 %", "ANSWER: 12%", True),
        ("12%", "ANSWER: 12 %.", True),
        ("12 %", "ANSWER: 112%", False),
        ("12", "100 % - 88 % = 12", True),
        ("8100", "2 h are 7200 s, so\nFinal answer: 8100 seconds (7200 and 900)", False),
        ("8100", "ANSWER: 8100 seconds", True),
        ("no", "ANSWER: I know", False),
        ("no", "ANSWER: No.", True),
        ("Oslo", "Not Oslo.\nANSWER: Lisbon", False),
        ("Oslo", "I think it is Oslo, not Lisbon", True),
        ("東京", "答えは東京です", True),
        (["a", "b c"], "ANSWER: B C", True),
        ("1", "1e9999999", False),
        ("1e9999999", "ANSWER: 1e9999999", True),
        ("9" * 5000, "9" * 5000, True),
        ("9" * 5000, "9" * 4999, False),
        ("1", "9" * 5000, False),
        ("1", " " * 1200, False),
        ("1", "", False),
        ("1", "nan inf \u221e \u00bd 1_0 0x1", False),
        ("1", "\n" * 50_000 + "ANSWER:" + " " * 50_000, False),
    ],
)
async def test_replies_are_scored(
    tmp_path: Path, target: str | list[str], reply: str, right: bool
) -> None:
    """What follows the last `ANSWER:` counts, else all of it; nothing that a model writes ends it."""
    assert await asked(target, folder=tmp_path).score(reply, None) == right


@pytest.mark.parametrize(
    ("reply", "score"), [("ANSWER: B", 1), ("ANSWER: A", 0), ("a set", 0), ("", 0), ("ANSWER: Z", 0)]
)
async def test_choices_are_scored_by_their_letter(tmp_path: Path, reply: str, score: float) -> None:
    question = asked("a set", choices=["a queue", "a set"], folder=tmp_path)
    assert await question.score(reply, None) == score
    prompt = (await asyncio.to_thread(question.item)).prompt
    assert "A) a queue\nB) a set" in prompt
    assert "ANSWER: $LETTER" in prompt


async def test_a_pattern_finds_the_answer_in_the_whole_reply(tmp_path: Path) -> None:
    question = asked("x", pattern="it is (.)", folder=tmp_path)
    assert await question.score("it is x\nANSWER: y", None) == 1
    assert question.item().prompt == "?"


@pytest.mark.parametrize(("reply", "score"), [("GRADE: C", 1), ("GRADE: I", 0), ("", None)])
async def test_what_the_judge_does_not_grade_has_no_score(
    tmp_path: Path, reply: str, score: float | None
) -> None:
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    output = ModelOutput.from_content("judge", reply)
    output.usage = ModelUsage()
    judge = get_model("mockllm/judge", memoize=False, custom_outputs=[output])
    assert await asked(LONG, folder=tmp_path).score("It expired.", judge) == score
