"""A request to `/v1/chat/completions`, read as a question.

The last message is the question, earlier turns come before it, and system text is data beside it. What
would change the answer and isn't offered is refused; fields that wouldn't are ignored. Source:
https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.doors.door import Asked
from bot.doors.rejections import Rejected
from bot.service.dispatcher import LONGEST_QUESTION
from bot.view.wording import doors as wording
from council.brief import Attachment, History, Turn

PREFIX = "council/"
"""What a model's name begins with; a profile's follows."""
LONGEST_KEY = 200
MOST_TURNS = 50
"""How many earlier turns are taken; prompts repeat as many of them as have room."""
SYSTEM = "system message"


class ContentPart(BaseModel):
    """One part of a message's content."""

    type: str
    text: str | None = None


class ChatTurn(BaseModel):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[Any] | None = None


class StreamOptions(BaseModel):
    """What a streamed reply has beside the text."""

    include_usage: bool = False


Metadata = dict[str, str]


class ChatBody(BaseModel):
    """What is read of the body."""

    model_config = ConfigDict(hide_input_in_errors=True)

    model: str
    messages: Annotated[list[ChatTurn], Field(min_length=1)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    audio: dict[str, Any] | None = None
    modalities: list[str] | None = None
    metadata: Metadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A question, and how its answer is sent back; `model` as the client wrote it."""

    asked: Asked
    model: str
    is_streamed: bool
    includes_usage: bool
    cancels: bool


def read_request(body: bytes, key: str | None, *, is_repeated: bool) -> ChatRequest:
    """Read a request with the idempotency key of its header. Raises `Rejected`."""
    try:
        read = ChatBody.model_validate_json(body)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise _invalid(wording.unreadable(where, error.errors()[0]["msg"]), where or None) from None
    _check_offered(read)
    said = [turn for turn in read.messages if turn.role not in ("system", "developer")]
    if not said or said[-1].role != "user":
        raise _invalid(wording.NO_USER_MESSAGE, "messages")
    text = _text(said[-1])
    if not text.strip():
        raise _invalid(wording.EMPTY, "messages")
    if len(text) > LONGEST_QUESTION:
        raise Rejected(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, wording.too_long(LONGEST_QUESTION), "too_long"
        )
    system = [_text(turn) for turn in read.messages if turn.role in ("system", "developer")]
    metadata = read.metadata or {}
    key = key or metadata.get("idempotency_key")
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise _invalid(wording.key_too_long(LONGEST_KEY), "idempotency_key")
    return ChatRequest(
        asked=Asked(
            text=text,
            profile=_profile(read.model),
            max_cost=_dollars(metadata.get("max_cost")),
            history=History(turns=tuple(_turns(said[:-1]))[-MOST_TURNS:]),
            files=tuple(Attachment(name=SYSTEM, text=each) for each in system if each.strip()),
            key=key,
            is_repeated=is_repeated,
        ),
        model=read.model,
        is_streamed=bool(read.stream),
        includes_usage=read.stream_options is not None and read.stream_options.include_usage,
        cancels=metadata.get("cancel_on_disconnect") == "true",
    )


def _profile(model: str) -> str | None:
    """Return the profile that a model's name names; none names the channel's, or the token's."""
    return None if model == PREFIX.rstrip("/") else model.removeprefix(PREFIX)


def _dollars(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        amount = float(given)
    except ValueError:
        amount = 0.0
    if not 0 < amount <= 1_000_000:
        raise _invalid(wording.amount_unreadable(given), "metadata.max_cost")
    return amount


def _check_offered(body: ChatBody) -> None:
    if body.tools or body.functions:
        raise _invalid(wording.NO_TOOLS, "tools")
    if body.audio or "audio" in (body.modalities or ()):
        raise _invalid(wording.NO_AUDIO, "modalities")
    if body.n is not None and body.n != 1:
        raise _invalid(wording.ONE_CHOICE, "n")
    for turn in body.messages:
        if turn.role in ("tool", "function") or turn.tool_calls:
            raise _invalid(wording.NO_TOOLS, "messages")


def _text(turn: ChatTurn) -> str:
    """Return a message's text. Raises `Rejected` for parts that can't be read."""
    if not isinstance(turn.content, list):
        return turn.content or ""
    for part in turn.content:
        if part.type not in ("text", "refusal"):
            is_picture = part.type == "image_url"
            raise _invalid(wording.NO_PICTURES if is_picture else wording.no_part(part.type), "messages")
    return "\n".join(part.text or "" for part in turn.content)


def _turns(messages: Sequence[ChatTurn]) -> Iterator[Turn]:
    """Pair what was asked with what was answered; questions without an answer are joined to the next."""
    asked: list[str] = []
    for turn in messages:
        if turn.role == "user":
            asked.append(_text(turn))
        else:
            yield Turn(question="\n\n".join(asked), answer=_text(turn))
            asked = []
    if asked:
        yield Turn(question="\n\n".join(asked), answer=None)


def _invalid(message: str, param: str | None) -> Rejected:
    return Rejected(HTTPStatus.BAD_REQUEST, message, "invalid_request", param=param)
