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
    from council.refinement_contract import (
        complete_round,
        estimate_tokens_used,
        stage2_5_refine_responses,
        start_new_round,
    )
    from council.reviews.extraction import extract_critiques_from_rankings

# fmt: off
__all__ = [
    "Criterion", "CritiqueItem", "EvaluationCriteria", "IterationConfig", "IterationRound",
    "IterationState", "RefinementResult", "TerminationReason", "build_refinement_prompt",
    "complete_round", "detect_significant_changes", "estimate_tokens_used",
    "extract_critiques_from_rankings", "format_critiques_for_refinement",
    "stage2_5_refine_responses", "start_new_round", "summarize_changes",
]
_HOMES = (
    "criteria", "document.changes", "document.results", "prompts.prompts", "refinement_contract",
    "reviews.extraction",
)
# fmt: on


def __getattr__(name: str) -> object:
    for home in _HOMES if name in __all__ else ():
        module = import_module(f"council.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
