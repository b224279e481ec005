"""Why a server refused a call, in the words, shapes and codes of many."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Cause
from council.models.refusals import KEY, excerpt, refused, shorten
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (400, {"message": "no"}, "bad_request"),
        (401, {"message": "no"}, "key"),
        (402, {"message": "no"}, "too_dear"),
        (403, {"message": "no"}, "forbidden"),
        (404, {"message": "no"}, "not_found"),
        (408, {}, "unavailable"),
        (409, {}, "unavailable"),
        (405, {}, "no_api"),
        (412, {}, "credit"),
        (413, {}, "too_long"),
        (422, {}, "bad_request"),
        (429, {"code": "rate_limit_exceeded"}, "rate_limited"),
        (429, {"code": "insufficient_quota"}, "credit"),
        (429, {"type": "insufficient_quota", "code": None}, "credit"),
        (400, {"code": "content_filter"}, "moderated"),
        (400, {"code": "invalid_api_key", "type": "invalid_request_error"}, "key"),
        (307, {}, "no_api"),
        (498, {}, "unavailable"),
        (524, {}, "unavailable"),
        (500, {}, "unavailable"),
        (503, {"code": 503}, "unavailable"),
        (529, {"type": "overloaded_error"}, "unavailable"),
        (200, {"code": 429}, "rate_limited"),
        (200, {"code": "502"}, "unavailable"),
        (200, {"code": 402}, "too_dear"),
        (200, {"code": 400}, "bad_request"),
        (200, {"type": "invalid_request_error"}, "bad_request"),
        (200, {"code": "server_error"}, "unavailable"),
        (200, "it broke", "unavailable"),
        (200, {}, "unavailable"),
    ],
)
def test_an_errors_cause_comes_from_its_code_and_status(
    status: int, error: object, expected: Cause
) -> None:
    """A code that is more specific than the status wins; within a 200 there is only the code."""
    assert refused(error, status).failure.cause == expected
    assert refused({"error": error}, status).failure.cause == expected


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ({"message": "No credit\nleft."}, "No credit left."),
        ({"error": "model not loaded"}, "model not loaded"),
        ({"detail": "Not Found"}, "Not Found"),
        (
            {"message": "Provider returned error", "metadata": {"raw": "busy"}},
            "Provider returned error: busy",
        ),
        ({}, "Bad Gateway"),
    ],
)
def test_a_failure_says_what_the_provider_said(error: JsonObject, detail: str) -> None:
    """In one line, from wherever servers put it; else the status in words."""
    assert refused(error, 502).failure.detail == detail


@pytest.mark.parametrize("code", ["9" * 5000, 1001, "٤٢٩", "0429"])
def test_a_code_that_is_no_status_changes_none(code: object) -> None:
    """It is a number of the provider's own, in an error inside a 200; "OK" doesn't explain it."""
    failure = refused({"error": {"code": code}}, 200).failure
    assert (failure.cause, failure.status, failure.detail) == ("unavailable", 200, "")


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-or-v1-0123456789abcdef.",
        "Incorrect API key provided: sk-proj-abc***xyz",
        "Authorization: Bearer hunter2hunter2",
        "key AIzaSyA1234567890 was refused",
        "token 0123456789abcdef0123456789abcdef is revoked",
        "the key hunter2 is unknown",
    ],
)
def test_a_detail_never_contains_a_key(text: str) -> None:
    """Neither the key of this call nor anything that looks like one."""
    detail = shorten(text, Redaction(["hunter2"], KEY))
    assert "[key]" in detail
    for secret in ("0123456789abcdef", "abc***xyz", "hunter2", "AIzaSy"):
        assert secret not in detail


def test_a_models_id_is_no_key() -> None:
    """Long names with digits stay readable."""
    text = "meta-llama/llama-4-maverick-17b-128e-instruct isn't available"
    assert shorten(text) == text


def test_a_long_detail_is_shortened_to_one_line() -> None:
    """200 characters are enough to know what happened."""
    detail = shorten("word " * 100)
    assert 190 < len(detail) <= 200
    assert detail.endswith("…")


SECRET = "hunter2-" * 8
SECRETS = Redaction([SECRET], KEY)


def test_only_the_beginning_of_an_error_is_searched_for_keys() -> None:
    """A sentence of many megabytes takes no longer than one of two thousand characters."""
    huge = "words and " * 3_000_000
    assert len(excerpt(huge, SECRETS)) <= 2_000
    assert shorten(huge) == f"{huge[:199].rpartition(' ')[0]}\u2026"


@pytest.mark.parametrize("before", range(1_900, 2_100, 7))
def test_a_cut_shows_no_part_of_a_secret(before: int) -> None:
    """Wherever it is: the secret itself, and words that look like a key."""
    blank, rest = " " * before, "and so on " * 1000
    assert "hunter2" not in shorten(f"{blank}{SECRET} {rest}", SECRETS)
    assert "hunter2" not in excerpt(f"{'x' * before}{SECRET}{'y' * 5000}", SECRETS)
    assert "sk-or" not in shorten(f"{blank}sk-or-v1-0123456789abcdef {rest}")


def test_a_message_that_is_no_text_is_shown_as_json() -> None:
    """Some servers list what they object to."""
    objections: list[object] = [{"loc": ["body", "model"], "msg": "field required"}]
    failure = refused({"detail": objections}, 422).failure
    assert failure.detail == '[{"loc":["body","model"],"msg":"field required"}]'


def test_half_a_pair_in_an_error_is_replaced() -> None:
    """It could be written to no file."""
    assert refused({"message": "no \ud83d"}, 500).failure.detail == "no \ufffd"


CASES: list[tuple[str, int, object, Cause]] = [
    (
        "OpenAI, key",
        401,
        {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}},
        "key",
    ),
    (
        "OpenAI, credit",
        429,
        {
            "error": {
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "type": "insufficient_quota",
            }
        },
        "credit",
    ),
    (
        "OpenAI, tokens",
        429,
        {
            "error": {
                "message": "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        "too_long",
    ),
    (
        "OpenAI, without /v1",
        404,
        {"error": {"message": "Invalid URL (POST /chat/completions)", "type": "invalid_request_error"}},
        "no_api",
    ),
    (
        "OpenAI, model",
        404,
        {
            "error": {
                "message": "The model `x` does not exist or you do not have access to it.",
                "code": "model_not_found",
            }
        },
        "not_found",
    ),
    (
        "OpenAI, window",
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "code": "context_length_exceeded",
            }
        },
        "too_long",
    ),
    (
        "OpenAI, country",
        403,
        {
            "error": {
                "code": "unsupported_country_region_territory",
                "message": "Country, region, or territory not supported",
            }
        },
        "forbidden",
    ),
    (
        "Azure, filter",
        400,
        {
            "error": {
                "code": "content_filter",
                "message": "The response was filtered",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        "moderated",
    ),
    ("Azure, address", 404, {"error": {"code": "404", "message": "Resource not found"}}, "no_api"),
    (
        "Azure, deployment",
        404,
        {
            "error": {
                "code": "DeploymentNotFound",
                "message": "The API deployment for this resource does not exist.",
            }
        },
        "not_found",
    ),
    (
        "OpenRouter, key limit",
        403,
        {
            "error": {
                "message": "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
                "code": 403,
            }
        },
        "key_limit",
    ),
    (
        "OpenRouter, key limit by type",
        403,
        {
            "error": {
                "message": "Key limit exceeded (monthly limit).",
                "code": 403,
                "metadata": {"error_type": "permission_denied"},
            }
        },
        "key_limit",
    ),
    (
        "OpenRouter, budget",
        403,
        {"error": {"message": "Budget limit exceeded", "code": 403}},
        "key_limit",
    ),
    (
        "OpenRouter, 402 of the key",
        402,
        {"error": {"message": "x", "code": 402, "metadata": {"limit_source": "openrouter_key_limit"}}},
        "key_limit",
    ),
    (
        "OpenRouter, one request",
        402,
        {
            "error": {
                "message": "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 4000. To increase, visit https://openrouter.ai/settings/credits and add more credits",
                "code": 402,
                "metadata": {"limit_source": "openrouter_credits"},
            }
        },
        "too_dear",
    ),
    (
        "OpenRouter, empty",
        402,
        {
            "error": {
                "message": "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
                "code": 402,
            }
        },
        "credit",
    ),
    (
        "OpenRouter, in flight",
        402,
        {
            "error": {
                "message": "This request would exceed your available credits given your current in-flight requests.",
                "code": 402,
                "metadata": {
                    "reason": "in_flight_budget_exhausted",
                    "limit_source": "openrouter_in_flight_budget",
                },
            }
        },
        "rate_limited",
    ),
    (
        "OpenRouter, data policy",
        404,
        {
            "error": {
                "message": "No endpoints found matching your data policy (Free model training). Configure: https://openrouter.ai/settings/privacy",
                "code": 404,
            }
        },
        "data_policy",
    ),
    (
        "OpenRouter, privacy",
        404,
        {"error": {"message": "x", "code": 404, "availability": {"code": "privacy_restricted"}}},
        "data_policy",
    ),
    (
        "OpenRouter, no such model",
        400,
        {"error": {"message": "google/x is not a valid model ID", "code": 400}},
        "not_found",
    ),
    (
        "OpenRouter, model by code",
        400,
        {"error": {"message": "x", "code": 400, "availability": {"code": "model_not_found"}}},
        "not_found",
    ),
    (
        "OpenRouter, region",
        403,
        {"error": {"message": "x", "code": 403, "availability": {"code": "region_restricted"}}},
        "forbidden",
    ),
    (
        "OpenRouter, moderation",
        403,
        {
            "error": {
                "message": "Your chosen model requires moderation and your input was flagged",
                "code": 403,
                "metadata": {"reasons": ["harm"], "flagged_input": "insufficient balance"},
            }
        },
        "moderated",
    ),
    (
        "OpenRouter, upstream",
        429,
        {
            "error": {
                "message": "Provider returned error",
                "code": 429,
                "metadata": {"raw": '{"error": {"message": "busy", "code": "insufficient_quota"}}'},
            }
        },
        "rate_limited",
    ),
    (
        "Anthropic, credit",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API.",
            },
        },
        "credit",
    ),
    (
        "Anthropic, window",
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            }
        },
        "too_long",
    ),
    ("Anthropic, billing", 402, {"error": {"type": "billing_error", "message": "x"}}, "credit"),
    (
        "Gemini, key",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                    "details": [{"reason": "API_KEY_INVALID"}],
                }
            }
        ],
        "key",
    ),
    (
        "Gemini, country",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "User location is not supported for the API use.",
                    "status": "FAILED_PRECONDITION",
                }
            }
        ],
        "forbidden",
    ),
    (
        "Gemini, a minute's quota",
        429,
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 12.3s.",
                    "status": "RESOURCE_EXHAUSTED",
                }
            }
        ],
        "rate_limited",
    ),
    ("Mistral, key or quota", 401, {"detail": "Unauthorized"}, "key"),
    (
        "Mistral, field",
        422,
        {"message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"]}]}},
        "bad_request",
    ),
    (
        "Mistral, capacity",
        429,
        {"message": "Service tier capacity exceeded for this model.", "code": "3505"},
        "rate_limited",
    ),
    ("Mistral, without /v1", 404, {"message": "no Route matched with those values"}, "no_api"),
    (
        "Groq, tokens",
        413,
        {
            "error": {
                "message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        "too_long",
    ),
    (
        "Groq, address",
        404,
        {"error": {"message": "Unknown request URL: POST /chat/completions.", "code": "unknown_url"}},
        "no_api",
    ),
    (
        "Groq, JSON",
        400,
        {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}},
        "malformed",
    ),
    (
        "Together, window",
        403,
        {"error": {"message": "`inputs` tokens + `max_new_tokens` must be <= 4097."}},
        "too_long",
    ),
    (
        "Together, credit",
        402,
        {"error": {"message": "Credit limit exceeded", "code": "credit_limit"}},
        "credit",
    ),
    ("Fireworks, suspended", 412, {"error": {"message": "Account is suspended"}}, "credit"),
    (
        "DeepSeek, credit",
        402,
        {"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}},
        "credit",
    ),
    (
        "DeepSeek, model",
        400,
        {"error": {"message": "Model Not Exist", "code": "invalid_request_error"}},
        "not_found",
    ),
    (
        "xAI, key",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Incorrect API key provided: xx. You can obtain an API key from https://console.x.ai.",
        },
        "key",
    ),
    (
        "xAI, credit",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Your team x has either used all available credits or reached its monthly spending limit.",
        },
        "credit",
    ),
    ("xAI, blocked", 403, {"code": "x", "error": "Content violates usage guidelines."}, "moderated"),
    (
        "Cerebras, credit",
        402,
        {
            "message": "Payment required. Please visit your billing tab.",
            "type": "payment_required_error",
            "param": "quota",
            "code": "payment_required",
        },
        "credit",
    ),
    (
        "Cohere, tokens",
        400,
        {"id": "x", "message": "too many tokens: size limit exceeded by 5 tokens."},
        "too_long",
    ),
    (
        "Moonshot, credit",
        429,
        {"error": {"message": "x", "type": "exceeded_current_quota_error"}},
        "credit",
    ),
    (
        "Moonshot, busy",
        429,
        {"error": {"message": "x", "type": "engine_overloaded_error"}},
        "unavailable",
    ),
    (
        "Z.ai, credit",
        429,
        {
            "error": {
                "code": "1113",
                "message": "Insufficient balance or no resource package. Please recharge.",
            }
        },
        "credit",
    ),
    (
        "Z.ai, at once",
        429,
        {"error": {"code": "1302", "message": "High concurrency usage of this API"}},
        "rate_limited",
    ),
    (
        "DashScope, credit",
        400,
        {
            "code": "Arrearage",
            "message": "Access denied, please make sure your account is in good standing.",
        },
        "credit",
    ),
    (
        "DashScope, filter",
        400,
        {
            "error": {
                "code": "data_inspection_failed",
                "message": "Input data may contain inappropriate content.",
            }
        },
        "moderated",
    ),
    (
        "HF, credit",
        402,
        {"error": "You have exceeded your monthly included credits for Inference Providers."},
        "credit",
    ),
    (
        "HF, model",
        400,
        {
            "error": {
                "message": "The requested model 'x' is not supported by any provider you have enabled."
            }
        },
        "not_found",
    ),
    (
        "Ollama, model",
        404,
        {"error": {"message": 'model "x" not found, try pulling it first', "type": "api_error"}},
        "not_found",
    ),
    ("Ollama, without /v1", 404, "404 page not found", "no_api"),
    ("vLLM, key", 401, {"error": "Unauthorized"}, "key"),
    ("vLLM, without /v1", 404, {"detail": "Not Found"}, "no_api"),
    (
        "vLLM, model",
        404,
        {
            "object": "error",
            "message": "The model `x` does not exist.",
            "type": "NotFoundError",
            "code": 404,
        },
        "not_found",
    ),
    (
        "LM Studio, address",
        200,
        {"error": "Unexpected endpoint or method. (POST /chat/completions)"},
        "no_api",
    ),
    (
        "llama.cpp, window",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
                "n_ctx": 4096,
            }
        },
        "too_long",
    ),
    (
        "llama.cpp, address",
        404,
        {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
        "no_api",
    ),
    (
        "llama.cpp, loading",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        "unavailable",
    ),
    (
        "LiteLLM, budget",
        400,
        {
            "error": {
                "message": "Budget has been exceeded! Current cost: 2.0, Max budget: 1.0",
                "type": "budget_exceeded",
                "code": "400",
            }
        },
        "key_limit",
    ),
    (
        "LiteLLM, model",
        401,
        {
            "error": {
                "message": "key not allowed to access model",
                "type": "key_model_access_denied",
                "code": "401",
            }
        },
        "forbidden",
    ),
    (
        "Cloudflare, day",
        429,
        {
            "errors": [{"code": 3036, "message": "you have used up your daily free allocation"}],
            "success": False,
        },
        "credit",
    ),
    (
        "Cloudflare, as an object",
        400,
        {"errors": {"code": 5007, "message": "No such model"}, "success": False},
        "not_found",
    ),
    (
        "Cloudflare, capacity",
        429,
        {"errors": [{"code": 3040, "message": "Capacity temporarily exceeded"}]},
        "rate_limited",
    ),
    ("nothing but the status", 402, {}, "too_dear"),
    ("no more than the status", 402, {"message": "Payment Required"}, "too_dear"),
    ("an empty page", 404, "", "no_api"),
]


def test_what_a_server_says_has_its_cause() -> None:
    """Each in its server's words, shape and status."""
    read = {name: refused(body, status).failure.cause for name, status, body, _ in CASES}
    assert read == {name: cause for name, _, _, cause in CASES}


