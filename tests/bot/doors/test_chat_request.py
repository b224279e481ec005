"""Requests in the many forms in which clients write them, read as one question each."""

import base64
import json
from typing import Any

import pytest

from bot.doors.completions import LONGEST_KEY, ChatRequest, Rejection, read_request
from bot.view.wording import doors as wording
from tests.pairs import rows

ASK = {"role": "user", "content": "Boils at?"}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
PIXEL = b"\x89PNG\r\n\x1a\n"
DATA = base64.b64encode(PIXEL).decode()


def read(*messages: object, key: str | None = None, **fields: object) -> ChatRequest:
    body = {"model": "council/default", "messages": [*messages] or [ASK], **fields}
    return read_request(json.dumps(body).encode(), key)


def refused(*messages: object, **fields: Any) -> tuple[int, str | None, str]:
    """Return why a request is refused: status, field and words."""
    with pytest.raises(Rejection) as caught:
        read(*messages, **fields)
    return caught.value.status, caught.value.param, str(caught.value)


@rows(
    "fields",
    [
        {"tools": []},
        {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
        {"tools": None, "tool_choice": None, "functions": None, "response_format": None},
        {"functions": []},
        {"functions": [{"name": "weather"}], "function_call": "none"},
        {"tools": [TOOL], "tool_choice": "none"},
        {"response_format": {"type": "text"}},
        {"modalities": ["text"], "audio": None, "n": 1},
    ],
)
def test_what_changes_nothing_is_passed_over(fields: dict[str, Any]) -> None:
    """Clients send empty tools with every request; a summary forbids those that a chat has."""
    assert read(**fields).asked.text == "Boils at?"


@rows(
    ("fields", "param"),
    [
        ({"tools": [TOOL]}, "tools"),
        ({"tools": [TOOL], "tool_choice": "auto"}, "tools"),
        ({"tools": [TOOL], "tool_choice": "required"}, "tools"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tools"),
        ({"tools": [TOOL], "function_call": "none"}, "tools"),
        ({"functions": [{"name": "weather"}]}, "functions"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
        ({"response_format": {"type": "grammar", "grammar": "x"}}, "response_format"),
        ({"response_format": {}}, "response_format"),
        ({"response_format": "json"}, "response_format"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"n": 2}, "n"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    """Accepted and ignored, it costs a whole council and fails in the client."""
    status, named, _ = refused(**fields)
    assert (status, named) == (400, param)


def test_earlier_turns_are_paired() -> None:
    """System text goes beside them; what is said in a row is joined."""
    request = read(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Two"}, {"type": "text", "text": "three?"}],
        },
        {"role": "assistant", "content": "Yes."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Four?"},
        model="council",
    )
    asked = request.asked
    assert [(turn.question, turn.answer) for turn in asked.history.turns] == [
        ("One?\n\nTwo\nthree?", "Yes.")
    ]
    assert [file.text for file in asked.files] == ["Be brief.", "Be kind."]
    assert (asked.text, asked.profile) == ("Four?", None)
    with pytest.raises(Rejection):
        read_request(b"\xff", None)


def test_an_earlier_models_calls_are_passed_over() -> None:
    """What it said beside them stays; a question that awaits an agent's next step is none of ours."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "20 degrees"}
    said = {
        **CALLED,
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "I look."}],
    }
    history = read(
        {"role": "user", "content": "Warm?"},
        said,
        result,
        {"role": "assistant", "content": "It is."},
        {"role": "user", "content": "And there?"},
        CALLED,
        {"role": "function", "name": "weather", "content": "5 degrees"},
        ASK,
    ).asked.history
    assert [(turn.question, turn.answer) for turn in history.turns] == [
        ("Warm?", "I look.\n\nIt is."),
        ("And there?", None),
    ]
    for last in (CALLED, result, {"role": "assistant", "content": "x"}):
        assert refused(ASK, last)[2] == "The last message must be the user's: it is the question."


LINES = "\n".join(f"line {n}: the pump number {n} is fine." for n in range(850))


@rows(
    "content",
    [
        f"<context>\n{LINES}\nThe pump is RED-7.\n</context>\nWhich pump?",
        [
            {"type": "text", "text": f"{LINES}\nThe pump is RED-7."},
            {"type": "text", "text": "Which pump?"},
        ],
        f"Which pump?\n\n```\n{LINES}\nThe pump is RED-7.\n```",
        f"Which pump? {LINES.replace(chr(10), ' ')} The pump is RED-7.",
        f"{LINES}\nThe pump is RED-7.\n\nBe brief.\n\nWhich pump?\n\nIn one line, please.\n\n",
    ],
)
def test_a_long_message_is_its_own_material(content: object) -> None:
    """Both its ends are the question: people write before what they paste, front ends behind it."""
    asked = read({"role": "user", "content": content}, {"role": "system", "content": "x"}).asked
    assert "Which pump?" in asked.text
    assert len(asked.text) < 4_200
    material, system = asked.files
    assert "RED-7" in material.text
    assert "line 425: the pump number 425 is fine." in material.text
    assert f"The whole text is in the file \u201c{material.name}\u201d." in asked.text
    assert system.text == "x"


@rows(("length", "files"), [(20_000, 0), (20_001, 1), (150_000, 1)])
def test_what_fits_a_question_is_one(length: int, files: int) -> None:
    """And above what is read with a question, nothing is cut in silence."""
    assert len(read({"role": "user", "content": "x" * length}).asked.files) == files
    status, _, said = refused({"role": "user", "content": "x" * 150_001})
    assert (status, said) == (413, wording.too_long(150_000))


def shown(address: object) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": address}]}


@rows(
    "address",
    [
        {"url": f"data:image/png;base64,{DATA}"},
        {"url": f"data:image/png;base64,{DATA}", "detail": "high"},
        f"data:image/png;base64,{DATA}",
        f"DATA:image/PNG;charset=utf-8;BASE64,{DATA}",
        f"data:image/svg+xml;base64,{DATA[:4]}\r\n{DATA[4:]}\n",
    ],
)
def test_a_picture_in_the_request_is_read(address: object) -> None:
    """With its address as an object or bare; it may be all of the question."""
    [picture] = read(shown(address)).pictures
    assert (picture.name, picture.content) == ("picture 1", PIXEL)


@rows(
    "address",
    [
        "https://example.org/a.png",
        {"url": "data:"},
        {"url": f"data:text/plain;base64,{DATA}"},
        "data:image/png;base64,",
        "data:image/png;base64,\u00e9",
        "data:image/png,%89PNG",
        {},
        None,
    ],
)
def test_a_picture_elsewhere_is_refused(address: object) -> None:
    """Nothing is fetched for a program."""
    assert refused(shown(address))[2].startswith("A picture has to be in the request itself")


@rows("amount", ["0", "-1", "inf", "nan", "1_0", "\u0661", "\uff11", "1000000.01", "", "x"])
def test_an_amount_is_written_in_plain_digits(amount: str) -> None:
    """Python's own reading of numbers takes more."""
    status, param, _ = refused(metadata={"max_cost": amount})
    assert (status, param) == (400, "metadata.max_cost")
    assert read(metadata={"max_cost": "1e-05"}).asked.max_cost == 0.00001


@rows("key", ["x" * (LONGEST_KEY + 1), "caf\udce9", "a\nb"])
def test_an_idempotency_key_is_a_line_of_text(key: str) -> None:
    """In a header, what isn't UTF-8 arrives as surrogates."""
    assert refused(key=key)[:2] == (400, "idempotency_key")
    assert read(key="cl\u00e9 1").asked.key == "cl\u00e9 1"


def test_what_is_refused_is_not_sent_back_whole() -> None:
    """A megabyte of it names nothing that a reader could find."""
    long = "x" * 1_000_000
    for messages, fields in (
        ((), {"metadata": {"max_cost": long}}),
        ((), {"metadata": {long: 1}}),
        (({"role": "user", "content": [{"type": long}]},), {}),
        (({"role": long, "content": "x"},), {}),
    ):
        status, param, said = refused(*messages, **fields)
        assert status == 400
        assert len(said) + len(param or "") < 500
