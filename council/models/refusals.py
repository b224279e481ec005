"""Why a server refused a call, and what of the request it doesn't take.

Errors come in many shapes: `{"error": {…}}` or `{"error": "text"}`, flat, as a list, nested in
`message` or `detail`, as Cloudflare's `errors`, as HTML, and inside a 200. A code says more than a
sentence, and what a sentence says depends on the status: `refusals.toml` is read from top to bottom.
Several words in quotation marks don't count: there, a server may repeat the question.
"""

import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from http import HTTPStatus
from http.client import responses
from itertools import product
from pathlib import Path
from typing import Literal, cast

import orjson
from pydantic import BaseModel

from council.errors import Cause, Failure, ModelError
from council.profile import THINKING_FIELDS
from council.text import clip, whole
from council.text.json_objects import JsonObject, as_list
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


class Sign(BaseModel, extra="forbid", frozen=True):
    """One way in which servers refuse: in words, or by any of some codes.

    `cause` is what it means, beside one of `statuses` if there are any.
    """

    cause: Cause
    words: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    codes: frozenset[str] = frozenset()


class _Table(BaseModel, extra="forbid", frozen=True):
    """What `refusals.toml` says: signs, what says that a part isn't taken, what a status means."""

    parts: dict[str, list[str]]
    signs: tuple[Sign, ...]
    not_taken: dict[Literal["system", "pictures", "format", "thinking", "stream"], tuple[str, ...]]
    by_status: dict[int, Cause]


_TABLE = _Table.model_validate(
    tomllib.loads(Path(__file__).with_name("refusals.toml").read_text("utf-8"))
)


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    found = "|".join(words)
    for name, part in _TABLE.parts.items():
        found = found.replace(f"<{name}>", "|".join(part))
    return re.compile(found, re.IGNORECASE | re.DOTALL)


_QUOTED = re.compile(
    "|".join(
        # An apostrophe inside a word ends no quotation; one that isn't ended goes on to the end.
        rf"(?<!\w){opening}(?:[^{closing}]|(?<=\w){closing}(?=\w))*(?:{closing}|\Z)"
        for opening, closing in ('""', "''", "``", "\u201c\u201d", "\u2018\u2019")
    )
)


OUT_OF_FORM = re.compile(r"does not match the expected \S+ format", re.IGNORECASE)
"""What llama.cpp says of every third reply in a form, for some models: ggml-org/llama.cpp#27279."""
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


def _cause(said: str, codes: Collection[str], status: int, *, is_api: bool) -> Cause:
    # A single word in quotation marks names a field or a model.
    words = _QUOTED.sub(lambda each: " " if len(each[0].split()) > 1 else each[0], said[:TOLD_LENGTH])
    for row in _TABLE.signs:
        if row.statuses and status not in row.statuses:
            continue
        if not row.codes.isdisjoint(codes) or (row.words and _pattern(row.words).search(words)):
            return row.cause
    if status == HTTPStatus.NOT_FOUND and not is_api:
        return "no_api"
    if status in _TABLE.by_status:
        return _TABLE.by_status[status]
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
    found = _pattern(("<retry_in>",)).search(said[:EXCERPT_LENGTH])
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
    says = {part for part, said in _TABLE.not_taken.items() if _pattern(said).search(words)}
    messages = cast("list[JsonObject]", body["messages"])
    if "system" in says and any(message["role"] == "system" for message in messages):
        yield SYSTEM
    if "pictures" in says and any(isinstance(message["content"], list) for message in messages):
        yield PICTURES
    stream = [FORMATTED_STREAM if "response_format" in body else "stream"] if body["stream"] else []
    for layer in layers:
        steps = as_list(layer.get("loc"))
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


# What is said of it -------------------------------------------------------------------------------


def shorten(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return a text as one line of at most 200 characters, without anything like a key."""
    return clip(" ".join(_KEY.sub(KEY, whole(excerpt(text, secrets))).split()), DETAIL_LENGTH)


def excerpt(text: str, secrets: Redaction = NO_SECRETS) -> str:
    """Return the beginning of a text, without secrets and without half a word at its end.

    The cut comes first: an error may be many megabytes.
    """
    head = secrets.beginning(text, EXCERPT_LENGTH)
    return head if len(text) <= EXCERPT_LENGTH else re.sub(r"\s\S*\Z", "", head)
