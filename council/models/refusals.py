"""Why a server refused a call: what its error says, and the cause that it means.

Errors come in many shapes: `{"error": {…}}` or `{"error": "text"}`, flat, as a list, nested in
`message` or `detail`, as Cloudflare's `errors`, as HTML, and inside a 200. A code says more than a
sentence, and what a sentence says depends on the status. Several words in quotation marks don't count:
there, a server may repeat the question.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import responses
from typing import cast

import orjson

from council.errors import Cause, Failure, ModelError
from council.models.phrases import TOO_LONG, WAIT
from council.text.characters import clip, whole
from council.text.json_objects import JsonObject, as_object
from council.text.redaction import Redaction

KEY = "[key]"
"""What an error of a provider says instead of a key."""
DETAIL_LENGTH = 200
EXCERPT_LENGTH = 2_000
"""Characters of an error that are looked at, whatever its length."""
TOLD_LENGTH = 500
"""Characters of an error's sentence whose words may tell its cause."""
DEEPEST = 6
"""Levels of objects in objects in which an error's parts are looked for."""
NO_SECRETS = Redaction(())

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
_CODES: Mapping[Cause, str] = {
    "key": "invalid_api_key incorrect_api_key api_key_invalid invalidapikey no_api_key"
    " invalid_authentication_error",
    # Some come as a 429, though no waiting helps: OpenAI's, Moonshot's, Zhipu's, Cloudflare's.
    "credit": "insufficient_quota credit_balance_exhausted exceeded_current_quota_error"
    " billing_hard_limit_reached billing_not_active billing_error insufficient_balance"
    " insufficient_credits arrearage 1113 3036 4006",
    "key_limit": "openrouter_key_limit budget_exceeded",
    "rate_limited": "openrouter_in_flight_budget capacity_exhausted 1302 1303 1305 3040 3505"
    " throttlingexception throttling throttling.ratequota throttling.allocationquota",
    "forbidden": "region_restricted key_model_access_denied team_model_access_denied"
    " unsupported_country_region_territory",
    "data_policy": "privacy_restricted",
    "moderated": "content_filter content_policy_violation responsibleaipolicyviolation"
    " data_inspection_failed datainspectionfailed moderation_blocked 1301",
    "not_found": "not_found model_not_found model_deprecated model_not_available model_not_supported"
    " modelnotfound model_not_exist invalid_model deploymentnotfound 5007 1211",
    "no_api": "unknown_url",
    "too_long": "context_length_exceeded exceed_context_size_error tokens_limit_reached"
    " context_window_exceeded request_too_large string_above_max_length 1261",
    "unavailable": "overloaded_error engine_overloaded_error server_is_overloaded slow_down"
    " provider_unavailable provider_overloaded",
    "malformed": "json_validate_failed",  # Groq: what the model wrote isn't the JSON asked for
}
_BY_CODE: dict[str, Cause] = {code: cause for cause, codes in _CODES.items() for code in codes.split()}
_BY_KIND: dict[str, Cause] = {
    "authentication_error": "key",
    "permission_error": "forbidden",
    "permission_denied": "forbidden",
    "access_denied": "forbidden",
    "not_found_error": "not_found",
    "resource_not_found_error": "not_found",
    "no_endpoints": "not_found",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "invalid_request_error": "bad_request",
}
"""Codes that say no more than a status does, and less than a sentence."""

