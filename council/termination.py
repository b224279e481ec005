"""When rounds of critique and correction end: the refinement contract's rules."""

from council.document.results import IterationRound, IterationState, TerminationReason

BUDGET_USED = 0.9
"""The share of the context budget from which no further round begins."""


def start_new_round(state: IterationState) -> IterationRound:
    state.current_round += 1
    return IterationRound(round_number=state.current_round)


def complete_round(state: IterationState, round_data: IterationRound, tokens_used: int) -> None:
    """Add a round to the state, and terminate it if there is a reason for no further round."""
    round_data.tokens_used = tokens_used
    state.rounds.append(round_data)
    state.total_tokens_used += tokens_used
    if not state.terminated and (reason := _why_no_further(state, round_data)):
        state.terminate(reason)


def _why_no_further(state: IterationState, last: IterationRound) -> TerminationReason | None:
    if any(failure.cause == "stopped" for failure in last.fallbacks.values()):
        return TerminationReason.USER_STOPPED
    if last.fallbacks and not last.refinements:
        return TerminationReason.ERROR_OCCURRED
    if not last.models_that_changed:
        return TerminationReason.MODELS_CONVERGED
    if last.average_change < state.min_change_threshold:
        return TerminationReason.NO_SIGNIFICANT_CHANGES
    if state.current_round >= state.max_rounds or not state.enabled:
        return TerminationReason.MAX_ROUNDS_REACHED
    if state.total_tokens_used >= BUDGET_USED * state.context_budget:
        return TerminationReason.CONTEXT_LIMIT_REACHED
    return None
