"""The rounds of an answer, from its document."""

from collections.abc import Sequence
from dataclasses import dataclass

from council.document.conversation import AssistantMessage, peer_critiques
from council.document.corrections import recorded
from council.document.iteration import IterationRound, format_critiques_for_refinement
from council.document.results import (
    AggregateRanking,
    MemberAnswer,
    ScoringMatrix,
    Stage2_5Result,
    Stage2Result,
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the labels, the reviews with their ranking, the corrections."""

    labels: dict[str, str]
    reviews: list[Stage2Result]
    corrections: list[Stage2_5Result]
    ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None

    @property
    def ranked(self) -> list[str]:
        """The answers' authors, the best-ranked one first and disqualified ones last."""
        scored = self.scores.answers if self.scores else []
        disqualified = {answer.model for answer in scored if answer.is_disqualified}
        places = self.ranking.places if self.ranking else []
        authors = [place.model for place in places] or [*self.labels.values()]
        return sorted(authors, key=disqualified.__contains__)


def rounds_of(message: AssistantMessage) -> list[Round]:
    """Return the rounds of a stored answer, however old; one if the document has no others."""
    first = Round(
        message.label_to_model or {},
        message.stage2,
        message.stage2_5 or [],
        message.aggregate_ranking,
        message.scores,
    )
    if message.iteration is None or not message.iteration.rounds:
        return [first]
    answers: Sequence[MemberAnswer] = message.stage1
    rounds: list[Round] = []
    for data in message.iteration.rounds:
        reviews = data.stage2 if rounds else message.stage2
        answers = corrections = [
            recorded(data, answer, _handed(data, answer.model, reviews)) for answer in answers
        ]
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


def _handed(data: IterationRound, name: str, reviews: list[Stage2Result]) -> str:
    if not data.critiques:
        return peer_critiques(name, reviews)
    label = next((label for label, who in (data.label_to_model or {}).items() if who == name), "")
    return format_critiques_for_refinement(data.critiques.get(label, []))