_QUOTED = re.compile(
    "|".join(
        # An apostrophe inside a word ends no quotation; one that isn't ended goes on to the end.
        rf"(?<!\w){opening}(?:[^{closing}]|(?<=\w){closing}(?=\w))*(?:{closing}|\Z)"
        for opening, closing in ('""', "''", "``", "\u201c\u201d", "\u2018\u2019")
    )
)


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_TOO_LARGE = _words(r"(?:^|: )request too large\b")
_NO_CREDIT = _words(
    r"insufficient (?:account )?(?:balance|credits?|funds|quota)",
    r"(?:no|out of) credits?\b",
    r"credits? (?:balance )?(?:is|are|has been|have been) (?:too low|exhausted|depleted|used up)",
    r"used all available credits",
    r"(?:exceeded|exhausted) your (?:monthly |included |prepaid )*credits",
    r"exceeded your current quota, please check",
    r"balance is (?:too low|negative|empty)|negative balance",
    r"account is (?:suspended|overdue|in arrears|not active|in good standing)",
    r"(?:visit|check|update) your billing",
    r"no balance|please recharge|never purchased credits",
)
_KEY_LIMIT = _words(
    r"\b(?:key|budget|spend(?:ing)?|usage) (?:total )?limit (?:is |was |has been )?(?:exceeded|reached)",
    r"budget has been exceeded|exceeded (?:your|its|the) (?:monthly |daily )?(?:budget|spending limit)",
)
_USED_UP = _words(r"credit limit exceeded|reached its billing limit|depleted your .{0,40}credits")
_ONE_REQUEST = _words(
    r"fewer max_tokens|max_tokens|can only afford|this request (?:requires|costs|would|may|needs)"
)
_WRONG_KEY = _words(
    r"(?:incorrect|invalid|wrong|missing|no|expired) (?:api[ _-]?key|authentication|credentials)",
    r"\bno connected db\b",  # LiteLLM without a database knows the master key alone
    r"api[ _-]?key (?:is |was )?(?:not valid|invalid|incorrect|expired|missing|not found)",
)
_MODERATED = _words(
    r"content (?:filter|management policy|policy)",
    r"safety system",
    r"usage (?:policy|policies|guidelines)",
    r"inappropriate content",
    r"\b(?:input|prompt|request|content) (?:was|has been|is) (?:flagged|considered high risk)",
    r"requires moderation",
)
_NO_MODEL = _words(
    r"\bmodel\b.{0,100}\b(?:does not exist|not exist|not found|is not valid|not supported by any)",
    r"is not a valid model|invalid model name|model identifier is invalid",
    r"\bmodel:? \S{1,100} is (?:unknown|(?:currently )?(?:not available|unavailable))",
    r"\b(?:invalid|unsupported) model(?: id)?\s*(?::|['\"`]|$)",
    r"unknown model|no such model|try pulling it|invocation of model id",
)
_NO_REGION = _words(r"location is not supported|(?:country|region).{0,60}not supported")
_DATA_POLICY = _words(r"data policy|privacy settings?\b|guardrail restrictions")
_NO_ROUTE = _words(
    r"invalid url|unknown request url|no route\b|route .{0,60}not found",
    r"unexpected endpoint|cannot post|file not found|resource not found|method not allowed",
    r"^\W*(?:404:? ?)?(?:page |url |path )?not found\W*$",
    r"^\W*404 page not found\W*$",
)

