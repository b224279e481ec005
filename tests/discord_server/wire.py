"""How everything looks on the wire: the JSON of API v10."""

from typing import Any

from .permissions import in_channel
from .state import (
    Attachment,
    Channel,
    ChannelType,
    Guild,
    Intent,
    Interaction,
    Member,
    Message,
    MessageFlag,
    Role,
    User,
    World,
    iso,
)

Json = dict[str, Any]


def user(account: User) -> Json:
    return {
        "id": str(account.id),
        "username": account.name,
        "global_name": None if account.bot else account.name.title(),
        "discriminator": "0000" if account.bot else "0",
        "avatar": None,
        "bot": account.bot,
        "system": False,
        "public_flags": 0,
    }


def own_user(account: User) -> Json:
    """Write the bot's account as it sees itself."""
    return user(account) | {"verified": True, "mfa_enabled": False, "locale": "en-US", "flags": 0}


def application(world: World) -> Json:
    """Write the application, with the flags that say which privileged intents it has."""
    owner = next((guild.owner for guild in world.guilds.values()), world.bot)
    flags = 0
    for intent, flag in ((1 << 1, 1 << 15), (1 << 8, 1 << 13), (1 << 15, 1 << 19)):
        flags |= flag if world.privileged & intent else 0
    return {
        "id": str(world.application_id),
        "name": world.bot.name,
        "description": "",
        "icon": None,
        "bot_public": True,
        "bot_require_code_grant": False,
        "owner": user(owner),
        "team": None,
        "verify_key": "0" * 64,
        "flags": flags,
        "bot": user(world.bot),
        "approximate_guild_count": len(world.guilds),
        **world.application,
    }


def role(entry: Role, position: int) -> Json:
    return {
        "id": str(entry.id),
        "name": entry.name,
        "permissions": str(int(entry.permissions)),
        "position": position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": entry.bot_id is not None,
        **({"tags": {"bot_id": str(entry.bot_id)}} if entry.bot_id else {}),
        "mentionable": entry.mentionable,
        "flags": 0,
        "icon": None,
        "unicode_emoji": None,
    }


def roles(place: Guild) -> list[Json]:
    """Write a guild's roles, @everyone first."""
    return [role(entry, position) for position, entry in enumerate(place.roles.values())]


def member(entry: Member, *, with_user: bool = True) -> Json:
    """Write a member, without the account inside where Discord leaves it out."""
    body: Json = {
        "roles": [str(held.id) for held in entry.roles],
        "nick": None,
        "avatar": None,
        "joined_at": entry.joined_at,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
        "communication_disabled_until": None,
    }
    return body | {"user": user(entry.user)} if with_user else body


def channel(place: Channel, viewer: User | None = None) -> Json:
    """Write a channel; with a viewer, what they may do there goes in too (as interactions do)."""
    if place.type is ChannelType.DM:
        return {
            "id": str(place.id),
            "type": int(place.type),
            "last_message_id": _last(place),
            "recipients": [user(person) for person in place.recipients],
            "flags": 0,
        }
    body: Json = thread(place) if place.is_thread else _guild_channel(place)
    if viewer is not None:
        body["permissions"] = str(int(in_channel(place, viewer)))
    return body


def _last(place: Channel) -> str | None:
    return str(next(reversed(place.messages))) if place.messages else None


def _guild_channel(place: Channel) -> Json:
    assert place.guild is not None
    body: Json = {
        "id": str(place.id),
        "type": int(place.type),
        "guild_id": str(place.guild.id),
        "name": place.name,
        "position": list(place.guild.channels).index(place.id),
        "permission_overwrites": [
            {
                "id": str(entry.id),
                "type": entry.kind,
                "allow": str(int(entry.allow)),
                "deny": str(int(entry.deny)),
            }
            for entry in place.overwrites.values()
        ],
        "parent_id": None,
        "topic": None,
        "nsfw": False,
        "rate_limit_per_user": 0,
        "last_message_id": _last(place),
        "flags": 0,
    }
    if place.type is ChannelType.FORUM:
        body["available_tags"] = []
    return body


def thread(place: Channel) -> Json:
    assert place.guild is not None
    assert place.parent is not None
    assert place.owner is not None
    return {
        "id": str(place.id),
        "type": int(place.type),
        "guild_id": str(place.guild.id),
        "parent_id": str(place.parent.id),
        "owner_id": str(place.owner.id),
        "name": place.name,
        "last_message_id": _last(place),
        "rate_limit_per_user": 0,
        "message_count": len(place.messages),
        "total_message_sent": len(place.messages),
        "member_count": len(place.joined),
        "flags": 0,
        "applied_tags": [],
        "thread_metadata": {
            "archived": place.archived,
            "locked": place.locked,
            "auto_archive_duration": place.auto_archive,
            "archive_timestamp": iso(place.archive_changed_at),
            "create_timestamp": iso(place.created_at),
            "invitable": True,
        },
    }


def thread_member(place: Channel, person: int) -> Json:
    """Write one account's membership of a thread."""
    return {
        "id": str(place.id),
        "user_id": str(person),
        "join_timestamp": place.joined[person],
        "flags": 0,
    }


