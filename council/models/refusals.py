"""Why a server refused a call, and what of the request it doesn't take.

Errors come in many shapes: `{"error": {…}}` or `{"error": "text"}`, flat, as a list, nested in
`message` or `detail`, as Cloudflare's `errors`, as HTML, and inside a 200. A code says more than a
sentence, and what a sentence says depends on the status: `REFUSALS` is read from top to bottom. Several
words in quotation marks don't count: there, a server may repeat the question.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from itertools import product
from typing import Literal, cast

import orjson

from council.errors import Cause, Failure, ModelError
from council.profile import THINKING_FIELDS
from council.text import clip, whole
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction

KEY = "[key]"
"""What an error of a provider says instead of a key."""
DETAIL_LENGTH = 200
EXCERPT_LENGTH = 2_000
"""Characters of an error that are looked at, whatever its length."""
TOLD_LENGTH = 500
"""Characters of an error's sentence whose words may tell its cause."""
MOST_WORDS = 4_000
"""Characters of an error that are searched for a field's name."""
DEEPEST = 6
"""Levels of objects and lists in which an error's parts are looked for."""
MOST_PARTS = 50
"""Parts of one object or list that are looked at."""
LEAST_TOKENS = 256
"""Tokens of a reply below which it isn't worth asking for."""
NO_SECRETS = Redaction(())
SYSTEM, PICTURES, FORMATTED_STREAM = "system role", "shown pictures", "stream of a format"
"""Parts of a request that are no field of it; no field's name has a blank."""

_MUCH = r"(?: token)?(?: count| length| size| tokens?)?(?: of)?(?: [\d,]+(?: tokens)?| \([^()]*\))?"
_WAIT = r"please (?:wait|slow)|throttl(?:ed|ing)|rate limit|tokens per (?:minute|day)"
"""What says that it was too much at once, as Bedrock's *Too many tokens, please wait* does."""
_TOO_LONG = (  # earendil-works/pi (overflow.ts), litellm (exception_mapping_utils.py)
    rf"\b(?:input|prompt|request){_MUCH} (?:is )?too (?:long|large)"
    rf"|\b(?:input|prompt|context window){_MUCH} (?:(?:cannot )?exceed|is (?:longer|greater) than)"
    r"|max(?:imum)? (?:\w+ )?(?:context|input|prompt|sequence|model|message) (?:length|token)"
    r"|exceed(?:s|ed)? (?:[\w']+ ){0,4}(?:context (?:size|window|length|limit)|model token limit)"
    r"|context (?:length|window|size) exceeded|(?:longer|greater|less) than the .{0,8}context length"
    r"|context_length_exceeded|exceed_context_size|tokens_limit|too many (?:input |prompt )?tokens"
    r"|tokens in request more than max|tokens? in the prompt cannot exceed|prompt has [\d,]+ tokens, but"
    r"|must have less than [\d,]+ tokens|inputs?`? tokens \+ .{0,40}max_new_tokens"
    r"|input length and `?max_tokens`? exceed|reduce the length of the (?:messages|prompt|input)"
    r"|current length is \d+ while limit is|trying to keep the first \d+ tokens"
    r"|range of input length should be|prompt ?\u8d85\u957f|\u957f\u5ea6\u8d85[\u9650\u8fc7\u51fa]"
)
"""What says that a request is longer than its model reads, in each server's words."""
_RETRY_IN = r"\b(?:retry|try again|available again)\s+(?:after|in)\s+(?=\d)"


@dataclass(frozen=True, slots=True)
class Sign:
    """One way in which servers refuse: in words, or by any of some codes.

    `cause` is what it means, beside one of `statuses` if there are any.
    """

    cause: Cause
    words: str = ""
    statuses: Collection[int] = ()
    codes: str = ""


