"""What the thread below a card says, what its buttons reply, and what the record adds."""

RANKING = "Ranking"
AVERAGE = "Average vote (1 is best)"
NONE = "\u2013"
NOT_RANKED = "No vote could be counted, so the answers are not ranked."
UNDECIDED = "The reviewers didn't rank the answers."
ADDED = "Added"
DROPPED = "Dropped"
OBJECTION = "Gravest objection"
NO_OBJECTIONS = "No objections."
STRENGTHS, FAULTS = "Strengths", "Faults"
REWRITTEN = "rewritten"
_SHARES = ((0.25, "little"), (0.6, "much"), (2.0, REWRITTEN))
CORRECTED = "Corrected response"
RESPONSE = "Response"
ORIGINAL = "Original response"

IN_TRANSCRIPT = "Cut here; the full text is in the transcript."
"""What a bounded message says when its text is cut."""
REVIEW_BY = "By {}"
REVIEW_CUT_OFF = "The review reached its length limit and ends here."


def of_round(number: int) -> str:
    return "" if number == 1 else f", round {number}"


def much(share: float) -> str:
    return next(word for below, word in _SHARES if share < below)


FOUND_ITSELF = "found an error itself: {}"


def point(said: str, quote: str | None, reply: str) -> str:
    quoted = f" (\u201c{quote}\u201d)" if quote else ""
    answered = f" \u2192 {reply}" if reply else ""
    return f"{said}{quoted}{answered}"


def sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
