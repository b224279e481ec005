"""What people read in a channel's statistics, as text and in the picture."""

from collections.abc import Iterable

from bot.view.wording.figures import count, duration, paid, runs
from storage.index.statistics import Statistics

NOTHING_ASKED = "Nothing was asked here in this period."
HEADER = ("Member", "Runs", "Average vote", "Cost")
HOW_TO_READ = (
    "Average vote: the mean place that the reviewers gave its answers, 1 is best. Cost: per run."
)
TOO_FEW = "too few to compare"
UNKNOWN = "\u2013"

PICTURE = "How each member did."
MEAN_RANK = "Mean rank\n1 is best"
RANKED_FIRST = "Ranked first\nin its runs"
CHANGED = "Changed\nits answer"
FAILED = "Failed\nin a call"
COST = "Cost\nper run"
TIME = "Time\nper call"
NOBODY = "No council has answered here in this period."
GREY = "Grey numbers: the runs behind a figure."


def title(days: int) -> str:
    """Head a channel's statistics."""
    return f"Statistics of this channel, {'last day' if days == 1 else f'last {days:,} days'}"


def totals(found: Statistics) -> str:
    """Say how a channel's runs ended, what they cost, and how long half of the answers took."""
    said = f"{runs(found)}. {count(found.tokens, 'token')}, {paid(found)}."
    if found.seconds.value is None:
        return said
    half = behind(duration(found.seconds.value), found.seconds.runs)
    return f"{said} Half of the answers took less than {half}."


def behind(value: str, number: int) -> str:
    """Return a figure with the number of runs behind it."""
    return f"{value} ({number:,})"


def described(name: str, runs: int, figures: Iterable[tuple[str, str]]) -> str:
    """Say what a picture shows of one member, to whoever can't see it."""
    said = (f"{' '.join(head.split()).lower()} {value}" for head, value in figures)
    return f"{name}, {count(runs, 'run')}: {', '.join(said)}."


def not_drawn(members: int) -> str:
    """Say how many members a picture leaves out."""
    return f"Not drawn: {count(members, 'further member')}."


def no_font(sign: str) -> str:
    """Say what a sign in a member's name means."""
    return f"{sign}: no font here has the character; the members are in the text's order."


def too_slow(seconds: float) -> str:
    """Say, for the log, that a picture took too long."""
    return f"It took longer than {seconds:.0f} seconds."