TELLING = (
    "Incorrect API key provided",
    "insufficient balance",
    "Key limit exceeded",
    "your prompt was flagged",
    "this model's maximum context length is 1",
    "no endpoints found matching your data policy",
    "model x not found",
    "404 page not found",
)


@pytest.mark.parametrize("status", [400, 402, 403, 404, 422, 429, 500])
def test_what_a_server_quotes_is_no_cause(status: int) -> None:
    """A question may hold any of these words."""
    plain = refused({"error": {"message": "Invalid value. Supported values are: text."}}, status).failure
    for quoted, marks in product(TELLING, ("''", '""', "``", "\u201c\u201d")):
        message = f"Invalid value: {marks[0]}{quoted}{marks[1]}. Supported values are: text."
        assert refused({"error": {"message": message}}, status).failure.cause == plain.cause, message


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "errors", "message", "detail", "code", "metadata", "raw"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from([200, 307, 400, 402, 403, 404, 429, 500]),
)
def test_no_error_breaks_the_reader(body: object, status: int) -> None:
    """Whatever a server sends has a cause and a line."""
    failure = refused(body, status).failure
    assert len(failure.detail) <= 200
    assert "\n" not in failure.detail


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 7.66s.", 7.66),
        ("Please try again in 2m59.56s. Need more tokens?", 179.56),
        ("Please try again in 1h30m0s", 5400.0),
        ("Please try again in 120ms.", 0.12),
        ("Please retry after 26 seconds.", 26.0),
        ("retry after 2 minutes", 120.0),
        ("Please retry in 54.2s", 54.2),
        ("try again in 1 day", 86400.0),
        ("try again later", None),
        ("try again in 5", None),
        ("try again in 5 songs", None),
    ],
)
def test_a_wait_is_read_out_of_a_sentence(said: str, seconds: float | None) -> None:
    """As OpenAI, Groq, Azure and Gemini write it."""
    wait = refused({"error": {"message": said}}, 429).retry_after
    assert wait == (seconds if seconds is None else pytest.approx(seconds))


def test_a_wait_is_read_where_openrouter_states_it() -> None:
    """With whether it is worth it; a header says it with more authority."""
    availability = {"code": "capacity_exhausted", "retryable": False, "retry_after": 12}
    error = {"error": {"message": "no", "code": 429, "availability": availability}}
    assert (refused(error, 429).retry_after, refused(error, 429).retryable) == (12.0, False)
    assert refused(error, 429, retry_after=3.0).retry_after == 3.0
