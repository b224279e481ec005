"""Figures and lists as people write them, names shortened to fit, and the labels of all buttons."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from council.document.results import Rank
from council.profile import PRESETS
from council.usage import Usage
from storage.index.statistics import Spent, Typical

NO_COST = "no cost"
MORE = ", and up to "
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def duration(seconds: float) -> str:
    """Return how long: `0.4 s`, `12 s`, `1 min 5 s`, `2 h 3 min`."""
    if seconds < 0.95:
        return f"{max(seconds, 0.1):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two_units(whole // 60, "min", whole % 60, "s")
    return _two_units(whole // 3600, "h", whole % 3600 // 60, "min")


def _two_units(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large} {unit} {small} {smaller}" if small else f"{large} {unit}"


def money(usage: Usage) -> str:
    """Return what was paid, how many calls have no known price, and what may still be billed."""
    parts = [dollars(usage.cost - (usage.unsure or 0.0))] if usage.cost else []
    if usage.unpriced:
        parts.append(f"{count(usage.unpriced, 'call')} without a known price")
    later = f"{MORE}{dollars(usage.unsure)} for calls that were cut off" if usage.unsure else ""
    return (" plus ".join(parts) or NO_COST) + later


def runs(spent: Spent) -> str:
    """Return how a channel's runs ended, and what they cost where prices are known."""
    ended = (
        (spent.answered, "answer", ""),
        (spent.failed, "run", " failed"),
        (spent.stopped, "run", " stopped"),
    )
    said = [f"{count(number, what)}{how}" for number, what, how in ended if number]
    if spent.cost:
        said.append(f"{dollars(spent.cost)} where prices are known")
    return ", ".join(said)


def expected(typical: Typical | None, estimated: float) -> str:
    """Return what a question takes: `usually 14 s, $0.08, at most $0.73`, measured and estimated.

    Before there are enough answers, `at most $0.73`; nothing where that costs nothing.
    """
    usual = [f"usually {duration(typical.seconds)}"] if typical else []
    if typical and typical.cost:
        usual.append(dollars(typical.cost))
    most = estimated > (typical.cost if typical else 0.0)
    return ", ".join([*usual, *([f"at most {dollars(estimated)}"] if most else [])])


def dollars(amount: float) -> str:
    """Write money to the cent, below ten cents with two digits at most below it: `$1.25`, `$0.013`."""
    if amount < 0.0001:
        return "under $0.0001"
    if amount >= 0.0995:
        return f"${amount:,.2f}"
    cents = f"{float(f'{amount:.2g}'):.4f}".rstrip("0")
    return f"${cents.ljust(len('0.00'), '0')}"


def tokens(usage: Usage) -> str:
    """Return how many tokens, and how many were cached: `about 1,234 tokens (estimated)`."""
    number = count(usage.tokens, "token")
    if usage.cached_tokens is not None and usage.source == "measured":
        return f"{number}, {usage.cached_tokens:,} of them read from a provider's cache"
    return number if usage.source == "measured" else f"about {number} (estimated)"


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def ordinal(place: int) -> str:
    """Return a place with its ending: `1st`, `2nd`, `11th`."""
    ending = "th" if place % 100 in (11, 12, 13) else _ORDINALS.get(place % 10, "th")
    return f"{place}{ending}"


def rank(held: Rank) -> str:
    return f"{ordinal(held.number)}{' =' if held.shared else ''}"


def position(mean: float | None) -> str:
    return "\u2013" if mean is None else f"{mean:.2f}".rstrip("0").rstrip(".")


def moment(timestamp: str) -> str:
    """Write a document's timestamp for people: `2026-01-20 10:30 UTC`; unchanged if it is none."""
    try:
        return when(datetime.fromisoformat(timestamp))
    except ValueError:
        return timestamp


def when(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


COLLEAGUE, CHANNEL, GROUP = "a colleague", "a channel", "a group"
"""What somebody, a channel and a group are called whose names aren't known."""

_NAME_LENGTH = 32
_PERSONAS = {persona.slug: persona.name for persona in PRESETS}


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
    said = persona or _PERSONAS.get(seat) or " ".join(map(str.capitalize, seat.split("-")))
    return f"{base} ({said})" if said else base


STOP = "Stop"
CONTINUE = "Continue (finished calls aren't paid twice)"
START_OVER = "Start over"
AGAIN = "Ask again"
FOLLOW_UP = "Follow up"
ANSWER_IT = "Answer the question"
TRANSCRIPT = "Transcript"
HELPFUL = "Helpful"
UNHELPFUL = "Not helpful"
OPEN = "Open"

NEWER, OLDER = "Newer", "Older"
PREVIOUS, NEXT = "Previous", "Next"
EARLIER, LATER = "Earlier question", "Later question"
SHARE = "Share here"
DELETE = "Delete"
