"""A request to `/v1/chat/completions`, read as a question.

The last message is the question, earlier turns come before it, and system text is data beside it. What
would change the answer and isn't offered is refused; fields that wouldn't are ignored. Source:
https://platform.openai.com/docs/api-reference/chat/create
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.doors.door import Asked
from bot.doors.rejections import Rejected
from bot.inputs.reading import MOST_TOGETHER, FileContent
from bot.service.admission.budgets import dollars_in
from bot.service.dispatcher import LONGEST_QUESTION
from bot.view.wording import doors as wording
from council.brief import Attachment, History, Turn
from council.text.characters import clip

PREFIX = "council/"
"""What a model's name begins with; a profile's follows."""
LONGEST_KEY = 200
MOST_TURNS = 50
"""How many earlier turns are taken; prompts repeat as many of them as have room."""
SYSTEM = "system message"
MESSAGE = "message"
HEAD, TAIL = 1_000, 3_000
"""Characters at both ends of a long message that make its question."""


class ContentPart(BaseModel):
    """One part of a message's content; many clients write a picture's address without its object."""

    type: str
    text: str | None = None
    image_url: str | dict[str, Any] | None = None


class ChatTurn(BaseModel):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[Any] | None = None


class ChatBody(BaseModel):
    """What is read of the body."""

    model_config = ConfigDict(hide_input_in_errors=True)

    model: str
    messages: Annotated[list[ChatTurn], Field(min_length=1)]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None
    response_format: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None
    modalities: list[str] | None = None
    metadata: dict[str, str] | None = None


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


def read_request(body: bytes, key: str | None) -> ChatRequest:
    """Read a request with the idempotency key of its header. Raises `Rejected`."""
    try:
        read = ChatBody.model_validate_json(body)
    except ValidationError as error:
        where = clip(".".join(map(str, error.errors()[0]["loc"])), 100)
        raise _invalid(wording.unreadable(where, error.errors()[0]["msg"]), where or None) from None
    _check_offered(read)
    said = [turn for turn in read.messages if turn.role not in ("system", "developer")]
    if not said or said[-1].role != "user":
        raise _invalid(wording.NO_USER_MESSAGE, "messages")
    text, material = parted(_text(said[-1], picture=""))
    pictures = tuple(_pictures(said[-1]))
    if not (text or pictures):
        raise _invalid(wording.EMPTY, "messages")
    system = [_text(turn) for turn in read.messages if turn.role in ("system", "developer")]
    files = (Attachment(name=SYSTEM, text=each) for each in system if each.strip())
    metadata = read.metadata or {}
    key = key or metadata.get("idempotency_key")
    # What isn't UTF-8 in a header arrives as single surrogates.
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise _invalid(wording.key_unusable(LONGEST_KEY), "idempotency_key")
    return ChatRequest(
        asked=Asked(
            text=text,
            profile=profile_of(read.model),
            max_cost=_dollars(metadata.get("max_cost")),
            history=History(turns=tuple(_turns(said[:-1]))[-MOST_TURNS:]),
            files=(*material, *files),
            key=key,
        ),
        pictures=pictures,
        model=read.model,
        is_streamed=bool(read.stream),
        includes_usage=(read.stream_options or {}).get("include_usage") is True,
        cancels=metadata.get("cancel_on_disconnect") == "true",
    )


def parted(text: str) -> tuple[str, tuple[Attachment, ...]]:
    """Return a message's question, and the whole message as a file where it is too long for one.

    A front end puts what it found before the question, a person pastes it behind: both ends are the
    question. Raises `Rejected` for more than is read with a question.
    """
    text = text.strip()
    if len(text) <= LONGEST_QUESTION:
        return text, ()
    if len(text) > MOST_TOGETHER:
        said = wording.too_long(MOST_TOGETHER)
        raise Rejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said, "too_long", param="messages")
    head, tail = text[:HEAD], text[-TAIL:]
    head = head[: head.rfind("\n") + 1] or head  # whole lines, where there are any
    tail = tail[tail.find("\n") + 1 :]
    question = f"{head.rstrip()}\n\n{wording.whole_in(MESSAGE)}\n\n{tail}"
    return question, (Attachment(name=MESSAGE, text=text),)


def profile_of(model: str) -> str | None:
    """Return the profile that a model's name names; `None` for the channel's, or the token's."""
    if model.casefold() == PREFIX.rstrip("/"):
        return None
    return model[len(PREFIX) :] if model.casefold().startswith(PREFIX) else model


def _dollars(given: str | None) -> float | None:
    amount = None if given is None else dollars_in(given)
    if given is not None and not amount:
        raise _invalid(wording.no_amount(clip(given, 60)), "metadata.max_cost")
    return amount


def _check_offered(body: ChatBody) -> None:
    if body.tools and body.tool_choice != "none":
        raise _invalid(wording.NO_TOOLS, "tools")
    if body.functions and body.function_call != "none":
        raise _invalid(wording.NO_TOOLS, "functions")
    if body.response_format is not None and body.response_format.get("type") != "text":
        raise _invalid(wording.ONLY_TEXT, "response_format")
    if body.audio or "audio" in (body.modalities or ()):
        raise _invalid(wording.NO_AUDIO, "modalities")
    if body.n is not None and body.n != 1:
        raise _invalid(wording.ONE_CHOICE, "n")


def _text(turn: ChatTurn, picture: str = wording.PICTURE) -> str:
    """Return a message's text. Raises `Rejected` for a user's parts that can't be read."""
    if not isinstance(turn.content, list):
        return turn.content or ""
    for part in turn.content:
        if turn.role == "user" and part.type not in ("text", "image_url"):
            raise _invalid(wording.no_part(clip(part.type, 60)), "messages")
    said = (picture if part.type == "image_url" else part.text for part in turn.content)
    return "\n".join(filter(None, said))


def _pictures(turn: ChatTurn) -> Iterator[FileContent]:
    """Return the pictures of a message. Raises `Rejected` for one that isn't in the request itself."""
    parts = turn.content if isinstance(turn.content, list) else []
    for number, part in enumerate((each for each in parts if each.type == "image_url"), 1):
        given = part.image_url
        address = str(given.get("url") if isinstance(given, dict) else given)
        kind, _, data = address.partition(",")
        is_here = kind.lower().startswith("data:image/") and kind.lower().endswith(";base64")
        try:
            content = base64.b64decode("".join(data.split()), validate=True) if is_here else b""
        except ValueError:
            content = b""
        if not content:
            raise _invalid(wording.NO_PICTURE_DATA, "messages")
        yield FileContent(wording.picture(number), content)


def _turns(messages: Sequence[ChatTurn]) -> Iterator[Turn]:
    """Pair what was asked with what was answered; messages of one role in a row are joined."""
    asked = ""
    said = (turn for turn in messages if turn.role in ("user", "assistant"))
    for role, turns in groupby(said, key=lambda turn: turn.role):
        text = "\n\n".join(filter(None, map(_text, turns)))
        if role == "user":
            asked = text
        elif text:
            yield Turn(question=asked, answer=text)
            asked = ""
    if asked:
        yield Turn(question=asked, answer=None)


def _invalid(message: str, param: str | None) -> Rejected:
    return Rejected(HTTPStatus.BAD_REQUEST, message, "invalid_request", param=param)
