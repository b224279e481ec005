"""What somebody may read: the channel they are in, and nothing else."""

import hashlib
from dataclasses import dataclass
from typing import Self

import orjson

from council.document.conversation import Source

TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class Scope:
    """A channel on its platform and workspace; made by `Scope.of` from where a person is.

    Every read of past answers takes one, so that no id, cursor or button reaches another channel.
    """

    platform: str
    workspace: str | None
    channel: str | None

    @classmethod
    def of(cls, source: Source | None) -> Self:
        """Return the scope of a place.

        A document without a source (another program's) belongs to the terminal, where it was
        imported.
        """
        if source is None:
            return cls(TERMINAL, None, None)
        return cls(source.platform, source.workspace, source.channel)

    @property
    def word(self) -> str:
        """The scope as one word, so that it can be a column's value and part of a full-text match."""
        place = orjson.dumps([self.platform, self.workspace, self.channel])
        return "s" + hashlib.blake2b(place, digest_size=16).hexdigest()