def guild(place: Guild, world: World) -> Json:
    """Write a guild in full, as GUILD_CREATE carries it to a bot without the members intent."""
    threads = [
        entry
        for entry in world.channels.values()
        if entry.guild is place and entry.is_thread and not entry.archived
    ]
    return {
        "id": str(place.id),
        "name": place.name,
        "icon": None,
        "splash": None,
        "owner_id": str(place.owner.id),
        "roles": roles(place),
        "emojis": [],
        "stickers": [],
        "features": [],
        "preferred_locale": "en-US",
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "system_channel_id": None,
        "unavailable": False,
        "large": False,
        "member_count": len(place.members),
        "joined_at": place.members[world.bot.id].joined_at,
        "members": [member(place.members[world.bot.id])],
        "channels": [channel(entry) for entry in place.channels.values()],
        "threads": [
            thread(entry) | {"member": thread_member(entry, world.bot.id)}
            if world.bot.id in entry.joined
            else thread(entry)
            for entry in threads
            if in_channel(entry, world.bot)
        ],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def attachment(file: Attachment, *, ephemeral: bool = False) -> Json:
    body: Json = {
        "id": str(file.id),
        "filename": file.filename,
        "size": len(file.data),
        "url": file.url,
        "proxy_url": file.url,
        "content_type": file.content_type,
    }
    if file.description:
        body["description"] = file.description
    return body | {"ephemeral": True} if ephemeral else body


def message(entry: Message, world: World) -> Json:
    now, place = entry.now, entry.channel
    body: Json = {
        "id": str(entry.id),
        "channel_id": str(place.id),
        "author": user(entry.author),
        "content": now.content,
        "timestamp": iso(entry.history[0].at),
        "edited_timestamp": iso(now.at) if len(entry.history) > 1 else None,
        "tts": False,
        "mention_everyone": any(ping.kind in {"everyone", "here"} for ping in now.pinged),
        "mentions": [
            _mentioned(world.users[ping.id], place) for ping in now.pinged if ping.kind == "user"
        ],
        "mention_roles": [str(ping.id) for ping in now.pinged if ping.kind == "role"],
        "attachments": [attachment(file, ephemeral=entry.ephemeral) for file in now.attachments],
        "embeds": now.embeds,
        "components": now.components,
        "pinned": False,
        "type": entry.type,
        "flags": int(now.flags),
    }
    body |= entry.carries
    if entry.nonce is not None:
        body["nonce"] = entry.nonce
    if entry.thread is not None and not entry.thread.deleted:
        body["thread"] = thread(entry.thread)
        body["flags"] |= int(MessageFlag.HAS_THREAD)
    if entry.reply_to is not None:
        body["message_reference"] = {
            "type": 0,
            "channel_id": str(place.id),
            "message_id": str(entry.reply_to.id),
        }
        replied = message(entry.reply_to, world)
        replied.pop("referenced_message", None)  # Discord goes one message back
        body["referenced_message"] = replied
    if entry.interaction is not None:
        body |= {
            "webhook_id": str(world.application_id),
            "application_id": str(world.application_id),
            "interaction_metadata": _metadata(entry.interaction),
        }
    return body


def _mentioned(person: User, place: Channel) -> Json:
    entry = place.guild.members.get(person.id) if place.guild else None
    return user(person) | ({"member": member(entry, with_user=False)} if entry else {})


def _metadata(interaction: Interaction) -> Json:
    body: Json = {
        "id": str(interaction.id),
        "type": interaction.kind,
        "user": user(interaction.user),
        "authorizing_integration_owners": interaction.payload["authorizing_integration_owners"],
    }
    if interaction.source is not None:
        body["interacted_message_id"] = str(interaction.source.id)
    return body


def event(entry: Message, world: World) -> Json:
    """Write a message as the gateway carries it: with its guild and its author's membership."""
    body = message(entry, world)
    place = entry.channel
    if place.guild is not None:
        body["guild_id"] = str(place.guild.id)
        if author := place.guild.members.get(entry.author.id):
            body["member"] = member(author, with_user=False)
    return body


def redacted(body: Json) -> Json:
    """Return a message without what a bot lacking the message content intent doesn't get."""
    return body | {"content": "", "embeds": [], "attachments": [], "components": []}


def read(entry: Message, world: World) -> Json:
    """Write a message as the bot reads it: without the message content intent, some are empty."""
    body = message(entry, world)
    is_mentioned = any(ping.kind == "user" and ping.id == world.bot.id for ping in entry.pinged)
    is_open = entry.channel.guild is None or entry.author is world.bot or is_mentioned
    return body if is_open or world.privileged & Intent.MESSAGE_CONTENT else redacted(body)


def calling(world: World, place: Channel, person: User) -> Json:
    """Write the part that every interaction has: who did it, where, and what both may do there."""
    guild = place.guild
    body: Json = {
        "application_id": str(world.application_id),
        "version": 1,
        "channel_id": str(place.id),
        "channel": channel(place, person),
        "app_permissions": str(int(in_channel(place, world.bot))),
        "locale": "en-US",
        "entitlements": [],
        "attachment_size_limit": 10 * 1024 * 1024,
        "context": 0 if guild else 1,
        "authorizing_integration_owners": {"0": str(guild.id) if guild else "0"},
    }
    if guild is None:
        return body | {"user": user(person)}
    permissions = str(int(in_channel(place, person)))
    return body | {
        "guild_id": str(guild.id),
        "guild": {"id": str(guild.id), "locale": "en-US", "features": []},
        "guild_locale": "en-US",
        "member": member(guild.members[person.id]) | {"permissions": permissions},
    }