_BAD = (200, 400, 422)
_PAID = (200, 400, 402, 403, 422, 429)
_IS = "(?:(?:is|are|was|has been|have been) )?"
REFUSALS = (
    # Codes: of several in one error, the one that says more counts: who is asked, or how it is meant.
    Sign("moderated", codes="content_filter content_policy_violation responsibleaipolicyviolation"),
    Sign("moderated", codes="data_inspection_failed datainspectionfailed moderation_blocked 1301"),
    Sign("moderated", codes="flagged"),
    Sign("data_policy", codes="privacy_restricted"),
    Sign("key_limit", codes="openrouter_key_limit budget_exceeded"),
    Sign("forbidden", codes="region_restricted key_model_access_denied team_model_access_denied"),
    Sign("forbidden", codes="unsupported_country_region_territory"),
    Sign("rate_limited", codes="openrouter_in_flight_budget capacity_exhausted 1302 1303 1305 3040"),
    Sign("rate_limited", codes="3505 throttlingexception throttling throttling.ratequota"),
    Sign("rate_limited", codes="throttling.allocationquota"),
    # Some come as a 429, though no waiting helps: OpenAI's, Moonshot's, Zhipu's, Cloudflare's.
    Sign("credit", codes="insufficient_quota credit_balance_exhausted exceeded_current_quota_error"),
    Sign("credit", codes="billing_hard_limit_reached billing_not_active billing_error"),
    Sign("credit", codes="insufficient_balance insufficient_credits arrearage 1113 3036 4006"),
    Sign("key", codes="invalid_api_key incorrect_api_key api_key_invalid invalidapikey no_api_key"),
    Sign("key", codes="invalid_authentication_error"),
    # Longer than a model reads: earendil-works/pi (overflow.ts), litellm (exception_mapping_utils.py).
    Sign("too_long", codes="context_length_exceeded exceed_context_size_error tokens_limit_reached"),
    Sign("too_long", codes="context_window_exceeded request_too_large string_above_max_length 1261"),
    Sign("too_long", r"(?:\A|: )request too large\b"),  # Groq, OpenAI: under the code of a rate limit
    Sign("too_long", rf"\A(?!.*(?:{_WAIT})).*(?:{_TOO_LONG})"),
    Sign("no_api", codes="unknown_url"),
    Sign("not_found", codes="not_found model_not_found model_deprecated model_not_available"),
    Sign("not_found", codes="model_not_supported modelnotfound model_not_exist invalid_model"),
    Sign("not_found", codes="deploymentnotfound 5007 1211"),
    Sign("malformed", codes="json_validate_failed"),  # Groq: what the model wrote isn't the JSON
    Sign("unavailable", codes="overloaded_error engine_overloaded_error server_is_overloaded"),
    Sign("unavailable", codes="slow_down provider_unavailable provider_overloaded"),
    # Words, each beside the statuses under which it was seen.
    Sign("rate_limited", _RETRY_IN, (429,)),
    Sign("credit", r"credit limit exceeded|reached its billing limit", (402,)),
    Sign("credit", r"depleted your .{0,40}credits", (402,)),
    Sign("key", r"(?:incorrect|invalid|wrong|missing|no|expired) api[ _-]?key", _BAD),
    Sign("key", r"(?:incorrect|invalid|wrong|missing|no|expired) authentication", _BAD),
    Sign("key", r"(?:incorrect|invalid|wrong|missing|no|expired) credentials", _BAD),
    Sign("key", r"api[ _-]?key (?:is |was )?(?:not (?:valid|found)|in(?:valid|correct))", _BAD),
    Sign("key", r"api[ _-]?key (?:is |was )?(?:expired|missing)", _BAD),
    Sign("key", r"\bno connected db\b", _BAD),  # LiteLLM without a database
    Sign("key_limit", rf"\b(?:key|budget) (?:total )?limit {_IS}(?:exceeded|reached)", _PAID),
    Sign("key_limit", rf"\b(?:spend(?:ing)?|usage) limit {_IS}(?:exceeded|reached)", _PAID),
    Sign("key_limit", r"budget has been exceeded", _PAID),
    Sign("key_limit", r"exceeded (?:your|its|the) (?:\w+ly )?(?:budget|spending limit)", _PAID),
    Sign("too_dear", r"fewer max_tokens|max_tokens|can only afford", (402,)),
    Sign("too_dear", r"this request (?:requires|costs|would|may|needs)", (402,)),
    Sign("credit", r"insufficient (?:account )?(?:balance|credits?|funds|quota)", _PAID),
    Sign("credit", r"(?:no|out of) credits?\b", _PAID),
    Sign("credit", rf"credits? (?:balance )?{_IS}(?:too low|exhausted|depleted|used up)", _PAID),
    Sign("credit", r"used all available credits", _PAID),
    Sign("credit", r"(?:exceeded|exhausted) your (?:monthly |included |prepaid )*credits", _PAID),
    Sign("credit", r"exceeded your current quota, please check", _PAID),
    Sign("credit", r"balance is (?:too low|negative|empty)|negative balance", _PAID),
    Sign("credit", r"account is (?:suspended|overdue|in arrears|not active)|in good standing", _PAID),
    Sign("credit", r"(?:visit|check|update) your billing|no balance|please recharge", _PAID),
    Sign("credit", r"never purchased credits", _PAID),
    Sign("moderated", r"content (?:filter|management policy|policy)|safety system", (403, *_BAD)),
    Sign("moderated", r"inappropriate content|usage (?:policy|policies|guidelines)", (403, *_BAD)),
    Sign("moderated", r"requires moderation", (403, *_BAD)),
    Sign("moderated", rf"\b(?:input|prompt|request|content) {_IS}flagged", (403, *_BAD)),
    Sign("moderated", rf"\b(?:input|prompt|request|content) {_IS}considered high risk", (403, *_BAD)),
    Sign("not_found", r"\bmodel\b.{0,100}\b(?:not exist|not found|is not valid)", _BAD),
    Sign("not_found", r"\bmodel\b.{0,100}\bnot supported by any|is not a valid model", _BAD),
    Sign("not_found", r"invalid model name|model identifier is invalid", _BAD),
    Sign("not_found", r"\bmodel:? \S{1,100} is (?:unknown|(?:currently )?unavailable)", _BAD),
    Sign("not_found", r"\bmodel:? \S{1,100} is (?:currently )?not available", _BAD),
    Sign("not_found", r"\b(?:invalid|unsupported) model(?: id)?\s*(?::|['\"`]|$)", _BAD),
    Sign("not_found", r"unknown model|no such model|try pulling it|invocation of model id", _BAD),
    Sign("forbidden", r"location is not supported|(?:country|region).{0,60}not supported", _BAD),
    Sign("rate_limited", _WAIT, _BAD),
    Sign("data_policy", r"data policy|privacy settings?\b|guardrail restrictions", (404,)),
    Sign("no_api", r"invalid url|unknown request url|no route\b|route .{0,60}not found", (404,)),
    Sign("no_api", r"unexpected endpoint|cannot post|file not found|resource not found", (404,)),
    Sign("no_api", r"method not allowed", (404,)),
    Sign("no_api", r"\A\W*(?:404:? ?)?(?:page |url |path )?not found\W*\Z", (404,)),
    Sign("no_api", r"unexpected endpoint", (200,)),  # LM Studio
    # Codes that say no more than a status does, and less than a sentence.
    Sign("key", codes="authentication_error", statuses=(200,)),
    Sign("forbidden", codes="permission_error permission_denied access_denied", statuses=(200,)),
    Sign("not_found", codes="not_found_error resource_not_found_error no_endpoints", statuses=(200,)),
    Sign("rate_limited", codes="rate_limit_error rate_limit_exceeded", statuses=(200,)),
    Sign("bad_request", codes="invalid_request_error", statuses=(200,)),
)
_SYSTEM = "(?:system|developer) (?:role|messages?|prompts?|instructions?)"
NOT_TAKEN: tuple[tuple[Literal["system", "pictures", "format", "thinking", "stream"], str], ...] = (
    ("system", rf"{_SYSTEM}\b.{{0,40}}\b(?:not|n't|un\w*ed)\b"),
    ("system", rf"(?:not|n't|un\w*ed)\b.{{0,40}}\b{_SYSTEM}\b"),
    ("system", r"(?:only|must be) \W*user\W* (?:and|or) \W*(?:assistant|model)\b"),
    ("system", r"roles must alternate"),
    # "No endpoints found that support image input" (OpenRouter, 404), "image input is not supported by
    # this server" (llama.cpp, 500), "is not a multimodal model" (vLLM), "unknown variant `image_url`,
    # expected `text`" (DeepSeek), "content must be a string" (Groq)
    ("pictures", r"\bimages?\b|image_url|multi-?modal|\bvision\b"),
    ("pictures", r"\bcontent\b.{0,40}\b(?:must|should) be\b.{0,20}\bstr(?:ing)?\b"),
    ("pictures", r"\bcontent\b.{0,40}\b(?:expected|valid)\b.{0,20}\bstr(?:ing)?\b"),
    ("format", r"response[_ ]?format|json[_ ]?schema|structured[_ ]outputs?"),
    ("format", r"guided[_ ](?:decoding|json)|\bgrammar\b|schema fields"),
    ("format", r"handle the requested parameters"),
    ("thinking", r"\b(?:thinking|reasoning)\b"),
    ("stream", r"[\"'`]stream[\"'`]"),
    ("stream", r"\bstream(?:ing)?\b.{0,30}(?:unsupported|disabled)"),
    ("stream", r"\bstream(?:ing)?\b.{0,30}not (?:supported|available|allowed|enabled)"),
    ("stream", r"(?:n't|not|cannot|only|disable)\b(?: support)?.{0,20}\b(?:non-)?stream(?:ing)?\b"),
)
"""What says that a part of a request isn't taken; a field is most often named (`refused_part`)."""
_BY_STATUS: dict[int, Cause] = {
    401: "key",
    402: "too_dear",  # of one request, unless it says that the account is empty
    403: "forbidden",
    404: "not_found",
    405: "no_api",
    408: "unavailable",
    409: "unavailable",  # OpenAI's lock timeout: its own clients try again
    412: "credit",  # Fireworks: the account is suspended
    413: "too_long",
    429: "rate_limited",
    498: "unavailable",  # Groq: no capacity
}
_QUOTED = re.compile(
    "|".join(
        # An apostrophe inside a word ends no quotation; one that isn't ended goes on to the end.
        rf"(?<!\w){opening}(?:[^{closing}]|(?<=\w){closing}(?=\w))*(?:{closing}|\Z)"
        for opening, closing in ('""', "''", "``", "\u201c\u201d", "\u2018\u2019")
    )
)


