"""What a provider sent back: an answer, or the reason why there is none.

Nothing here does I/O. Shapes: OpenAI's chat completions
(https://platform.openai.com/docs/api-reference/chat), with what OpenRouter adds: `cost` in the
usage, errors inside a 200 (https://openrouter.ai/docs/api-reference/errors), and the pages that a web
search found, as annotations (https://openrouter.ai/docs/features/web-search).
"""

import json
import re
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import responses
from typing import cast

import orjson

from council.calls import Call, ChatMessage, Citation, JsonObject, Reply
from council.errors import Cause, Failure, ModelError
from council.text.characters import clip, whole
from council.text.json_objects import object_in
from council.text.redaction import Redaction
from council.usage import Price, Usage, estimate_tokens

DETAIL_LENGTH = 200
EXCERPT_LENGTH = 2_000
"""Characters of an error that are looked at, whatever its length."""
MOST_TEXT = 4 * 2**20
"""Characters of a reply's text."""
MOST_THOUGHTS = 200_000
"""Characters of a reply's thoughts that are kept, in case the answer is among them."""
MOST_CITATIONS = 500
MOST = 10**12
"""What no call can use, of tokens or of dollars."""

_BY_STATUS: dict[int, Cause] = {
    401: "key",
    402: "credit",
    403: "forbidden",
    404: "not_found",
    408: "unavailable",
    409: "unavailable",  # OpenAI's lock timeout: its own clients try again
    429: "rate_limited",
}
_BY_CODE: dict[str, Cause] = {
    "invalid_api_key": "key",
    "insufficient_quota": "credit",  # OpenAI sends it as a 429, though no waiting helps
    "billing_hard_limit_reached": "credit",
    "billing_not_active": "credit",
    "model_not_found": "not_found",
    "rate_limit_exceeded": "rate_limited",
    "context_length_exceeded": "bad_request",
    "content_filter": "filtered",
    "content_policy_violation": "filtered",
}
_BY_TYPE: dict[str, Cause] = {
    "authentication_error": "key",
    "permission_error": "forbidden",
    "not_found_error": "not_found",
    "invalid_request_error": "bad_request",
    "exceed_context_size_error": "bad_request",
    "rate_limit_error": "rate_limited",
}

KEY = "[key]"
"""What an error of a provider says instead of a key."""
NO_SECRETS = Redaction(())
_STATUS = re.compile(r"[1-9]\d\d", re.ASCII)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.-]{4,}"  # keys as providers shape them
    r"|\bAIza[\w-]{8,}"
    r"|(?<=Bearer )\S+"
    r"|\b[A-Za-z0-9_]{32,}\b"
)
_WEB_PAGE = re.compile(r"https?://[^\s<>\"]{1,2000}", re.IGNORECASE)
_HALF_PAIR = re.compile("[\ud800-\udbff]$")


