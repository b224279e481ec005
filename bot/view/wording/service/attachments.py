"""What is said about files that aren't read with a question: in a sentence, and in a few words."""

from collections.abc import Iterable, Sequence

from bot.view.wording.names import listing

NAMED = 3
"""How many files are named where several are left out for the same reason."""
NO_NAME = "a file"


def too_large(name: str, most: int) -> tuple[str, str]:
    """Say that a file is larger than `most` kB."""
    why = f"larger than {most} kB"
    return f"{name} is {why}. Attach the part that matters.", why


def too_many(name: str, most: int) -> tuple[str, str]:
    """Say that a question has more files than are read."""
    said = f"Only {most} files are read with a question, so {name} was left out."
    return said, f"only {most} files are read"


def too_large_together(name: str, most: int) -> tuple[str, str]:
    """Say that a question's files are larger than `most` kB together."""
    why = f"the files together exceed {most} kB"
    return f"With {name}, {why}. Attach the parts that matter.", why


def not_text(name: str) -> tuple[str, str]:
    """Say that a file isn't text."""
    return f"{name} is not text. Attach plain text in UTF-8, such as .md, .txt or .csv.", "not text"


def not_given(name: str, platform: str) -> tuple[str, str]:
    """Say that a platform didn't provide a file."""
    return f"{platform} didn't provide {name}. Try again.", f"{platform} didn't provide it"


def left_out(names_by_reason: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Say which files were left out and why; nothing where all were read."""
    said = ", ".join(f"{_named(names)} ({why})" for why, names in names_by_reason)
    return f"Left out: {said}." if said else ""


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    shown = [*names[:NAMED], *([f"{more:,} more"] if more > 0 else [])]
    return listing(shown)
