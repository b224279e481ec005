"""The keys that encrypt the tokens of several Slack workspaces."""

import base64

import pytest

from bot.config.settings import token_keys


def test_they_are_read_in_either_alphabet() -> None:
    """As `openssl rand -base64 32` and as Fernet write them, the newest first."""
    plain, safe = base64.b64encode(b"\xff" * 32), base64.urlsafe_b64encode(b"\xfe" * 32)
    assert b"/" in plain
    read = token_keys(f"{plain.decode()}, {safe.decode()}")
    assert read == [base64.urlsafe_b64encode(b"\xff" * 32).decode(), safe.decode()]
    assert [base64.urlsafe_b64decode(key)[:1] for key in read] == [b"\xff", b"\xfe"]


@pytest.mark.parametrize("wrong", ["", ",", "x", "A" * 44, "A" * 43, "A" * 43 + "=A", "\u00e9" * 44])
def test_others_are_refused(wrong: str) -> None:
    """By their length; what is wrong isn't repeated."""
    with pytest.raises(ValueError, match="a key is 32 bytes in base64; make one: openssl rand"):
        token_keys(wrong)
