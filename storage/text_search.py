"""What indexing and searching past answers need of a database's full-text search.

Each conversation's texts are a row of the table `search`, whose `rowid` is the conversation's number;
`search_docsize` has the id of each row. Both stores find the same, each in an order of its own; only the
newest hits are ranked.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from storage.scope import Scope

TEXTS = ("title", "question", "answer")
WEIGHTS = (8.0, 3.0, 1.0)
"""A title says most, then the question."""
RANKED = 1_000
"""How many of a search's hits are ranked, the newest: ranking them all takes too long."""
SNIPPET = "snippet(search, -1, char(2), char(3), '…', 24)"
"""A hit's context, in FTS5's words: 24 of the text's, with the hits between two control characters."""


class TextSearch(Protocol):
    """Full-text search over all conversations. Methods may raise `DatabaseError`.

    `columns` are those of the table `search`, beside `rowid`.
    """

    columns: ClassVar[Sequence[str]]

    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        """Return `TEXTS` of a scope by column, as they are stored to be searched."""
        ...

    async def ranked(
        self, scope: Scope, wanted: Sequence[str], limit: int, offset: int
    ) -> tuple[list[int], int]:
        """Return the numbers of a scope's conversations that hold all phrases, best first.

        The second value is how many there are, counted up to `RANKED`.
        """
        ...

    async def snippets(self, wanted: Sequence[str], numbers: Sequence[int]) -> dict[int, str]:
        """Return, by number, where each conversation's question or answer holds any of the phrases."""
        ...

    async def merge(self) -> None:
        """Make searches fast again after many rows were written."""
        ...