class Completion:
    """One reply, put together from a stream's chunks or from one plain body.

    `heard` gets the text piece by piece. Raises `ModelError` as soon as the provider reports an
    error or sends anything but what the API promises.
    """

    __slots__ = (
        "_citations",
        "_half",
        "_heard",
        "_length",
        "_pieces",
        "_thought",
        "_thoughts",
        "finish_reason",
        "model",
        "refusal",
        "usage",
    )

    def __init__(self, heard: Callable[[str], None] | None = None) -> None:
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.refusal = ""
        self.usage: JsonObject | None = None
        self._pieces: list[str] = []
        self._thought = 0
        self._thoughts: list[str] = []
        self._citations: dict[str, Citation] = {}
        self._heard = heard
        self._half = ""
        self._length = 0

    @property
    def finished(self) -> bool:
        """Whether the reply is complete."""
        return self.finish_reason is not None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add_chunk(self, data: str | bytes) -> None:
        """Take one event of a stream."""
        self._take(parse(data), "delta")

    def add_body(self, data: bytes) -> None:
        """Take a plain body; one that has arrived is complete."""
        body = parse(data)
        self._take(body, "message")
        if not _first(body.get("choices")):
            raise ModelError(Failure(cause="malformed", detail="a reply without choices"))
        self.finish_reason = self.finish_reason or "stop"

    def _take(self, body: JsonObject, part: str) -> None:
        choice = _first(body.get("choices"))
        if usage := body.get("usage"):
            self.usage = _object(usage)
        if model := body.get("model"):
            self.model = str(model)
        if error := body.get("error") or choice.get("error"):
            raise ModelError(
                failure_of(error, HTTPStatus.OK).model_copy(update={"usage": self.measured(None)})
            )
        message = _object(choice.get(part))
        if refusal := message.get("refusal"):
            self.refusal = (self.refusal + str(refusal))[:EXCERPT_LENGTH]
        if content := message.get("content"):
            self._say(content if isinstance(content, str) else _join(content))
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str) and self._thought < MOST_THOUGHTS:
            self._thought += len(thought)
            self._thoughts.append(thought)
        self._cite(message.get("annotations"))
        if reason := choice.get("finish_reason"):
            self.finish_reason = str(reason)

    def _cite(self, annotations: object) -> None:
        """Note the pages cited; a stream may send them in one chunk, in several, or again."""
        for annotation in cast("list[object]", annotations) if isinstance(annotations, list) else []:
            fields = _object(annotation)
            cited = _object(fields.get("url_citation"))
            url, title = cited.get("url"), cited.get("title")
            if len(self._citations) == MOST_CITATIONS:
                return
            if isinstance(url, str) and _WEB_PAGE.fullmatch(url):
                known = whole(title).strip() if isinstance(title, str) else ""
                self._citations.setdefault(url, Citation(url=url, title=known))

    def _say(self, piece: str) -> None:
        if self._half or not piece.isascii():
            # Servers that cut text by UTF-16 units send the halves of an emoji in two chunks.
            piece = self._half + piece
            self._half = ""
            if half := _HALF_PAIR.search(piece):
                self._half = half[0]
                piece = piece[:-1]
            piece = whole(piece)
        if piece:
            self._length += len(piece)
            if self._length > MOST_TEXT:
                raise ModelError(Failure(cause="too_large", detail="the text is over the size limit"))
            self._pieces.append(piece)
            if self._heard is not None:
                self._heard(piece)

    def _in_thoughts(self, schema: JsonObject | None) -> str:
        """Return the object that was asked for: some servers take it for a thought."""
        required = cast("list[str]", schema.get("required") or []) if schema else []
        thoughts = "".join(self._thoughts)
        return (object_in(whole(thoughts), required) or "") if required and thoughts else ""

    def reply(self, call: Call, latency_ms: int, price: Callable[[str], Price | None]) -> Reply:
        """Return the answer; raises `ModelError` if there is none."""
        fallback = answering_fallback(call.member.model, call.member.fallbacks, self.model)
        listed = price(fallback or call.member.model)
        if self.finish_reason is None:
            raise ModelError(self._failure("truncated", "the stream ended before the reply did", listed))
        if self.finish_reason == "content_filter" or self.refusal:
            raise ModelError(self._failure("filtered", self.refusal, listed))
        if self.finish_reason == "error":
            raise ModelError(self._failure("unavailable", "the provider broke the reply off", listed))
        text = self.text
        if not text.strip():
            text = self._in_thoughts(call.schema)
        if not text:
            raise ModelError(self._failure("empty", f"finish reason: {self.finish_reason}", listed))
        return Reply(
            text=text,
            usage=self.measured(listed) or estimated(call.messages, text, listed),
            latency_ms=latency_ms,
            truncated=self.finish_reason == "length",
            answered_by=fallback,
            citations=tuple(self._citations.values()),
        )

    def measured(self, price: Price | None) -> Usage | None:
        """Return the provider's own count, `None` where it sent none."""
        if self.usage is None:
            return None
        prompt, completion = (
            int(_amount(self.usage.get(name)) or 0) for name in ("prompt_tokens", "completion_tokens")
        )
        if prompt + completion == 0:
            return None
        cost = _amount(self.usage.get("cost"))
        if cost is not None:
            return Usage(prompt_tokens=prompt, completion_tokens=completion, cost=cost)
        return _priced(prompt, completion, price)

    def _failure(self, cause: Cause, detail: str, price: Price | None) -> Failure:
        return Failure(cause=cause, detail=shorten(detail), usage=self.measured(price))


def estimated(messages: Sequence[ChatMessage], text: str, price: Price | None) -> Usage:
    """Return an estimate of what a call used, for providers that don't say."""
    prompt = sum(estimate_tokens(message["content"]) for message in messages)
    usage = _priced(prompt, estimate_tokens(text), price)
    return usage.model_copy(update={"source": "estimated"})


