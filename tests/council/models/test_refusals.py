"""Why a server refused a call, and what it is asked otherwise: each row of `refused.toml`, played at the edge."""

import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Cause, Failure
from council.models.refusals import KEY, excerpt, refused, refused_part, shorten, smaller_limit
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction
from tests.council.models.test_adaptation import SAID, call, failure, opened, showing
from tests.model_server import ModelServer, Turn

ROWS = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))
CAUSES, TOO_LONG, LESSONS = (
    cast("list[JsonObject]", ROWS[part]) for part in ("causes", "too_long", "lessons")
)


def exchange(row: JsonObject) -> Turn:
    """Return what a server sends in a row."""
    return Turn(status=cast("int", row["status"]), body=str(row["body"]).encode())


async def test_what_a_server_says_has_its_cause() -> None:
    """Each in its server's words, shape and status."""
    async with ModelServer() as server, opened(server) as client:
        found: dict[int, Cause] = {}
        for number, row in enumerate(CAUSES):
            server.always(f"m{number}", exchange(row))
            found[number] = await failure(
                client, replace(call(f"m{number}"), max_tokens=None, temperature=None)
            )
    wrong = [(row, found[number]) for number, row in enumerate(CAUSES) if found[number] != row["cause"]]
    assert wrong == []


@pytest.mark.parametrize("status", [400, 413, 422, 500])
async def test_each_server_says_in_its_own_words_that_a_request_is_too_long(status: int) -> None:
    """Asking again doesn't help, whatever the status."""
    async with ModelServer() as server, opened(server) as client:
        for number, row in enumerate(TOO_LONG):
            flat: JsonObject = {"object": "error", "message": row["said"], "code": status}
            nested: JsonObject = {"error": {**flat, "type": "invalid_request_error"}}
            for shape, body in (("m", flat), ("n", nested)):
                server.always(f"{shape}{number}", Turn(status=status, body=body))
                assert await failure(client, call(f"{shape}{number}")) == "too_long", row
        assert len(server.history) == 2 * len(TOO_LONG)


@pytest.mark.parametrize("row", LESSONS, ids=lambda row: f"{row['page'] or 'same'} {row['change']}")
async def test_what_a_refusal_names_is_sent_otherwise_at_once(row: JsonObject) -> None:
    """In `param`, `loc` or words: what was sent is left out, swapped or put otherwise, for good."""

    def ask(model: str):  # noqa: ANN202 - a call
        if row["page"] == "pictures":
            return showing(model)
        extra = {"extra": {"top_k": 4}} if "top_k" in str(row["change"]) else {}
        return call(model, schema=True, reasoning="low", **extra)

    async with ModelServer() as server, opened(server) as client:
        server.script("m", exchange(row), Turn(SAID), Turn(SAID))
        for model in ("m", "m", "n"):
            await client.ask(ask(model))
    first, second, again, other = ({**each.request, "model": ""} for each in server.history)
    assert change(first, second) == row["change"]
    assert again == second
    assert other == (second if row.get("everywhere") else first)


def change(before: JsonObject, after: JsonObject) -> str:
    """Return how two requests differ: fields +added, -left out, ~changed."""
    names = [f"+{name}" for name in after if name not in before]
    names += [f"-{name}" for name in before if name not in after]
    names += [f"~{name}" for name in before if name in after and before[name] != after[name]]
    return " ".join(sorted(names))


async def test_words_that_name_no_field_teach_nothing() -> None:
    """A path into the messages is no field to leave out."""
    async with ModelServer() as server, opened(server) as client:
        for said in cast("list[str]", ROWS["nothing"]):
            server.script("m", Turn(status=400, body={"error": {"message": said}}))
            assert await failure(client, call()) == "bad_request"
            await client.ask(call())
    first, *others = (each.request for each in server.history)
    assert all(each == first for each in others)


async def test_a_limit_refused_under_both_names_is_left_out() -> None:
    """Each is tried once."""
    async with ModelServer() as server, opened(server) as client:
        named = [Turn(status=400, body={"error": {"message": "no", "param": name}}) for name in LIMITS]
        server.script("m", *named)
        await client.ask(call())
    assert [[*LIMITS & each.request.keys()] for each in server.history] == [
        *([name] for name in LIMITS),
        [],
    ]


LIMITS = {"max_tokens": None, "max_completion_tokens": None}.keys()


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ({"message": "No credit\nleft."}, "No credit left."),
        ({"error": "model not loaded"}, "model not loaded"),
        ({"detail": "Not Found"}, "Not Found"),
        (
            {"message": "Provider returned error", "metadata": {"raw": "busy"}},
            "Provider returned error: busy",
        ),
        ({}, "Bad Gateway"),
    ],
)
def test_a_failure_says_what_the_provider_said(error: JsonObject, detail: str) -> None:
    """In one line, from wherever servers put it; else the status in words."""
    assert refused(error, 502).failure.detail == detail


@pytest.mark.parametrize("code", ["9" * 5000, 1001, "٤٢٩", "0429"])
def test_a_code_that_is_no_status_changes_none(code: object) -> None:
    """It is a number of the provider's own, in an error inside a 200; "OK" doesn't explain it."""
    failure = refused({"error": {"code": code}}, 200).failure
    assert (failure.cause, failure.status, failure.detail) == ("unavailable", 200, "")


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-or-v1-0123456789abcdef.",
        "Incorrect API key provided: sk-proj-abc***xyz",
        "Authorization: Bearer hunter2hunter2",
        "key AIzaSyA1234567890 was refused",
        "token 0123456789abcdef0123456789abcdef is revoked",
        "the key hunter2 is unknown",
    ],
)
def test_a_detail_never_contains_a_key(text: str) -> None:
    """Neither the key of this call nor anything that looks like one."""
    detail = shorten(text, Redaction(["hunter2"], KEY))
    assert "[key]" in detail
    for secret in ("0123456789abcdef", "abc***xyz", "hunter2", "AIzaSy"):
        assert secret not in detail


