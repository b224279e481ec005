"""Servers of those who host the models of others."""

from collections.abc import Iterator
from typing import ClassVar, cast

from tests.model_server import Json, Turn
from tests.model_servers.stand_in import (
    NO_JSON_WORD,
    PLAIN_FIELDS,
    StandIn,
    Troubles,
    error,
    event,
    form_of,
    keywords_in,
    lacks_json,
    refused,
    schema_of,
    unknown_fields,
)

STREAM_OF_OPENROUTER = (
    b": OPENROUTER PROCESSING\n\n",
    event(
        {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "model": "any",
            "provider": "Any",
            "error": {"code": 502, "message": "Provider disconnected unexpectedly"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        }
    ),
)


class OpenRouter(StandIn):
    """OpenRouter: ignores what it doesn't know, keeps alive by comments, states costs, knows fallbacks.

    openrouter.ai/docs/api/reference/streaming and /errors-and-debugging (a failure in mid-stream);
    OpenRouterTeam/docs (2026-08); Gitlawb/openclaude#1303 (credit).
    """

    title = "OpenRouter"
    dialect = "openrouter"
    path = "/api/v1"
    models_served = ("openai/gpt-5.1", "anthropic/claude-sonnet-4.5", "deepseek/deepseek-r1")
    thinks = "reasoning"
    usage_in = "extra chunk"
    states_cost = True
    comment = b": OPENROUTER PROCESSING\n\n"
    wrong_key = refused(401, {"error": {"message": "User not found.", "code": 401}})
    unknown_model = refused(400, {"error": {"message": "{model} is not a valid model ID", "code": 400}})
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {
                        "raw": "{model} is temporarily rate-limited upstream. Please retry shortly.",
                        "provider_name": "Any",
                    },
                }
            },
        ),
        "no credit": refused(
            402,
            {
                "error": {
                    "message": "Insufficient credits. This account never purchased credits. Make sure your key is on the correct account or org, and if so, purchase more at https://openrouter.ai/settings/credits",
                    "code": 402,
                }
            },
        ),
        "too long": refused(
            400,
            {
                "error": {
                    "message": 'This endpoint\'s maximum context length is 8192 tokens. However, you requested about 9000 tokens (9000 of text input). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
                    "code": 400,
                    "metadata": {"error_type": "context_length_exceeded"},
                }
            },
        ),
        "overloaded": Turn(events=STREAM_OF_OPENROUTER),
    }

    def answering(self, request: Json) -> str | None:
        """Ask the fallbacks, too."""
        models = [request["model"], *cast("list[str]", request.get("models") or [])]
        return next((str(model) for model in models if model in self.models_served), None)

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Count after the end, beside an empty delta."""
        yield self.chunk(request, {"role": "assistant", "content": ""}, "stop")
        yield self.chunk(request, {"role": "assistant", "content": ""}, usage=usage)

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """State the cost."""
        return super().usage(request, text, thoughts) | {"cost": 0.002, "is_byok": False}

    def described(self, model: str) -> Json:
        """Return a model with its window, its prices, and what it takes."""
        taken = ["max_tokens", "temperature", "response_format", "structured_outputs", "reasoning"]
        pricing = {"prompt": "0.000001", "completion": "0.000002", "request": "0"}
        return {
            "id": model,
            "context_length": 128_000,
            "pricing": pricing,
            "supported_parameters": taken,
        }


class Groq(StandIn):
    """Groq: names what it doesn't support, takes schemas by model, and counts in `x_groq`.

    console.groq.com/docs (structured outputs, reasoning, errors); fanenr/chatbot#21 (unknown fields);
    i-am-bee/beeai-framework#1215 (`minItems`); ago19800/HomeMind#29 (rate limit).
    """

    title = "Groq"
    dialect = "groq"
    path = "/openai/v1"
    models_served = ("openai/gpt-oss-120b", "llama-3.3-70b-versatile", "qwen/qwen3-32b")
    thinks = "reasoning"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *(
            "max_tokens",
            "max_completion_tokens",
            "n",
            "seed",
            "response_format",
            "reasoning_effort",
            "user",
        ),
        *(
            "reasoning_format",
            "include_reasoning",
            "stream_options",
            "tools",
            "tool_choice",
            "service_tier",
        ),
        *("frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "metadata"),
        *("parallel_tool_calls", "store", "search_settings", "documents", "citation_options"),
    }
    wrong_key = refused(
        401,
        {
            "error": {
                "message": "Invalid API Key",
                "type": "invalid_request_error",
                "code": "invalid_api_key",
            }
        },
    )
    unknown_model = refused(
        404,
        {
            "error": {
                "message": "The model `{model}` does not exist or you do not have access to it.",
                "type": "invalid_request_error",
                "code": "model_not_found",
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "message": "Rate limit reached for model `{model}` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000. Please try again in 1s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
                    "type": "tokens",
                    "code": "rate_limit_exceeded",
                }
            },
            retry_after="1",
        ),
        "too long": refused(
            413,
            {
                "error": {
                    "message": "Request too large for model `{model}` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
                    "type": "tokens",
                    "code": "rate_limit_exceeded",
                }
            },
        ),
        "overloaded": refused(
            503,
            {
                "error": {
                    "message": "{model} is currently over capacity. Please try again and back off exponentially. Visit https://groqstatus.com to see if there is an active incident.",
                    "type": "internal_server_error",
                }
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse the first field it doesn't know, and schemas where its model has none."""
        for name in unknown_fields(request, self.fields):
            return self._invalid(f"property '{name}' is unsupported")
        if form_of(request) == "json_schema":
            return self._schema_refusal(request)
        return self._invalid(NO_JSON_WORD) if lacks_json(request) else None

    def _schema_refusal(self, request: Json) -> Turn | None:
        if "gpt-oss" not in str(request["model"]):
            return self._invalid(
                "This model does not support response format `json_schema`. See supported models at https://console.groq.com/docs/structured-outputs#supported-models"
            )
        schema, strict = schema_of(request)
        for keyword in sorted(keywords_in(schema, {"minItems", "maxItems"})) if strict else ():
            said = f"invalid JSON schema for response_format: 'reply': /properties/reviews: `{keyword}` is not supported"
            return self._invalid(said)
        return None

    def _invalid(self, message: str) -> Turn:
        return refused(400, {"error": {"message": message, "type": "invalid_request_error"}})

    def thinks_about(self, request: Json) -> bool:
        """Two families think."""
        return not str(request["model"]).startswith("llama")

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Count in a field of its own."""
        yield self.chunk(request, {}, "stop", x_groq={"id": "req_1", "usage": usage})
        if request.get("stream_options"):
            yield self.chunk(request, usage=usage)


class Together(StandIn):
    """Together: the model list is an array, the usage comes unasked; a limit and an empty account look alike.

    docs.together.ai (errors); togethercomputer/openapi (2026-04); expectedparrot/edsl#2098 (credit, 402) and
    togethercomputer/MoA#27 (a rate limit whose type is `credit_limit`).
    """

    title = "Together"
    dialect = "together"
    models_served = (
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "deepseek-ai/DeepSeek-R1",
        "Qwen/Qwen3-235B-A22B",
    )
    thinks = "reasoning"
    usage_in = "extra chunk"
    wrong_key = refused(
        401,
        error(
            "Invalid API key provided. You can find your API key at https://api.together.ai/settings/api-keys.",
            "invalid_request_error",
            "invalid_api_key",
        ),
    )
    unknown_model = refused(
        400,
        error(
            "Unable to access model {model}. Please visit https://api.together.ai/models to view the list of supported models.",
            "invalid_request_error",
            "model_not_available",
        ),
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            error(
                "You have been rate limited. Your rate limit is 60 queries per minute. Please navigate to https://api.together.xyz/settings/billing to upgrade to a paid plan.",
                "credit_limit",
            ),
        ),
        "no credit": refused(
            402,
            error(
                "Credit limit exceeded. Please navigate to https://api.together.xyz/settings/billing to add credit or upgrade your plan.",
                "credit_limit",
            ),
        ),
        "too long": refused(
            403,
            error(
                "Input token count + `max_tokens` must be less than the model's context length.",
                "invalid_request_error",
            ),
        ),
        "overloaded": refused(
            503, error("The engine is currently overloaded, please try again later.", "overloaded")
        ),
    }

    def thinks_about(self, request: Json) -> bool:
        """Two families think."""
        return "Llama" not in str(request["model"])

    def listed(self) -> object:
        """Return an array."""
        pricing = {"input": 0.88, "output": 0.88, "hourly": 0, "base": 0}
        return [
            {"id": model, "type": "chat", "context_length": 131_072, "pricing": pricing}
            for model in self.models_served
        ]


class Fireworks(StandIn):
    """Fireworks: names the field and its value, counts in the finish chunk; 412 is a suspended account.

    docs.fireworks.ai (inference error codes); fw-ai-external/python-sdk (2026-07); vercel/ai#18306 and
    web-infra-dev/midscene#1322 (unknown fields).
    """

    title = "Fireworks"
    dialect = "fireworks"
    path = "/inference/v1"
    models_served = (
        "accounts/fireworks/models/kimi-k3",
        "accounts/fireworks/models/deepseek-r1",
        "accounts/fireworks/models/qwen3-235b-a22b",
    )
    thinks = "reasoning_content"
    usage_in = "finish chunk"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *(
            "max_tokens",
            "max_completion_tokens",
            "n",
            "seed",
            "response_format",
            "reasoning_effort",
            "user",
        ),
        *("stream_options", "tools", "tool_choice", "top_k", "min_p", "repetition_penalty", "logprobs"),
        *(
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "thinking",
            "reasoning_history",
            "metadata",
        ),
        *("context_length_exceeded_behavior", "prompt_cache_key", "service_tier"),
    }
    wrong_key = refused(
        401,
        {
            "error": {
                "object": "error",
                "type": "invalid_request_error",
                "code": "unauthorized",
                "message": "The API key you provided is invalid.",
            }
        },
    )
    unknown_model = refused(
        404,
        {
            "error": {
                "object": "error",
                "type": "invalid_request_error",
                "code": "NOT_FOUND",
                "message": "Model not found, inaccessible, and/or not deployed",
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "error": {
                    "object": "error",
                    "type": "rate_limit_error",
                    "message": "Rate limit exceeded, please try again later",
                }
            },
        ),
        "no credit": refused(
            412,
            {
                "error": {
                    "object": "error",
                    "type": "error",
                    "code": "PRECONDITION_FAILED",
                    "message": "Account team is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices. Please go to https://fireworks.ai/account/billing for more information.",
                }
            },
        ),
        "too long": refused(
            400,
            {
                "error": {
                    "object": "error",
                    "type": "invalid_request_error",
                    "code": "invalid_request_error",
                    "message": "The prompt is too long: 140000, model maximum context length: 131071",
                }
            },
        ),
        "overloaded": refused(
            503,
            {
                "error": {
                    "object": "error",
                    "type": "server_error",
                    "message": "Service overloaded, please try again later",
                }
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Quote the first field that it doesn't know."""
        for name in unknown_fields(request, self.fields):
            message = f"Extra inputs are not permitted, field: '{name}', value: {request[name]!r}"
            said = {
                "object": "error",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
                "message": message,
            }
            return refused(400, {"error": said})
        return None


