"""Whom a message would ping, from its text and its `allowed_mentions`.

Stricter than Discord in one respect: a mention inside code counts as a ping too.
Source: https://discord.com/developers/docs/resources/message#allowed-mentions-object
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from . import errors
from .permissions import Permission, in_channel
from .state import Channel, Message, Ping, User, World

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(everyone|here)")
_KINDS = {"users", "roles", "everyone"}


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which mentions may ping: all (None) or these ids."""

    everyone: bool = True
    users: frozenset[int] | None = None
    roles: frozenset[int] | None = None
    replied_user: bool = True


def allowed(body: Any) -> Allowed:
    """Read `allowed_mentions`; without it, everything pings, in edits as in posts."""
    if body is None:
        return Allowed()
    parse: list[str] = body.get("parse", [])
    if set(parse) - _KINDS:
        raise errors.invalid("allowed_mentions.parse", "BASE_TYPE_CHOICES", f"Unknown in {parse}.")
    picked: dict[str, frozenset[int] | None] = {}
    for kind in ("users", "roles"):
        listed: list[int | str] = body.get(kind) or []
        if listed and kind in parse:
            raise errors.invalid(
                "allowed_mentions",
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.',
            )
        if len(listed) > 100:
            raise errors.bad_length(f"allowed_mentions.{kind}", 0, 100)
        picked[kind] = None if kind in parse else frozenset(int(item) for item in listed)
    return Allowed(
        everyone="everyone" in parse,
        users=picked["users"],
        roles=picked["roles"],
        replied_user=bool(body.get("replied_user", False)),
    )


def pings(
    world: World, message: Message, text: str, rules: Allowed, on: Literal["post", "edit"]
) -> tuple[Ping, ...]:
    """List what this text pings in the message's channel, each target once."""
    channel, author = message.channel, message.author
    found: dict[tuple[str, int], Ping] = {}

    def add(kind: Literal["user", "role", "everyone", "here"], target: int) -> None:
        found[kind, target] = Ping(kind, target, on, message.id)

    for target in map(int, _USER.findall(text)):
        if target in world.users and (rules.users is None or target in rules.users):
            add("user", target)
    for target in _pinged_roles(channel, author, text, rules):
        add("role", target)
    if rules.everyone and _may_ping_all(channel, author):
        for word in _EVERYONE.findall(text):
            add("everyone" if word == "everyone" else "here", 0)
    if (reply := message.reply_to) and rules.replied_user and on == "post":
        # A reply to a command's answer pings the one who gave the command, not the bot.
        replied = reply.interaction.user if reply.interaction else reply.author
        if replied is not author:
            add("user", replied.id)
    return tuple(found.values())


def _may_ping_all(channel: Channel, author: User) -> bool:
    return channel.guild is not None and bool(in_channel(channel, author) & Permission.MENTION_EVERYONE)


def _pinged_roles(channel: Channel, author: User, text: str, rules: Allowed) -> list[int]:
    if channel.guild is None:
        return []
    everyone = _may_ping_all(channel, author)
    return [
        target
        for target in map(int, _ROLE.findall(text))
        if (rules.roles is None or target in rules.roles)
        and (role := channel.guild.roles.get(target))
        and (role.mentionable or everyone)
    ]