def test_a_models_id_is_no_key() -> None:
    """Long names with digits stay readable."""
    text = "meta-llama/llama-4-maverick-17b-128e-instruct isn't available"
    assert shorten(text) == text


def test_a_long_detail_is_shortened_to_one_line() -> None:
    """200 characters are enough to know what happened."""
    detail = shorten("word " * 100)
    assert 190 < len(detail) <= 200
    assert detail.endswith("…")


SECRET = "hunter2-" * 8
SECRETS = Redaction([SECRET], KEY)


def test_only_the_beginning_of_an_error_is_searched_for_keys() -> None:
    """A sentence of many megabytes takes no longer than one of two thousand characters."""
    huge = "words and " * 3_000_000
    assert len(excerpt(huge, SECRETS)) <= 2_000
    assert shorten(huge) == f"{huge[:199].rpartition(' ')[0]}\u2026"


@pytest.mark.parametrize("before", range(1_900, 2_100, 7))
def test_a_cut_shows_no_part_of_a_secret(before: int) -> None:
    """Wherever it is: the secret itself, and words that look like a key."""
    blank, rest = " " * before, "and so on " * 1000
    assert "hunter2" not in shorten(f"{blank}{SECRET} {rest}", SECRETS)
    assert "hunter2" not in excerpt(f"{'x' * before}{SECRET}{'y' * 5000}", SECRETS)
    assert "sk-or" not in shorten(f"{blank}sk-or-v1-0123456789abcdef {rest}")


def test_a_message_that_is_no_text_is_shown_as_json() -> None:
    """Some servers list what they object to."""
    objections: list[object] = [{"loc": ["body", "model"], "msg": "field required"}]
    failure = refused({"detail": objections}, 422).failure
    assert failure.detail == '[{"loc":["body","model"],"msg":"field required"}]'


def test_half_a_pair_in_an_error_is_replaced() -> None:
    """It could be written to no file."""
    assert refused({"message": "no \ud83d"}, 500).failure.detail == "no \ufffd"


TELLING = (
    "Incorrect API key provided",
    "insufficient balance",
    "Key limit exceeded",
    "your prompt was flagged",
    "this model's maximum context length is 1",
    "no endpoints found matching your data policy",
    "model x not found",
    "404 page not found",
)


@pytest.mark.parametrize("status", [400, 402, 403, 404, 422, 429, 500])
def test_what_a_server_quotes_is_no_cause(status: int) -> None:
    """A question may hold any of these words."""
    plain = refused({"error": {"message": "Invalid value. Supported values are: text."}}, status).failure
    for quoted, marks in product(TELLING, ("''", '""', "``", "\u201c\u201d")):
        message = f"Invalid value: {marks[0]}{quoted}{marks[1]}. Supported values are: text."
        assert refused({"error": {"message": message}}, status).failure.cause == plain.cause, message


SENT: JsonObject = {"model": "m", "messages": [{"role": "user"}], "stream": False, "x": 1}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["error", "detail", "param", "loc", "message", "code", "metadata", "raw"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from([200, 307, 400, 402, 403, 404, 429, 500]),
)
def test_no_error_breaks_the_reader(body: object, status: int) -> None:
    """Whatever a server sends has a cause and a line."""
    why = refused(body, status).failure
    assert len(why.detail) <= 200
    assert "\n" not in why.detail
    named = refused_part(body, Failure(cause="bad_request", status=400), SENT)
    assert named is None or named[0] in SENT


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 7.66s.", 7.66),
        ("Please try again in 2m59.56s. Need more tokens?", 179.56),
        ("Please try again in 1h30m0s", 5400.0),
        ("Please try again in 120ms.", 0.12),
        ("Please retry after 26 seconds.", 26.0),
        ("retry after 2 minutes", 120.0),
        ("Please retry in 54.2s", 54.2),
        ("try again in 1 day", 86400.0),
        ("try again later", None),
        ("try again in 5", None),
        ("try again in 5 songs", None),
    ],
)
def test_a_wait_is_read_out_of_a_sentence(said: str, seconds: float | None) -> None:
    """As OpenAI, Groq, Azure and Gemini write it."""
    wait = refused({"error": {"message": said}}, 429).retry_after
    assert wait == (seconds if seconds is None else pytest.approx(seconds))


def test_a_wait_is_read_where_openrouter_states_it() -> None:
    """With whether it is worth it; a header says it with more authority."""
    availability = {"code": "capacity_exhausted", "retryable": False, "retry_after": 12}
    error = {"error": {"message": "no", "code": 429, "availability": availability}}
    assert (refused(error, 429).retry_after, refused(error, 429).retryable) == (12.0, False)
    assert refused(error, 429, retry_after=3.0).retry_after == 3.0


@pytest.mark.parametrize(
    ("words", "asked", "less"),
    [
        ("You requested up to 65536 tokens, but can only afford 30104.", None, 30104),
        ("65536 requested, but only 30104 can be afforded.", None, 30104),
        ("You requested up to 800 tokens, but can only afford 500.", 800, 500),
        ("You requested up to 800 tokens, but can only afford 12.", 800, None),
        ("Insufficient credits.", None, None),
    ],
)
def test_a_reply_is_as_long_as_the_account_affords(
    words: str, asked: int | None, less: int | None
) -> None:
    """Once, and only where enough for an answer is left."""
    why = Failure(cause="too_dear", status=402)
    assert smaller_limit(why, {"error": {"message": words}}, asked) == less
