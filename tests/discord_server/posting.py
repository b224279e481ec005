"""Posting, editing and deleting messages and threads, by anybody."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

from . import errors, limits, mentions, wire
from .permissions import Permission, in_channel
from .state import (
    Attachment,
    Channel,
    ChannelType,
    Event,
    Intent,
    Interaction,
    Json,
    Message,
    MessageFlag,
    User,
    Version,
    World,
    iso,
    walk,
)

NONCE_LIFE = 5 * 60.0
NONCE_LENGTH = 25
HOUR = 3600.0
AUTO_ARCHIVE = {60, 1440, 4320, 10080}
By = Literal["person", "bot", "interaction"]
_SENDABLE = MessageFlag.SUPPRESS_EMBEDS | MessageFlag.SUPPRESS_NOTIFICATIONS
_EDITABLE = MessageFlag.SUPPRESS_EMBEDS


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it came in a multipart body."""

    filename: str
    data: bytes
    content_type: str


Uploads = dict[int, Upload]


def post(
    world: World,
    channel: Channel,
    author: User,
    body: Json,
    uploads: Uploads,
    *,
    by: By,
    interaction: Interaction | None = None,
    kind: int = 0,
) -> Message:
    """Create a message, or return the one that already has this enforced nonce."""
    nonce = _nonce(body)
    if nonce and body.get("enforce_nonce") and (known := _known(world, nonce)):
        return known
    shape_files = _files(world, [], body, uploads)
    content = (body.get("content") or "").strip()
    embeds: list[Json] = body.get("embeds") or []
    components = _numbered(body.get("components") or [])
    flags = int(body.get("flags") or 0) & _SENDABLE
    limits.check(limits.Shape(content, embeds, components, len(shape_files)))
    reply_to = _reply(channel, body)
    wake(world, channel)
    message = Message(
        id=world.snowflake(),
        channel=channel,
        author=author,
        history=[],
        type=19 if reply_to else kind,
        visible_to=_audience(body, interaction),
        nonce=nonce,
        reply_to=reply_to,
        interaction=interaction,
    )
    if message.ephemeral:
        flags |= MessageFlag.EPHEMERAL
    draft = Version(world.clock.now(), by, content, embeds, components, shape_files, int(flags), ())
    _write(world, message, draft, mentions.allowed(body.get("allowed_mentions")))
    if nonce:
        world.nonces[nonce] = (world.clock.now(), message)
    keep(world, message)
    return message


def keep(world: World, message: Message) -> None:
    """Put a finished message into its channel and tell the gateway."""
    channel = message.channel
    channel.messages[message.id] = message
    world.messages[message.id] = message
    if channel.is_thread:
        pinged = [ping.id for ping in message.pinged if ping.kind == "user"]
        for person in (message.author.id, *pinged):
            channel.joined.setdefault(person, iso(world.clock.now()))
    announce(world, "MESSAGE_CREATE", message)


def thinking(world: World, interaction: Interaction, *, ephemeral: bool) -> Message:
    """Create the empty message that a deferred response shows."""
    flags = MessageFlag.LOADING | (MessageFlag.EPHEMERAL if ephemeral else 0)
    message = Message(
        id=world.snowflake(),
        channel=interaction.channel,
        author=world.bot,
        history=[Version(world.clock.now(), "interaction", "", [], [], [], int(flags), ())],
        type=20,
        visible_to=interaction.user if ephemeral else None,
        interaction=interaction,
    )
    keep(world, message)
    return message


def edit(world: World, message: Message, body: Json, uploads: Uploads, *, by: By) -> Message:
    """Change the fields the body names; the rest of the message stays."""
    now = message.now
    if message.channel.archived:
        raise errors.ApiError(*errors.ARCHIVED)
    _check_age(world, message)
    files = _files(world, now.attachments, body, uploads)
    content = (body["content"] or "").strip() if "content" in body else now.content
    embeds: list[Json] = body["embeds"] or [] if "embeds" in body else now.embeds
    components = now.components
    if "components" in body:
        components = _numbered(body["components"] or [])
    flags = _edited_flags(now.flags, body)
    limits.check(limits.Shape(content, embeds, components, len(files)))
    draft = Version(world.clock.now(), by, content, embeds, components, files, flags, ())
    rules = mentions.allowed(body.get("allowed_mentions")) if "content" in body else None
    _write(world, message, draft, rules)
    announce(world, "MESSAGE_UPDATE", message)
    return message


