"""What each server takes: which row an address gets, and what a request to it looks like."""

from collections.abc import Collection
from typing import cast, get_args

import httpx
import pytest

from council.calls import Call
from council.models.refusals import SYSTEM
from council.models.servers import SERVERS, body_of_call, format_part, known_server
from council.profile import DialectName, Member
from council.text.json_objects import JsonObject

SCHEMA: JsonObject = {"type": "object", "properties": {"ranking": {"type": "array"}}}


def body(
    dialect: str,
    refused: Collection[str] = (),
    *,
    schema: bool = False,
    web: bool = False,
    **member: object,
) -> JsonObject:
    """Write a request of this dialect with everything set."""
    call = Call(
        step="s",
        member=Member.model_validate({"model": "m", "structured": True, **member}),
        prompt=lambda: (
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
        ),
        deadline=1.0,
        schema=SCHEMA if schema else None,
        web=web,
        max_tokens=800,
    )
    return body_of_call(call, SERVERS[dialect], refused)


def test_every_dialect_has_a_row() -> None:
    """The configuration knows no other names."""
    assert SERVERS.keys() == {*get_args(DialectName)}


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://res.openai.azure.com/openai/v1?api-version=preview", "azure"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("https://API.Groq.com/openai/v1", "groq"),
        ("https://api.together.xyz/v1", "together"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://notopenrouter.ai/v1", "generic"),
        ("https://openrouter.ai.example.com/v1", "generic"),
        ("http://127.0.0.1:11434/v1", "generic"),
    ],
)
def test_an_address_gets_the_known_server_its_host(address: str, name: str) -> None:
    """Whole parts of the name count: another's domain that ends alike is another's."""
    assert known_server(httpx.URL(address)).name == name


def test_a_named_dialect_overrules_the_host() -> None:
    """A proxy speaks what stands behind it."""
    assert known_server(httpx.URL("http://127.0.0.1:4000"), "openrouter").name == "openrouter"


def test_only_openrouter_gets_its_own_fields() -> None:
    """Other servers refuse what they don't know."""
    routed = body("openrouter", fallbacks=["n"], reasoning="low", web=True)
    assert routed["models"] == ["m", "n"]
    assert routed["plugins"] == [{"id": "web"}]
    assert routed["reasoning"] == {"effort": "low"}
    known = {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
    for name in SERVERS.keys() - {"openrouter"}:
        assert body(name, fallbacks=["n"], web=True).keys() <= known, name


def test_nothing_is_sent_that_nobody_set() -> None:
    """No temperature, no control of thinking, no field that is null."""
    sent = body("generic")
    assert sent.keys() == {"model", "messages", "stream", "stream_options", "max_tokens"}
    assert None not in sent.values()


@pytest.mark.parametrize(
    ("dialect", "limit", "counts"),
    [
        ("openai", "max_completion_tokens", True),
        ("azure", "max_completion_tokens", True),
        ("mistral", "max_tokens", False),
        ("perplexity", "max_tokens", False),
        ("zai", "max_tokens", False),
        ("ollama", "max_tokens", True),
        ("deepseek", "max_tokens", True),
    ],
)
def test_the_limit_has_the_servers_name(dialect: str, limit: str, *, counts: bool) -> None:
    """And usage is asked for where that is known."""
    sent = body(dialect)
    assert sent[limit] == 800
    assert ("stream_options" in sent) == counts


@pytest.mark.parametrize(
    ("dialect", "off", "high"),
    [
        ("openai", {"reasoning_effort": "none"}, {"reasoning_effort": "high"}),
        ("openrouter", {"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "high"}}),
        ("together", {"reasoning": {"enabled": False}}, {"reasoning_effort": "high"}),
        (
            "deepseek",
            {"thinking": {"type": "disabled"}},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ),
        ("moonshot", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled"}}),
        ("dashscope", {"enable_thinking": False}, {"enable_thinking": True}),
        (
            "vllm",
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}},
            {"reasoning_effort": "high"},
        ),
    ],
)
def test_thinking_is_controlled_in_the_servers_words(
    dialect: str, off: JsonObject, high: JsonObject
) -> None:
    """Each has its own."""
    plain = body(dialect)
    for level, said in (("off", off), ("high", high)):
        sent = body(dialect, reasoning=level)
        assert {name: value for name, value in sent.items() if name not in plain} == said


@pytest.mark.parametrize(
    ("dialect", "model", "kinds"),
    [
        ("openai", "gpt-5", ["strict", "json_object"]),
        ("generic", "m", ["strict", "json_schema", "json_object"]),
        ("deepseek", "deepseek-chat", ["json_object"]),
        ("lmstudio", "m", ["strict"]),
        ("cohere", "command-a", ["json_object with schema"]),
        ("groq", "openai/gpt-oss-120b", ["strict", "json_object"]),
        ("groq", "llama-3.3-70b-versatile", ["json_object"]),
    ],
)
def test_json_is_asked_for_in_forms_a_server_takes(dialect: str, model: str, kinds: list[str]) -> None:
    """The best first; what it refuses is left."""
    found: list[str] = []
    ladder = [format_part(each) for each in SERVERS[dialect].ladder(model)]
    for steps in range(len(kinds)):
        sent = body(dialect, ladder[:steps], schema=True, model=model)
        shape = cast("JsonObject", sent["response_format"])
        kind = str(shape["type"])
        found.append(
            "strict" if "strict" in str(shape) else f"{kind} with schema" if "schema" in shape else kind
        )
    assert found == kinds
    assert "response_format" not in body(dialect, ladder, schema=True, model=model)


def test_a_bare_json_object_has_its_schema_in_the_prompt() -> None:
    """In the system message, since the last message ends in the task; with the word JSON."""
    messages = body("deepseek", schema=True)["messages"]
    assert messages == (
        {
            "role": "system",
            "content": "Be brief.\n\nReply with one JSON object that follows this JSON schema, and nothing "
            'else:\n{"type":"object","properties":{"ranking":{"type":"array"}}}',
        },
        {"role": "user", "content": "Why?"},
    )


@pytest.mark.parametrize(
    ("dialect", "model", "refused"),
    [("gemini", "gemma-3-27b-it", ()), ("generic", "m", (SYSTEM,))],
)
def test_a_system_text_precedes_the_users_where_there_is_no_such_role(
    dialect: str, model: str, refused: Collection[str]
) -> None:
    """Nothing is lost."""
    sent = body(dialect, refused, model=model)
    assert sent["messages"] == ({"role": "user", "content": "Be brief.\n\nWhy?"},)


def test_what_streams_and_what_does_not() -> None:
    """Groq doesn't stream a reply in a format; without a stream there is nothing to count in it."""
    assert body("groq")["stream"] is True
    whole = body("groq", schema=True)
    assert (whole["stream"], "stream_options" in whole) == (False, False)
    assert body("generic", ("stream",))["stream"] is False


def test_extra_fields_are_sent_as_they_are() -> None:
    """After everything else, and not to servers that refuse them."""
    extra = {"provider": {"order": ["a"]}, "top_k": 4}
    assert body("openrouter", extra=extra)["provider"] == {"order": ["a"]}
    assert "top_k" not in body("generic", ("top_k",), extra=extra)
