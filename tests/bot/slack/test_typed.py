"""What people type on Slack, as others read it."""

from hypothesis import given
from hypothesis import strategies as st

from bot.slack.incoming import plain, unnamed
from tests.pairs import data, rows

NAMES = {"U2": "Bob  B.\n", "C2": "launch", "S2": "oncall"}


@rows(("sent", "read"), data(__file__, "what_slack_sends_is_read_as_typed"))
def test_what_slack_sends_is_read_as_typed(sent: str, read: str) -> None:
    """Names for ids, links as addresses, entities as characters, without the bot's own name."""
    assert plain(sent, "UBOT", NAMES) == read


def test_only_what_has_no_name_is_looked_up() -> None:
    """People, channels and user groups, in their order; never the bot."""
    text = "<@UBOT> <@U1|ada> <@U2> <#C1|x> <#C2|> <!subteam^S2> <!here> <https://x.example>"
    assert [*unnamed(text, "UBOT")] == ["U2", "C2", "S2"]


@given(st.text("<>@#!|^:&US1a \n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Whatever somebody types, nothing of it is an id that Slack made of a mention."""
    read = plain(text, "U1")
    assert isinstance(read, str)
    assert all(f"<@{one}>" in text or f"<#{one}" in text or "!subteam^" in text for one in unnamed(text))
