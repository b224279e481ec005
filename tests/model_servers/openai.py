"""OpenAI's own server, and Microsoft's."""

from collections.abc import Iterator
from typing import ClassVar, cast

from tests.model_server import Exchange, Json, Turn
from tests.model_servers.stand_in import (
    KEY,
    NO_JSON_WORD,
    OPENAI_FIELDS,
    StandIn,
    Troubles,
    error,
    keywords_in,
    lacks_json,
    refused,
    schema_of,
    unknown_fields,
)


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
        """Return what the filter thinks of the prompt."""
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
