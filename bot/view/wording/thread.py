"""What the thread below a card says, and what its buttons answer."""

RANKING = "Ranking"
RANKING_HEADER = ("Rank", "Member", "Mean", "Words")
ONE_IS_BEST = "1 is best. Nobody ranks their own answer."
ONE_IS_BEST_OF_TWO = "1 is best. With two answers, each member's vote on its own counts too."
NOT_RANKED = "No vote could be counted, so the answers are not ranked."

PEERS = "What its peers said"
CORRECTED = "Corrected response"
RESPONSE = "Response"
ORIGINAL = "Original response"
CHANGES = "Changes"
MARKED = "Struck-through words were removed, bold words were added; \u2026 stands for unchanged text."
UNDIVIDED = "the review doesn't separate the answers; see Whole reviews"

VOTES = "Votes"
BEST_FIRST = "Each reviewer's order, best first."
NOT_COUNTED = "not counted"
NO_VOTES = "No votes are on record."
NO_REVIEWS = "No reviews are on record for this answer."
NO_ANSWER = "This member's answer is not on record."

NOT_REVISED = "Nobody objected, so it wasn't revised."
KEPT = "It kept its answer."
OWN_REVIEW = "No peer's review came back, so it reviewed its own answer."
CUT_OFF = "It reached its length limit and ends here."
REVIEW_CUT_OFF = "The review reached its length limit and ends here."


def of_round(number: int) -> str:
    """Say which round it is, where there was more than one."""
    return "" if number == 1 else f", round {number}"


def standing(rank: str, of: int) -> str:
    """Say a member's rank."""
    return f"Ranked {rank} of {of}."


def changed(removed: int, added: int) -> str:
    """Say how far a correction changed an answer."""
    return f"Corrected: {_words(removed)} removed, {added:,} added."


def changed_cell(removed: int, added: int) -> str:
    """Say the same in a table's cell."""
    return f"\u2212{removed:,} +{added:,}"


def correction_failed(why: str, kept: str) -> str:
    """Say that an answer could not be corrected, and which text is kept."""
    return f"The correction failed: {why}. {kept[0].upper()}{kept[1:]} is kept."


def kept_text(number: int) -> str:
    """Name the text that is kept when the correction of this round fails."""
    return "the original response" if number == 1 else "the previous round's response"


def disqualified(failed: str) -> str:
    """Say which must-haves an answer fails."""
    return f"Disqualified: it fails {failed}."


def fallback(what: str, model: str) -> str:
    """Say that another model gave a member's text."""
    return f"The {what} is by its fallback {model}."


def remark(severity: str | None, text: str) -> str:
    """Return what a critic said of an answer, with how grave it is where that is known."""
    return f"({severity}) {text}" if severity else text


def no_answer(name: str, why: str) -> str:
    """Say that a member gave no answer."""
    return f"{name} did not answer: {why}."


def no_review(name: str, why: str) -> str:
    """Say that a member gave no review."""
    return f"{name} gave no review: {why}."


def not_counted(name: str, *, truncated: bool) -> str:
    """Say that a member's vote is not counted, and why."""
    if truncated:
        return f"{name}'s review reached its length limit before its vote, which is not counted."
    return f"{name}'s vote is not counted: its review holds no ranking of two or more answers."


def reviews_of(name: str) -> str:
    """Head the whole reviews of a member's answer."""
    return f"Reviews of {name}"


def label(name: str) -> str:
    """Say how reviewers called an answer."""
    return f"Reviewers saw it as \u201c{name}\u201d, without a name."


def _words(number: int) -> str:
    return "1 word" if number == 1 else f"{number:,} words"