_OUT_OF_FORM = re.compile(r"does not match the expected \S+ format", re.IGNORECASE)
_STATUS = re.compile(r"[1-9]\d\d", re.ASCII)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.-]{4,}"  # keys as providers shape them
    r"|\bAIza[\w-]{8,}"
    r"|(?<=Bearer )\S+"
    r"|\b[A-Za-z0-9_]{32,}\b"
)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_AMOUNT = re.compile(
    r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)(?![a-z])",
    re.IGNORECASE,
)


class RefusedCall(ModelError):
    """The provider refused; `retry_after` is the seconds it asked to wait, `error` its body.

    `retryable` is false where it says that asking again doesn't help.
    """

    def __init__(
        self,
        failure: Failure,
        retry_after: float | None = None,
        error: object = None,
        *,
        retryable: bool = True,
    ) -> None:
        super().__init__(failure)
        self.error = error
        self.retry_after = retry_after
        self.retryable = retryable


def refused(
    body: object, status: int, secrets: Redaction = NO_SECRETS, retry_after: float | None = None
) -> RefusedCall:
    """Return the error that a body means, with a status or inside a 200.

    `secrets` are those the call was made with, which some providers repeat. `retry_after` is what the
    header says, which counts first.
    """
    layers = _layers(body)
    codes = {*_codes(layers)}
    said = _said(layers) if layers else body if isinstance(body, str) else ""
    if status == HTTPStatus.OK:
        status = next((int(code) for code in _codes(layers) if _STATUS.fullmatch(code)), status)
    detail = shorten(said, secrets)
    if not detail and status >= HTTPStatus.MULTIPLE_CHOICES:
        detail = responses.get(status, "")
    failure = Failure(
        cause=_cause(said, codes, status, is_api=bool(said or codes)), detail=detail, status=status
    )
    wait = _wait(layers, said) if retry_after is None else retry_after
    is_final = any(layer.get("retryable") is False for layer in layers)
    return RefusedCall(failure, wait, body, retryable=not is_final)


