"""What people type on Slack, as others read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.incoming import plain, unnamed

NAMES = {"U2": "Bob  B.\n", "C2": "launch", "S2": "oncall"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("<@UBOT> shard?", "shard?"),
        ("ask <@U1|ada> in <#C1|general>, <!here>", "ask @ada in #general, @here"),
        ("<!subteam^S1|@team> and <@U2>", "@team and @Bob B."),
        ("<!subteam^S2> in <#C2> or <#C2|>", "@oncall in #launch or #launch"),
        ("<@U3>, <#C3> and <!subteam^S3>", "a colleague, a channel and a group"),
        ("<!channel>, <!everyone|everyone>", "@channel, @everyone"),
        ("by <!date^1392734382^{date_short}|Feb 18>", "by Feb 18"),
        ("see <https://x.example/a?b=1|the docs> or <https://y.example>", "see the docs (https://x.example/a?b=1) or https://y.example"),
        ("<http://x.example|x.example>, <mailto:a@x.example|a@x.example>", "x.example, a@x.example"),
        ("if a &lt; b &amp;&amp; c &gt; d: &amp;lt;", "if a < b && c > d: &lt;"),
    ],
)  # fmt: skip
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
