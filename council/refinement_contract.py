"""Corrects answers by their peers' critiques: stage 2.5 under the refinement contract's names.

`stage2_5_refine_responses` is one round for callers who have all reviews already and bring their
own `ask`. The run (`council.rounds`) picks critiques, writes prompts, judges corrections and keeps
rounds by the same functions. It differs in when and how it asks: each member as soon as its peers'
reviews are in, through the journal, under deadlines and Stop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from council.calls import ChatMessage
from council.criteria import EvaluationCriteria
from council.document.corrections import corrected, maintained, record
from council.document.results import (
    CritiqueItem,
    IterationRound,
    IterationState,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    format_critiques_for_refinement,
)
from council.errors import Failure, ModelError
from council.prompts.prompts import build_refinement_prompt
from council.reviews.extraction import extract_critiques_from_rankings
from council.termination import complete_round, start_new_round
from council.usage import CHARACTERS_PER_TOKEN

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


@dataclass(frozen=True, slots=True)
class _Task:
    """What one model is asked; with no prompt it keeps its position."""

    answer: Stage1Result
    critiques: Sequence[CritiqueItem] = ()
    prompt: str | None = None


async def stage2_5_refine_responses(
    user_query: str,
    stage1_results: Iterable[Stage1Result | Mapping[str, object]],
    stage2_results: Iterable[Stage2Result | Mapping[str, object]],
    label_to_model: Mapping[str, str],
    iteration_state: IterationState,
    criteria: EvaluationCriteria | Mapping[str, object] | None = None,
    *,
    ask: Ask,
) -> tuple[list[RefinedResult], IterationRound]:
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
    tasks: dict[str, _Task] = {}
    for answer in map(Stage1Result.model_validate, stage1_results):
        points = round_data.critiques.get(label_of.get(answer.model, ""), [])
        prompt = (
            build_refinement_prompt(user_query, answer.response, points, criteria) if points else None
        )
        tasks[answer.model] = _Task(answer, points, prompt)

    async def correct(task: _Task) -> Stage2_5Result:
        if task.prompt is None:
            return maintained(task.answer)
        critiques = format_critiques_for_refinement(task.critiques)
        heard = await _hear(ask, task.answer.model, task.prompt)
        return await asyncio.to_thread(corrected, task.answer, critiques, heard)

    corrections = await asyncio.gather(*map(correct, tasks.values()))
    await asyncio.to_thread(record, round_data, corrections)
    prompts = {model: {"prompt": task.prompt} for model, task in tasks.items()}
    replies = {result.model: result.refined_response for result in round_data.refinements}
    complete_round(iteration_state, round_data, estimate_tokens_used(prompts, replies))
    return [_refined(correction) for correction in corrections], round_data


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


def _refined(correction: Stage2_5Result) -> RefinedResult:
    return {
        "model": correction.model,
        "response": correction.corrected_response,
        "original_response": correction.original_response,
        "refined": correction.fallback is None and not correction.maintained,
        "changes_made": correction.changed,
    }


async def _hear(ask: Ask, model: str, prompt: str) -> str | Failure:
    try:
        said = _content(await ask(model, [{"role": "user", "content": prompt}]))
    except ModelError as error:
        return error.failure
    except Exception as error:  # noqa: BLE001 - a caller's `ask` may fail in any way; it is kept as data
        return Failure(cause="unavailable", detail=f"{type(error).__name__}: {error}")
    return said if said.strip() else Failure(cause="empty")


def _content(said: Said) -> str:
    if isinstance(said, str) or said is None:
        return said or ""
    content = said.get("content")
    return content if isinstance(content, str) else ""
