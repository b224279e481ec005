"""Servers of those who make the models."""

from collections.abc import Iterator
from typing import ClassVar, cast

import orjson

from tests.model_server import Exchange, Json, Turn
from tests.model_servers.stand_in import (
    KEY,
    OPENAI_FIELDS,
    PLAIN_FIELDS,
    StandIn,
    Troubles,
    error,
    form_of,
    keywords_in,
    lacks_json,
    refused,
    roles_of,
    schema_of,
    unknown_fields,
)

NO_JSON_WORD = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."


class OpenAI(StandIn):
    """OpenAI: two models that think and refuse `max_tokens` and temperatures, and a plain one.

    openai/openai-openapi (2026-08); developers.openai.com/api/docs/guides/error-codes;
    nashsu/llm_wiki#336 and griptape-ai/ComfyUI-Griptape#312 for the refusals' words.
    """

    title = "OpenAI"
    dialect = "openai"
    models_served = ("gpt-5.1", "o4-mini", "gpt-4o")
    plain: ClassVar[tuple[str, ...]] = ("gpt-4o",)
    fields: ClassVar[frozenset[str]] = OPENAI_FIELDS
    wrong_key = refused(
        401,
        error(
            "Incorrect API key provided: sk-wrong. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            "invalid_api_key",
        ),
    )
    unknown_model = refused(
        404,
        error(
            "The model `{model}` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            error(
                "Rate limit reached for {model} in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s.",
                "requests",
                "rate_limit_exceeded",
            ),
            retry_after="1",
        ),
        "no credit": refused(
            429,
            error(
                "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
                "insufficient_quota",
                "insufficient_quota",
            ),
        ),
        "too long": refused(
            400,
            error(
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
                "invalid_request_error",
                "context_length_exceeded",
                "messages",
            ),
        ),
        "overloaded": refused(
            503,
            error(
                "That model is currently overloaded with other requests.",
                "server_error",
                "server_is_overloaded",
            ),
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse unknown fields, and what models that think don't take."""
        if unknown := unknown_fields(request, self.fields):
            plural = "s" if len(unknown) > 1 else ""
            message = f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}"
            return refused(400, error(message, "invalid_request_error"))
        if request["model"] not in self.plain and request["model"] in self.models_served:
            if "max_tokens" in request:
                return self._unsupported(
                    "max_tokens",
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                    "unsupported_parameter",
                )
            if request.get("temperature", 1) != 1:
                return self._unsupported(
                    "temperature",
                    f"Unsupported value: 'temperature' does not support {request['temperature']} with this model. Only the default (1) value is supported.",
                    "unsupported_value",
                )
        if lacks_json(request):
            return refused(400, error(NO_JSON_WORD, "invalid_request_error", None, "messages"))
        return self._schema_refusal(request)

    def _unsupported(self, field: str, message: str, code: str) -> Turn:
        return refused(400, error(message, "invalid_request_error", code, field))

    def _schema_refusal(self, request: Json) -> Turn | None:
        schema, strict = schema_of(request)
        if not strict or (_is_closed(schema) and not keywords_in(schema, {"allOf", "not", "if"})):
            return None
        message = (
            "Invalid schema for response_format 'reply': In context=(), 'additionalProperties' is required "
            "to be supplied and to be false."
        )
        return refused(400, error(message, "invalid_request_error", None, "response_format"))


def _is_closed(schema: object) -> bool:
    """Whether every object of a schema is closed and wants all its properties."""
    if isinstance(schema, list):
        return all(map(_is_closed, cast("list[object]", schema)))
    if not isinstance(schema, dict):
        return True
    fields = cast("Json", schema)
    properties = cast("Json", fields.get("properties") or {})
    if fields.get("type") == "object" and (
        fields.get("additionalProperties") is not False or fields.get("required") != [*properties]
    ):
        return False
    return all(_is_closed(value) for value in [*fields.values(), *properties.values()])


