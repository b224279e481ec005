"""What an account may do in a channel, by Discord's documented algorithm.

Source: https://discord.com/developers/docs/topics/permissions#permission-overwrites
"""

from enum import IntFlag

from .state import Channel, Guild, User


class Permission(IntFlag):
    """The permissions this fake knows by name; other bits are kept as they are."""

    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


EVERYTHING = (1 << 53) - 1

NEW_GUILD = (
    Permission.ADD_REACTIONS
    | Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.READ_MESSAGE_HISTORY
    | Permission.MENTION_EVERYONE
    | Permission.USE_APPLICATION_COMMANDS
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.CREATE_PRIVATE_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
)
"""What @everyone may do in a guild nobody configured; pinging @everyone is part of it."""

DIRECT = (
    Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.READ_MESSAGE_HISTORY
    | Permission.ADD_REACTIONS
    | Permission.USE_APPLICATION_COMMANDS
)
"""What both sides may do in direct messages."""


def in_guild(guild: Guild, user: User) -> int:
    """Return what the roles allow, before channel overwrites."""
    member = guild.members.get(user.id)
    if member is None:
        return 0
    if guild.owner is user:
        return EVERYTHING
    allowed = guild.roles[guild.id].permissions
    for role in member.roles:
        allowed |= role.permissions
    return EVERYTHING if allowed & Permission.ADMINISTRATOR else allowed


def in_channel(channel: Channel, user: User) -> int:
    """Return what the user may do here; nothing where they can't view the channel."""
    if channel.guild is None:
        return DIRECT if user.bot or user in channel.recipients else 0
    allowed = in_guild(channel.guild, user)
    if allowed == EVERYTHING or not allowed:
        return allowed
    allowed = _overwritten(channel.parent or channel, user, allowed)
    if not allowed & Permission.VIEW_CHANNEL:
        return 0
    outsider = channel.is_private and user.id not in channel.joined
    if outsider and not allowed & Permission.MANAGE_THREADS:
        return 0
    sending = Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES
    if not allowed & sending:
        allowed &= ~(Permission.MENTION_EVERYONE | Permission.EMBED_LINKS | Permission.ATTACH_FILES)
    return allowed


def _overwritten(channel: Channel, user: User, allowed: int) -> int:
    """Apply @everyone's overwrite, then the roles' together, then the member's."""
    guild = channel.guild
    assert guild is not None
    overwrites = channel.overwrites
    if everyone := overwrites.get(guild.id):
        allowed = allowed & ~everyone.deny | everyone.allow
    allow = deny = 0
    for role in guild.members[user.id].roles:
        if overwrite := overwrites.get(role.id):
            allow |= overwrite.allow
            deny |= overwrite.deny
    allowed = allowed & ~deny | allow
    if own := overwrites.get(user.id):
        allowed = allowed & ~own.deny | own.allow
    return allowed