def too_large(what: str) -> ModelError:
    return ModelError(Failure(cause="too_large", detail=f"{what} is over the size limit"))


def is_out_of_form(failure: Failure) -> bool:
    """Return whether a server couldn't read what a model wrote in the form that was asked for.

    llama.cpp says so, for some models of every third such reply: ggml-org/llama.cpp#27279.
    """
    return bool(_OUT_OF_FORM.search(failure.detail))


def _cause(said: str, codes: Collection[str], status: int, *, is_api: bool) -> Cause:
    # A single word in quotation marks names a field or a model.
    words = _QUOTED.sub(lambda each: " " if len(each[0].split()) > 1 else each[0], said[:TOLD_LENGTH])
    for row in REFUSALS:
        if row.statuses and status not in row.statuses:
            continue
        has_code = not {*row.codes.split()}.isdisjoint(codes)
        if has_code or (row.words and re.search(row.words, words, re.IGNORECASE | re.DOTALL)):
            return row.cause
    if status == HTTPStatus.NOT_FOUND and not is_api:
        return "no_api"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return "no_api"  # a redirect: the address is wrong, and a key isn't sent after it
    is_bad = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return "bad_request" if is_bad else "unavailable"


# An error's parts ---------------------------------------------------------------------------------


def _parts(error: object, depth: int = DEEPEST) -> Iterator[JsonObject | str]:
    if isinstance(error, str):
        yield error[:MOST_WORDS]
    elif isinstance(error, list) and depth:
        for each in cast("list[object]", error)[:MOST_PARTS]:
            yield from _parts(each, depth - 1)
    elif isinstance(error, dict) and depth:
        fields = cast("JsonObject", error)
        yield fields
        yield from _parts([*fields.values()], depth)


