"""Servers of those who make models in China."""

from collections.abc import Iterator
from typing import ClassVar

import orjson

from tests.model_server import Json, Turn
from tests.model_servers.stand_in import (
    NO_JSON_WORD,
    PLAIN_FIELDS,
    StandIn,
    Troubles,
    error,
    form_of,
    lacks_json,
    refused,
    roles_of,
    unknown_fields,
)


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
        """Return how much of the prompt was cached."""
        counted = super().usage(request, text, thoughts)
        return counted | {
            "prompt_cache_hit_tokens": 0,
            "prompt_cache_miss_tokens": counted["prompt_tokens"],
        }


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
    needs_dialect = True
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
        """Return a refusal that says something is wrong, not what."""
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
