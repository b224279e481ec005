"""What servers and models write that isn't an answer, and what only speaks of it.

Each row is as a report, a server's source or a model's template has it; `council/models/phrases.py` names
the places. Those of calls are of vLLM's tool parsers.
"""

import time
import tomllib
from pathlib import Path
from typing import Any, cast

import orjson

from bot.render.markdown import contain
from council.models.phrases import answer_in, without_sources
from council.models.reply import Completion
from tests.council.models.scene import call, failed
from tests.pairs import rows

SAID = "Water boils at 100 degrees at sea level."
LONG = f"{SAID} It boils at less on a mountain, because the air presses less on it there. " * 3
ROWS = tomllib.loads(Path(__file__).with_name("marks.toml").read_text(encoding="utf-8"))
CALLS, ABOUT, SHOWN = (cast("dict[str, str]", ROWS[part]) for part in ("calls", "about", "shown"))
NAMED = cast("list[str]", ROWS["texts"]["named"])


def completion(text: str, finish: str = "stop") -> Completion:
    """Read a stream that says a text."""
    read = Completion()
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        read.take_chunk({"choices": [{"delta": {"content": piece}}]})
    read.take_chunk({"choices": [{"delta": {}, "finish_reason": finish}]})
    return read


def answer(text: str, question: str = "At what temperature does water boil?", **settings: Any) -> str:
    """Return what of a text is the answer to a question."""
    asked = call("lab/one", {"role": "user", "content": question}, **settings)
    return completion(text).reply(asked, 1, lambda _: None).text


@rows("text", CALLS.values(), ids=[*CALLS])
def test_a_call_of_a_tool_is_no_answer(text: str) -> None:
    """Nobody offered a tool: it is as if nothing had been said, and asked for once more."""
    for finish in ("stop", "tool_calls", "length"):
        read = completion(text, finish)
        failure = failed(lambda read=read: read.reply(call(), 1, lambda _: None))
        assert (failure.cause, failure.detail) == (
            "empty",
            "it wrote markup, such as a tool's call, and no answer",
        )
        assert failure.usage is not None


@rows("text", ABOUT.values(), ids=[*ABOUT])
def test_an_answer_that_speaks_of_such_a_mark_survives(text: str) -> None:
    """In code, or as a word among others."""
    assert answer(text) == text


@rows("name", ["Hermes", "Mistral", "DeepSeek V4", "Claude", "Gemma 3", "gpt-oss"])
def test_what_the_question_has_is_part_of_the_answer(name: str) -> None:
    """Whoever asks about a template gets it, in code or not."""
    text = CALLS[name]
    assert answer(text, f"Which model writes {text[:40]}, and how does it go on?") == text


OWN_TURN = "<|im_start|>user\nAnd on a mountain?<|im_end|>\n<|im_start|>assistant\nLess."
LEFT = cast("dict[str, list[str]]", ROWS["left"]) | {
    "a call behind an answer": [
        f"\n\n{CALLS['Hermes']}",
        f"\n\n{CALLS['DeepSeek V4']}",
        CALLS["Kimi K2"],
    ]
}


@rows(("kind", "left"), [(kind, left) for kind, marks in LEFT.items() for left in marks])
def test_what_a_template_leaves_behind_an_answer_is_cut(kind: str, left: str) -> None:
    """With all that follows it: the end of a turn, one that is played on, a call, or the mark of one."""
    said = LONG.strip() if kind.startswith("a call") else SAID
    assert answer(said + left) == said
    block = f"{said}\n\n```sh\nkettle\n```"
    assert answer(block + left) == block


@rows(("text", "shown"), SHOWN.items())
def test_marks_of_sources_that_lead_nowhere_are_left_out(text: str, shown: str) -> None:
    """From what is asked now and from what was imported; a list of links among them stays."""
    assert answer(text).strip() == shown
    assert contain(text).strip() == shown


@rows("text", NAMED)
def test_a_text_that_speaks_of_such_marks_survives(text: str) -> None:
    """In code, in quotation marks, or set apart as a word."""
    assert answer(text) == text
    assert without_sources(text) == text


HOSTILE = [
    "<|im_end|>{}x",
    "x{}\n</s>",
    "{}`<tool_call>{{",
    "{}` `` <tool_call>{{",
    "{}```\n<tool_call>{{",
    "{}x <tool_call>{{ ",
    "{}\n<tool_call>{{ x",
    "{} \u30101\u2020",
    "{}\ue200",
    "{}<grok:render ",
    "{}<s>{}</s>",
    '{}"\u30101\u2020a\u3011',
    "{}\n[TOOL_CALLS]x{{ x",
    "{}x<|user|>. ",
    "{}\n<|user|> x",
    "{}(cite index=",
]


@rows("pattern", HOSTILE)
def test_a_hostile_text_is_read_in_time_that_grows_with_it(pattern: str) -> None:
    """Ten times as long takes no hundred times as long: a model may write millions of characters."""

    def seconds(times: int) -> float:
        text = "".join(part * times for part in pattern.replace("{{", "{").split("{}"))
        began = time.process_time()
        answer_in(text, ())
        without_sources(text)
        return time.process_time() - began

    assert min(seconds(20_000) for _ in range(2)) < 40 * max(0.003, *(seconds(2_000) for _ in range(3)))


def test_a_ballot_keeps_what_its_texts_say() -> None:
    """A JSON reply that quotes a mark isn't cut in the middle."""
    said = orjson.dumps({"text": f"It ends so:</s>\n{OWN_TURN}"}).decode()
    assert answer(said, schema={"type": "object", "required": ["text"]}) == said
