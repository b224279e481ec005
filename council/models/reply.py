"""What a provider sent back: an answer, or the reason why there is none.

Nothing here does I/O. Shapes: OpenAI's chat completions
(https://platform.openai.com/docs/api-reference/chat), with what OpenRouter adds: errors inside a 200
(https://openrouter.ai/docs/api-reference/errors), and the pages that a web search found, as annotations
(https://openrouter.ai/docs/features/web-search); Perplexity and xAI list them beside the choices
(https://docs.perplexity.ai/api-reference/chat-completions-post). Thoughts come in the content, in parts
of it, or beside it: they are counted, and neither passed on nor part of a reply.
"""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import cast

from council.calls import Call, Citation, Reply
from council.errors import Cause, Failure, ModelError
from council.models.costs import UNPRICED_CALL, search_cost, stated_usage, used
from council.models.phrases import answer_in, without_sources
from council.models.refusals import EXCERPT_LENGTH, NO_SECRETS, refused, shorten, too_large
from council.models.thoughts import ThoughtFilter
from council.text import whole
from council.text.json_objects import JsonObject, as_list, as_object, object_in
from council.text.redaction import Redaction
from council.usage import Price, Usage

MOST_TEXT = 4 * 2**20
"""Characters of a reply's text, and of its thoughts."""
MOST_CITATIONS = 500

_UNFINISHED = {"", "null", "none"}
_CUT_OFF = {"length", "max_tokens", "max_output_tokens"}
_WINDOW_FULL = {"model_length", "model_context_window_exceeded"}
_FILTERED = {"content_filter", "sensitive", "safety", "recitation", "blocklist", "prohibited_content"}
_BROKEN = {"error", "network_error", "insufficient_system_resource", "abort"}
"""Reasons why a reply ended. All others, `stop` and `eos` among them, say that it is whole."""
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Where servers put thoughts beside the content; some send them under two of the names.

