"""A direct message to an admin, and how it goes out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from storage.journal.rows import MentionState


@dataclass(frozen=True, slots=True)
class Notice:
    """A direct message to one admin, which is sent once.

    It is about something of `workspace`. `key` tells it from all others, and `subject` is how its text
    begins at every attempt. `telling` is what an earlier attempt has recorded, `note` records what may
    have arrived, `sent` that it has.
    """

    to: str
    workspace: str | None
    key: str
    subject: str
    text: str
    telling: MentionState
    note: Callable[[MentionState], Awaitable[None]]
    sent: Callable[[str], Awaitable[None]]


Send = Callable[[Notice], Awaitable[None]]
"""Sends a notice, at low urgency. Raises `VenueError`."""
