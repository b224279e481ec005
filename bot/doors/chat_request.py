"""A request to `/v1/chat/completions`, read as a question.

The last message is the question, earlier turns come before it, and system text is data beside it. What
would change the answer and isn't offered is refused; fields that wouldn't are ignored. Source:
https://platform.openai.com/docs/api-reference/chat/create
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.doors.door import Asked
from bot.doors.rejections import Rejected
from bot.inputs.reading import FileContent
from bot.service.dispatcher import LONGEST_QUESTION
from bot.view.wording import doors as wording
from council.brief import Attachment, History, Turn

PREFIX = "council/"
"""What a model's name begins with; a profile's follows."""
LONGEST_KEY = 200
MOST_TURNS = 50
"""How many earlier turns are taken; prompts repeat as many of them as have room."""
SYSTEM = "system message"
_DATA = re.compile(r"data:image/[a-z.+-]+;base64,([A-Za-z0-9+/=\s]+)", re.IGNORECASE)


class ImageUrl(BaseModel):
    """Where a picture is: here, in the address itself."""

    url: str


class ContentPart(BaseModel):
    """One part of a message's content."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None


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
    """A question, and how its answer is sent back; `model` as the client wrote it.

    `pictures` came with the question and aren't read yet.
    """

    asked: Asked
    pictures: tuple[FileContent, ...]
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
    text, pictures = _question(said[-1]), tuple(_pictures(said[-1]))
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
        pictures=pictures,
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
        if part.type not in ("text", "refusal", "image_url"):
            raise _invalid(wording.no_part(part.type), "messages")
    return "\n".join(
        wording.PICTURE if part.type == "image_url" else part.text or "" for part in turn.content
    )


def _question(turn: ChatTurn) -> str:
    """Return the text of the message that asks; its pictures are read beside it."""
    if not isinstance(turn.content, list):
        return _text(turn)
    texts = [part for part in turn.content if part.type != "image_url"]
    return _text(turn.model_copy(update={"content": texts}))


def _pictures(turn: ChatTurn) -> Iterator[FileContent]:
    """Return the pictures of a message. Raises `Rejected` for one that isn't in the request itself."""
    parts = turn.content if isinstance(turn.content, list) else []
    for number, part in enumerate((each for each in parts if each.type == "image_url"), 1):
        found = _DATA.fullmatch(part.image_url.url) if part.image_url else None
        try:
            content = base64.b64decode(found[1], validate=True) if found else b""
        except binascii.Error:
            content = b""
        if not content:
            raise _invalid(wording.NO_PICTURE_DATA, "messages")
        yield FileContent(wording.picture(number), content)


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
