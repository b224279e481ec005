"""Why a server refused a call, and what it is asked otherwise: each row of `refused.toml`, played at the edge."""

import tomllib
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import Failure
from council.models.refusals import KEY, excerpt, refused, refused_part, shorten, smaller_limit
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction
from tests.council.models.scene import call, failure, quick
from tests.council.models.test_adaptation import FORM, SAID, full, opened, showing
from tests.model_server import ModelServer, Turn
from tests.pairs import rows
from tests.passing_time import Rest

Row = dict[str, Any]
ROWS = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))
CAUSES, TOO_LONG, LESSONS = (cast("list[Row]", ROWS[part]) for part in ("causes", "too_long", "lessons"))


PASSING = {"rate_limited", "unavailable", "malformed"}


def exchange(row: Row) -> Turn:
    body = row["body"].encode(row.get("charset", "utf-8"))
    return Turn(status=row["status"], headers=row.get("headers", {}), body=body)


async def test_what_a_server_says_has_its_cause() -> None:
    """Each in its server's words, shape and status; what may pass is asked again, as soon as it says."""
    rest = Rest()
    wrong: list[tuple[Row, Failure, list[float]]] = []
    async with ModelServer() as server, opened(server, retries=quick(rest, 2)) as client:
        for number, row in enumerate(CAUSES):
            server.always(f"m{number}", exchange(row))
            rest.waits.clear()
            why = await failure(client, call(f"m{number}", deadline=600.0))
            attempts = row.get("attempts", 2 if row["cause"] in PASSING else 1)
            expected = row["cause"], attempts, row.get("detail", why.detail)
            waits = [pytest.approx(row.get("wait", 0.0), abs=0.02)] * (attempts - 1)
            if (why.cause, why.attempts, why.detail) != expected or rest.waits != waits:
                wrong.append((row, why, [*rest.waits]))
    assert wrong == []


@rows("status", [400, 413, 422, 500])
async def test_each_server_says_in_its_own_words_that_a_request_is_too_long(status: int) -> None:
    """Asking again doesn't help, whatever the status."""
    async with ModelServer() as server, opened(server) as client:
        for number, row in enumerate(TOO_LONG):
            flat: JsonObject = {"object": "error", "message": row["said"], "code": status}
            nested: JsonObject = {"error": {**flat, "type": "invalid_request_error"}}
            for shape, body in (("m", flat), ("n", nested)):
                server.always(f"{shape}{number}", Turn(status=status, body=body))
                why = await failure(client, full(f"{shape}{number}"))
                assert why.cause == "too_long", row
        assert len(server.history) == 2 * len(TOO_LONG)


@rows("row", LESSONS, ids=lambda row: f"{row['page'] or 'same'} {row['change']}")
async def test_what_a_refusal_names_is_sent_otherwise_at_once(row: Row) -> None:
    """In `param`, `loc` or words: what was sent is left out, swapped or put otherwise, for good."""
    extra = {"extra": {"top_k": 4}} if "top_k" in row["change"] else {}
    everything = partial(full, schema=FORM, reasoning="low", **extra)
    ask = showing if row["page"] == "pictures" else everything
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
    """A path into the messages is no field to leave out; of a limit's two names each is tried once."""
    async with ModelServer() as server, opened(server) as client:
        for said in cast("list[str]", ROWS["nothing"]):
            server.script("m", Turn(status=400, body={"error": {"message": said}}))
            assert (await failure(client, full())).cause == "bad_request"
            await client.ask(full())
    first, *others = (each.request for each in server.history)
    assert all(each == first for each in others)
    async with ModelServer() as server, opened(server) as client:
        named = [Turn(status=400, body={"error": {"message": "no", "param": name}}) for name in LIMITS]
        server.script("m", *named)
        await client.ask(full())
    assert [[*LIMITS & each.request.keys()] for each in server.history] == [
        *([name] for name in LIMITS),
        [],
    ]


LIMITS = {"max_tokens": None, "max_completion_tokens": None}.keys()


@rows(
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


def test_a_detail_is_one_short_line_in_which_a_models_id_is_no_key() -> None:
    """Long names with digits stay readable; a sentence of many megabytes takes no longer than one of two thousand characters."""
    text = "meta-llama/llama-4-maverick-17b-128e-instruct isn't available"
    assert shorten(text) == text
    detail = shorten("word " * 100)
    assert 190 < len(detail) <= 200
    assert detail.endswith("…")
    huge = "words and " * 3_000_000
    assert len(excerpt(huge, SECRETS)) <= 2_000
    assert shorten(huge) == f"{huge[:199].rpartition(' ')[0]}\u2026"


SECRET = "hunter2-" * 8
SECRETS = Redaction([SECRET], KEY)


@rows("before", range(1_900, 2_100, 7))
def test_a_cut_shows_no_part_of_a_secret(before: int) -> None:
    """Wherever it is: the secret itself, and words that look like a key."""
    blank, rest = " " * before, "and so on " * 1000
    assert "hunter2" not in shorten(f"{blank}{SECRET} {rest}", SECRETS)
    assert "hunter2" not in excerpt(f"{'x' * before}{SECRET}{'y' * 5000}", SECRETS)
    assert "sk-or" not in shorten(f"{blank}sk-or-v1-0123456789abcdef {rest}")


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


@rows("status", [400, 402, 403, 404, 422, 429, 500])
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


@rows(
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
