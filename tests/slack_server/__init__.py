"""A Slack on 127.0.0.1, faithful enough for the real Bolt app to run against.

It serves the Web API, Socket Mode and signed HTTP deliveries, enforces Slack's limits with Slack's error
strings, and is driven by a test that acts as the people::

    async with SlackServer() as slack:
        ada = slack.add_user("ada")
        general = slack.add_channel("general", ada)
        ...  # start the bot with slack.api_url, slack.token, slack.app_token
        await slack.connected()
        delivery = await slack.slash(general, ada, "/council", "Should we shard?")
        assert delivery.acked
        card = await slack.until(lambda: slack.messages(general))

`post`, `mention` and `slash` send `text` as it is: what somebody typed as `<`, `>` and `&` is to be
written `&lt;`, `&gt;` and `&amp;`, as Slack writes it.
"""

from tests.slack_server.delivery import Attempt, Delivery, Endpoint
from tests.slack_server.faults import Fault
from tests.slack_server.rules import Call, HandClock, Patience, Rates, Rules
from tests.slack_server.server import SlackServer
from tests.slack_server.workspace import Channel, Ephemeral, Message, StoredFile, Team, User

__all__ = [
    "Attempt",
    "Call",
    "Channel",
    "Delivery",
    "Endpoint",
    "Ephemeral",
    "Fault",
    "HandClock",
    "Message",
    "Patience",
    "Rates",
    "Rules",
    "SlackServer",
    "StoredFile",
    "Team",
    "User",
]