class Cerebras(StandIn):
    """Cerebras: errors are flat, unknown fields and some keywords of schemas refused, usage comes unasked.

    inference-docs.cerebras.ai (2026-01); huggingface/huggingface.js#2268 (unknown fields);
    musistudio/claude-code-router#708 (schemas); nminaya/grammar-nazi-bot#967 (credit).
    """

    title = "Cerebras"
    dialect = "cerebras"
    models_served = ("gpt-oss-120b", "zai-glm-4.7", "qwen-3-235b-a22b-instruct-2507")
    thinks = "reasoning"
    usage_in = "extra chunk"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *(
            "max_tokens",
            "max_completion_tokens",
            "n",
            "seed",
            "response_format",
            "reasoning_effort",
            "user",
        ),
        *("stream_options", "tools", "tool_choice", "logprobs", "top_logprobs", "disable_reasoning"),
        *("reasoning_format", "logit_bias", "prediction", "service_tier", "parallel_tool_calls"),
    }
    wrong_key = refused(
        401,
        {
            "message": "Wrong API Key",
            "type": "invalid_request_error",
            "param": "api_key",
            "code": "wrong_api_key",
        },
    )
    unknown_model = refused(
        404,
        {
            "message": "Model {model} does not exist or you do not have access to it.",
            "type": "not_found_error",
            "param": "model",
            "code": "model_not_found",
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "message": "Requests per minute limit exceeded - too many requests sent.",
                "type": "too_many_requests_error",
                "param": "quota",
                "code": "request_quota_exceeded",
            },
        ),
        "no credit": refused(
            402,
            {
                "message": "Payment required to access this resource. Please visit your billing tab.",
                "type": "payment_required_error",
                "param": "quota",
                "code": "payment_required",
            },
        ),
        "too long": refused(
            400,
            {
                "message": "Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            },
        ),
        "overloaded": refused(
            429,
            {
                "message": "We're experiencing high traffic right now! Please try again soon.",
                "type": "too_many_requests_error",
                "param": "queue",
                "code": "queue_exceeded",
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Name every field that it doesn't support, and the keywords of a schema."""
        if unknown := unknown_fields(request, self.fields):
            said = "\n".join(f"{name}: property '{name}' is unsupported" for name in unknown)
            return self._invalid(said, "validation_error")
        schema, strict = schema_of(request)
        if strict and (keywords := keywords_in(schema, {"minItems", "maxItems", "pattern", "format"})):
            return self._invalid(f"Unsupported JSON schema fields: {keywords}", "response_format")
        return None

    def _invalid(self, message: str, param: str) -> Turn:
        return refused(
            400,
            {
                "message": message,
                "type": "invalid_request_error",
                "param": param,
                "code": "wrong_api_format",
            },
        )

    def thinks_about(self, request: Json) -> bool:
        """Two of them think."""
        return not str(request["model"]).startswith("qwen")


class HuggingFace(Cerebras):
    """Hugging Face's router: each provider judges for itself, here Cerebras.

    huggingface/hub-docs inference-providers (2026-08); huggingface/huggingface.js#2268.
    """

    title = "Hugging Face"
    dialect = "huggingface"
    models_served = (
        "openai/gpt-oss-120b:cerebras",
        "zai-org/GLM-4.7:cerebras",
        "Qwen/Qwen3-235B-A22B:cerebras",
    )
    wrong_key = refused(401, {"error": "Invalid username or password."})
    unknown_model = refused(
        400,
        error(
            "The requested model '{model}' is not supported by any provider you have enabled.",
            "invalid_request_error",
            "model_not_supported",
            "model",
        ),
    )
    troubles: ClassVar[Troubles] = {
        **Cerebras.troubles,
        "no credit": refused(
            402,
            {
                "error": "You have depleted your monthly included credits. Purchase pre-paid credits to continue using Inference Providers. Alternatively, subscribe to PRO to get 20x more included usage."
            },
        ),
    }

    def described(self, model: str) -> Json:
        """Return a model with its providers."""
        provider = {
            "provider": "cerebras",
            "context_length": 131_072,
            "supports_structured_output": True,
        }
        return super().described(model.partition(":")[0]) | {"providers": [provider]}


class Cloudflare(StandIn):
    """Cloudflare Workers AI: errors are a list, the day's free quota is a 429, and there is no list of models.

    developers.cloudflare.com/workers-ai/platform/errors (2026-07); cloudflare/ai#279; cloudflare/agents#1328.
    """

    title = "Cloudflare Workers AI"
    dialect = "cloudflare"
    path = "/client/v4/accounts/0123/ai/v1"
    unforeseen = 1
    models_served = (
        "@cf/meta/llama-3.3-70b-instruct-fp8-fast",
        "@cf/moonshotai/kimi-k2.6",
        "@cf/openai/gpt-oss-120b",
    )
    schemas: ClassVar[tuple[str, ...]] = ("@cf/meta/llama-3.3-70b-instruct-fp8-fast",)
    wrong_key = refused(
        401,
        {
            "success": False,
            "errors": [{"code": 10_000, "message": "Authentication error"}],
            "messages": [],
            "result": None,
        },
    )
    unknown_model = refused(
        400,
        {
            "errors": [{"code": 5007, "message": "No such model {model} or task"}],
            "success": False,
            "result": {},
            "messages": [],
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            {
                "errors": [
                    {"code": 3040, "message": "Capacity temporarily exceeded, please try again."}
                ],
                "success": False,
                "result": {},
                "messages": [],
            },
        ),
        "no credit": refused(
            429,
            {
                "errors": [
                    {
                        "code": 4006,
                        "message": "you have used up your daily free allocation of 10,000 neurons, please upgrade to Cloudflare's Workers Paid plan if you would like to continue usage.",
                    }
                ],
                "success": False,
                "result": {},
                "messages": [],
            },
        ),
        "too long": refused(
            413,
            {
                "errors": [{"code": 3006, "message": "Request is too large"}],
                "success": False,
                "result": {},
                "messages": [],
            },
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse a schema without its name, where the model has no JSON mode."""
        if form_of(request) != "json_schema" or request["model"] in self.schemas:
            return None
        message = "AiError: Bad input: Error: oneOf at '/' not met, 0 matches: required properties at '/' are 'prompt'"
        return refused(
            400,
            {
                "errors": [{"code": 5006, "message": message}],
                "success": False,
                "result": {},
                "messages": [],
            },
        )

    def listed(self) -> object:
        """There is no list."""
        message = "Method not allowed for this route"
        return refused(
            405,
            {
                "errors": [{"code": 7001, "message": message}],
                "success": False,
                "result": None,
                "messages": [],
            },
        )
