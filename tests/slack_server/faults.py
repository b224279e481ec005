"""What a test can make go wrong with the bot's calls: errors of Slack, of a proxy, of the network."""

from dataclasses import dataclass

from aiohttp import web

from tests.breaking import Passing
from tests.slack_server.rules import Json


@dataclass(slots=True, eq=False)
class Fault(Passing):
    """What Slack does instead of its own answer; `retry_after` makes it a 429.

    `channel` and `user` take only calls about them, `in_thread` only posts into threads, or only those
    into the channel itself, `says` only those whose text has it, `team` only those with this
    workspace's token.
    """

    method: str
    error: str | None = None
    status: int = 200
    retry_after: int | None = None
    delay: float = 0.0
    channel: str | None = None
    user: str | None = None
    in_thread: bool | None = None
    says: str = ""
    team: str | None = None

    def matches(self, method: str, arguments: Json, now: float, team: str | None = None) -> bool:
        """Return whether this call, with a token of `team`, meets it."""
        if self.team not in (None, team):
            return False
        if self.is_over(now) or self.method not in {method, "*"}:
            return False
        if self.channel is not None and self.channel != _channel(arguments):
            return False
        if self.in_thread is not None and self.in_thread != bool(arguments.get("thread_ts")):
            return False
        if self.says not in str(arguments.get("text", "")):
            return False
        return self.user is None or self.user in {arguments.get("user"), arguments.get("users")}

    @property
    def refuses(self) -> bool:
        return self.error is not None or self.status != web.HTTPOk.status_code or self.html


def _channel(arguments: Json) -> object:
    for name in ("channel", "channel_id", "channels"):
        if arguments.get(name):
            return arguments[name]
    return None
