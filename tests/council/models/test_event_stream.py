"""Streams of events are read as servers write them, not as the format would have it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import ModelError
from council.models import stream as streams
from council.models.stream import EventReader, parse
from council.text.json_objects import JsonObject

A: JsonObject = {"choices": [{"delta": {"content": "a"}}]}
ONE = b'{"choices": [{"delta": {"content": "a"}}]}'


def read(*pieces: bytes) -> list[JsonObject | None]:
    """Read a whole stream."""
    reader = EventReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    return [*found, *reader.rest()]


@pytest.mark.parametrize(
    "stream",
    [
        b"data: %s\n\ndata: [DONE]\n\n" % ONE,
        b"data:%s\n\ndata:[DONE]\n\n" % ONE,
        b"data: %s\r\n\r\ndata: [DONE]\r\n\r\n" % ONE,
        b"data: %s\r\rdata: [DONE]\r\r" % ONE,
        b"data: %s\ndata: [DONE]\n" % ONE,
        b"data: %s\n\ndata: [DONE]" % ONE,
        b"%s\n[DONE]\n" % ONE,
        b"id: 7\nevent: message\nretry: 5\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b": OPENROUTER PROCESSING\n\ndata: %s\n\n: keep-alive\n\ndata: [DONE]\n\n" % ONE,
        b"\n\n\ndata: %s\n\n\n\ndata: [DONE]\n\n" % ONE,
        b"keep-alive\n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b"data: keep-alive\n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b"data: \n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b"data\n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b"data: null\n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b'data: {"type": "ping\n\ndata: %s\n\ndata: [DONE]\n\n' % ONE,
        b"data: {oops}\n\ndata: %s\n\ndata: [DONE]\n\n" % ONE,
        b'data: {"choices":\ndata:  [{"delta": {"content":\ndata: "a"}}]}\n\ndata: [DONE]\n\n',
        b"data: [%s]\n\ndata: [DONE]\n\n" % ONE,
    ],
)
def test_an_event_is_read_however_it_is_framed(stream: bytes) -> None:
    """Comments, keep-alives and unknown lines are passed over; whole or byte by byte."""
    assert read(stream) == [A, None]
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == [A, None]


@given(
    st.lists(
        st.sampled_from(
            [b"data: ", ONE, b"\n", b"\r", b"\r\n", b": x", b"[DONE]", b"{", b"event: error"]
        )
    ),
    st.integers(1, 9),
)
def test_any_cut_reads_as_the_whole(parts: list[bytes], size: int) -> None:
    """Or fails as the whole does."""
    stream = b"".join(parts)

    def result(*pieces: bytes) -> object:
        try:
            return read(*pieces)
        except ModelError as error:
            return error.failure

    assert result(*(stream[at : at + size] for at in range(0, len(stream), size))) == result(stream)


@pytest.mark.parametrize(
    "broken",
    [b'{"choices": [{"delta": {"con', b'{"id": "chatcmpl-1", "object": "chat.comp', b'{"content": "a'],
)
def test_a_broken_event_that_may_have_held_text_is_an_error(broken: bytes) -> None:
    """Text may be missing from the middle."""
    with pytest.raises(ModelError) as caught:
        read(b"data: %s\n\ndata: %s\n\n" % (broken, ONE))
    assert caught.value.failure.cause == "malformed"


def test_an_event_of_the_kind_error_is_one() -> None:
    """Whatever its data is called."""
    assert read(b'event: error\ndata: {"message": "it broke"}\n\n') == [
        {"error": {"message": "it broke"}}
    ]
    named = b'event: error\ndata: {"error": {"message": "it broke"}}\n\n'
    assert read(named) == [{"error": {"message": "it broke"}}]


def test_text_that_is_not_utf_8_is_read_with_marks() -> None:
    """One bad byte costs a character."""
    assert read(b'data: {"a": "na\xefve"}\n\n') == [{"a": "na\ufffdve"}]


@pytest.mark.parametrize(
    "stream", [[b"data: {" + b"x" * 100], [b"data: {\n", *[b"data: 1,\n"] * 100], [b"x" * 10] * 10]
)
def test_an_event_over_its_limit_is_refused(
    stream: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, in many, or in one that never ends."""
    monkeypatch.setattr(streams, "JSON_BYTES", 50)
    with pytest.raises(ModelError) as caught:
        read(*stream)
    assert caught.value.failure.cause == "too_large"


def test_a_list_stands_for_its_first_object() -> None:
    """Gemini sends errors in one."""
    assert parse(b'[{"error": {}}]') == {"error": {}}


def test_what_is_no_text_is_malformed() -> None:
    """It costs this reply and nothing else."""
    with pytest.raises(ModelError):
        parse(b"\x1f\x8b\x08\x00")
