"""The prompt with which a model corrects its answer by the points made about it."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from council.criteria import EvaluationCriteria
from council.document.corrections import KEEP
from council.document.iteration import CritiqueItem, format_critiques_for_refinement
from council.text.fence import fenced, rule
from council.text.language import language

CRITIQUED = (
    "Earlier you answered a question, and your peers reviewed the answer without knowing whose it was. "
    "These are the points they made about yours, the gravest first."
)
REFINE = (
    "Where a point is right, correct the answer by it; where it is mistaken, stand by your answer and "
    "give the reason where a reader needs it. Keep what was right before. If no point holds, write "
    f"{KEEP} and then why, in a sentence."
)
REFINED_FORM = (
    "Otherwise give the whole answer, in {language}, for a reader who has seen neither the first one "
    "nor the points: no preface, no list of changes."
)
WEIGHED = (
    "The team weighs answers by these criteria: the greater the weight, the more it counts, and an "
    "answer that fails a must-have is of no use to it."
)


def build_refinement_prompt(
    user_query: str,
    original_response: str,
    critiques: Iterable[CritiqueItem | Mapping[str, object]],
    criteria: EvaluationCriteria | Mapping[str, object] | None = None,
    *,
    boundary: str | None = None,
) -> str:
    """Write the prompt with which a model corrects its answer; it ends in `REFINED RESPONSE:`.

    Question, answer and critiques are in fences that carry `boundary`, a run's own mark; without
    one the mark is a digest of the texts, which none of them can hold.
    """
    points = format_critiques_for_refinement(critiques)
    weighed_by = EvaluationCriteria.model_validate(criteria) if criteria else None
    texts = f"{user_query}\0{original_response}\0{points}\0{weighed_by}"
    mark = boundary or sha256(texts.encode(errors="replace")).hexdigest()[:16]
    parts = [
        CRITIQUED,
        rule(mark),
        fenced(mark, "Question", user_query),
        fenced(mark, "Your answer", original_response),
        fenced(mark, "Points of your peers", points or "(none)"),
        *weighing(mark, weighed_by),
        REFINE,
        REFINED_FORM.format(language=language(user_query) or "the question's language"),
        "REFINED RESPONSE:",
    ]
    return "\n\n".join(parts)


def weighing(boundary: str, criteria: EvaluationCriteria | None) -> list[str]:
    """Name the team's criteria; somebody typed them, so they are fenced like a question."""
    if criteria is None:
        return []
    lines = (
        f"- {each.name} (weight {each.weight:g}{', must-have' if each.must_have else ''})"
        f"{each.description and f': {each.description}'}"
        for each in criteria.criteria
    )
    return [fenced(boundary, "Criteria", "\n".join(lines)), WEIGHED]
