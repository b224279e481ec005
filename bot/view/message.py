"""Messages as every platform gets them: a few kinds of block, without markup.

Our own words and other people's texts differ by type. `Prose` and `Quote` hold Markdown
that a model or a person wrote: it is contained by each dialect. All other blocks are plain text
of one line, ours or a name or a title, and each dialect escapes them. No block holds a control
character, so no text can steer a terminal.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

# All of C0 and C1 but tab and newline; surrogates can't be encoded and would end a run on output;
# what overrides the direction of text would let it pass for other text, ours on the same line too.
_STEERING = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(f"[{_STEERING}]")
_ESCAPED = re.compile(f"[{_STEERING}\u061c\u200e\u200f\u2028\u2029]")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")

_SPACES = re.compile(r"\s+")
LINE = 70
"""About how many characters a line of a chat shows."""


def printable(text: str) -> str:
    """Return a text without control characters; newlines and tabs stay."""
    if text.isprintable():  # most of our own words: a fraction of the search's time
        return text
    return _CONTROL.sub("", _LINE_ENDS.sub("\n", text))


def escaped(text: str) -> str:
    r"""Return a text with its control characters as `\uXXXX`; newlines and tabs stay.

    Within JSON that changes how a text is written and not what it is.
    """
    if text.isascii() and text.isprintable():
        return text
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped_line(text: str) -> str:
    """Return a text as part of a line: `escaped`, including its newlines and tabs."""
    return escaped(text).replace("\n", "\\n").replace("\t", "\\t")


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


@dataclass(frozen=True, slots=True)
class _Plain:
    """One line of plain text."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _one_line(self.text))


@dataclass(frozen=True, slots=True)
class Title(_Plain):
    """What the conversation is called: a model's or a person's words."""


@dataclass(frozen=True, slots=True)
class Heading(_Plain):
    """The heading of a part; `level` 2 is a whole message's, 3 a part's within it."""

    level: int = 2


@dataclass(frozen=True, slots=True)
class Line(_Plain):
    """A sentence that the bot wrote; `strong` where readers must see it first."""

    strong: bool = False


@dataclass(frozen=True, slots=True)
class Footer(_Plain):
    """Small print at the end."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with a text for each, one pair per line, or paragraphs if the texts are long.

    Those that are `together` are lines in any case. Those that are `listed` are a plain list, set apart
    from pairs with bold names above it.
    """

    rows: tuple[tuple[str, str], ...]
    together: bool = False
    listed: bool = False

    def __post_init__(self) -> None:
        rows = tuple((_one_line(name), _one_line(said)) for name, said in self.rows)
        object.__setattr__(self, "rows", rows)

    @property
    def are_paragraphs(self) -> bool:
        """Return whether they take more than a line on average."""
        return not self.together and sum(len(name) + len(said) for name, said in self.rows) > LINE * len(
            self.rows
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under their header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", tuple(map(_one_line, self.header)))
        object.__setattr__(self, "rows", tuple(tuple(map(_one_line, row)) for row in self.rows))


@dataclass(frozen=True, slots=True)
class Columns:
    """Short lists under their titles, side by side where there is room."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        columns = tuple(
            (_one_line(title), tuple(map(_one_line, items))) for title, items in self.columns
        )
        object.__setattr__(self, "columns", columns)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """Markdown of somebody else."""

    markdown: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "markdown", printable(self.markdown).strip("\n"))


@dataclass(frozen=True, slots=True)
class Prose(_Foreign):
    """What a model wrote."""


@dataclass(frozen=True, slots=True)
class Quote(_Foreign):
    """What a person asked."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One of several things that were found: its title, its time, its address, and further facts.

    `at` is shown in the reader's own time where the platform can; `url` is an address of ours. The
    `excerpt` is a line of text in parts, of which those that were searched for are marked.
    """

    text: str
    said: str = ""
    at: datetime | None = None
    url: str | None = None
    excerpt: tuple[tuple[str, bool], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _one_line(self.text))
        object.__setattr__(self, "said", _one_line(self.said))
        # Spaces at a part's ends belong between the parts.
        parts = ((_SPACES.sub(" ", printable(part)), marked) for part, marked in self.excerpt)
        object.__setattr__(self, "excerpt", tuple(parts))


@dataclass(frozen=True, slots=True)
class Diff:
    """Two versions of somebody's Markdown; only the changes are shown, with words marked."""

    before: str
    after: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", printable(self.before).strip("\n"))
        object.__setattr__(self, "after", printable(self.after).strip("\n"))


Block = Title | Heading | Line | Pairs | Table | Columns | Prose | Quote | Diff | Footer | Entry

Tone = Literal["running", "answered", "weakened", "failed"]
"""What state a message reports; a platform that has colours shows it as one."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `key` stays the same however often it is built for a run.

    A `bounded` one is cut, visibly, if it would take more posts than the platform allows it.
    """

    key: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    bounded: bool = False
