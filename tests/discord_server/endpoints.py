"""The endpoints a bot uses with its own token: accounts, guilds, channels, messages, threads."""

from . import errors, posting, wire
from .permissions import Permission, in_channel, in_guild
from .rest import Call, body_of, route
from .state import Channel, ChannelType, Json, Message, User, World


def visible(world: World, number: int) -> Channel:
    """Return a channel that the bot can see; raises 10003 or 50001."""
    channel = world.channel(number)
    if not in_channel(channel, world.bot) & Permission.VIEW_CHANNEL:
        raise errors.ApiError(*errors.MISSING_ACCESS)
    return channel


def need(channel: Channel, world: World, permission: Permission) -> None:
    """Require a permission of the bot; raises 50013."""
    if not in_channel(channel, world.bot) & permission:
        raise errors.ApiError(*errors.MISSING_PERMISSIONS)


def present(channel: Channel, number: int) -> Message:
    """Return a message that the bot's token can reach, so no ephemeral one."""
    message = channel.messages.get(number)
    if message is None or message.ephemeral:
        raise errors.ApiError(*errors.UNKNOWN_MESSAGE)
    return message


@route("GET /gateway/bot")
def gateway(call: Call) -> Json:
    """Return where the gateway is and how many shards it recommends."""
    url = call.world.url.replace("http", "ws", 1) + "/gateway"
    limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 16}
    return {"url": url, "shards": call.world.shards, "session_start_limit": limit}


@route("GET /users/@me")
def me(call: Call) -> Json:
    return wire.own_user(call.world.bot)


@route("GET /oauth2/applications/@me")
@route("GET /applications/@me")
def application(call: Call) -> Json:
    return wire.application(call.world)


@route("GET /users/@me/guilds")
def my_guilds(call: Call) -> list[Json]:
    """Return the guilds the bot is in, in short."""
    guilds = [guild for guild in call.world.guilds.values() if guild.has_bot]
    return [
        {
            "id": str(guild.id),
            "name": guild.name,
            "icon": None,
            "banner": None,
            "owner": False,
            "permissions": str(in_guild(guild, call.world.bot)),
            "features": [],
        }
        for guild in guilds[: int(call.query.get("limit", "200"))]
    ]


@route("POST /users/@me/channels")
def open_dm(call: Call) -> Json:
    """Return the direct conversation with somebody; open it if there is none."""
    person = call.world.users.get(int(body_of(call)["recipient_id"]))
    if person is None or person.bot:
        raise errors.ApiError(*errors.UNKNOWN_USER)
    return wire.channel(dm(call.world, person))


def dm(world: World, person: User) -> Channel:
    """Return the direct conversation between somebody and the bot; open it if there is none."""
    for channel in world.channels.values():
        if channel.type is ChannelType.DM and person in channel.recipients:
            return channel
    channel = Channel(world.snowflake(), ChannelType.DM, "", recipients=[person])
    world.channels[channel.id] = channel
    return channel


@route("GET /guilds/{guild_id}")
def get_guild(call: Call) -> Json:
    return wire.guild(call.world.guild(call.id("guild_id")), call.world)


@route("GET /guilds/{guild_id}/channels")
def get_channels(call: Call) -> list[Json]:
    return [wire.channel(entry) for entry in call.world.guild(call.id("guild_id")).channels.values()]


@route("GET /guilds/{guild_id}/members/{user_id}")
def get_member(call: Call) -> Json:
    member = call.world.guild(call.id("guild_id")).members.get(call.id("user_id"))
    if member is None:
        raise errors.ApiError(*errors.UNKNOWN_MEMBER)
    return wire.member(member)


@route("GET /channels/{channel_id}")
def get_channel(call: Call) -> Json:
    return wire.channel(visible(call.world, call.id("channel_id")))


@route("PATCH /channels/{channel_id}")
def edit_channel(call: Call) -> Json:
    """Change a thread: its name, whether it is archived or locked, and when it archives itself."""
    world, body = call.world, body_of(call)
    channel = visible(world, call.id("channel_id"))
    if not channel.is_thread:
        need(channel, world, Permission.MANAGE_CHANNELS)
        channel.name = body.get("name", channel.name)
        return wire.channel(channel)
    if channel.owner is not world.bot or "locked" in body:
        need(channel, world, Permission.MANAGE_THREADS)
    archived: bool = body.get("archived", channel.archived)
    if channel.archived and archived:
        raise errors.ApiError(*errors.ARCHIVED)
    channel.name = body.get("name", channel.name)
    channel.auto_archive = body.get("auto_archive_duration", channel.auto_archive)
    posting.archive(world, channel, archived=archived, locked=body.get("locked"))
    return wire.channel(channel)


