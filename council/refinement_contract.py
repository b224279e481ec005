"""Corrects answers by their peers' critiques: stage 2.5 under the refinement contract's names.

`stage2_5_refine_responses` is one round for callers who have all reviews already and bring their
own `ask`. The run (`council.rounds`) picks critiques, writes prompts, judges corrections and keeps
rounds by the same functions. It differs in when and how it asks: each member as soon as its peers'
reviews are in, through the journal, under deadlines and Stop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypedDict

from council.calls import ChatMessage
from council.criteria import EvaluationCriteria
from council.document import results
from council.document.conversation import corrected, maintained, record
from council.document.results import Stage1Result, Stage2_5Result, Stage2Result
from council.errors import Failure, ModelError
from council.prompts.prompts import build_refinement_prompt
from council.reviews.extraction import extract_critiques_from_rankings
from council.usage import CHARACTERS_PER_TOKEN

BUDGET_USED = 0.9
"""The share of the context budget from which no further round begins."""


def start_new_round(state: results.IterationState) -> results.IterationRound:
    state.current_round += 1
    return results.IterationRound(round_number=state.current_round)


def complete_round(
    state: results.IterationState, round_data: results.IterationRound, tokens_used: int
) -> None:
    """Add a round to the state, and terminate it if there is a reason for no further round."""
    round_data.tokens_used = tokens_used
    state.rounds.append(round_data)
    state.total_tokens_used += tokens_used
    if state.terminated:
        return
    if any(failure.cause == "stopped" for failure in round_data.fallbacks.values()):
        state.terminate(results.TerminationReason.USER_STOPPED)
    elif round_data.fallbacks and not round_data.refinements:
        state.terminate(results.TerminationReason.ERROR_OCCURRED)
    elif not round_data.models_that_changed:
        state.terminate(results.TerminationReason.MODELS_CONVERGED)
    elif round_data.average_change < state.min_change_threshold:
        state.terminate(results.TerminationReason.NO_SIGNIFICANT_CHANGES)
    elif state.current_round >= state.max_rounds or not state.enabled:
        state.terminate(results.TerminationReason.MAX_ROUNDS_REACHED)
    elif state.total_tokens_used >= BUDGET_USED * state.context_budget:
        state.terminate(results.TerminationReason.CONTEXT_LIMIT_REACHED)


Said = str | Mapping[str, object] | None
"""What a model replied: its text, or a dict with the text as `content`; `None` for nothing."""

Ask = Callable[[str, list[ChatMessage]], Awaitable[Said]]
"""Asks a model and awaits its reply; whatever it raises costs that model's correction."""


class RefinedResult(TypedDict):
    """A model's answer after a round; `refined` says whether a correction came back."""

    model: str
    response: str
    original_response: str
    refined: bool
    changes_made: bool


async def stage2_5_refine_responses(
    user_query: str,
    stage1_results: Iterable[Stage1Result | Mapping[str, object]],
    stage2_results: Iterable[Stage2Result | Mapping[str, object]],
    label_to_model: Mapping[str, str],
    iteration_state: results.IterationState,
    criteria: EvaluationCriteria | Mapping[str, object] | None = None,
    *,
    ask: Ask,
) -> tuple[list[RefinedResult], results.IterationRound]:
    """Have every model correct its answer by its peers' points about it, all at once.

    Results keep the order of `stage1_results`. A model without points keeps its position and isn't
    asked; one whose call fails or gives nothing keeps its answer. The round is added to the state.
    Source: the refinement contract.
    """
    round_data = start_new_round(iteration_state)
    round_data.critiques = await asyncio.to_thread(
        extract_critiques_from_rankings, stage2_results, label_to_model
    )
    round_data.label_to_model = dict(label_to_model)
    label_of = {model: label for label, model in label_to_model.items()}
    prompts: dict[str, str | None] = {}

    async def correct(answer: Stage1Result) -> Stage2_5Result:
        points = round_data.critiques.get(label_of.get(answer.model, ""), [])
        prompts[answer.model] = None
        if not points:
            return maintained(answer)
        prompt = build_refinement_prompt(user_query, answer.response, points, criteria)
        prompts[answer.model] = prompt
        try:
            said = _content(await ask(answer.model, [{"role": "user", "content": prompt}]))
            received = said if said.strip() else Failure(cause="empty")
        except ModelError as error:
            received = error.failure
        except Exception as error:  # noqa: BLE001 - a caller's `ask` may fail in any way; it is kept as data
            received = Failure(cause="unavailable", detail=f"{type(error).__name__}: {error}")
        critiques = results.format_critiques_for_refinement(points)
        return await asyncio.to_thread(corrected, answer, critiques, received)

    corrections = await asyncio.gather(*map(correct, map(Stage1Result.model_validate, stage1_results)))
    await asyncio.to_thread(record, round_data, corrections)
    asked = {model: {"prompt": prompt} for model, prompt in prompts.items()}
    replies = {result.model: result.refined_response for result in round_data.refinements}
    complete_round(iteration_state, round_data, estimate_tokens_used(asked, replies))
    refined: list[RefinedResult] = [
        {
            "model": correction.model,
            "response": correction.corrected_response,
            "original_response": correction.original_response,
            "refined": correction.fallback is None and not correction.maintained,
            "changes_made": correction.changed,
        }
        for correction in corrections
    ]
    return refined, round_data


def estimate_tokens_used(
    refinement_tasks: Mapping[str, Mapping[str, object]], responses: Mapping[str, Said]
) -> int:
    """Estimate the tokens of a round, four characters each: its prompts and its replies.

    Tasks are dicts with the `prompt`, `None` where the model wasn't asked.
    """
    asked = (task.get("prompt") for task in refinement_tasks.values())
    texts = [
        *(prompt for prompt in asked if isinstance(prompt, str)),
        *map(_content, responses.values()),
    ]
    return sum(len(text) // CHARACTERS_PER_TOKEN for text in texts)


def _content(said: Said) -> str:
    if isinstance(said, str) or said is None:
        return said or ""
    content = said.get("content")
    return content if isinstance(content, str) else ""
