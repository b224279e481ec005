"""Where a run is on Discord, and the permissions it needs there."""

from dataclasses import dataclass
from typing import Self

import discord

from bot.errors import Refusal
from bot.view.wording.discord import PERMISSIONS, needs
from council.document.conversation import Source
from storage.journal.rows import RunRow


@dataclass(frozen=True, slots=True)
class Location:
    """A channel, a thread (`parent` is the channel it is in) or direct messages (no `guild`)."""

    channel: int
    guild: int | None = None
    parent: int | None = None
    is_private: bool = False

    @classmethod
    def of(cls, channel: discord.abc.Snowflake, guild: int | None) -> Self:
        """Return the location of a channel or a thread."""
        if isinstance(channel, discord.Thread):
            return cls(channel.id, guild, channel.parent_id, channel.is_private())
        return cls(channel.id, guild)

    @classmethod
    def of_interaction(cls, interaction: discord.Interaction) -> Self:
        """Return where somebody typed a command or pressed a button. Raises `Refusal`."""
        if interaction.channel is None:
            raise Refusal("I can't tell which channel this is. Try another.")
        return cls.of(interaction.channel, interaction.guild_id)

    @classmethod
    def of_run(cls, run: RunRow) -> Self:
        """Return where a run was asked for; a thread below its own card doesn't count."""
        where = run.origin
        channel, guild = int(where.channel or 0), int(where.workspace) if where.workspace else None
        if where.thread is None or where.thread == where.message:
            return cls(channel, guild)
        return cls(int(where.thread), guild, channel, is_private=where.thread == where.channel)

    @classmethod
    def of_source(cls, where: Source) -> Self:
        """Return the location that `source` was called on."""
        channel, guild = int(where.channel or 0), int(where.workspace) if where.workspace else None
        if where.thread is None:
            return cls(channel, guild)
        parent = int(where.parent) if where.parent else channel
        return cls(int(where.thread), guild, parent, is_private=where.thread == where.channel)

    def source(self, user: int) -> Source:
        """Return a question's origin: threads belong to their channel, private ones to themselves."""
        is_own_scope = self.parent is None or self.is_private
        return Source(
            platform="discord",
            workspace=str(self.guild) if self.guild else None,
            channel=str(self.channel if is_own_scope else self.parent),
            thread=str(self.channel) if self.parent else None,
            user=str(user),
            parent=str(self.parent) if self.parent and self.is_private else None,
        )

    def missing(self, has: discord.Permissions) -> list[str]:
        """Name the permissions that the bot needs to show a run here and doesn't have."""
        if self.guild is None:
            return []
        send = "send_messages_in_threads" if self.parent else "send_messages"
        return lacking(has, "view_channel", send, "embed_links")

    def require(self, has: discord.Permissions) -> None:
        """Raise `Refusal`, naming them, if permissions to show a run here are missing."""
        if missing := self.missing(has):
            raise Refusal(needs(missing))

    @property
    def channel_link(self) -> str:
        """The address of the channel or thread."""
        return f"https://discord.com/channels/{self.guild or '@me'}/{self.channel}"

    def link(self, message: int) -> str:
        """Return a message's address."""
        return f"{self.channel_link}/{message}"


def lacking(has: discord.Permissions, *wanted: str) -> list[str]:
    """Name those of the wanted permissions that are missing, as Discord's settings call them."""
    return [PERMISSIONS[name] for name in wanted if not getattr(has, name)]