@route("GET /channels/{channel_id}/messages")
def list_messages(call: Call) -> list[Json]:
    """Return a channel's messages, newest first; none without READ_MESSAGE_HISTORY."""
    world = call.world
    channel = visible(world, call.id("channel_id"))
    if not in_channel(channel, world.bot) & Permission.READ_MESSAGE_HISTORY:
        return []
    found = sorted((entry for entry in channel.messages.values() if not entry.ephemeral), key=_by_id)
    count = int(call.query.get("limit", "50"))
    if not 1 <= count <= 100:
        raise errors.invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
    if after := call.query.get("after"):
        return [
            wire.read(entry, world)
            for entry in reversed([entry for entry in found if entry.id > int(after)][:count])
        ]
    if before := call.query.get("before"):
        found = [entry for entry in found if entry.id < int(before)]
    return [wire.read(entry, world) for entry in reversed(found[-count:])]


def _by_id(message: Message) -> int:
    return message.id


@route("GET /channels/{channel_id}/messages/{message_id}")
def get_message(call: Call) -> Json:
    channel = visible(call.world, call.id("channel_id"))
    need(channel, call.world, Permission.READ_MESSAGE_HISTORY)
    return wire.read(present(channel, call.id("message_id")), call.world)


@route("POST /channels/{channel_id}/messages")
def send_message(call: Call) -> Json:
    """Post a message with the bot's token."""
    world, body = call.world, body_of(call)
    channel = visible(world, call.id("channel_id"))
    if channel.type is ChannelType.FORUM:
        raise errors.ApiError(400, 50008, "Cannot send messages in a non-text channel")
    if any(not person.takes_dms for person in channel.recipients):
        raise errors.ApiError(*errors.CLOSED_DMS)
    sending = Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES
    need(channel, world, sending)
    if body.get("embeds"):
        need(channel, world, Permission.EMBED_LINKS)
    if call.uploads:
        need(channel, world, Permission.ATTACH_FILES)
    if body.get("message_reference"):
        need(channel, world, Permission.READ_MESSAGE_HISTORY)
    return wire.message(posting.post(world, channel, world.bot, body, call.uploads, by="bot"), world)


@route("PATCH /channels/{channel_id}/messages/{message_id}")
def edit_message(call: Call) -> Json:
    """Edit one of the bot's own messages: interaction responses too, but no ephemeral ones."""
    world = call.world
    channel = visible(world, call.id("channel_id"))
    message = present(channel, call.id("message_id"))
    if message.author is not world.bot:
        raise errors.ApiError(*errors.NOT_THE_AUTHOR)
    if call.uploads:
        need(channel, world, Permission.ATTACH_FILES)
    return wire.message(posting.edit(world, message, body_of(call), call.uploads, by="bot"), world)


@route("DELETE /channels/{channel_id}/messages/{message_id}")
def delete_message(call: Call) -> None:
    """Delete the bot's own message, or with MANAGE_MESSAGES anybody's."""
    world = call.world
    channel = visible(world, call.id("channel_id"))
    message = present(channel, call.id("message_id"))
    if message.author is not world.bot:
        need(channel, world, Permission.MANAGE_MESSAGES)
    if channel.archived:
        raise errors.ApiError(*errors.ARCHIVED)
    posting.delete(world, message)


@route("POST /channels/{channel_id}/messages/{message_id}/threads")
def thread_from_message(call: Call) -> Json:
    world, body = call.world, body_of(call)
    channel = visible(world, call.id("channel_id"))
    if channel.type not in {ChannelType.TEXT, ChannelType.ANNOUNCEMENT}:
        raise errors.ApiError(*errors.WRONG_CHANNEL_TYPE)
    message = present(channel, call.id("message_id"))
    need(channel, world, Permission.CREATE_PUBLIC_THREADS)
    thread = posting.open_thread(
        world,
        channel,
        body.get("name", ""),
        world.bot,
        auto_archive=body.get("auto_archive_duration") or 1440,
        message=message,
    )
    return wire.thread(thread) | {"member": wire.thread_member(thread, world.bot.id)}


@route("GET /channels/{channel_id}/thread-members/{user_id}")
def get_thread_member(call: Call) -> Json:
    thread, person = visible(call.world, call.id("channel_id")), call.id("user_id")
    if person not in thread.joined:
        raise errors.ApiError(*errors.UNKNOWN_MEMBER)
    return wire.thread_member(thread, person)
