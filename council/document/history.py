"""The rounds of an answer as they went, from what its document holds."""

from dataclasses import dataclass

from council.document.conversation import AssistantMessage, peer_critiques
from council.document.iteration import IterationRound, RefinementResult, format_critiques_for_refinement
from council.document.results import (
    AggregateRanking,
    ScoringMatrix,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: who was called what, what the reviews said and came to, the corrections."""

    labels: dict[str, str]
    reviews: list[Stage2Result]
    corrections: list[Stage2_5Result]
    ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None

    @property
    def best(self) -> str:
        """Name who gave the best-ranked answer; a disqualified one is it only where all are."""
        scored = self.scores.answers if self.scores else []
        disqualified = {answer.model for answer in scored if answer.is_disqualified}
        places = self.ranking.places if self.ranking else []
        ranked = [place.model for place in places] or [self.labels["Response A"]]
        return next((model for model in ranked if model not in disqualified), ranked[0])


def rounds_of(message: AssistantMessage) -> list[Round]:
    """Return the rounds of a stored answer; one where the document tells of no others, however old."""
    first = Round(
        message.label_to_model or {},
        message.stage2,
        message.stage2_5 or [],
        message.aggregate_ranking,
        message.scores,
    )
    if message.iteration is None or not message.iteration.rounds:
        return [first]
    standing: dict[str, Stage1Result | Stage2_5Result] = {each.model: each for each in message.stage1}
    rounds: list[Round] = []
    for data in message.iteration.rounds:
        reviews = data.stage2 if rounds else message.stage2
        corrections = [_correction(data, before, reviews) for before in standing.values()]
        standing = {each.model: each for each in corrections}
        rounds.append(
            Round(
                data.label_to_model or first.labels,
                reviews,
                corrections,
                data.aggregate_ranking if rounds else first.ranking,
                data.scores if rounds else first.scores,
            )
        )
    return rounds


def _correction(
    data: IterationRound, answer: Stage1Result | Stage2_5Result, reviews: list[Stage2Result]
) -> Stage2_5Result:
    name = answer.model
    before = answer.response if isinstance(answer, Stage1Result) else answer.corrected_response
    given = next((each for each in data.refinements if each.model == name), None)
    fallback = data.fallbacks.get(name)
    result = given or RefinementResult(model=name, original_response=before, refined_response=before)
    return Stage2_5Result(
        model=name,
        original_response=before,
        peer_critiques=_handed(data, name, reviews),
        corrected_response=result.refined_response,
        changed=result.changes_made,
        change_summary=result.change_summary,
        answered_by=result.answered_by,
        fallback=fallback,
        maintained=given is None and fallback is None,
        truncated=result.truncated,
        citations=result.citations,
        consultation=result.consultation if given else answer.consultation,
        unstructured=result.unstructured,
    )


def _handed(data: IterationRound, name: str, reviews: list[Stage2Result]) -> str:
    if not data.critiques:
        return peer_critiques(name, reviews)
    label = next((label for label, who in (data.label_to_model or {}).items() if who == name), "")
    return format_critiques_for_refinement(data.critiques.get(label, []))