def answering_fallback(asked: str, fallbacks: Sequence[str], answered: str | None) -> str | None:
    """Return the fallback that answered, `None` where the asked model did or an unknown one.

    Providers answer with an id or a dated variant of it; of several ids that fit, the longest
    counts: `openai/gpt-5-mini-2025-08-07` isn't `openai/gpt-5`.
    """
    if answered is None or not fallbacks:
        return None
    fitting = [
        model
        for model in (asked, *fallbacks)
        if answered == model or answered.startswith((f"{model}-", f"{model}:", f"{model}@"))
    ]
    best = max(fitting, key=len, default=asked)
    return None if best == asked else best


def failure_of(error: object, status: int, secrets: Redaction = NO_SECRETS) -> Failure:
    """Read an error body, or the error object inside a 200.

    A code that is more specific than the status wins: out of credit isn't a rate limit.
    `secrets` are those the call was made with, which some providers repeat.
    """
    if isinstance(error, list):  # Gemini's: an array whose first item has the error
        return failure_of(cast("list[object]", error)[0] if error else {}, status, secrets)
    fields = _object(error)
    if isinstance(inner := fields.get("error"), dict | str):  # the body, not yet its error
        return failure_of(cast("object", inner), status, secrets)
    code, kind = _word(fields.get("code")), _word(fields.get("type"))
    if status == HTTPStatus.OK and _STATUS.fullmatch(code):
        status = int(code)
    failed = status >= HTTPStatus.MULTIPLE_CHOICES
    cause = _BY_CODE.get(code) or _BY_CODE.get(kind)
    if cause is None:
        cause = _of_status(status) if failed else _BY_TYPE.get(kind, "unavailable")
    detail = shorten(_sentence(error), secrets) or (responses.get(status, "") if failed else "")
    return Failure(cause=cause, detail=detail, status=status)


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and value else ""


def _of_status(status: int) -> Cause:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "unavailable"
    # A redirect: the address is wrong, and a key isn't sent after it.
    return "not_found" if status < HTTPStatus.BAD_REQUEST else "bad_request"


def _sentence(error: object) -> str:
    if isinstance(error, str):
        return error
    fields = _object(error)
    message = fields.get("message") or fields.get("detail") or ""
    # OpenRouter passes an upstream provider's own words on beside "Provider returned error".
    raw = _object(fields.get("metadata")).get("raw")
    said = message if isinstance(message, str) else orjson.dumps(message).decode()
    return f"{said[:EXCERPT_LENGTH]}: {raw}" if isinstance(raw, str) and raw else said


def shorten(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return a text as one line of at most 200 characters, without anything like a key."""
    return clip(" ".join(_KEY.sub(KEY, whole(excerpt(text, secrets))).split()), DETAIL_LENGTH)


def excerpt(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return the beginning of a text, without secrets and without half a word at its end.

    The cut comes first: an error may be many megabytes.
    """
    head = secrets.beginning(text, EXCERPT_LENGTH)
    return head if len(text) <= EXCERPT_LENGTH else re.sub(r"\s\S*\Z", "", head)


def parse(data: str | bytes) -> JsonObject:
    """Return the JSON object in a text; raises `ModelError` (malformed) for anything else."""
    value = _parsed(data)
    if not isinstance(value, dict):
        raise ModelError(Failure(cause="malformed", detail="not a JSON object"))
    return cast("JsonObject", value)


def parse_page(data: str | bytes) -> JsonObject | list[object]:
    """Return the JSON object or array in a text; raises `ModelError` (malformed) for anything else."""
    value = _parsed(data)
    if isinstance(value, dict):
        return cast("JsonObject", value)
    if isinstance(value, list):
        return cast("list[object]", value)
    raise ModelError(Failure(cause="malformed", detail="not a JSON object or array"))


def _parsed(data: str | bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_leniently(data)


def _parse_leniently(data: str | bytes) -> object:
    # orjson refuses the lone half of a surrogate pair, which is legal JSON.
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(Failure(cause="malformed", detail="not JSON")) from error


def _priced(prompt: int, completion: int, price: Price | None) -> Usage:
    if price is None:
        return Usage(prompt_tokens=prompt, completion_tokens=completion, unpriced=1)
    cost = price.cost(prompt, completion)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cost=cost)


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _first(choices: object) -> JsonObject:
    return _object(cast("list[object]", choices)[0]) if isinstance(choices, list) and choices else {}


def _join(content: object) -> str:
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return "".join(str(_object(part).get("text") or "") for part in parts)


def _amount(value: object) -> float | None:
    """Return a number of tokens or dollars, `None` where it can't be one."""
    return value if isinstance(value, int | float) and 0 <= value <= MOST else None
