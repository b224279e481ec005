"""What servers send is read as the rows of the data files say, and no size, cut or depth of it does harm."""

import asyncio
import json
import time
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import httpx
import orjson
import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st

from bot.render.markdown import contain
from council.errors import Failure, ModelError
from council.models import stream
from council.models.phrases import answer_in, without_sources
from council.models.refusals import NO_SECRETS
from council.models.reply import Completion
from council.models.stream import EventReader, parse, receive
from council.models.thoughts import CLOSING, LONGEST_MARK, MARKS, MOST_KEPT, ThoughtFilter
from council.text.json_objects import JsonObject
from council.usage import Price, Usage, total
from tests.council.models.scene import call, failed
from tests.pairs import rows

Row = dict[str, Any]
Sent = TypeVar("Sent", str, bytes)
ROWS: dict[str, list[Row]] = tomllib.loads(
    Path(__file__).with_name("read.toml").read_text(encoding="utf-8")
)
OPENING = MARKS[0].opening


def pieces(sent: Sent, size: int) -> list[Sent]:
    return [sent[at : at + size] for at in range(0, len(sent), size)]


# Thoughts -----------------------------------------------------------------------------------------


class Read(NamedTuple):
    """What a reply was read as; `withdrawn` is what was heard and turned out to be thought."""

    answer: str
    thoughts: str
    withdrawn: list[str]
    closed_without_opening: bool


def read(*said: str, is_whole: bool = True, waits: bool = False) -> Read:
    """Read a reply that comes in these pieces; what is heard in the end is the answer."""
    heard: list[str] = []
    withdrawn: list[str] = []

    def withdraw() -> None:
        withdrawn.append("".join(heard))
        heard.clear()

    reading = ThoughtFilter(heard.append, withdraw, waits_for_tag=waits)
    for piece in said:
        reading.feed(piece)
    reading.end(is_whole=is_whole)
    assert "".join(heard) == reading.answer
    closed = reading.closed_without_opening
    return Read(reading.answer, reading.thoughts, withdrawn, closed_without_opening=closed)


@rows("row", ROWS["thoughts"])
def test_thoughts_are_told_from_the_answer(row: Row) -> None:
    """Whole, and in pieces of any length; also of a model that is known to leave the opening tag out."""
    for size in (len(row["said"]), 1, 2, 3, 7):
        for waits in (False, True):
            found = read(*pieces(row["said"], size), waits=waits)
            assert (found.answer, found.thoughts) == (row["text"], row.get("thoughts", ""))


_MARKS = (OPENING, CLOSING, f"\n{CLOSING}\n", "<Think>", "</THINK>", "<thought>", "</thought>", "\ufeff")
_OTHERS = ("\n", "\r\n", "`", "```", "~~~", " ", "    ", "- ", "a", "b c")
_FRAGMENTS = st.lists(st.sampled_from((*_MARKS, *_OTHERS)) | st.text(max_size=4), max_size=14).map(
    "".join
)


@given(_FRAGMENTS, st.data(), st.booleans(), st.booleans())
@example("<think>    - ~~~ - b c</think>\r\n```~~~a``````", None, True, True)
def test_any_cut_of_a_text_reads_as_the_whole(
    text: str, data: st.DataObject | None, is_whole: bool, waits: bool
) -> None:
    """A stream's pieces come as they like."""
    places = st.lists(st.integers(0, len(text)), max_size=6)
    cuts = sorted(data.draw(places)) if data else [*range(len(text))]
    cut = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = read(text, is_whole=is_whole, waits=waits)
    found = read(*cut, is_whole=is_whole, waits=waits)
    assert found._replace(withdrawn=[]) == whole._replace(withdrawn=[])


_THOUGHT = st.text(st.characters(exclude_characters="<`~[", codec="utf-8"), max_size=40)


@given(_THOUGHT, st.text(st.characters(codec="utf-8"), max_size=40), st.booleans(), st.integers(1, 7))
def test_nothing_before_the_closing_tag_is_answer(
    thought: str, answer: str, opened: bool, size: int
) -> None:
    """Whatever the model thought, and however it streams."""
    text = f"{OPENING}{thought}{CLOSING}" if opened else f"{thought}\n{CLOSING}\n"
    found = read(*pieces(f"{text}\n{answer}", size))
    assert (found.answer.strip(), found.thoughts.strip()) == (answer.strip(), thought.strip())
    assert found.closed_without_opening is not opened


