"""What a refusal teaches: in the words of the servers that send it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Cause, Failure
from council.models.dialects import DIALECTS
from council.models.learning import Traits, named_change, smaller_limit, trials
from council.text.json_objects import JsonObject

GENERIC = DIALECTS["generic"]
BODY: JsonObject = {
    "model": "m",
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.2,
    "max_tokens": 800,
    "reasoning_effort": "low",
    "response_format": {"type": "json_schema"},
    "top_k": 4,
}


def learned(
    error: object, status: int = 400, cause: Cause = "bad_request", traits: Traits | None = None
) -> tuple[Traits, bool] | None:
    """Return what is learned of a refusal, and whether it holds for every model."""
    lesson = named_change(error, Failure(cause=cause, status=status), BODY, GENERIC, traits or Traits())
    return lesson and (lesson.traits, lesson.everywhere)


SWAPPED = Traits(limit="max_completion_tokens")


@pytest.mark.parametrize(
    ("status", "error", "traits", "everywhere"),
    [
        # OpenAI, openai/openai-openapi; run-llama/llama_index#17731; nashsu/llm_wiki#336
        (
            400,
            {"error": {"message": "Unknown parameter: 'top_k'.", "param": "top_k"}},
            Traits(dropped=("top_k",)),
            True,
        ),
        (
            400,
            {"error": {"message": "Unrecognized request argument supplied: top_k", "param": None}},
            Traits(dropped=("top_k",)),
            True,
        ),
        (
            400,
            {
                "error": {
                    "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                    "param": "max_tokens",
                    "code": "unsupported_parameter",
                }
            },
            SWAPPED,
            False,
        ),
        (
            400,
            {
                "error": {
                    "message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
                    "param": "temperature",
                }
            },
            Traits(dropped=("temperature",)),
            False,
        ),
        (
            400,
            {
                "error": {
                    "message": "Your organization must be verified to stream this model.",
                    "param": "stream",
                }
            },
            Traits(whole_formats=True),
            False,
        ),
        # Gemini, MinLL/SkyrimNet-GamePlugin#77: an array
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": 'Invalid JSON payload received. Unknown name "topK": Cannot find field.',
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
            None,
            False,
        ),
        (
            400,
            [{"error": {"code": 400, "message": 'Unknown name "top_k": Cannot find field.'}}],
            Traits(dropped=("top_k",)),
            True,
        ),
        # Mistral, editor-code-assistant/eca#231
        (
            422,
            {
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "stream_options"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                }
            },
            Traits(dropped=("stream_options",)),
            True,
        ),
        # Groq, fanenr/chatbot#21
        (
            400,
            {"error": {"message": "property 'top_k' is unsupported", "type": "invalid_request_error"}},
            Traits(dropped=("top_k",)),
            True,
        ),
        # Cerebras, huggingface/huggingface.js#2268; musistudio/claude-code-router#708
        (
            400,
            {
                "message": "top_k: property 'top_k' is unsupported",
                "param": "validation_error",
                "code": "wrong_api_format",
            },
            Traits(dropped=("top_k",)),
            True,
        ),
        (
            400,
            {"message": "Unsupported JSON schema fields: {'minItems'}", "param": "validation_error"},
            Traits(format_steps=1),
            False,
        ),
        # Cohere, davidmigloz/ai_clients_dart#26
        (
            422,
            {"id": "1", "message": "unprocessable entity: top_k is not supported"},
            Traits(dropped=("top_k",)),
            False,
        ),
        # xAI
        (
            400,
            {"code": "invalid", "error": "Argument not supported on this model: reasoningEffort"},
            Traits(dropped=("reasoning_effort",)),
            False,
        ),
        # Moonshot, Ollama
        (
            400,
            {"error": {"message": "invalid temperature: only 1 is allowed for this model"}},
            Traits(dropped=("temperature",)),
            False,
        ),
        (
            400,
            {"error": {"message": '"m" does not support thinking', "type": "api_error"}},
            Traits(dropped=("reasoning_effort",)),
            False,
        ),
        # DeepSeek, LM Studio, vLLM #13260, pydantic-ai #1457
        (
            400,
            {"error": {"message": "This response_format type is unavailable now"}},
            Traits(format_steps=1),
            False,
        ),
        (
            400,
            {"error": "'response_format.type' must be 'json_schema' or 'text'"},
            Traits(format_steps=1),
            False,
        ),
        (
            500,
            {"error": {"message": "guided decoding: the grammar could not be compiled"}},
            Traits(format_steps=1),
            False,
        ),
        (
            404,
            {"error": {"message": "No endpoints found that can handle the requested parameters."}},
            Traits(format_steps=1),
            False,
        ),
        # Gemma, llama.cpp's templates
        (
            400,
            {"error": {"message": "Developer instruction is not enabled for models/gemma-3"}},
            Traits(merges_system=True),
            False,
        ),
        (
            500,
            {"error": {"message": "Jinja Exception: System role not supported"}},
            Traits(merges_system=True),
            False,
        ),
        (
            400,
            {"error": {"message": "Only user and assistant roles are supported!"}},
            Traits(merges_system=True),
            False,
        ),
    ],
)
def test_a_refusal_that_names_a_field(
    status: int, error: object, traits: Traits | None, *, everywhere: bool
) -> None:
    """In `param`, `loc` or words: what was sent is dropped, swapped or put otherwise."""
    causes: dict[int, Cause] = {404: "not_found", 500: "unavailable"}
    found = learned(error, status, causes.get(status, "bad_request"))
    if traits is None:  # it names what wasn't sent under that name
        assert found == (Traits(dropped=("top_k",)), True)
    else:
        assert found == (traits, everywhere)


@pytest.mark.parametrize("cause", ["key", "credit", "too_long", "moderated", "rate_limited", "too_dear"])
def test_what_other_fields_do_not_mend_teaches_nothing(cause: Cause) -> None:
    """Whatever its words name."""
    error = {"error": {"message": "max_tokens: 65536 is more than you can afford"}}
    assert learned(error, 400, cause) is None


def test_a_field_is_changed_once() -> None:
    """A limit refused under both names is left out; a dropped field that is named again teaches nothing."""
    refused = {"error": {"message": "unsupported", "param": "max_tokens"}}
    assert learned(refused, traits=SWAPPED) == (
        Traits(dropped=("max_tokens", "max_completion_tokens")),
        False,
    )
    named = {"error": {"message": "unsupported", "param": "top_k"}}
    assert learned(named, traits=Traits(dropped=("top_k",))) is None


@pytest.mark.parametrize(
    "words",
    [
        "The model is overloaded.",
        "Provider returned error",
        "The upstream stream timed out while many were under load.",
        "messages: at least one message is required",
        "messages[1].content must be a string",
    ],
)
def test_words_that_name_no_field_teach_nothing(words: str) -> None:
    """A path into the messages is no field to drop."""
    assert learned({"error": {"message": words}}) is None


def test_a_refusal_that_names_nothing_is_answered_by_trials() -> None:
    """One change at a time, in this order; there is none about the messages."""
    failure = Failure(cause="bad_request", status=400)
    silent = {
        "error": {"code": "1210", "message": "Invalid API parameter, please check the documentation."}
    }
    assert trials(failure, silent, BODY, GENERIC, Traits()) == [
        Traits(format_steps=1),
        Traits(dropped=("stream_options",)),
        Traits(dropped=("reasoning_effort",)),
        Traits(dropped=("temperature",)),
        SWAPPED,
        Traits(merges_system=True),
    ]
    about_text = {"error": {"message": "The prompt must not be empty."}}
    assert trials(failure, about_text, BODY, GENERIC, Traits()) == [Traits(format_steps=1)]
    breaks = Failure(cause="unavailable", status=500)
    assert trials(breaks, {}, BODY, GENERIC, Traits()) == [Traits(format_steps=1)]
    assert trials(failure, silent, BODY, GENERIC, Traits(tried=True)) == []
    assert trials(failure, silent, BODY, DIALECTS["openai"], Traits()) == []


@pytest.mark.parametrize(
    ("words", "asked", "less"),
    [
        ("You requested up to 65536 tokens, but can only afford 30104.", None, 30104),
        ("65536 requested, but only 30104 can be afforded.", None, 30104),
        ("You requested up to 800 tokens, but can only afford 500.", 800, 500),
        ("You requested up to 800 tokens, but can only afford 12.", 800, None),
        ("Insufficient credits.", None, None),
    ],
)
def test_a_reply_is_as_long_as_the_account_affords(
    words: str, asked: int | None, less: int | None
) -> None:
    """Once, and only where enough for an answer is left."""
    failure = Failure(cause="too_dear", status=402)
    assert smaller_limit(failure, {"error": {"message": words}}, asked) == less


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["error", "detail", "param", "loc", "message", "x"]), inner, max_size=4
            )
        ),
    )
)
def test_any_body_is_read(error: object) -> None:
    """Whatever a server sends, nothing but a field that was sent is changed."""
    found = learned(error)
    if found:
        assert {*found[0].dropped} <= BODY.keys() | {"max_completion_tokens"}
