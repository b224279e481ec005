"""Servers of others who make models."""

from typing import ClassVar, cast

from tests.model_server import Json, Turn
from tests.model_servers.stand_in import (
    PLAIN_FIELDS,
    StandIn,
    Troubles,
    form_of,
    refused,
    roles_of,
    unknown_fields,
)


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