_OUT_OF_FORM = _words(r"does not match the expected \S+ format")
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
_RETRY_IN = re.compile(r"\b(?:retry|try again|available again)\s+(?:after|in)\s+(?=\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error as a server words it.

    `codes` are its codes, types and reasons, in lower case; `status` is the one it names itself,
    `retry_after` the seconds it asks to wait, and `retryable` whether to ask again, if it says.
    `is_api` is false for a page, or nothing, that no API of this kind sends.
    """

    message: str = ""
    codes: frozenset[str] = frozenset()
    status: int | None = None
    retry_after: float | None = None
    retryable: bool | None = None
    flagged: bool = False
    is_api: bool = False

    @classmethod
    def of(cls, body: object) -> "ErrorBody":
        """Read an error, or the body that holds one, in any of the shapes that servers send."""
        if isinstance(body, str):
            return cls(message=body, retry_after=told_wait(body), is_api=bool(body))
        layers = list(_layers(body, 0))
        metadata = [as_object(layer.get("metadata")) for layer in layers]
        codes = [*_codes(layers)]
        message = _message(layers)
        raw = next((said for each in metadata if (said := _raw(each.get("raw")))), "")
        said = f"{message[:EXCERPT_LENGTH]}: {raw}" if raw else message
        return cls(
            message=said,
            codes=frozenset(codes),
            status=next((int(code) for code in codes if _STATUS.fullmatch(code)), None),
            retry_after=_first_wait(layers, said),
            retryable=next(
                (known for each in layers if isinstance(known := each.get("retryable"), bool)), None
            ),
            flagged=any(each.get("reasons") for each in metadata),
            is_api=bool(said or codes),
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
    said = ErrorBody.of(body)
    if status == HTTPStatus.OK and said.status is not None:
        status = said.status
    failed = status >= HTTPStatus.MULTIPLE_CHOICES
    detail = shorten(said.message, secrets) or (responses.get(status, "") if failed else "")
    failure = Failure(cause=_cause(said, status), detail=detail, status=status)
    wait = said.retry_after if retry_after is None else retry_after
    return RefusedCall(failure, wait, body, retryable=said.retryable is not False)


def too_large(what: str) -> ModelError:
    """Return the error of a reply, or a part of one, that is over its limit."""
    return ModelError(Failure(cause="too_large", detail=f"{what} is over the size limit"))


def is_out_of_form(failure: Failure) -> bool:
    """Return whether a server couldn't read what a model wrote in the form that was asked for.

    llama.cpp says so, for some models of every third such reply: ggml-org/llama.cpp#27279.
    """
    return bool(_OUT_OF_FORM.search(failure.detail))


def _unquoted(quoted: re.Match[str]) -> str:
    # A single word in quotation marks names a field or a model.
    return " " if len(quoted[0].split()) > 1 else quoted[0]


def _cause(said: ErrorBody, status: int) -> Cause:
    words = _QUOTED.sub(_unquoted, said.message[:TOLD_LENGTH])
    known = {_BY_CODE[code] for code in said.codes if code in _BY_CODE}
    is_long = _TOO_LARGE.search(words) or (TOO_LONG.search(words) and not WAIT.search(words))
    if is_long and not known & {"key", "credit", "key_limit", "moderated"}:
        return "too_long"  # Groq and OpenAI say so under the code of a rate limit
    for cause in _RANKING:
        if cause in known:
            return cause
    if said.flagged:
        return "moderated"
    if (told := _by_words(words, status)) is not None:
        return told
    if status == HTTPStatus.NOT_FOUND and not said.is_api:
        return "no_api"
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return _of_status(status)
    for code in sorted(said.codes):
        if code in _BY_KIND:
            return _BY_KIND[code]
    return "unavailable"


_RANKING: tuple[Cause, ...] = (
    "too_long",
    "moderated",
    "data_policy",
    "key_limit",
    "forbidden",
    "rate_limited",
    "credit",
    "key",
    "no_api",
    "not_found",
    "malformed",
    "unavailable",
)
"""Of several codes in one error, the one that says more counts: who is asked, or how it is meant."""


def _by_words(words: str, status: int) -> Cause | None:
    """Return the cause that a sentence tells beyond its status."""
    match status:
        case 400 | 422:
            table = _OF_BAD_REQUESTS
        case 402:
            table = _OF_PAYMENTS
        case 403:
            table = _OF_FORBIDDEN
        case 404:
            table = _OF_NOT_FOUND
        case 429:
            table = _OF_TOO_MANY if told_wait(words) is None else ()
        case HTTPStatus.OK:
            table = _OF_NOTHING
        case _:
            table = ()
    return next((cause for pattern, cause in table if pattern.search(words)), None)


_Table = tuple[tuple[re.Pattern[str], Cause], ...]
_OF_BAD_REQUESTS: _Table = (
    (_WRONG_KEY, "key"),
    (_NO_CREDIT, "credit"),
    (_KEY_LIMIT, "key_limit"),
    (_MODERATED, "moderated"),
    (_NO_MODEL, "not_found"),
    (_NO_REGION, "forbidden"),
    (WAIT, "rate_limited"),
)
_OF_PAYMENTS: _Table = (
    (_USED_UP, "credit"),
    (_KEY_LIMIT, "key_limit"),
    (_ONE_REQUEST, "too_dear"),
    (_NO_CREDIT, "credit"),
)
_OF_FORBIDDEN: _Table = ((_NO_CREDIT, "credit"), (_KEY_LIMIT, "key_limit"), (_MODERATED, "moderated"))
_OF_NOT_FOUND: _Table = ((_DATA_POLICY, "data_policy"), (_NO_ROUTE, "no_api"))
_OF_TOO_MANY: _Table = ((_NO_CREDIT, "credit"), (_KEY_LIMIT, "key_limit"))
_OF_NOTHING: _Table = (
    (_words("unexpected endpoint"), "no_api"),  # LM Studio, under a 200
    (_WRONG_KEY, "key"),
    (_NO_CREDIT, "credit"),
    (_KEY_LIMIT, "key_limit"),
    (_NO_MODEL, "not_found"),
    (WAIT, "rate_limited"),
)


def _of_status(status: int) -> Cause:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "unavailable"
    # A redirect: the address is wrong, and a key isn't sent after it.
    return "no_api" if status < HTTPStatus.BAD_REQUEST else "bad_request"


# An error's parts ---------------------------------------------------------------------------------


def _layers(value: object, depth: int) -> Iterator[JsonObject]:
    """Yield the objects of an error from the outermost in."""
    if isinstance(value, list):
        value = next(iter(cast("list[object]", value)), None)
    fields = as_object(value)
    if not fields or depth == DEEPEST:
        return
    yield fields
    for name in ("error", "errors", "message", "detail", "innererror", "inner_error", "availability"):
        yield from _layers(fields.get(name), depth + 1)
    yield from _layers(fields.get("metadata"), depth + 1)


def _codes(layers: list[JsonObject]) -> Iterator[str]:
    for layer in layers:
        for name in ("code", "type", "status", "error_type", "limit_source", "reason"):
            value = layer.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value:
                yield str(value)[:TOLD_LENGTH].lower()
        details = layer.get("details")
        for detail in cast("list[object]", details) if isinstance(details, list) else []:
            if isinstance(reason := as_object(detail).get("reason"), str):
                yield reason.lower()


def _message(layers: list[JsonObject]) -> str:
    for layer in reversed(layers):
        for name in ("message", "detail", "error"):
            if isinstance(said := layer.get(name), str) and said:
                return said
    for layer in layers:  # FastAPI lists what it objects to
        if isinstance(listed := layer.get("detail") or layer.get("message"), list | dict):
            return orjson.dumps(listed, default=str).decode()
    return ""


def _raw(raw: object) -> str:
    """Return what OpenRouter passes on of an upstream's words, beside "Provider returned error"."""
    if not isinstance(raw, str):
        return ""
    try:
        return _message(list(_layers(orjson.loads(raw), 0))) or raw
    except orjson.JSONDecodeError:
        return raw


def _first_wait(layers: list[JsonObject], said: str) -> float | None:
    for layer in layers:
        value = layer.get("retry_after")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return float(value)
    return told_wait(said)


def told_wait(text: str) -> float | None:
    """Return the seconds that a sentence asks to wait, as in "Please try again in 2m59.5s."."""
    found = _RETRY_IN.search(text, 0, EXCERPT_LENGTH)
    if found is None:
        return None
    seconds, at = 0.0, found.end()
    while amount := _AMOUNT.match(text, at):
        unit = amount[2].lower()
        seconds += float(amount[1]) * (0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]])
        at = amount.end()
    return seconds if at > found.end() else None


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
