"""Servers on one's own machine, and the LiteLLM proxy in front of others."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, cast

from tests.model_server import CHARACTERS_PER_TOKEN, Exchange, Json, Turn
from tests.model_servers.stand_in import (
    DONE,
    OPENAI_FIELDS,
    PLAIN_FIELDS,
    StandIn,
    Troubles,
    error,
    event,
    form_of,
    refused,
    roles_of,
    unknown_fields,
)

BUSY = "server busy, please try again.  maximum pending requests exceeded"


class Ollama(StandIn):
    """Ollama: no key, unknown fields and the newer name of the limit ignored, long prompts cut silently.

    ollama/ollama openai/openai.go and server/routes.go (2026-08).
    """

    title = "Ollama"
    dialect = "ollama"
    models_served = ("llama3.2:latest", "deepseek-r1:8b", "qwen3:8b")
    asks_for_key = False
    thinks = "reasoning"
    window: ClassVar[int] = 4_096
    wrong_key = refused(401, b"unauthorized")
    unknown_model = refused(
        404, error('model "{model}" not found, try pulling it first', "not_found_error")
    )
    troubles: ClassVar[Troubles] = {"overloaded": refused(503, error(BUSY, "api_error"))}

    def refusal(self, request: Json) -> Turn | None:
        """Refuse an effort where the model doesn't think."""
        if request.get("reasoning_effort") and not self.thinks_about(request):
            return refused(
                400, error(f'"{request["model"]}" does not support thinking', "invalid_request_error")
            )
        return None

    def thinks_about(self, request: Json) -> bool:
        """Two families think."""
        return not str(request["model"]).startswith("llama")

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """Count what was left of the prompt; thoughts have no count of their own."""
        counted = super().usage(request, text, thoughts)
        prompt = min(cast("int", counted["prompt_tokens"]), self.window)
        completion = cast("int", counted["completion_tokens"])
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }


class VLLM(StandIn):
    """vLLM without a reasoning parser: chat templates open the thoughts, so only their closing tag is said.

    vllm 0.33 entrypoints/openai (errors, `stream_options`); vllm-project/vllm#12999 and the chat template of
    deepseek-ai/DeepSeek-R1 (2025-02), which ends in `<think>`.
    """

    title = "vLLM"
    dialect = "vllm"
    models_served = (
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "Qwen/QwQ-32B",
        "Qwen/Qwen3-30B-A3B-Thinking-2507",
    )
    thinks = "closing tag"
    wrong_key = refused(401, {"error": "Unauthorized"})
    unknown_model = refused(
        404, error("The model `{model}` does not exist.", "NotFoundError", 404, "model")
    )
    troubles: ClassVar[Troubles] = {
        "too long": refused(
            400,
            error(
                "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.",
                "BadRequestError",
                400,
                "input_tokens",
            ),
        ),
        "overloaded": Turn(
            events=(
                event(
                    error(
                        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                        "InternalServerError",
                        500,
                    )
                ),
                DONE,
            )
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse options of a stream that isn't asked for."""
        if "stream_options" in request and not request.get("stream"):
            return refused(
                400,
                error(
                    "Stream options can only be defined when `stream=True`.",
                    "BadRequestError",
                    400,
                    "stream_options",
                ),
            )
        return None

    def thinks_about(self, request: Json) -> bool:
        """A grammar leaves no room for thoughts."""
        return form_of(request) == "text"

    def described(self, model: str) -> Json:
        """Return a model with its window."""
        return super().described(model) | {"root": model, "max_model_len": 8_192, "owned_by": "vllm"}


class OldVLLM(VLLM):
    """vLLM as of 2024, with a model whose template takes no system message: extras refused, schemas a 500.

    gpustack/gpustack#429 and 1Panel-dev/MaxKB#2912 (`extra_forbidden` in a text); vllm-project/vllm#13260
    (schemas); google/gemma-2-9b-it's chat template (`System role not supported`).
    """

    title = "vLLM of 2024"
    unforeseen = 3
    models_served = ("google/gemma-2-9b-it", "google/gemma-2-27b-it", "google/gemma-2-2b-it")
    thinks = None
    fields: ClassVar[frozenset[str]] = (OPENAI_FIELDS | {"top_k", "min_p", "repetition_penalty"}) - {
        *(
            "max_completion_tokens",
            "reasoning_effort",
            "store",
            "metadata",
            "verbosity",
            "prompt_cache_key",
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse fields, then the system message, then the schema."""
        if unknown := unknown_fields(request, self.fields):
            detail = [
                {
                    "type": "extra_forbidden",
                    "loc": ("body", name),
                    "msg": "Extra inputs are not permitted",
                    "input": request[name],
                }
                for name in unknown
            ]
            return self._bad(str(detail))
        if "system" in roles_of(request):
            return self._bad("System role not supported")
        if form_of(request) == "json_schema":
            return refused(500, b"Internal Server Error", content_type="text/plain")
        return super().refusal(request)

    def _bad(self, message: str) -> Turn:
        return refused(
            400,
            {
                "object": "error",
                "message": message,
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        )

    def thinks_about(self, request: Json) -> bool:
        """It doesn't."""
        del request
        return False


class SGLang(StandIn):
    """SGLang: errors are flat, every name is served, thoughts are counted at the usage's top.

    sglang 0.5.23 entrypoints/openai (serving_base.py, usage_processor.py).
    """

    title = "SGLang"
    dialect = "sglang"
    models_served = ("Qwen/Qwen3-30B-A3B", "zai-org/GLM-4.7", "openai/gpt-oss-120b")
    any_model = True
    thinks = "reasoning_content"
    wrong_key = refused(401, {"error": "Unauthorized"})
    troubles: ClassVar[Troubles] = {
        "too long": refused(
            400,
            {
                "object": "error",
                "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        ),
        "overloaded": refused(
            503,
            {
                "object": "error",
                "message": "The request queue is full.",
                "type": "ServiceUnavailable",
                "param": None,
                "code": 503,
            },
        ),
    }

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """Count thoughts at the top."""
        counted = super().usage(request, text, thoughts)
        counted.pop("completion_tokens_details", None)
        return counted | {"reasoning_tokens": len(thoughts) // CHARACTERS_PER_TOKEN}


class LMStudio(StandIn):
    """LM Studio: no `json_object`, JSON lands in the thoughts, and errors come inside a 200.

    lmstudio-ai/docs (2026-04); lmstudio-ai/lmstudio-bug-tracker#189 and LoadShine/tada#16 (`json_object`),
    #1698 (JSON in `reasoning_content`); ProfSynapse/nexus#283 (errors in a stream).
    """

    title = "LM Studio"
    dialect = "lmstudio"
    models_served = ("qwen/qwen3-8b", "openai/gpt-oss-20b", "google/gemma-3-12b")
    asks_for_key = False
    any_model = True
    thinks = "reasoning_content"
    wrong_key = refused(401, {"error": "Unauthorized"})
    troubles: ClassVar[Troubles] = {
        "too long": Turn(
            events=(
                b'event: error\ndata: {"error":{"message":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}}\n\n',
            )
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Refuse JSON objects."""
        if form_of(request) == "json_object":
            return refused(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
        return None

    def _events(self, request: Json, text: str, thoughts: str, usage: Json) -> Iterator[bytes]:
        if form_of(request) == "json_schema":
            thoughts, text = text, ""
        yield from super()._events(request, text, thoughts, usage)


class LlamaCpp(StandIn):
    """llama.cpp: every name is served, a prompt that is too long has a type of its own, loading is a 503.

    ggml-org/llama.cpp tools/server/README.md and utils.hpp (`exceed_context_size_error`, timings).
    """

    title = "llama.cpp"
    dialect = "llamacpp"
    models_served = ("gemma-3-4b-it.gguf", "qwen3-8b.gguf", "gpt-oss-20b.gguf")
    any_model = True
    thinks = "reasoning_content"
    wrong_key = refused(
        401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
    )
    troubles: ClassVar[Troubles] = {
        "too long": refused(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size, try increasing it",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9_000,
                    "n_ctx": 4_096,
                }
            },
        ),
        "overloaded": refused(
            503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
        ),
    }

    def described(self, model: str) -> Json:
        """Return a model with its window."""
        return super().described(model) | {"meta": {"n_ctx": 4_096, "n_ctx_train": 131_072}}


class KoboldCpp(StandIn):
    """KoboldCpp: no key, every name is served, errors are 200s, a faked stream doesn't count.

    LostRuins/koboldcpp#2481 (errors, 503 when busy) and #2480 (no usage); neavo/LinguaGacha#248.
    """

    title = "KoboldCpp"
    dialect = "koboldcpp"
    models_served = ("koboldcpp/Qwen3-8B-Q4_K_M", "koboldcpp/gemma-3-12b", "koboldcpp/Mistral-Small-24B")
    asks_for_key = False
    any_model = True
    thinks = "reasoning_content"
    usage_in = "nowhere"
    wrong_key = refused(401, {"detail": {"error": "Unauthorized"}})
    troubles: ClassVar[Troubles] = {
        "overloaded": refused(
            503,
            {
                "detail": {
                    "msg": "Server is busy; please try again later.",
                    "type": "service_unavailable",
                }
            },
        ),
    }

    def broken(self) -> Turn:
        """Return a reply whose generation failed."""
        request: Json = {"model": self.models_served[0]}
        return Turn(events=(self.chunk(request, {"role": "assistant", "content": ""}, "error"), DONE))


class LiteLLM(StandIn):
    """A LiteLLM proxy in front of models that take few fields: its own words, and the cost it reckons.

    A stream has the cost in its usage, a plain reply in a header.

    litellm 1.108.7, run: proxy (auth_exception_handler.py, route_llm_request.py, common_request_processing.py),
    exceptions.py (budgets), utils.py (`UnsupportedParamsError`).
    """

    title = "LiteLLM proxy"
    dialect = "litellm"
    models_served = ("team-mistral", "team-llama", "team-qwen")
    thinks = "reasoning_content"
    states_cost = True
    credit_cause = "key_limit"
    fields: ClassVar[frozenset[str]] = PLAIN_FIELDS | {
        *("max_tokens", "response_format", "tools", "tool_choice", "stream_options", "usage", "models"),
    }
    """Others, of those that OpenAI documents, aren't passed on."""
    wrong_key = refused(
        401,
        error(
            "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...rong, Key Hash (Token) =0a1b. Unable to find token in cache or `LiteLLM_VerificationTokenTable`",
            "token_not_found_in_db",
            "401",
            "key",
        ),
    )
    unknown_model = refused(
        400,
        {
            "error": {
                "message": "/chat/completions: Invalid model name passed in model={model}. Call `/v1/models` to view available models for your key.",
                "type": "invalid_request_error",
                "param": None,
                "code": "400",
            }
        },
    )
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            error(
                "No deployments available for selected model, Try again in 1 seconds. Passed model={model}. pre-call-checks=False",
                "None",
                "429",
                "None",
            ),
        ),
        "no credit": refused(
            400,
            error(
                "Budget has been exceeded! Current cost: 0.0012, Max budget: 0.001",
                "budget_exceeded",
                "400",
            ),
        ),
        "too long": refused(
            400,
            error(
                "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                None,
                "400",
            ),
        ),
        "overloaded": refused(
            503,
            error("litellm.ServiceUnavailableError: OpenAIException - Service Unavailable", None, "503"),
        ),
    }

    def refusal(self, request: Json) -> Turn | None:
        """Name the fields that the model behind it lacks."""
        lacking = [name for name in unknown_fields(request, self.fields) if name in OPENAI_FIELDS]
        if not lacking:
            return None
        message = (
            f"litellm.UnsupportedParamsError: mistral does not support parameters: {lacking}, for "
            f"model={request['model']}. To drop these, set `litellm.drop_params=True` or for proxy:\n\n"
            f"`litellm_settings:\n drop_params: true`\n. \n If you want to use these params dynamically send "
            f"allowed_openai_params={lacking} in your request.\n\nLiteLLM: model group '{request['model']}' "
            "failed with the error above. No fallback was attempted."
        )
        return refused(400, error(message, "invalid_request_error", "400"))

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Count, if asked, beside an empty delta, and state the cost."""
        yield self.chunk(request, {}, "stop")
        if request.get("stream_options"):
            yield self.chunk(request, {}, usage=usage | {"cost": 0.002})

    def headers(self, exchange: Exchange) -> Mapping[str, str]:
        """State the cost of a plain reply; a stream's isn't known when its headers leave."""
        return {} if exchange.request.get("stream") else {"x-litellm-response-cost": "0.002"}


class LiteLLMWithoutDatabase(LiteLLM):
    """A LiteLLM proxy without a database: it can't look up a key other than its own, and says only that.

    litellm 1.108.7, run with a `master_key` and no `database_url`.
    """

    title = "LiteLLM proxy, no database"
    wrong_key = refused(400, error("No connected db.", "no_db_connection", "400"))
    troubles: ClassVar[Troubles] = {
        "rate limit": refused(
            429,
            error(
                "litellm.RateLimitError: this is a mock rate limit error\n\nLiteLLM: model group '{model}' failed with the error above. No fallback was attempted.",
                "throttling_error",
                "429",
            ),
        ),
    }
