"""What a consultant's answer is called, part by part."""

IN_SHORT, APPROACH = "In short", "Approach"
PROS, CONS = "Pros", "Cons"
ALTERNATIVES, CAVEATS, REFERENCES = "Alternatives", "Caveats", "References"
CONFIDENCE, UNCERTAIN = "Confidence", "Uncertain because"
DEBATE = "Debate"
CHANGED, KEPT = "says it changed its position", "keeps its position"
OBJECTS, TOOK_OVER = "Objects to", "Adopted"


def score(score: int, highest: int) -> str:
    """Say how sure a consultant is."""
    return f"{score} of {highest}"


def before(score: int) -> str:
    """Say how sure it was before the debate."""
    return f" (before: {score})"


def objection(name: str, severity: str, text: str) -> str:
    """Say whose answer it objects to, how strongly, and why."""
    return f"{name} ({severity}): {text}"


def idea(name: str, text: str) -> str:
    """Say whose idea it adopted."""
    return f"{name}: {text}"