`reasoning_text` is GitHub Copilot's: anomalyco/opencode#8900.
"""

_WEB_PAGE = re.compile(r"https?://[^\s<>\"]{1,2000}", re.IGNORECASE)
_HALF_PAIR = re.compile("[\ud800-\udbff]$")


class Completion:
    """One reply, put together from a stream's chunks or from one plain body.

    `filter` tells its answer from its thoughts; of long ones, it keeps the end. `unpriced_call` is what
    a call without a known price is taken to cost, in US dollars.

    Raises `ModelError` as soon as the provider reports an error or sends anything but what the API
    promises.
    """

    def __init__(
        self, filtering: ThoughtFilter | None = None, unpriced_call: float = UNPRICED_CALL
    ) -> None:
        self.filter = filtering or ThoughtFilter()
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.refusal = ""
        self.usage: JsonObject | None = None
        self._citations: dict[str, Citation] = {}
        self._is_sent = False
        self._has_begun = False
        self._unpriced_call = unpriced_call
        self._unparsed = 0  # of a body that hasn't arrived whole
        self._headers: Mapping[str, str] = {}
        self._secrets = NO_SECRETS
        self._half = ""
        self._length = 0  # of the content, thoughts in it included
        self._reasoned = 0  # of thoughts beside it

    def send(self) -> None:
        """Note that the request is on its way; from now on, the call is paid for."""
        self._is_sent = True

    def begin(self, headers: Mapping[str, str], secrets: Redaction) -> None:
        """Note that the server began to answer, with these headers.

        `secrets` are those the call was made with, which errors may repeat.
        """
        self._is_sent = self._has_begun = True
        self._headers, self._secrets = headers, secrets

    def arrive(self, size: int) -> None:
        """Note how many bytes of a plain body have arrived, which can't be read before all are there."""
        self._unparsed = size

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def text(self) -> str:
        return self.filter.answer

    def take_chunk(self, chunk: JsonObject) -> None:
        choice = _first(chunk.get("choices"))
        message = as_object(choice.get("delta"))
        if not message and not self._length:  # a whole reply, sent as an event
            message = as_object(choice.get("message"))
        self._take(chunk, choice, message)

    def end_stream(self) -> None:
        """Note the stream's own end, `[DONE]`: with a text, the reply is whole without a reason, too."""
        if self.finish_reason is None and self._length:
            self.finish_reason = "stop"

    def take_body(self, body: JsonObject) -> None:
        self._unparsed = 0
        choice = _first(body.get("choices"))
        self._take(body, choice, as_object(choice.get("message")) or as_object(choice.get("delta")))
        if not choice:
            raise ModelError(Failure(cause="malformed", detail="a reply without choices"))
        self.finish_reason = self.finish_reason or "stop"
        self.close()

    def close(self) -> None:
        """Settle what may still have become a tag: nothing more comes."""
        self.filter.end(is_whole=self.finished and self.finish_reason not in _CUT_OFF | _WINDOW_FULL)

    def _take(self, body: JsonObject, choice: JsonObject, message: JsonObject) -> None:
        if usage := stated_usage(body, choice):
            self.usage = usage
        if model := body.get("model"):
            self.model = str(model)
        if error := _error(body, choice):
            refusal = refused(error, HTTPStatus.OK, self._secrets)
            # In the middle of a reply, it isn't how the server was asked that it refuses.
            raise refusal if self._is_blank else ModelError(refusal.failure)
        if refusal := message.get("refusal"):
            self._refuse(refusal)
        self._think(next((said for name in _THOUGHTS if (said := message.get(name))), None))
        content = message.get("content") or choice.get("text")
        if isinstance(content, str):  # nearly every chunk
            self._say(content)
        else:
            for part in cast("list[object]", content) if isinstance(content, list) else (content,):
                self._take_part(part)
        self._cite(message.get("annotations"))
        self._cite(body.get("search_results") or body.get("citations"))
        if (reason := str(choice.get("finish_reason") or "").lower()) not in _UNFINISHED:
            self.finish_reason = reason

    def _take_part(self, said: object) -> None:
        part = as_object(said)
        match part.get("type"):
            case "thinking" | "reasoning":
                names = ("thinking", "reasoning", "summary", "text")
                self._think(next((said for name in names if (said := part.get(name))), None))
            case "refusal":
                self._refuse(part.get("refusal"))
            case _:
                if isinstance(text := part.get("text", said), str):
                    self._say(text)

    def _refuse(self, words: object) -> None:
        self.refusal = f"{self.refusal}{words or ''}"[:EXCERPT_LENGTH]

    def _think(self, said: object) -> None:
        """Take thoughts that the server tells apart: a text, or Mistral's list of text parts."""
        if isinstance(said, list):
            for part in cast("list[object]", said):
                self._think(as_object(part).get("text"))
        elif isinstance(said, str):
            self.filter.think(said)
            self._reasoned += len(said)
            if self._reasoned > MOST_TEXT:
                raise too_large("what the model thought")

    def _cite(self, given: object) -> None:
        """Note the pages cited, annotations or a list; a stream may send them in one chunk, or again."""
        for each in as_list(given):
            fields = {"url": each} if isinstance(each, str) else as_object(each)
            cited = as_object(fields.get("url_citation")) or fields
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
                raise too_large("the text")
            self.filter.feed(piece)

    def reply(self, call: Call, latency_ms: int, price: Callable[[str], Price | None]) -> Reply:
        """Return the answer; raises `ModelError` if there is none, with what it cost all the same."""
        self.close()
        text, usage = without_sources(answer_in(self.text, call.messages)), self.spent(call, price)
        required = cast("list[str]", (call.schema or {}).get("required") or [])
        if not text.strip():  # some servers take what was asked for for a thought
            text = (object_in(whole(self.filter.thoughts), required) or "") if required else ""
        if (why := self._failure(text, call, usage)) is not None:
            raise ModelError(why)
        return Reply(
            text=text,
            usage=usage,
            latency_ms=latency_ms,
            truncated=self.finish_reason in _CUT_OFF | _WINDOW_FULL,
            answered_by=self._fallback(call),
            citations=tuple(self._citations.values()),
        )

    def _failure(self, text: str, call: Call, usage: Usage) -> Failure | None:
        reason, said, limit = self.finish_reason, self.text.strip(), None
        cause: Cause = "empty"
        if reason is None:
            cause, detail = "truncated", "the stream ended before the reply did"
        elif reason in _FILTERED or self.refusal:
            cause, detail = "filtered", self.refusal
        elif reason in _BROKEN:
            cause, detail = "unavailable", "the provider broke the reply off"
        elif text:
            return None
        elif reason in _WINDOW_FULL and not self.filter.thoughts:
            cause, detail = "too_long", ""
        elif said:
            detail = "it wrote markup, such as a tool's call, and no answer"
        elif reason in _CUT_OFF | _WINDOW_FULL:
            cause, detail = "only_thoughts", ""
            limit = call.max_tokens or (usage.completion_tokens if usage.source == "measured" else None)
        else:
            detail = f"finish reason: {reason}"
        return Failure(cause=cause, detail=shorten(detail, self._secrets), usage=usage, limit=limit)

    def billed(self, failure: Failure, call: Call, price: Callable[[str], Price | None]) -> Failure:
        """Return a failure with what its request cost.

        Every request that was sent is paid for, also what was lost of its reply, until somebody says
        otherwise. One that was refused, by its status or before the first word, costs nothing.
        """
        was_refused = failure.reason.concerns is not None or failure.cause == "rate_limited"
        is_free = (
            was_refused and self._is_blank and self.usage is None
            if self._has_begun
            else failure.status is not None
        )
        if failure.usage is not None or is_free:
            return failure
        return failure.model_copy(update={"usage": self.paid(call, price)})

    def paid(self, call: Call, price: Callable[[str], Price | None]) -> Usage | None:
        """Return what the request cost so far, however it ended; `None` for one that was never sent."""
        return self.spent(call, price) if self._is_sent else None

    def cut_off(self, call: Call, price: Callable[[str], Price | None]) -> Usage | None:
        """Return the same for a request that is cut off: what didn't arrive may be billed, or not."""
        so_far, listed = self.paid(call, price), price(call.member.model)
        if so_far is None or listed is None or so_far.source == "measured":
            return so_far
        arrived = listed.cost(so_far.prompt_tokens, so_far.completion_tokens)
        unsure = so_far.cost - arrived - search_cost(call.member, web=call.web)
        return so_far.model_copy(update={"unsure": unsure}) if unsure > 0 else so_far

    def spent(self, call: Call, price: Callable[[str], Price | None]) -> Usage:
        """Return what the call used so far: as counted, else estimated by all that arrived."""
        arrived = self._length + self._reasoned + len(self.refusal) + self._unparsed
        listed = price(self._fallback(call) or call.member.model)
        stated = self.usage or {}, self._headers
        return used(call, arrived, *stated, listed, self._unpriced_call, is_whole=self.finished)

    @property
    def _is_blank(self) -> bool:
        return not (self._length or self._reasoned)

    def _fallback(self, call: Call) -> str | None:
        """Return the fallback that answered, `None` where the asked model did or an unknown one.

        Providers answer with an id or a dated variant of it; of several ids that fit, the longest
        counts: `openai/gpt-5-mini-2025-08-07` isn't `openai/gpt-5`.
        """
        asked, fallbacks, answered = call.member.model, call.member.fallbacks, self.model
        if answered is None or not fallbacks:
            return None
        fitting = [
            model
            for model in (asked, *fallbacks)
            if answered == model or answered.startswith((f"{model}-", f"{model}:", f"{model}@"))
        ]
        best = max(fitting, key=len, default=asked)
        return None if best == asked else best


def _error(body: JsonObject, choice: JsonObject) -> object:
    holders = (body.get("error"), body.get("errors"), choice.get("error"))
    if found := next(filter(None, holders), None) or as_object(body.get("x_groq")).get("error"):
        return found
    is_flat = body.get("object") == "error" or body.get("type") == "error"
    says_so = isinstance(body.get("message"), str) or bool(body.get("detail"))
    return body if is_flat or (says_so and not choice) else None


def _first(choices: object) -> JsonObject:
    return as_object(next(iter(as_list(choices)), None))
