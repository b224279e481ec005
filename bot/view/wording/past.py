"""What people read of past answers: lists, statistics, and what deleting one says before and after."""

from bot.view.wording.figures import count, listing
from storage.work import Left

OPEN = "Open"
"""The label of a button that shows an answer; its number in the list follows."""
THERE = "Go to it"
"""The label of a link to where something is."""

NO_SUCH = "There is no such answer here."
HISTORY = "Past answers"
ASKED = "Asked"
CUT = "This isn't all of it. The rest is in the transcript."
"""Where a sheet has no room for more."""


def page(first: int, last: int, found: int, ranked: int) -> str:
    """Return which results these are; of many, only some are `ranked`."""
    if found >= ranked:
        return f"Results {first} to {last} of more than {ranked:,}; only the newest are ranked"
    if (first, last) == (1, found):
        return count(found, "result")
    some = f"Result {first}" if first == last else f"Results {first} to {last}"
    return f"{some} of {found}"


HEADER = ("Member", "Runs", "Average vote", "Cost")
UNKNOWN = "\u2013"
REST = ("Member", "First", "Changed", "Failed", "Time")


def done(what: str, left: Left | None = None) -> str:
    """Return what was deleted, and which of the council's messages are still there.

    `left` is `None` where there are no messages.
    """
    if left is None:
        return f"Deleted {what}."
    refused = sum(left.refused.values())
    if not (left.waiting or refused):
        return f"Deleted {what} and the council's messages about it."
    said = [f"Deleted {what}."]
    if left.waiting:
        still = "message is" if left.waiting == 1 else "messages are"
        said.append(f"{left.waiting:,} of the council's {still} still being deleted.")
    if refused:
        said.append(f"{count(refused, 'message')} couldn't be deleted: {listing(left.refused)}.")
        said.append(
            "The council tries again every hour for seven days; "
            "whoever may delete its messages there can remove them."
        )
    return " ".join(said)