@given(st.text(st.characters(exclude_characters="<", codec="utf-8"), max_size=60), st.integers(1, 9))
def test_a_text_without_the_tags_is_heard_as_it_is(text: str, size: int) -> None:
    """Not a character is lost or moved."""
    assert read(*pieces(text, size)).answer == text


def test_what_was_heard_of_thoughts_is_withdrawn_once() -> None:
    """After the tag the model is known to leave the opening one out, and is heard after the closing one."""
    found = read("The user ", "is new.\n", CLOSING, "\n\nYes.")
    assert found == ("Yes.", "The user is new.\n", ["The user is new.\n"], True)
    heard: list[str] = []
    reading = ThoughtFilter(heard.append, waits_for_tag=True)
    for piece in ("The user ", "is new.\n", CLOSING, "\n\nYes", ", it is."):
        reading.feed(piece)
    assert heard == ["Yes", ", it is."]
    assert read("Yes, ", "it is.", waits=True) == ("Yes, it is.", "", [], False)
    assert read("The user ", "is", waits=True, is_whole=False) == ("", "The user is", [], False)
    text = "See:\n```py\nx\n</think>\nYes."
    assert read(text, waits=True).answer == "Yes."
    assert read(text).answer == text


def test_a_long_line_is_no_mark_and_thoughts_are_kept_at_their_end() -> None:
    """Nothing is held back without end; a ballot is at the end of thoughts."""
    heard: list[str] = []
    reading = ThoughtFilter(heard.append)
    for piece in ["  "] * LONGEST_MARK:
        reading.feed(piece)
    assert not heard  # white space before the first word
    for piece in ["a\n"] + ["```"] * LONGEST_MARK:
        reading.feed(piece)
    assert len("".join(heard)) > LONGEST_MARK
    found = read(OPENING, *["x" * 99 + "\n"] * (MOST_KEPT // 50), f"B{CLOSING}Yes.")
    assert len(found.thoughts) == MOST_KEPT
    assert found.thoughts.endswith("x\nB")


# Replies ------------------------------------------------------------------------------------------


class _Sent(httpx.AsyncByteStream):
    def __init__(self, sent: Iterable[bytes]) -> None:
        self._sent = sent

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._sent:
            yield piece


async def received(status: int, label: str, *sent: bytes) -> Completion:
    completion = Completion()
    async with asyncio.timeout(30) as timer:
        response = httpx.Response(status, headers={"Content-Type": label}, stream=_Sent(sent))
        await receive(response, completion, NO_SECRETS, timer, linger=1.0)
    return completion


@rows("row", ROWS["replies"])
async def test_what_a_server_sends_is_read(row: Row) -> None:
    """Whole and byte by byte, but for its beginning, which tells a page; however it is labelled."""
    events = "".join(f"data: {event}\n\n" for event in row.get("events", ()))
    sent: bytes = (events or row["sent"]).encode()
    form = {"type": "object", "required": row["required"]} if "required" in row else None
    asked = call(schema=form, max_tokens=row.get("max_tokens"))
    for label, *cut in (
        ("application/json", sent),
        ("text/event-stream; charset=iso-8859-1", sent[:16], *pieces(sent[16:], 1)),
    ):
        try:
            completion = await received(row.get("status", 200), label, *cut)
            reply = completion.reply(asked, 1, lambda _: None)
        except ModelError as error:
            failure = error.failure
            assert failure.cause == row.get("cause"), failure
            assert failure.detail == row.get("detail", failure.detail)
            assert failure.limit == row.get("limit")
            continue
        assert (reply.text, completion.filter.thoughts) == (row.get("text"), row.get("thoughts", ""))
        assert reply.truncated is row.get("truncated", False)
        assert [[page.url, page.title] for page in reply.citations] == row.get("cites", [])
        counted = [reply.usage.prompt_tokens, reply.usage.completion_tokens]
        assert counted == row.get("tokens", counted)
        assert ("tokens" in row) is (reply.usage.source == "measured")


@rows("cut", range(1, 5))
def test_an_emoji_cut_in_two_comes_out_whole(cut: int) -> None:
    """Servers that count UTF-16 units send its halves as lone surrogates in two chunks."""
    units = [f"\\u{ord(unit):04x}" for unit in "a\ud83d\ude00b"]
    heard: list[str] = []
    completion = Completion(ThoughtFilter(heard.append))
    for half in ("".join(units[:cut]), "".join(units[cut:])):
        sent = f'{{"choices": [{{"delta": {{"content": "{half}"}}}}]}}'
        completion.take_chunk(parse(sent.encode()))
    assert completion.text == "".join(heard) == "a😀b"


@rows("data", [b"<html>", b"", b"\x1f\x8b\x08\x00", b"[" * 200_000, b'{"a":' * 100_000])
def test_what_is_no_json_object_is_malformed(data: bytes) -> None:
    """Also where it is too deep; it costs this reply and nothing else."""
    assert failed(lambda: parse(data)).cause == "malformed"


def test_json_is_read_where_a_strict_reader_gives_up() -> None:
    """Lone halves of a pair are legal, and one byte that isn't UTF-8 costs a character; pieces are heard as they come."""
    assert parse(b'{"a": "\\ud83d"}') == {"a": "\ud83d"}
    assert parse(b'{"a": "na\xefve"}') == {"a": "na\ufffdve"}
    heard: list[str] = []
    completion = Completion(ThoughtFilter(heard.append))
    for content in ("It ", None, "depends."):
        completion.take_chunk({"choices": [{"delta": {"content": content}}]})
    assert heard == ["It ", "depends."]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["choices", "delta", "usage", "x"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_no_json_breaks_the_reader(value: object) -> None:
    """Whatever a server sends, it is taken or refused with a cause."""
    with suppress(ModelError):
        Completion().take_chunk(parse(orjson.dumps(value)))


def events_of(*sent: bytes) -> Iterator[JsonObject | None]:
    reader = EventReader()
    for piece in sent:
        yield from reader.feed(piece)
    yield from reader.rest()


_LINES = (b"data: ", b'{"choices": []}', b"\n", b"\r", b"\r\n", b": x", b"[DONE]", b"{", b"event: error")


@given(st.lists(st.sampled_from(_LINES)), st.integers(1, 9))
def test_any_cut_of_a_stream_reads_as_the_whole(parts: list[bytes], size: int) -> None:
    """Or fails as the whole does."""

    def result(*sent: bytes) -> object:
        try:
            return [*events_of(*sent)]
        except ModelError as error:
            return error.failure

    sent = b"".join(parts)
    assert result(*pieces(sent, size)) == result(sent)


@pytest.mark.parametrize(
    "sent", [[b"data: {" + b"x" * 100], [b"data: {\n", *[b"data: 1,\n"] * 100], [b"x" * 10] * 10]
)
def test_an_event_over_its_limit_is_refused(sent: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, in many, or in one that never ends."""
    monkeypatch.setattr(stream, "JSON_BYTES", 50)
    assert failed(lambda: [*events_of(*sent)]).cause == "too_large"


def test_an_event_up_to_its_limit_may_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte counts once."""
    monkeypatch.setattr(stream, "JSON_BYTES", 50)
    sent = b'data: {"a": "' + b"x" * 30 + b'"}\n\n'
    assert [*events_of(*pieces(sent, 1))] == [{"a": "x" * 30}]


# Usage --------------------------------------------------------------------------------------------


@rows("row", ROWS["usages"])
def test_what_a_call_used_and_cost_is_read(row: Row) -> None:
    """As its server states it, else by the price that is listed; the log says what isn't believed."""
    body = {"choices": [{"message": {"content": "Yes."}}], "usage": row.get("usage")}
    completion = Completion(unpriced_call=row.get("unpriced_call", 0.1))
    completion.begin(row.get("headers", {}), NO_SECRETS)
    completion.take_body(parse(json.dumps(body).encode()))
    price = Price(*row["price"]) if "price" in row else None
    with structlog.testing.capture_logs() as logs:
        usage = completion.reply(call(), 1, lambda _: price).usage
    expected = Usage(**row["expected"])
    assert usage.cost == pytest.approx(expected.cost)
    assert usage == expected.model_copy(update={"cost": usage.cost})
    assert (logs == []) is row.get("is_believed", True)


@rows("row", ROWS["bills"])
def test_what_a_reply_costs_so_far_is_known(row: Row) -> None:
    """Whole or cut, counted or not, with what its server hides; an error's count is one, too."""
    asked = call(max_tokens=row.get("max_tokens"), web=row.get("web", False))
    for ends in [row["ends"]] if "ends" in row else (False, True):
        completion = Completion()
        completion.begin({}, NO_SECRETS)
        with suppress(ModelError):
            for event in row["events"] * row.get("times", 1):
                completion.take_chunk(parse(event.encode()))
        if ends:
            completion.take_chunk({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        used = completion.paid(asked, lambda _: Price(0.25, 0.5))
        assert used is not None
        assert {name: getattr(used, name) for name in row["expected"]} == row["expected"]


PRICE = Price(prompt=0.25, completion=0.5)
MEMBERS = ("openai/gpt-5-mini", "x-ai/grok-4")


def said(text: str, **fields: object) -> Completion:
    completion = Completion()
    completion.take_body(
        {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **fields}
    )
    return completion


def no_price(_: str) -> Price | None:
    return None


@rows(
    ("answered", "expected"),
    [
        ("openai/gpt-5", None),
        ("openai/gpt-5-2025-08-07", None),
        ("openai/gpt-5-mini", "openai/gpt-5-mini"),
        ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("x-ai/grok-4:beta", "x-ai/grok-4"),
        ("somebody/else", None),
        (None, None),
    ],
)
def test_a_fallback_that_answered_is_named_and_has_its_price(
    answered: str | None, expected: str | None
) -> None:
    """Dated variants are the model they vary; of several ids that fit, the longest is meant."""
    priced: list[str] = []
    reply = said("Yes.", model=answered).reply(call(fallbacks=MEMBERS), 1, priced.append)
    assert (reply.answered_by, priced) == (expected, [expected or "openai/gpt-5"])
    # Servers name models as they like: without fallbacks, that means nothing.
    assert said("Yes.", model=answered).reply(call(), 1, no_price).answered_by is None


def test_a_sum_is_known_where_any_part_is() -> None:
    """One provider's count isn't lost because another says nothing."""
    parts = [Usage(prompt_tokens=5), Usage(prompt_tokens=9, cached_tokens=4), Usage(cached_tokens=0)]
    assert total(parts).cached_tokens == 4
    assert total(parts[:1]).cached_tokens is None


def test_a_reply_that_broke_off_is_paid_for() -> None:
    """As counted, else by what arrived; one that was refused before a word costs nothing."""
    lost, busy, refused = (Failure(cause=cause) for cause in ("lost", "rate_limited", "credit"))
    completion = Completion()
    completion.take_chunk({"choices": [{"delta": {"content": "It depends on"}}]})
    assert completion.billed(lost, call(), no_price).usage is None  # nothing was sent
    unanswered = Completion()
    unanswered.send()
    assert unanswered.billed(lost, call(), lambda _: PRICE).usage == Usage(
        prompt_tokens=3, cost=1000.75, source="estimated"
    )
    down = Failure(cause="unavailable", status=503)
    assert unanswered.billed(down, call(), no_price).usage is None
    completion.begin({}, NO_SECRETS)
    assert completion.billed(lost, call(), lambda _: PRICE).usage == Usage(
        prompt_tokens=3, completion_tokens=4, cost=1002.75, source="estimated"
    )
    nothing = Completion()
    nothing.begin({}, NO_SECRETS)
    assert nothing.billed(busy, call(), no_price).usage is None
    assert nothing.billed(refused, call(), no_price).usage is None
    assert nothing.billed(lost, call(), no_price).usage == Usage(
        prompt_tokens=3, unpriced=1, source="estimated"
    )
    nothing.arrive(400)  # of a plain body, which can't be read before it is whole
    assert nothing.billed(lost, call(), no_price).usage == Usage(
        prompt_tokens=3, completion_tokens=100, unpriced=1, source="estimated"
    )


SAID = "Water boils at 100 degrees at sea level."
LONG = f"{SAID} It boils at less on a mountain, because the air presses less on it there. " * 3
WRITTEN = tomllib.loads(Path(__file__).with_name("marks.toml").read_text(encoding="utf-8"))
CALLS, ABOUT, SHOWN = (cast("dict[str, str]", WRITTEN[part]) for part in ("calls", "about", "shown"))
NAMED = cast("list[str]", WRITTEN["texts"]["named"])


def completion(text: str, finish: str = "stop") -> Completion:
    read = Completion()
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        read.take_chunk({"choices": [{"delta": {"content": piece}}]})
    read.take_chunk({"choices": [{"delta": {}, "finish_reason": finish}]})
    return read


def answer(text: str, question: str = "At what temperature does water boil?", **settings: Any) -> str:
    """Return what of a text is the answer to a question."""
    asked = call("lab/one", {"role": "user", "content": question}, **settings)
    return completion(text).reply(asked, 1, lambda _: None).text


@rows("text", CALLS.values(), ids=[*CALLS])
def test_a_call_of_a_tool_is_no_answer(text: str) -> None:
    """Nobody offered a tool: it is as if nothing had been said, and asked for once more."""
    for finish in ("stop", "tool_calls", "length"):
        read = completion(text, finish)
        failure = failed(lambda read=read: read.reply(call(), 1, lambda _: None))
        assert (failure.cause, failure.detail) == (
            "empty",
            "it wrote markup, such as a tool's call, and no answer",
        )
        assert failure.usage is not None


@rows("text", ABOUT.values(), ids=[*ABOUT])
def test_an_answer_that_speaks_of_such_a_mark_survives(text: str) -> None:
    """In code, or as a word among others."""
    assert answer(text) == text


@rows("name", ["Hermes", "Mistral", "DeepSeek V4", "Claude", "Gemma 3", "gpt-oss"])
def test_what_the_question_has_is_part_of_the_answer(name: str) -> None:
    """Whoever asks about a template gets it, in code or not."""
    text = CALLS[name]
    assert answer(text, f"Which model writes {text[:40]}, and how does it go on?") == text


OWN_TURN = "<|im_start|>user\nAnd on a mountain?<|im_end|>\n<|im_start|>assistant\nLess."
LEFT = cast("dict[str, list[str]]", WRITTEN["left"]) | {
    "a call behind an answer": [
        f"\n\n{CALLS['Hermes']}",
        f"\n\n{CALLS['DeepSeek V4']}",
        CALLS["Kimi K2"],
    ]
}


@rows(("kind", "left"), [(kind, left) for kind, marks in LEFT.items() for left in marks])
def test_what_a_template_leaves_behind_an_answer_is_cut(kind: str, left: str) -> None:
    """With all that follows it: the end of a turn, one that is played on, a call, or the mark of one."""
    said = LONG.strip() if kind.startswith("a call") else SAID
    assert answer(said + left) == said
    block = f"{said}\n\n```sh\nkettle\n```"
    assert answer(block + left) == block


@rows(("text", "shown"), SHOWN.items())
def test_marks_of_sources_that_lead_nowhere_are_left_out(text: str, shown: str) -> None:
    """From what is asked now and from what was imported; a list of links among them stays."""
    assert answer(text).strip() == shown
    assert contain(text).strip() == shown


@rows("text", NAMED)
def test_a_text_that_speaks_of_such_marks_survives(text: str) -> None:
    """In code, in quotation marks, or set apart as a word."""
    assert answer(text) == text
    assert without_sources(text) == text


HOSTILE = [
    "<|im_end|>{}x",
    "x{}\n</s>",
    "{}`<tool_call>{{",
    "{}` `` <tool_call>{{",
    "{}```\n<tool_call>{{",
    "{}x <tool_call>{{ ",
    "{}\n<tool_call>{{ x",
    "{} \u30101\u2020",
    "{}\ue200",
    "{}<grok:render ",
    "{}<s>{}</s>",
    '{}"\u30101\u2020a\u3011',
    "{}\n[TOOL_CALLS]x{{ x",
    "{}x<|user|>. ",
    "{}\n<|user|> x",
    "{}(cite index=",
]


@rows("pattern", HOSTILE)
def test_a_hostile_text_is_read_in_time_that_grows_with_it(pattern: str) -> None:
    """Ten times as long takes no hundred times as long: a model may write millions of characters."""

    def seconds(times: int) -> float:
        text = "".join(part * times for part in pattern.replace("{{", "{").split("{}"))
        began = time.process_time()
        answer_in(text, ())
        without_sources(text)
        return time.process_time() - began

    assert min(seconds(20_000) for _ in range(2)) < 40 * max(0.003, *(seconds(2_000) for _ in range(3)))


def test_a_ballot_keeps_what_its_texts_say() -> None:
    """A JSON reply that quotes a mark isn't cut in the middle."""
    said = orjson.dumps({"text": f"It ends so:</s>\n{OWN_TURN}"}).decode()
    assert answer(said, schema={"type": "object", "required": ["text"]}) == said
