"""The votes on an answer, as transcripts show them: counted, with the reasons, without the voters."""

from collections.abc import Sequence

from bot.view.message import Block, Heading, Line, Pairs
from bot.view.wording import commands as wording
from bot.view.wording.figures import UNHELPFUL
from council.document.conversation import Vote


def votes(cast: Sequence[Vote]) -> tuple[Block, ...]:
    """Return the votes on an answer; nothing if there are none."""
    if not cast:
        return ()
    helpful = sum(vote.helpful for vote in cast)
    reasons = tuple((UNHELPFUL, vote.reason) for vote in cast if vote.reason and not vote.helpful)
    return (
        Heading(wording.VOTES, 3),
        Line(f"{wording.counted(helpful, len(cast) - helpful)}."),
        *([Pairs(reasons)] if reasons else []),
    )
