"""What the thread below a card says, what its buttons reply, and what the record adds."""

from collections.abc import Iterable, Mapping

from bot.view.wording.figures import count, listing

RANKING = "Ranking"
AVERAGE = "Average vote (1 is best)"
BESIDE_NAMES = f"{AVERAGE} beside each name."
RECORD_HEADER = ("Rank", "Answer", "Member", AVERAGE)
OWN, NONE, DISQUALIFIED = "own", "\u2013", "out"
"""What a table's cell says in place of a figure."""
OWN_VOTES_OF_TWO = "With two answers, each member's vote on its own counts too."
NOT_RANKED = "No vote could be counted, so the answers are not ranked."
UNDECIDED = "The reviewers didn't rank the answers."
RESULT_LOST = "The votes as they were cast, best first; the result is not on record."

SCORES = "Scores by criterion"
SCORES_PLACE, SCORES_MEMBER, SCORES_TOTAL = "Place", "Member", "Weighted"
NO_SCORES = "No reviewer gave scores that could be read."
HOW_SCORED = (
    "Reviewers' mean scores, 1 to 10, without scores for their own answers. The number after a "
    "criterion is its weight; ! marks a must-have."
)

OBJECTIONS = "Objections"
CHANGED_FROM, CHANGED_TO = "Changed from", "to"
ADDED, DROPPED, NOW = "Added", "Dropped", "Now"
OBJECTION, CHANGED = "Gravest objection", "Changed"
NOT_FOUND = "quotes words that aren't in the answer"
NO_RANK = "not ranked"
NOT_TOLD = "not divided; see Open"
NOBODY = "none"
NO_OBJECTIONS = "No objections."
STRENGTHS, FAULTS = "Strengths", "Faults"
KEPT_IN_SHORT, FAILED = "no, it kept its answer", "no, its correction failed"
STOPPED, NOT_CORRECTED = "no, the run was stopped first", "The run was stopped before its correction."
REWRITTEN = "rewritten"
_SHARES = ((0.25, "little"), (0.6, "much"), (2.0, REWRITTEN))
_GRADES = {"high": "Serious", "low": "Minor"}
SENTENCE_ENDS = tuple(".!?;:\u2026\u3002\uff01\uff1f\uff1b")
CORRECTED = "Corrected response"
RESPONSE = "Response"
BEGINNING = "how it begins"
ORIGINAL = "Original response"
CHANGES = "Changes"
MARKED = "Removed words are struck through, added ones bold."

NOT_COUNTED = "not counted"
NO_ANSWER = "This member's answer is not on record."

IN_TRANSCRIPT = "Cut here; the full text is in the transcript."
"""What a bounded message says when its text is cut."""

NOT_REVISED = "Nobody objected, so it wasn't revised."
KEPT = "It kept its answer."
SAME = "The same, word for word."
ROUNDS = "Rounds"
MEMBER = "Member"
SOURCES = "Sources on the web:"
OWN_REVIEW = "No peer's review came back, so it reviewed its own answer."
CUT_OFF = "It reached its length limit and ends here."
REVIEWS, REVIEW_BY, ROUND = "Reviews", "By {}", "Round {}"
REVIEW_CUT_OFF = "The review reached its length limit and ends here."


def of_round(number: int) -> str:
    return "" if number == 1 else f", round {number}"


BY = "by {}"


def disqualified_here(name: str, failed: Iterable[str]) -> str:
    return (
        f"{name}'s answer is disqualified: most reviewers score it below 4 for {listing(failed)}. "
        "It is still shown below."
    )


UNSTRUCTURED = "Shown as plain text because it didn't follow the form: {}."


def standing(rank: str, of: int, *, tied: bool) -> str:
    return f"Tied for {rank} of {of}." if tied else f"Ranked {rank} of {of}."


def much(share: float) -> str:
    return next(word for below, word in _SHARES if share < below)


def changed_much(share: float) -> str:
    word = much(share)
    return "Rewritten." if word == REWRITTEN else f"Changed {word}."


def correction_failed(why: str, kept: str) -> str:
    return f"The correction failed: {why}. {kept[0].upper()}{kept[1:]} is kept."


def kept_text(number: int) -> str:
    return "the original response" if number == 1 else "the previous round's response"


FAILS = "Disqualified: it fails {}."
FALLBACK = "The {} is by its fallback {}."


def graded(severity: str | None, text: str) -> str:
    return f"{_GRADES[severity]}: {text}" if severity in _GRADES else text


def undivided(critics: Iterable[str]) -> str:
    return f"Not divided: {listing(critics)} (Open)"


def objection_by(critic: str, *, holds: bool | None) -> str:
    verdict = {None: "", True: " (it holds)", False: " (doesn't hold)"}[holds]
    return f"{OBJECTION}, by {critic}{verdict}"


def reply(reason: str, *, holds: bool, is_kept: bool) -> str:
    if not holds:
        return f"doesn't hold: {reason}" if reason else "doesn't hold."
    verdict = "it holds, but nothing was changed." if is_kept else "it holds."
    return f"{verdict} \u201c{reason}\u201d" if reason else verdict


TO_GRAVEST = "to the gravest, by {}: {}"
FOUND_ITSELF = "found an error itself: {}"


def point(said: str, quote: str | None, reply: str) -> str:
    quoted = f" (\u201c{quote}\u201d)" if quote else ""
    answered = f" \u2192 {reply}" if reply else ""
    return f"{said}{quoted}{answered}"


def replied(objections: int, hold: int) -> str:
    holding = f"{hold} holds" if hold == 1 else f"{hold} hold"
    return f"{count(objections, 'objection')}, {holding}"


AVERAGE_VOTE = "average vote {}"


def changed(much: str, how: str, sentence: str) -> str:
    return f"{much}; {how.lower()} \u201c{sentence}\u201d"


def scored(scores: Mapping[str, int]) -> str:
    return f"Scores: {', '.join(f'{name} {score}' for name, score in scores.items())}."


UNANSWERED = "{} did not answer: {}."
NO_REVIEW = "{} gave no review: {}."


def not_counted(name: str, *, truncated: bool) -> str:
    if truncated:
        return f"{name}'s review reached its length limit before its vote, so no vote is counted."
    return f"{name}'s vote is not counted: its review has no ranking of two or more answers."


REVIEWS_OF = "Reviews of {}"


def labels(named: Iterable[tuple[str, str]]) -> str:
    return f"Reviewers saw no names: {listing([f'{label} is {name}' for label, name in named])}."


LABEL = "Reviewers saw it as \u201c{}\u201d, without a name."


def sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."
