"""When rounds continue and when they end, by the refinement contract's models."""

from collections.abc import Sequence

import pytest

from council import (
    IterationConfig,
    IterationRound,
    IterationState,
    RefinementResult,
    TerminationReason,
    complete_round,
    start_new_round,
)
from council.errors import Cause, Failure
from tests.pairs import rows

BEFORE = "one two three four five six seven eight nine ten"
AFTER = {0.0: BEFORE, 1.0: "alpha beta gamma", 0.1: BEFORE.replace("one", "1")}


def moved(*shares: float, fell_back: Sequence[Cause] = ()) -> IterationRound:
    """Return a round in which answers moved by these shares of their words."""
    given = IterationRound(round_number=1)
    for number, share in enumerate(shares):
        given.refinements.append(
            RefinementResult(model=f"m{number}", original_response=BEFORE, refined_response=AFTER[share])
        )
        (given.models_that_changed if share else given.models_unchanged).append(f"m{number}")
    for number, cause in enumerate(fell_back):
        given.fallbacks[f"f{number}"] = Failure(cause=cause)
        given.models_unchanged.append(f"f{number}")
    return given


def reason(given: IterationRound, settings: dict[str, object]) -> TerminationReason | None:
    """Return why there is no second round after this one."""
    state = IterationState.model_validate({"max_rounds": 3, **settings})
    start_new_round(state)
    complete_round(state, given, 100)
    assert state.terminated == (state.termination_reason is not None)
    return state.termination_reason


def test_rounds_are_counted_kept_and_stored() -> None:
    """A round is numbered when it starts and kept when it is completed; what is read back is what was written."""
    state = IterationState(max_rounds=2)
    first = start_new_round(state)
    assert (first.round_number, state.current_round, state.rounds) == (1, 1, [])
    first.models_that_changed.append("a")
    complete_round(state, first, 120)
    assert state.rounds == [first]
    assert (first.tokens_used, state.total_tokens_used, state.terminated) == (120, 120, False)
    second = start_new_round(state)
    second.models_that_changed.append("a")
    complete_round(state, second, 80)
    assert state.total_tokens_used == 200
    assert state.termination_reason is TerminationReason.MAX_ROUNDS_REACHED
    state = IterationState(max_rounds=2)
    start_new_round(state)
    complete_round(state, moved(1.0, fell_back=["deadline"]), 10)
    assert IterationState.model_validate(state.dump()) == state


@rows(
    ("given", "settings", "expected"),
    [
        (moved(1.0, 0.0), {}, None),
        (moved(1.0), {"max_rounds": 1}, TerminationReason.MAX_ROUNDS_REACHED),
        (moved(1.0), {"enabled": False}, TerminationReason.MAX_ROUNDS_REACHED),
        (moved(0.0, 0.0), {}, TerminationReason.MODELS_CONVERGED),
        (moved(0.1, 0.0), {}, TerminationReason.NO_SIGNIFICANT_CHANGES),
        (moved(0.1, 0.1), {"min_change_threshold": 0.1}, None),
        (moved(0.1, 0.1), {"min_change_threshold": 0.11}, TerminationReason.NO_SIGNIFICANT_CHANGES),
        (moved(1.0), {"context_budget": 111}, TerminationReason.CONTEXT_LIMIT_REACHED),
        (moved(1.0), {"context_budget": 112}, None),
        (moved(1.0, fell_back=["stopped"]), {}, TerminationReason.USER_STOPPED),
        (moved(fell_back=["deadline", "empty"]), {}, TerminationReason.ERROR_OCCURRED),
        (moved(1.0, fell_back=["deadline"]), {}, None),
        (moved(), {}, TerminationReason.MODELS_CONVERGED),
    ],
)
def test_every_reason_ends_the_rounds(
    given: IterationRound, settings: dict[str, object], expected: TerminationReason | None
) -> None:
    """Stop before error before convergence before the limits; else there is another round."""
    assert reason(given, settings) == expected


def test_the_first_reason_stays() -> None:
    """A round under way doesn't overwrite it; who keeps no texts isn't mistaken for one whose models change nothing."""
    state = IterationState(max_rounds=2)
    state.terminate(TerminationReason.USER_STOPPED)
    complete_round(state, moved(0.0), 1)
    assert state.termination_reason is TerminationReason.USER_STOPPED
    given = IterationRound(round_number=1, models_that_changed=["a"], models_unchanged=["b"])
    assert given.average_change == 0.5


def test_there_are_one_to_five_rounds() -> None:
    """More is refused where it is set."""
    for count in (0, 6):
        with pytest.raises(ValueError, match="max_rounds"):
            IterationConfig(max_rounds=count)