def delete(world: World, message: Message) -> None:
    """Delete a message; a test can still read its history."""
    message.deleted = True
    message.channel.messages.pop(message.id, None)
    guild = message.channel.guild
    body = {"id": str(message.id), "channel_id": str(message.channel.id)}
    if guild is not None:
        body["guild_id"] = str(guild.id)
    if not message.ephemeral:
        _tell(world, "MESSAGE_DELETE", message.channel, body)


def open_thread(
    world: World,
    parent: Channel,
    name: str,
    owner: User,
    *,
    private: bool = False,
    auto_archive: int = 1440,
    message: Message | None = None,
    invited: tuple[User, ...] = (),
) -> Channel:
    """Create a thread; one made from a message takes the message's id."""
    guild = parent.guild
    if guild is None or parent.is_thread:
        raise errors.ApiError(*errors.WRONG_CHANNEL_TYPE)
    if message is not None and message.thread is not None:
        raise errors.ApiError(*errors.THREAD_EXISTS)
    if not 1 <= limits.units(name) <= 100:
        raise errors.bad_length("name", 1, 100)
    if auto_archive not in AUTO_ARCHIVE:
        raise errors.invalid(
            "auto_archive_duration", "BASE_TYPE_CHOICES", f"Must be one of {sorted(AUTO_ARCHIVE)}."
        )
    kind = ChannelType.PRIVATE_THREAD if private else ChannelType.PUBLIC_THREAD
    if parent.type is ChannelType.ANNOUNCEMENT:
        kind = ChannelType.ANNOUNCEMENT_THREAD
    now = world.clock.now()
    thread = Channel(
        id=message.id if message else world.snowflake(),
        type=kind,
        name=name,
        guild=guild,
        parent=parent,
        owner=owner,
        joined={person.id: iso(now) for person in (owner, *invited)},
        auto_archive=auto_archive,
        created_at=now,
        archive_changed_at=now,
    )
    world.channels[thread.id] = thread
    if message is not None:
        message.thread = thread
    _tell_thread(world, "THREAD_CREATE", thread, {"newly_created": True})
    if message is not None:
        announce(world, "MESSAGE_UPDATE", message)
    return thread


def archive(world: World, thread: Channel, *, archived: bool, locked: bool | None = None) -> None:
    """Archive or reopen a thread, and lock or unlock it when told so."""
    thread.archived = archived
    thread.locked = thread.locked if locked is None else locked
    thread.archive_changed_at = world.clock.now()
    _tell_thread(world, "THREAD_UPDATE", thread, {})


def remove_channel(world: World, channel: Channel) -> None:
    """Delete a channel or thread with everything in it."""
    channel.deleted = True
    del world.channels[channel.id]
    for entry in [*world.channels.values()]:
        if entry.parent is channel:
            remove_channel(world, entry)
    for message in [*channel.messages.values()]:
        message.deleted = True
    channel.messages.clear()
    if channel.is_thread:
        assert channel.parent is not None
        gone = {"id": str(channel.id), "type": int(channel.type), "parent_id": str(channel.parent.id)}
        _tell(world, "THREAD_DELETE", channel, gone, Intent.GUILDS)
    elif channel.guild is not None:
        body = wire.channel(channel)
        del channel.guild.channels[channel.id]
        _tell(world, "CHANNEL_DELETE", channel, body, Intent.GUILDS)


def wake(world: World, channel: Channel) -> None:
    """Reopen a thread that somebody sends to; refuse if it is locked."""
    if channel.locked:
        raise errors.ApiError(*errors.LOCKED)
    if channel.archived:
        archive(world, channel, archived=False)


def _nonce(body: Json) -> str | None:
    nonce = body.get("nonce")
    if nonce is None:
        return None
    if len(str(nonce)) > NONCE_LENGTH:
        raise errors.too_long("nonce", NONCE_LENGTH)
    return str(nonce)


def _known(world: World, nonce: str) -> Message | None:
    at, message = world.nonces.get(nonce, (0.0, None))
    if message is None or message.deleted or world.clock.now() - at >= NONCE_LIFE:
        return None
    return message