class OpenAIUnverified(OpenAI):
    """OpenAI for an organization that isn't verified: its models don't stream.

    continuedev/continue#7129.
    """

    title = "OpenAI, organization not verified"
    unforeseen = 1
    models_served = ("gpt-5.1", "gpt-5.1-mini", "o4-mini")

    def refusal(self, request: Json) -> Turn | None:
        """Refuse to stream."""
        if (turn := super().refusal(request)) is not None:
            return turn
        if not request.get("stream"):
            return None
        return self._unsupported(
            "stream",
            "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.",
            "unsupported_value",
        )


class AzureOpenAI(OpenAI):
    """Azure OpenAI: a key in a header of its own or the usual one, deployments, chunks of its content filter.

    learn.microsoft.com/azure/ai-foundry/openai/latest; microsoft/autogen#6465 for the filter's chunks.
    """

    title = "Azure OpenAI"
    dialect = "azure"
    path = "/openai/v1"
    models_served = ("gpt-5-1-europe", "o4-mini-europe", "gpt-4o-europe")
    plain = ("gpt-4o-europe",)
    wrong_key = refused(
        401,
        {
            "error": {
                "code": "401",
                "message": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
            }
        },
    )
    unknown_model = refused(
        404,
        {
            "error": {
                "code": "DeploymentNotFound",
                "message": "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "code": "429",
                    "message": "Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current pricing tier. Please retry after 1 seconds.",
                }
            },
            retry_after="1",
        ),
        "too long": OpenAI.troubles["too long"],
        "overloaded": refused(
            503,
            {
                "error": {
                    "code": "InternalServerError",
                    "message": "The service is temporarily unable to process your request. Please try again later.",
                }
            },
        ),
    }

    def _knows(self, exchange: Exchange) -> bool:
        return exchange.headers.get("api-key") == KEY or super()._knows(exchange)

    def opening(self, request: Json) -> Iterator[bytes]:
        """Say first what the filter thinks of the prompt."""
        passed = {"hate": {"filtered": False, "severity": "safe"}}
        yield self.chunk(
            request, prompt_filter_results=[{"prompt_index": 0, "content_filter_results": passed}]
        )
        yield from super().opening(request)

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Filter's chunks have a choice without a delta."""
        yield self.chunk(request).replace(
            b'"choices":[]',
            b'"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":44},"content_filter_results":{}}]',
        )
        yield from super().ending(request, usage)


class Anthropic(StandIn):
    """Claude through Anthropic's OpenAI SDK compatibility: unknown fields are ignored, thoughts never shown.

    platform.claude.com/docs/en/api/openai-sdk; platform.claude.com/docs/en/api/errors;
    anthropics/claude-code#66297 for the empty account.
    """

    title = "Anthropic (OpenAI SDK compatibility)"
    dialect = "anthropic"
    models_served = ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5")
    wrong_key = refused(
        401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    )
    unknown_model = refused(
        404, {"type": "error", "error": {"type": "not_found_error", "message": "model: {model}"}}
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "type": "error",
                "error": {
                    "type": "rate_limit_error",
                    "message": "Number of request tokens has exceeded your per-minute rate limit",
                },
            },
            retry_after="1",
        ),
        "no credit": refused(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
                },
            },
        ),
        "too long": refused(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
        ),
        "overloaded": refused(
            529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        ),
    }


