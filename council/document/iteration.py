"""Rounds of critique and correction: what each one contained, and why there are no more.

Fields are the refinement contract's; `council.termination` has the rules.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from council.calls import Citation
from council.consultation import Consultation
from council.document.changes import share_changed
from council.document.results import (
    CONTRACT,
    AggregateRanking,
    Record,
    ScoringMatrix,
    Severity,
    Stage2Result,
)
from council.errors import Failure
from council.profile import MOST_ROUNDS


class TerminationReason(StrEnum):
    """Why the rounds ended."""

    MAX_ROUNDS_REACHED = "max_rounds_reached"
    MODELS_CONVERGED = "models_converged"
    NO_SIGNIFICANT_CHANGES = "no_significant_changes"
    CONTEXT_LIMIT_REACHED = "context_limit_reached"
    USER_STOPPED = "user_stopped"
    ERROR_OCCURRED = "error_occurred"


class CritiqueItem(Record):
    """One point that a review makes about one answer.

    `target_response` is the answer's label, `also_from` are the reviewers who say the same.
    """

    source_model: str
    target_response: str
    critique_text: str
    severity: Severity = "medium"
    also_from: list[str] = Field(default_factory=list[str])


class RefinementResult(Record):
    """One model's answer before and after a round; `change` is the share of it that is new, 0 to 1."""

    model: str
    original_response: str
    refined_response: str
    critiques_addressed: list[str] = Field(default_factory=list[str])
    changes_made: bool = False
    change_summary: str | None = None
    kept_because: str | None = None
    change: float | None = None
    answered_by: str | None = None
    truncated: bool = False
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None


class IterationRound(Record):
    """One round: which critiques were handed over, and what became of the answers.

    `critiques` go by label and are empty if whole reviews were handed over. `fallbacks` says why
    models gave no correction. `stage2`, `aggregate_ranking` and `scores` are here from
    round 2 on; those of round 1 are the message's.
    """

    model_config = ConfigDict(frozen=False)

    round_number: int
    critiques: dict[str, list[CritiqueItem]] = Field(default_factory=dict[str, list[CritiqueItem]])
    refinements: list[RefinementResult] = Field(default_factory=list[RefinementResult])
    models_that_changed: list[str] = Field(default_factory=list[str])
    models_unchanged: list[str] = Field(default_factory=list[str])
    fallbacks: dict[str, Failure] = Field(default_factory=dict[str, Failure])
    tokens_used: int = 0
    stage2: list[Stage2Result] = Field(default_factory=list[Stage2Result])
    label_to_model: dict[str, str] | None = None
    aggregate_ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None

    @property
    def average_change(self) -> float:
        """The mean share of the answers that is new; an answer that is kept counts as 0."""
        models = len(self.models_that_changed) + len(self.models_unchanged)
        shares = {result.model: _share(result) for result in self.refinements}
        # A model that is only said to have changed counts as wholly changed.
        said = dict.fromkeys(self.models_that_changed, 1.0) | shares
        return sum(said.values()) / models if models else 0.0


class IterationConfig(Record):
    """How many rounds there may be and what ends them early; the budget is in tokens of all rounds."""

    enabled: bool = True
    max_rounds: Annotated[int, CONTRACT] = Field(default=1, ge=1, le=MOST_ROUNDS)
    min_change_threshold: Annotated[float, CONTRACT] = Field(default=0.1, ge=0, le=1)
    context_budget: Annotated[int, CONTRACT] = Field(default=500_000, ge=1)


class IterationState(IterationConfig):
    """How far the rounds are; the last of `rounds` is the last that was completed."""

    model_config = ConfigDict(frozen=False)

    current_round: int = 0
    total_tokens_used: int = 0
    terminated: bool = False
    termination_reason: TerminationReason | None = None
    rounds: list[IterationRound] = Field(default_factory=list[IterationRound])

    def terminate(self, reason: TerminationReason) -> None:
        """Allow no further round."""
        self.terminated = True
        self.termination_reason = reason


def _share(result: RefinementResult) -> float:
    if result.change is not None:
        return result.change
    return share_changed(result.original_response, result.refined_response)


def format_critiques_for_refinement(
    critiques: Iterable[CritiqueItem | Mapping[str, object]],
) -> str:
    """Write points as a numbered list for the author; empty if there are none."""
    items = map(CritiqueItem.model_validate, critiques)
    return "\n".join(
        f"{number}. [{item.severity}] {item.critique_text} ({_said_by(item)})"
        for number, item in enumerate(items, 1)
    )


def _said_by(item: CritiqueItem) -> str:
    return ", ".join([item.source_model, *item.also_from])
