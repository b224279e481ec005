"""Secrets are hidden in texts, however they are written and wherever they are cut."""

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from council.text.redaction import HEAD, HIDDEN, WORTH_CUTTING, Redaction, passwords
from tests.pairs import rows

SECRET = "sk-or-v1-7f+3/a=9'c\"5\\e1-and-more"  # noqa: S105 - it is none
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=WORTH_CUTTING)


@rows(
    "written",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        repr(SECRET)[1:-1],
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"{SECRET}:".encode()).decode(),
        SECRET[:HEAD],
        SECRET[:-1],
    ],
)
def test_a_secret_is_hidden_however_it_is_written(written: str) -> None:
    """And the text around it is kept."""
    assert Redaction([SECRET]).hide(f"<{written}>{written}") == f"<{HIDDEN}>{HIDDEN}"


@rows(
    ("secret", "text"),
    [
        ("x", "next: max_tokens; x-ai/grok, box.x.org; Bearer *x*, key=*x*, \u201c*x*\u201d *x*."),
        ("none", "nonetheless *none*"),
        ("ollama", "ollama/llama3 at *ollama*"),
        ("8letters", "*8letters*andmore"),
    ],
)
def test_a_short_secret_is_hidden_only_as_a_word(secret: str, text: str) -> None:
    """Where it is marked: a key of one letter leaves every other word as it is."""
    assert Redaction([secret]).hide(text.replace("*", "")) == text.replace(f"*{secret}*", HIDDEN)


def test_texts_without_a_secret_stay() -> None:
    """Of secrets that begin alike the longest is hidden."""
    text = f"{SECRET[: HEAD - 1]} is a key of OpenRouter"
    assert Redaction([SECRET]).hide(text) == text
    assert Redaction([""]).hide(text) == text
    assert Redaction(["short", f"{SECRET}-1", f"{SECRET}-22"]).hide(f"{SECRET}-22 short") == (
        f"{HIDDEN} {HIDDEN}"
    )


@given(secret=secrets, length=st.integers(0, 60))
def test_a_cut_leaves_nothing_of_a_secret(secret: str, length: int) -> None:
    """Wherever it goes through."""
    text = "\u00e9\u00e9" + secret + "\u00e8" * 60
    hidden = Redaction([secret]).beginning(text, 2 + length)
    assert set(hidden.replace(HIDDEN, "", 1)) <= {"\u00e9", "\u00e8"}


@rows(
    ("text", "found"),
    [
        ("http://me:p%40ssw0rd@host/v1", {"me:p%40ssw0rd", "me:p@ssw0rd", "p%40ssw0rd", "p@ssw0rd"}),
        ("http://0123456789abcdef@host", {"0123456789abcdef"}),
        ("http://me@host and http://host/@me", set[str]()),
        ("http://me:x@host", {"me:x"}),
        (
            "a = 'https://a:secret1@b', b = 'https://c:secret2@d'",
            {"a:secret1", "secret1", "c:secret2", "secret2"},
        ),
    ],
)
def test_the_secrets_of_addresses_are_found(text: str, found: set[str]) -> None:
    """As written and as decoded; a user name is no secret."""
    assert set(passwords(text)) == found
