"""Names and lists as people write them, and texts shortened to fit."""

from collections import Counter
from collections.abc import Iterable, Mapping

COLLEAGUE, CHANNEL, GROUP = "a colleague", "a channel", "a group"
"""What somebody, a channel and a group are called whose names aren't known."""

_NAME_LENGTH = 32


def listing(items: Iterable[str]) -> str:
    """Join as people do: `a`, `a and b`, `a, b and c`."""
    *firsts, last = items
    return f"{', '.join(firsts)} and {last}" if firsts else last


def called(sign: str, name: str | None, otherwise: str) -> str:
    """Write a name in one line after its sign, as people mention it: `@ada`; else `otherwise`."""
    said = " ".join((name or "").split()).removeprefix(sign)
    return f"{sign}{said}" if said else otherwise


def short_names(members: Iterable[str], personas: Mapping[str, str] | None = None) -> dict[str, str]:
    """Call members what people call them: `gpt-5` for `openai/gpt-5`, its persona in brackets.

    A model keeps its provider if two would otherwise read alike.
    """
    names = {member: _short_name(member, (personas or {}).get(member)) for member in members}
    twice = {name for name, times in Counter(names.values()).items() if times > 1}
    return {member: member if name in twice else name for member, name in names.items()}


def _short_name(member: str, persona: str | None) -> str:
    model, _, seat = member.partition("#")
    base = model.rsplit("/", 1)[-1] or model
    if len(base) > _NAME_LENGTH:
        # An id begins with its family and ends with its version; the middle says least.
        base = f"{base[: _NAME_LENGTH - 11]}\u2026{base[-10:]}"
    said = persona or seat
    return f"{base} ({said})" if said else base