def _layers(error: object) -> list[JsonObject]:
    return [part for part in _parts(error) if isinstance(part, dict)]


def _words(error: object) -> str:
    return " ".join(part for part in _parts(error) if isinstance(part, str))[:MOST_WORDS]


def _codes(layers: Iterable[JsonObject]) -> Iterator[str]:
    for layer in layers:
        for name in ("code", "type", "status", "error_type", "limit_source", "reason"):
            value = layer.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value:
                yield str(value)[:TOLD_LENGTH].lower()
        if layer.get("reasons"):
            yield "flagged"  # by OpenRouter's moderation


def _said(layers: list[JsonObject]) -> str:
    """Return an error's sentence, with what OpenRouter passes on beside "Provider returned error"."""
    said = ""
    for layer, name in product(reversed(layers), ("message", "detail", "error")):
        if isinstance(found := layer.get(name), str) and found:
            said = found
            break
    else:
        for layer in layers:  # FastAPI lists what it objects to
            if isinstance(listed := layer.get("detail") or layer.get("message"), list | dict):
                said = orjson.dumps(listed, default=str).decode()
                break
    for layer in layers:
        if isinstance(raw := layer.get("raw"), str) and raw:
            with suppress(orjson.JSONDecodeError):
                raw = _said(_layers(orjson.loads(raw))) or raw
            return f"{said[:EXCERPT_LENGTH]}: {raw}"
    return said


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a provider asks to wait: `retry-after-ms`, or `Retry-After` in either form.

    Sources: RFC 9110, section 10.2.3; the first is OpenAI's finer form of it.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _wait(layers: list[JsonObject], said: str) -> float | None:
    """Return the seconds that an error asks to wait, also as in "Please try again in 2m59.5s."."""
    for layer in layers:
        value = layer.get("retry_after")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return float(value)
    found = re.search(_RETRY_IN, said[:EXCERPT_LENGTH], re.IGNORECASE)
    if found is None:
        return None
    seconds, at = 0.0, found.end()
    while amount := _AMOUNT.match(said, at):
        unit = amount[2].lower()
        seconds += float(amount[1]) * (0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]])
        at = amount.end()
    return seconds if at > found.end() else None


# What of a request isn't taken -------------------------------------------------------------------


def refused_part(error: object, failure: Failure, body: JsonObject) -> tuple[str, bool] | None:
    """Return what a refusal names of a request, and whether no model at the address knows it.

    `error` is the refusal's body, `body` the request's. It is a field that was sent, or `SYSTEM`,
    `PICTURES` or `FORMATTED_STREAM`; `None` where the refusal names nothing that was sent. What concerns
    credit, keys, models, length or moderation isn't mended by other fields.
    """
    if failure.cause not in _MENDABLE.get(failure.status or 0, ()):
        return None
    words = _words(error)
    name = next(_named(_layers(error), words, body), None)
    # A format is a matter of the model, whatever the words; so is what is no field.
    is_field = name in body and name != "response_format"
    return None if name is None else (name, is_field and bool(_UNKNOWN.search(words)))


