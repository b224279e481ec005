"""Times, costs and counts as people write them."""

from datetime import UTC, datetime

from council.document.results import Rank
from council.usage import Usage
from storage.index.statistics import Spent, Typical

NO_COST = "no cost"
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def duration(seconds: float) -> str:
    """Say how long: `0.4 s`, `12 s`, `1 min 5 s`, `2 h 3 min`."""
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
    """Say what was paid, and how many calls have no known price."""
    if not usage.unpriced:
        return dollars(usage.cost) if usage.cost else NO_COST
    calls = count(usage.unpriced, "call")
    if not usage.cost:
        return f"{calls} without a known price"
    return f"{dollars(usage.cost)} plus {calls} without a known price"


def runs(spent: Spent) -> str:
    """Count a channel's runs by how they ended."""
    return (
        f"{count(spent.answered, 'answer')}, {count(spent.failed, 'run')} failed, "
        f"{count(spent.stopped, 'run')} stopped"
    )


def paid(spent: Spent) -> str:
    """Say what all of a channel's runs cost; some calls may have had no known price."""
    if spent.cost:
        return f"{dollars(spent.cost)} where prices are known"
    return "no known cost" if spent.tokens else NO_COST


def took(typical: Typical) -> str:
    """Say how long a question took, and what it cost: `1 min 5 s and cost $0.12`."""
    cost = f" and cost {dollars(typical.cost)}" if typical.cost else ""
    return f"{duration(typical.seconds)}{cost}"


def dollars(amount: float) -> str:
    """Write money to the cent, below ten cents with two digits at most below it: `$1.25`, `$0.013`."""
    if amount < 0.0001:
        return "under $0.0001"
    if amount >= 0.0995:
        return f"${amount:,.2f}"
    cents = f"{float(f'{amount:.2g}'):.4f}".rstrip("0")
    return f"${cents.ljust(len('0.00'), '0')}"


def tokens(usage: Usage) -> str:
    """Say how many tokens: `1,234 tokens`, `about 1,234 tokens (estimated)`."""
    number = count(usage.tokens, "token")
    return number if usage.source == "measured" else f"about {number} (estimated)"


def count(number: int, thing: str) -> str:
    """Count things: `1 call`, `2 calls`, `1,234 tokens`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def ordinal(place: int) -> str:
    """Return a place with its ending: `1st`, `2nd`, `11th`."""
    ending = "th" if place % 100 in (11, 12, 13) else _ORDINALS.get(place % 10, "th")
    return f"{place}{ending}"


def rank(held: Rank) -> str:
    """Return a rank as a ranking writes it: `1st`, or `1st =` if it is shared."""
    return f"{ordinal(held.number)}{' =' if held.shared else ''}"


def position(mean: float | None) -> str:
    """Return a mean position: `1`, `1.33`; a dash where there is none."""
    return "\u2013" if mean is None else f"{mean:.2f}".rstrip("0").rstrip(".")


def moment(timestamp: str) -> str:
    """Write a document's timestamp for people: `2026-01-20 10:30 UTC`; unchanged if it is none."""
    try:
        return when(datetime.fromisoformat(timestamp))
    except ValueError:
        return timestamp


def when(moment: datetime) -> str:
    """Write a moment for readers whose time isn't known."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