class Gemini(StandIn):
    """Gemini's OpenAI compatibility: bodies of errors are arrays, and every chunk has the usage so far.

    ai.google.dev/gemini-api/docs/openai; MinLL/SkyrimNet-GamePlugin#77 (several unknown names at once);
    Alishahryar1/free-claude-code#542; continuedev/continue#12960 (a wrong key is a 400); ogx-ai/ogx#5122.
    """

    title = "Gemini"
    dialect = "gemini"
    path = "/v1beta/openai"
    models_served = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview")
    usage_in = "every chunk"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *(
            "max_tokens",
            "max_completion_tokens",
            "n",
            "response_format",
            "reasoning_effort",
            "stream_options",
        ),
        *("tools", "tool_choice", "extra_body", "user"),
    }
    wrong_key = refused(
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                            "reason": "API_KEY_INVALID",
                            "domain": "googleapis.com",
                        }
                    ],
                }
            }
        ],
    )
    unknown_model = refused(
        404,
        [
            {
                "error": {
                    "code": 404,
                    "message": "models/{model} is not found for API version v1main, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.",
                    "status": "NOT_FOUND",
                }
            }
        ],
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            [
                {
                    "error": {
                        "code": 429,
                        "message": "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. Please retry in 1.2s.",
                        "status": "RESOURCE_EXHAUSTED",
                        "details": [
                            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
                        ],
                    }
                }
            ],
        ),
        "no credit": refused(
            402,
            [
                {
                    "error": {
                        "code": 402,
                        "message": "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.",
                        "status": "RESOURCE_EXHAUSTED",
                    }
                }
            ],
        ),
        "too long": refused(
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
        ),
        "overloaded": refused(
            503,
            [
                {
                    "error": {
                        "code": 503,
                        "message": "The model is overloaded. Please try again later.",
                        "status": "UNAVAILABLE",
                    }
                }
            ],
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Name every unknown field."""
        unknown = unknown_fields(request, self.fields)
        if not unknown:
            return None
        said = [
            f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
            for name in unknown
        ]
        return self._invalid("\n".join(said))

    def _invalid(self, message: str) -> Turn:
        return refused(400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}])

    def described(self, model: str) -> Json:
        """Return a model, whose id begins with a folder in the list alone."""
        return {"id": f"models/{model}", "object": "model", "owned_by": "google"}


class Gemma(Gemini):
    """Gemma on Gemini's server: no system message, no JSON.

    microsoft/vscode#258088, google/adk-python#3900; ai.google.dev/gemma/docs/core/prompt-structure.
    """

    title = "Gemma on Gemini"
    models_served = ("gemma-3-27b-it", "gemma-3-12b-it", "gemma-3n-e4b-it")

    def refusal(self, request: Json) -> Turn | None:
        """Refuse instructions of the developer, which system messages become."""
        if (turn := super().refusal(request)) is not None:
            return turn
        if "system" in roles_of(request):
            return self._invalid(f"Developer instruction is not enabled for models/{request['model']}")
        if form_of(request) != "text":
            return self._invalid(f"JSON mode is not enabled for models/{request['model']}")
        return None


class Mistral(StandIn):
    """Mistral: what it doesn't know is a 422, thoughts are parts of the content, a used-up quota is a 401.

    mistralai/platform-docs-public openapi (2026-08); editor-code-assistant/eca#231; symfony/ai#2422
    (parts while it thinks, text after); diegosouzapw/OmniRoute#7638 (a used-up quota).
    """

    title = "Mistral"
    dialect = "mistral"
    models_served = ("mistral-large-latest", "magistral-medium-latest", "mistral-small-latest")
    thinks = "parts"
    usage_in = "finish chunk"
    credit_cause = "key"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *("max_tokens", "random_seed", "response_format", "presence_penalty", "frequency_penalty", "n"),
        *(
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "prediction",
            "prompt_mode",
            "reasoning_effort",
        ),
        *("safe_prompt", "metadata", "guardrails", "prompt_cache_key"),
    }
    wrong_key = refused(401, {"detail": "Unauthorized"})
    unknown_model = refused(
        400,
        {
            "object": "error",
            "message": "Invalid model: {model}",
            "type": "invalid_model",
            "param": None,
            "code": "1500",
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "object": "error",
                "message": "Rate limit exceeded",
                "type": "rate_limited",
                "param": None,
                "code": "1300",
            },
        ),
        "no credit": refused(401, {"detail": "Unauthorized"}),
        "too long": refused(
            400,
            {
                "object": "error",
                "message": "Prompt contains 300000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
                "type": "invalid_request_prompt",
                "param": None,
                "code": "3051",
            },
        ),
        "overloaded": refused(
            429,
            {
                "object": "error",
                "message": "Service tier capacity exceeded for this model.",
                "type": "service_tier_capacity_exceeded",
                "param": None,
                "code": "3505",
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Name the places of unknown fields."""
        unknown = unknown_fields(request, self.fields)
        if not unknown:
            return None
        detail = [
            {
                "type": "extra_forbidden",
                "loc": ["body", name],
                "msg": "Extra inputs are not permitted",
                "input": request[name],
            }
            for name in unknown
        ]
        body = {
            "object": "error",
            "message": {"detail": detail},
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        return refused(422, body)

    def thinks_about(self, request: Json) -> bool:
        """Only one family thinks."""
        return str(request["model"]).startswith("magistral")

    def described(self, model: str) -> Json:
        """Return a model with its window."""
        return super().described(model) | {"max_context_length": 131_072}


class DeepSeek(StandIn):
    """DeepSeek: refuses JSON schemas, thinks in a field of its own, and keeps connections alive.

    api-docs.deepseek.com (chat completion, error codes, JSON mode); llm-exe/llm-exe#662;
    browserbase/stagehand#1204 (the word JSON); earendil-works/pi#8018 (`max_completion_tokens` is ignored).
    """

    title = "DeepSeek"
    dialect = "deepseek"
    models_served = ("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-chat")
    thinks = "reasoning_content"
    usage_in = "finish chunk"
    comment = b": keep-alive\n\n"
    wrong_key = refused(
        401,
        error(
            "Authentication Fails, Your api key: ****rong is invalid",
            "authentication_error",
            "invalid_request_error",
        ),
    )
    unknown_model = refused(
        400, error("Model Not Exist", "invalid_request_error", "invalid_request_error")
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429, error("Rate limit reached", "rate_limit_error", "rate_limit_exceeded")
        ),
        "no credit": refused(
            402, error("Insufficient Balance", "unknown_error", "invalid_request_error")
        ),
        "too long": refused(
            400,
            error(
                "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (140000 in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
                "invalid_request_error",
                "invalid_request_error",
            ),
        ),
        "overloaded": refused(
            503,
            error(
                "Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.",
                "service_unavailable_error",
                "service_unavailable",
            ),
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse schemas, and JSON without the word."""
        if form_of(request) == "json_schema":
            return refused(
                400,
                error(
                    "This response_format type is unavailable now",
                    "invalid_request_error",
                    "invalid_request_error",
                ),
            )
        if lacks_json(request):
            message = "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
            return refused(400, error(message, "invalid_request_error", "invalid_request_error"))
        return None

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """Say how much of the prompt was cached."""
        counted = super().usage(request, text, thoughts)
        return counted | {
            "prompt_cache_hit_tokens": 0,
            "prompt_cache_miss_tokens": counted["prompt_tokens"],
        }


class XAI(StandIn):
    """xAI: a wrong key is a 400, thoughts aren't in the completion's tokens, and costs come in ticks.

    docs.x.ai/docs/key-information/debugging; vercel/ai packages/xai; i-am-bee/beeai-framework#447 (the key);
    charmbracelet/crush#386 (camelCase); continuedev/continue#10373 (credit).
    """

    title = "xAI"
    dialect = "xai"
    models_served = ("grok-4.6", "grok-4-fast", "grok-3-mini")
    thinks = "reasoning_content"
    usage_in = "finish chunk"
    states_cost = True
    refused_fields: ClassVar[dict[str, str]] = {
        "presence_penalty": "presencePenalty",
        "frequency_penalty": "frequencyPenalty",
        "stop": "stop",
    }
    wrong_key = refused(
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Incorrect API key provided: sk***ng. You can obtain an API key from https://console.x.ai.",
        },
    )
    unknown_model = refused(
        404,
        {
            "code": "Some requested entity was not found",
            "error": "The model {model} does not exist or your team 1 does not have access to it. Please ensure you're using the correct API key. If you believe this is a mistake, please reach out to support and quote your team ID and the model name.",
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "code": "Some resource has been exhausted",
                "error": "Too many requests for team 1 and model {model}. Your team's rate limit is 8 requests per second.",
            },
            retry_after="1",
        ),
        "no credit": refused(
            429,
            {
                "code": "Some resource has been exhausted",
                "error": "Your team 1 has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.",
            },
        ),
        "too long": refused(
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            },
        ),
        "overloaded": refused(
            503,
            {
                "code": "The service is currently unavailable",
                "error": "Service temporarily unavailable. The model is at capacity and currently cannot serve this request. Please try again later.",
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse by other names than the fields have."""
        for field, name in self.refused_fields.items():
            if field in request:
                return refused(
                    400,
                    {
                        "code": "Client specified an invalid argument",
                        "error": f"Argument not supported on this model: {name}",
                    },
                )
        return None

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """Count thoughts beside the completion; ten billion ticks are a dollar."""
        counted = super().usage(request, text, "")
        thought = len(thoughts) // 4
        counted["completion_tokens_details"] = {"reasoning_tokens": thought}
        counted["total_tokens"] = cast("int", counted["total_tokens"]) + thought
        return counted | {"cost_in_usd_ticks": 20_000_000}


class Perplexity(StandIn):
    """Perplexity: turns must alternate, thoughts are in tags, the cost is an object; a wrong key is a page.

    docs.perplexity.ai; perplexityai/api-discussion#265 (turns) and #262 (the model);
    perplexityai/perplexity-py (2026-06).
    """

    title = "Perplexity"
    dialect = "perplexity"
    path = ""
    models_served = ("sonar-pro", "sonar", "sonar-reasoning-pro")
    thinks = "tags"
    usage_in = "every chunk"
    states_cost = True
    wrong_key = refused(
        401,
        b"<html>\r\n<head><title>401 Authorization Required</title></head>\r\n<body>\r\n<center><h1>401 Authorization Required</h1></center>\r\n<hr><center>openresty/1.25.3.1</center>\r\n</body>\r\n</html>\r\n",
        content_type="text/html",
    )
    unknown_model = refused(
        400,
        {
            "error": {
                "message": "Invalid model '{model}'. Permitted models can be found in the documentation at https://docs.perplexity.ai/docs/getting-started/models.",
                "type": "invalid_model",
                "code": 400,
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "message": "Request rate limit exceeded",
                    "type": "request_rate_limit_exceeded",
                    "code": 429,
                }
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse two turns of one role in a row."""
        roles = [role for role in roles_of(request) if role != "system"]
        if roles[::2] == ["user"] * len(roles[::2]) and roles[1::2] == ["assistant"] * len(roles[1::2]):
            return None
        message = (
            "After the (optional) system message(s), user and assistant roles should be alternating."
        )
        return refused(400, {"error": {"message": message, "type": "invalid_message", "code": 400}})

    def thinks_about(self, request: Json) -> bool:
        """Only one of them shows thoughts."""
        return "reasoning" in str(request["model"])

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """State the cost in parts."""
        cost = {
            "input_tokens_cost": 0.0005,
            "output_tokens_cost": 0.0005,
            "request_cost": 0.001,
            "total_cost": 0.002,
        }
        return super().usage(request, text, thoughts) | {"cost": cost, "search_context_size": "low"}

    def listed(self) -> object:
        """There is no list."""
        return refused(404, b"404 page not found", content_type="text/plain")


class Cohere(StandIn):
    """Cohere's compatibility API: errors are flat, JSON schemas have a form of their own.

    docs.cohere.com/docs/compatibility-api; cohere-ai/cohere-developer-experience (2026-08);
    davidmigloz/ai_clients_dart#26 (unknown fields); koharu-rs/koharu#1128 (schemas).
    """

    title = "Cohere"
    dialect = "cohere"
    path = "/compatibility/v1"
    models_served = ("command-a-03-2025", "command-r7b-12-2024", "command-r-08-2024")
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *("max_tokens", "max_completion_tokens", "seed", "response_format", "stream_options", "tools"),
        *("frequency_penalty", "presence_penalty", "reasoning_effort", "user", "tool_choice"),
    }
    wrong_key = refused(401, {"id": "1", "message": "invalid api token"})
    unknown_model = refused(
        404,
        {
            "id": "1",
            "message": "model '{model}' not found, make sure the correct model ID was used and that you have access to the model.",
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "id": "1",
                "message": "You are using a Trial key, which is limited to 20 API calls / minute. You can continue to use the Trial key for free or upgrade to a Production key with higher rate limits.",
            },
        ),
        "no credit": refused(
            402,
            {
                "id": "1",
                "message": "Your account has reached its billing limit. Please add or update your payment method.",
            },
        ),
        "too long": refused(
            400,
            {
                "id": "1",
                "message": "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000. Try using a shorter prompt.",
            },
        ),
        "overloaded": refused(503, {"id": "1", "message": "service unavailable"}),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Name one unknown field after the other."""
        for name in unknown_fields(request, self.fields):
            return refused(422, {"id": "1", "message": f"unprocessable entity: {name} is not supported"})
        if form_of(request) == "json_schema":
            return refused(400, {"id": "1", "message": "invalid request: missing required field 'type'"})
        if cast("float", request.get("temperature", 0)) > 1:
            return refused(
                400,
                {
                    "id": "1",
                    "message": "invalid request: temperature must be between 0 and 1.0 inclusive.",
                },
            )
        return None


class Moonshot(StandIn):
    """Moonshot (Kimi): the only temperature is 1, and the usage is in the last choice.

    platform.kimi.ai/docs; HKUDS/nanobot#202 (temperature); MoonshotAI/kimi-code#1857 (credit is a 429);
    earendil-works/pi#2017 (usage).
    """

    title = "Moonshot"
    dialect = "moonshot"
    models_served = ("kimi-k2.6", "kimi-k2.5", "kimi-k2-thinking")
    thinks = "reasoning_content"
    usage_in = "finish chunk"
    wrong_key = refused(
        401, {"error": {"message": "Invalid Authentication", "type": "invalid_authentication_error"}}
    )
    unknown_model = refused(
        404,
        {
            "error": {
                "message": "Not found the model {model} or Permission denied",
                "type": "resource_not_found_error",
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "message": "Your account org-1 <ak-1> request reached organization max RPM: 3, please try again after 1 seconds",
                    "type": "rate_limit_reached_error",
                }
            },
        ),
        "no credit": refused(
            429,
            {
                "error": {
                    "message": "Your account org-1 <ak-1> is suspended due to insufficient balance, please recharge your account or check your plan and billing details",
                    "type": "exceeded_current_quota_error",
                }
            },
        ),
        "too long": refused(
            400,
            {
                "error": {
                    "message": "Invalid request: Your request exceeded model token limit: 262144",
                    "type": "invalid_request_error",
                }
            },
        ),
        "overloaded": refused(
            429,
            {
                "error": {
                    "message": "The engine is currently overloaded, please try again later",
                    "type": "engine_overloaded_error",
                }
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse temperatures."""
        if request.get("temperature", 1) == 1:
            return None
        message = "invalid temperature: only 1 is allowed for this model"
        return refused(400, {"error": {"message": message, "type": "invalid_request_error"}})

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Count in the last choice."""
        yield self.chunk(request).replace(b'"choices":[]', _last_choice(usage))


def _last_choice(usage: Json) -> bytes:
    return b'"choices":' + orjson.dumps(
        [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]
    )


class Zai(StandIn):
    """Z.ai (Zhipu): refusals name nothing, and no balance is a 429.

    docs.z.ai API error codes; Kilo-Org/kilocode#13069 (1210); anomalyco/opencode#2557 (no user message);
    zai-org/GLM-5#148 (1113). That it refuses `stream_options` is what agentscope-ai/agentscope takes it for.
    """

    title = "Z.ai"
    dialect = "zai"
    path = "/api/paas/v4"
    models_served = ("glm-5.2", "glm-5.1", "glm-4.7")
    thinks = "reasoning_content"
    usage_in = "finish chunk"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *(
            "max_tokens",
            "response_format",
            "thinking",
            "tools",
            "tool_choice",
            "do_sample",
            "user_id",
            "request_id",
        ),
    }
    wrong_key = refused(401, {"error": {"code": "1000", "message": "Authentication Failed"}})
    unknown_model = refused(
        400, {"error": {"code": "1211", "message": "Unknown Model, please check the model code."}}
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "code": "1302",
                    "message": "High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits",
                }
            },
        ),
        "no credit": refused(
            429,
            {
                "error": {
                    "code": "1113",
                    "message": "Insufficient balance or no resource package. Please recharge.",
                }
            },
        ),
        "too long": refused(400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        "overloaded": refused(
            429,
            {
                "error": {
                    "code": "1305",
                    "message": "The service may be temporarily overloaded, please try again later",
                }
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Say that something is wrong, not what."""
        if (
            not unknown_fields(request, self.fields)
            and form_of(request) != "json_schema"
            and "user" in roles_of(request)
        ):
            return None
        return refused(
            400,
            {
                "error": {
                    "code": "1210",
                    "message": "Invalid API parameter, please check the documentation.",
                }
            },
        )


class DashScope(StandIn):
    """DashScope (Qwen): models that think only stream, and take no format.

    alibabacloud.com/help/en/model-studio error messages (2026-09); hsliuping/TradingAgents-CN#170 (arrears).
    """

    title = "DashScope"
    dialect = "dashscope"
    path = "/compatible-mode/v1"
    models_served = ("qwen-plus", "qwen3-max", "qwen3-235b-a22b-thinking-2507")
    thinks = "reasoning_content"
    wrong_key = refused(
        401,
        error(
            "Incorrect API key provided. For details, see: https://help.aliyun.com/zh/model-studio/error-code#apikey-error",
            "invalid_request_error",
            "invalid_api_key",
        ),
    )
    unknown_model = refused(
        404,
        error(
            "The model `{model}` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            error(
                "You exceeded your current requests list. For details, see: https://help.aliyun.com/zh/model-studio/error-code#rate-limit",
                "limit_requests",
                "limit_requests",
            ),
        ),
        "no credit": refused(
            400,
            error(
                "Access denied, please make sure your account is in good standing. For details, see: https://help.aliyun.com/zh/model-studio/error-code#overdue-payment",
                "Arrearage",
                "Arrearage",
            ),
        ),
        "too long": refused(
            400,
            error(
                "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
                "invalid_request_error",
                "invalid_parameter_error",
            ),
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse formats of models that think, and JSON without the word."""
        if self.thinks_about(request):
            if form_of(request) != "text":
                return self._invalid("Json mode response is not supported when enable_thinking is true")
            if not request.get("stream"):
                return self._invalid(
                    "parameter.enable_thinking must be set to false for non-streaming calls"
                )
        return self._invalid(NO_JSON_WORD) if lacks_json(request) else None

    def _invalid(self, message: str) -> Turn:
        said = f"<400> InternalError.Algo.InvalidParameter: {message}"
        return refused(400, error(said, "invalid_request_error", "invalid_parameter_error"))

    def thinks_about(self, request: Json) -> bool:
        """Only one family thinks without being told to."""
        return "thinking" in str(request["model"])


MAKERS: tuple[type[StandIn], ...] = (
    *(OpenAI, OpenAIUnverified, AzureOpenAI, Anthropic, Gemini, Gemma, Mistral, DeepSeek, XAI),
    *(Perplexity, Cohere, Moonshot, Zai, DashScope),
)