def _named(layers: list[JsonObject], words: str, body: JsonObject) -> Iterator[str]:
    """Find the parts of a request that a refusal names: in `param` or `loc`, else in its words."""
    says = {part for part, said in NOT_TAKEN if re.search(said, words, re.IGNORECASE | re.DOTALL)}
    messages = cast("list[JsonObject]", body["messages"])
    if "system" in says and any(message["role"] == "system" for message in messages):
        yield SYSTEM
    if "pictures" in says and any(isinstance(message["content"], list) for message in messages):
        yield PICTURES
    stream = [FORMATTED_STREAM if "response_format" in body else "stream"] if body["stream"] else []
    for layer in layers:
        path = layer.get("loc")
        steps = cast("list[object]", path) if isinstance(path, list) else []
        for name in (layer.get("param"), *[step for step in steps if step != "body"][:1]):
            if field := _field(str(name), body):
                yield from stream if field == "stream" else (field,)
    if "format" in says and "response_format" in body:
        yield from (*(stream if "stream" in says else ()), "response_format")
    yield from (name for name in body if name not in _OURS and _names(name).search(words))
    if "thinking" in says:
        yield from (name for name in body if name in THINKING_FIELDS)
    if "stream" in says:
        yield from stream


def smaller_limit(failure: Failure, error: object, asked: int | None) -> int | None:
    """Return how long a reply the account can still afford, where a refusal says so.

    Source: OpenRouter's 402, "requested up to 65536 tokens, but can only afford 30104".
    """
    found = _AFFORD.search(_words(error))
    if failure.cause != "too_dear" or not found:
        return None
    affordable = int(re.sub(r"\D", "", found["after"] or found["before"]))
    return affordable if LEAST_TOKENS <= affordable < (asked or affordable + 1) else None


_OURS = ("model", "messages", "stream")
"""Fields without which there is no request, or whose names are words."""
_MENDABLE: dict[int, tuple[str, ...]] = {
    400: ("bad_request",),
    404: ("bad_request", "not_found", "data_policy"),
    422: ("bad_request",),
    500: ("bad_request", "unavailable"),
    501: ("bad_request", "unavailable"),
}
"""Causes, by status, behind which there may be a field that a server doesn't take."""
_UNKNOWN = re.compile(
    r"unknown|unrecogni[sz]ed|\bextra\b|extra_forbidden|cannot find field|not permitted"
    r"|is unsupported|not a valid field",
    re.IGNORECASE,
)
_AFFORD = re.compile(
    r"can only afford (?P<after>[\d,]+)|(?:only )?(?P<before>[\d,]+) can be afforded", re.IGNORECASE
)
_PATH = re.compile(r"[.\[/]")


@lru_cache(maxsize=64)
def _names(field: str) -> re.Pattern[str]:
    """Return what finds a field's name; one that is also a word must be meant as a name."""
    camel = re.sub(r"_(\w)", lambda letter: letter[1].upper(), field)
    name = rf"(?:{re.escape(field)}|{re.escape(camel)})"
    if "_" in field:
        return re.compile(rf"(?<![\w.]){name}(?!\w)", re.IGNORECASE)
    return re.compile(
        rf"[\"'`\u2018]{name}[\"'`\u2019]"
        rf"|\b(?:parameters?|arguments?|fields?|property|supplied|name|model|invalid|unsupported|unknown"
        rf"|supports?)\b\W{{1,3}}{name}\b"
        rf"|\b{name}\W{{1,3}}(?:is|isn't|are|does|doesn't|must|should|can|can't|cannot)\b",
        re.IGNORECASE,
    )


def _field(name: str, body: Collection[str]) -> str | None:
    """Return the field of a request that a name means: `reasoning.effort` and `presencePenalty`, too."""
    root = _PATH.split(name.strip())[0]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", root).lower()
    return snake if snake in body and snake not in ("model", "messages") else None


# What is told of it -------------------------------------------------------------------------------


def shorten(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return a text as one line of at most 200 characters, without anything like a key."""
    return clip(" ".join(_KEY.sub(KEY, whole(excerpt(text, secrets))).split()), DETAIL_LENGTH)


def excerpt(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return the beginning of a text, without secrets and without half a word at its end.

    The cut comes first: an error may be many megabytes.
    """
    head = secrets.beginning(text, EXCERPT_LENGTH)
    return head if len(text) <= EXCERPT_LENGTH else re.sub(r"\s\S*\Z", "", head)
