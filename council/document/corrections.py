"""Corrections: how a reply changes an answer, and the two forms in which documents store it.

A run has one record of a correction in a round, its `Stage2_5Result`. Documents hold two because two
contracts ask for them: `stage2_5` pairs each first answer with the last one (the storage contract), and
`iteration.rounds[].refinements` has every step between (the refinement contract). Both are derived
here and nowhere else, and so are a run's rounds from a stored document.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from council.calls import Reply
from council.consultation import Debate
from council.document import results
from council.document.changes import detect_significant_changes, share_changed, summarize_changes
from council.document.conversation import AssistantMessage, handed
from council.document.results import Stage2_5Result
from council.errors import Failure

_OF_ITS_AUTHOR = ("answered_by", "truncated", "citations", "unstructured")
_IN_BOTH = ("model", "change_summary", "replies", "consultation", *_OF_ITS_AUTHOR)


def corrected(
    answer: results.MemberAnswer,
    critiques: str,
    received: Reply | str | Failure,
    replies: list[results.ObjectionReply] | None = None,
) -> Stage2_5Result:
    """Return an answer as corrected by a model's reply; after a failure, the answer before it."""
    before = answer.text
    reply = received if isinstance(received, Reply) else None
    text = before if isinstance(received, Failure) else reply.text if reply else str(received)
    changed = detect_significant_changes(before, text)
    return Stage2_5Result(
        model=answer.model,
        original_response=before,
        peer_critiques=critiques,
        corrected_response=text,
        changed=changed,
        change_summary=summarize_changes(before, text) if changed else None,
        fallback=received if isinstance(received, Failure) else None,
        replies=replies,
        consultation=(reply or answer).consultation,
        **(_taken(reply, _OF_ITS_AUTHOR) if reply else {}),
    )


def kept(
    answer: results.MemberAnswer, critiques: str, replies: list[results.ObjectionReply], *, after: int
) -> Stage2_5Result:
    """Return the correction of a model that keeps its answer `after` this round's reviews."""
    update: dict[str, object] = {"maintained": False, "replies": replies}
    if answer.consultation:
        debate = Debate(round=after + 1, position_changed=False)
        update["consultation"] = answer.consultation.model_copy(update={"debate": debate})
    return maintained(answer, critiques).model_copy(update=update)


def maintained(answer: results.MemberAnswer, critiques: str = "") -> Stage2_5Result:
    """Return the correction of a model that no point was made about: it wasn't asked again.

    `critiques` are the reviews that made none.
    """
    return Stage2_5Result(
        model=answer.model,
        original_response=answer.text,
        peer_critiques=critiques,
        corrected_response=answer.text,
        maintained=True,
        consultation=answer.consultation,
    )


def overall(steps: Sequence[Stage2_5Result]) -> Stage2_5Result:
    """Join a model's corrections, round after round: from its first answer to its last."""
    first, last = steps[0], steps[-1]
    given = [step for step in steps if step.fallback is None and not step.maintained]
    if len(steps) == 1 or not given:
        return first
    rewritten = [step for step in given if step.corrected_response != step.original_response]
    began = results.Stage1Result(model=first.model, response=first.original_response)
    whole = corrected(began, first.peer_critiques, last.text)
    author = _taken((rewritten or given)[-1], _OF_ITS_AUTHOR)
    # Like the reviews beside them, the replies are round 1's; `iteration.rounds` has the others.
    update = {**author, "consultation": last.consultation, "replies": first.replies}
    return whole.model_copy(update=update)


def record(round_data: results.IterationRound, corrections: Iterable[Stage2_5Result]) -> None:
    label_of = {model: label for label, model in (round_data.label_to_model or {}).items()}
    for correction in corrections:
        if correction.fallback is not None:
            round_data.fallbacks[correction.model] = correction.fallback
        elif not correction.maintained:
            points = round_data.critiques.get(label_of.get(correction.model, ""), [])
            before, after = correction.original_response, correction.corrected_response
            refinement = results.RefinementResult(
                original_response=before,
                refined_response=after,
                critiques_addressed=[point.critique_text for point in points],
                changes_made=correction.changed,
                change=round(share_changed(before, after), 4),
                **_taken(correction, _IN_BOTH),
            )
            round_data.refinements.append(refinement)
        moved = round_data.models_that_changed if correction.changed else round_data.models_unchanged
        moved.append(correction.model)


def recorded(
    round_data: results.IterationRound, answer: results.MemberAnswer, critiques: str
) -> Stage2_5Result:
    """Return a round's correction of an answer: the reverse of `record`."""
    given = next((each for each in round_data.refinements if each.model == answer.model), None)
    if given is None:
        why = round_data.fallbacks.get(answer.model)
        update = {"peer_critiques": critiques, "fallback": why, "maintained": why is None}
        return maintained(answer).model_copy(update=update)
    return Stage2_5Result(
        original_response=answer.text,
        peer_critiques=critiques,
        corrected_response=given.refined_response,
        changed=given.changes_made,
        **_taken(given, _IN_BOTH),
    )


def _taken(from_: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(from_, name) for name in names}


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the labels, the reviews with their ranking, the corrections."""

    labels: dict[str, str]
    reviews: list[results.Stage2Result]
    corrections: list[Stage2_5Result]
    ranking: results.AggregateRanking | None = None
    scores: results.ScoringMatrix | None = None

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
    answers: Sequence[results.MemberAnswer] = message.stage1
    rounds: list[Round] = []
    for data in message.iteration.rounds:
        reviews = data.stage2 if rounds else message.stage2
        answers = corrections = [
            recorded(
                data, answer, handed(answer.model, data.critiques, data.label_to_model or {}, reviews)
            )
            for answer in answers
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
