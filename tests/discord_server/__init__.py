"""A fake Discord on 127.0.0.1 that the real discord.py runs against: gateway, REST API, interactions.

    state        what exists            permissions  who may do what where
    limits       what fits              mentions     whom a text pings
    faults       what goes wrong, rate limits
    posting      messages and threads   wire         all of it as JSON
    gateway      WebSocket sessions     rest         routes, limits, failures, the log
    endpoints, interactions, commands   the API itself
    server       how a test drives it

Point a bot at it with `discord.http.Route.BASE = server.url`. For sessions that are invalidated,
`discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY` has to be the server's `gateway.url` too: that is
where discord.py goes then.
"""

from .errors import ApiError, Impossible
from .faults import Fault
from .permissions import NEW_GUILD, Permission
from .rest import Request
from .server import DiscordServer
from .state import (
    Attachment,
    Channel,
    Clock,
    Guild,
    Intent,
    Interaction,
    Message,
    Ping,
    Role,
    User,
    Version,
)

__all__ = [
    "NEW_GUILD",
    "ApiError",
    "Attachment",
    "Channel",
    "Clock",
    "DiscordServer",
    "Fault",
    "Guild",
    "Impossible",
    "Intent",
    "Interaction",
    "Message",
    "Permission",
    "Ping",
    "Request",
    "Role",
    "User",
    "Version",
]