def _audience(body: Json, interaction: Interaction | None) -> User | None:
    private = interaction is not None and int(body.get("flags") or 0) & MessageFlag.EPHEMERAL
    return interaction.user if interaction is not None and private else None


def _reply(channel: Channel, body: Json) -> Message | None:
    reference: Json | None = body.get("message_reference")
    if not reference:
        return None
    found = channel.messages.get(int(reference["message_id"]))
    if (found is None or found.ephemeral) and reference.get("fail_if_not_exists", True):
        raise errors.invalid("message_reference", "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "Unknown message")
    return found


def _files(world: World, existing: list[Attachment], body: Json, uploads: Uploads) -> list[Attachment]:
    """Return the files a message has afterwards: those kept, then those uploaded."""
    listed: list[Json] | None = body.get("attachments")
    described = {str(entry["id"]): entry for entry in listed or []}
    kept = [file for file in existing if listed is None or str(file.id) in described]
    for index, upload in sorted(uploads.items()):
        if len(upload.data) > limits.FILE:
            raise errors.ApiError(*errors.TOO_LARGE)
        entry = described.get(str(index), {})
        name = entry.get("filename") or upload.filename
        file = world.attach(name, upload.data, upload.content_type)
        file.description = entry.get("description")
        kept.append(file)
    return kept


def _numbered(components: list[Json]) -> list[Json]:
    """Return a copy of components with an id for each for which the bot set none."""
    components = deepcopy(components)
    taken = {component.get("id") for component in walk(components)}
    number = 0
    for component in walk(components):
        if not component.get("id"):
            number += 1
            while number in taken:
                number += 1
            component["id"] = number
    return components


def _edited_flags(flags: int, body: Json) -> int:
    """Apply an edit's flags: only one can change."""
    if body.get("flags") is None:
        return flags & ~MessageFlag.LOADING
    wanted = int(body["flags"])
    return int(flags & ~(_EDITABLE | MessageFlag.LOADING) | wanted & _EDITABLE)


def _check_age(world: World, message: Message) -> None:
    """Refuse edits of an old message beyond the number a test allows in an hour."""
    now = world.clock.now()
    if world.old_edits is None or now - message.history[0].at < HOUR:
        return
    late = [version for version in message.history[1:] if now - version.at < HOUR]
    late = [version for version in late if version.at - message.history[0].at >= HOUR]
    if len(late) >= world.old_edits:
        raise errors.old_message(world.old_edit_retry_after)


def _write(world: World, message: Message, draft: Version, rules: mentions.Allowed | None) -> None:
    """Append a version, with the pings its text causes."""
    on = "edit" if message.history else "post"
    pinged = mentions.pings(world, message, draft.content, rules, on) if rules else ()
    message.history.append(
        Version(
            draft.at,
            draft.by,
            draft.content,
            draft.embeds,
            draft.components,
            draft.attachments,
            draft.flags,
            pinged,
        )
    )


def announce(world: World, name: str, message: Message) -> None:
    """Tell the gateway about a message everyone in the channel sees."""
    if message.ephemeral:
        return
    channel, bot = message.channel, world.bot
    body = wire.event(message, world)
    mentioned = any(ping.kind == "user" and ping.id == bot.id for ping in message.pinged)
    open_to_bot = channel.guild is None or message.author is bot or mentioned
    redacted = None if open_to_bot else wire.redacted(body)
    _tell(world, name, channel, body, redacted=redacted)


def _tell(
    world: World,
    name: str,
    channel: Channel,
    body: Json,
    needs: Intent | None = None,
    redacted: Json | None = None,
) -> None:
    """Publish what happens in a channel, if the bot can see the channel."""
    if channel.guild is not None and not in_channel(channel, world.bot) & Permission.VIEW_CHANNEL:
        return
    if channel.guild is not None:
        body = {"guild_id": str(channel.guild.id)} | body
    if needs is None:
        needs = Intent.GUILD_MESSAGES if channel.guild else Intent.DIRECT_MESSAGES
    world.publish(Event(name, body, channel.guild, needs, redacted))


def _tell_thread(world: World, name: str, thread: Channel, extra: Json) -> None:
    body = wire.thread(thread) | extra
    if world.bot.id in thread.joined:
        body["member"] = wire.thread_member(thread, world.bot.id)
    _tell(world, name, thread, body, Intent.GUILDS)
