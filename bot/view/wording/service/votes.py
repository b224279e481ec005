"""What is said about votes: to whoever votes, in statistics and transcripts, and before deletion."""

from collections.abc import Iterator

from bot.view.wording.figures import count

VOTES = "Readers' votes"
BY_PROFILE = "Readers' votes by profile"
BY_CHAIRMAN = "Readers' votes by chairman"
NO_PROFILE = "profile not on record"
NO_CHAIRMAN = "no chairman (a member's own answer)"
"""Heads the votes on an answer that no chairman wrote."""

COUNTED_HELPFUL = "Your vote: helpful. Press the other button to change it."
COUNTED_UNHELPFUL = "Your vote: not helpful. Press the other button to change it."
REASON_KEPT = "Your vote: not helpful. Your reason is kept with the answer, without your name."
NOTHING_TO_VOTE_ON = "This run has no answer to vote on."

WHY_LABEL = "Why? (your vote is already counted)"
WHY_HINT = "Optional. It is kept with the answer and shown without your name."
SEND = "Send"
CANCEL = "Cancel"

AT_TERMINAL = "To vote on the answer, type Helpful, or Not helpful with a reason after it if you like."


def counted(helpful: int, unhelpful: int) -> str:
    """Count votes."""
    return ", ".join(_counts(helpful, unhelpful)) or "none"


def _counts(helpful: int, unhelpful: int) -> Iterator[str]:
    if helpful:
        yield f"{helpful:,} helpful"
    if unhelpful:
        yield f"{unhelpful:,} not helpful"


def in_chart(helpful: int, unhelpful: int) -> str:
    """Say below the chart how the answers were voted on."""
    return f"Votes on the answers: {counted(helpful, unhelpful)}."


def deleted(votes: int) -> str:
    """Say which votes are about to be deleted."""
    return f"{count(votes, 'vote')} on other people's answers will be deleted."
