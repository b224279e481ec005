"""The council: answers, reviews, corrections, synthesis. No platform, no database.

The names of the refinement contract are imported on first use, so that `import council` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from council.criteria import Criterion, EvaluationCriteria
    from council.document.changes import detect_significant_changes, summarize_changes
    from council.document.results import (
        CritiqueItem,
        IterationConfig,
        IterationRound,
        IterationState,
        RefinementResult,
        TerminationReason,
        format_critiques_for_refinement,
    )
    from council.prompts.prompts import build_refinement_prompt
    from council.refinement_contract import estimate_tokens_used, stage2_5_refine_responses
    from council.reviews.extraction import extract_critiques_from_rankings
    from council.termination import complete_round, start_new_round

_HOMES = {
    "council.document.changes": ("detect_significant_changes", "summarize_changes"),
    "council.criteria": ("Criterion", "EvaluationCriteria"),
    "council.reviews.extraction": ("extract_critiques_from_rankings",),
    "council.document.results": (
        "CritiqueItem",
        "IterationConfig",
        "IterationRound",
        "IterationState",
        "RefinementResult",
        "TerminationReason",
        "format_critiques_for_refinement",
    ),
    "council.prompts.prompts": ("build_refinement_prompt",),
    "council.refinement_contract": ("estimate_tokens_used", "stage2_5_refine_responses"),
    "council.termination": ("complete_round", "start_new_round"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Criterion",
    "CritiqueItem",
    "EvaluationCriteria",
    "IterationConfig",
    "IterationRound",
    "IterationState",
    "RefinementResult",
    "TerminationReason",
    "build_refinement_prompt",
    "complete_round",
    "detect_significant_changes",
    "estimate_tokens_used",
    "extract_critiques_from_rankings",
    "format_critiques_for_refinement",
    "stage2_5_refine_responses",
    "start_new_round",
    "summarize_changes",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
