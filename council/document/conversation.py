"""The conversation document, field for field as the storage contract and the data model have it.

Fields beyond the contract are optional; those of other programs are kept. Reading is lenient
(any contract document is welcome, with or without `stage2_5`); `AssistantMessage.check`
checks what the council itself writes against the rules of the storage contract. The stages' and rounds'
results are in `council.document.results`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from string import ascii_uppercase
from typing import Annotated, Any, Literal

from pydantic import Field

from council.brief import Discussion
from council.calls import Reply
from council.consultation import Debate
from council.criteria import EvaluationCriteria
from council.document import results
from council.document.changes import detect_significant_changes, share_changed, summarize_changes
from council.document.results import Record, Stage2_5Result
from council.errors import Failure
from council.profile import Strategy
from council.text.json_objects import JsonObject
from council.usage import Usage


class FailedCall(Record):
    """A call without a result: which, whose, why."""

    stage: str
    member: str
    failure: Failure
    round: int = 1


class RunUsage(Record):
    """Tokens and cost: of the run, of each stage, of each call by its step key.

    `latencies` are milliseconds, of the calls that gave something.
    """

    run: Usage
    stages: dict[str, Usage]
    calls: dict[str, Usage]
    latencies: dict[str, int] = Field(default_factory=dict[str, int])


class Vote(Record):
    """What a reader thought of an answer: one per person, known by an id on a platform; never a name."""

    voter: str
    platform: str
    helpful: bool
    at: str
    reason: str | None = None


class FileRecord(Record):
    """A file that came with a question: what it is, how much of it was read, and who saw its pictures.

    `sha256` is of its content, `pages` counts all of them, `characters` those that the members read.
    `width` and `height` are a picture's, in pixels. `omitted` says for people what wasn't read, and why.
    """

    name: str
    kind: str
    sha256: str | None = None
    pages: int | None = None
    characters: int | None = None
    width: int | None = None
    height: int | None = None
    seen_by: list[str] | None = None
    omitted: str | None = None


class LinkRecord(Record):
    """A link that came with a question: its page's title, the words that were read, and what wasn't."""

    url: str
    title: str | None = None
    words: int | None = None
    omitted: str | None = None


class UserMessage(Record):
    """A question; `context` is the thread that was read with it, beside its files and links."""

    role: Literal["user"]
    content: str
    context: Discussion | None = None
    files: list[FileRecord] = Field(default_factory=list[FileRecord])
    links: list[LinkRecord] = Field(default_factory=list[LinkRecord])


class AssistantMessage(Record):
    """A council's whole answer to one question."""

    role: Literal["assistant"]
    stage1: list[results.Stage1Result]
    stage2: list[results.Stage2Result]
    stage2_5: Annotated[list[results.Stage2_5Result] | None, results.CONTRACT] = None
    stage3: results.Stage3Result
    label_to_model: dict[str, str] | None = None
    aggregate_ranking: results.AggregateRanking | None = None
    usage: RunUsage | None = None
    settings: JsonObject | None = None
    strategy: Strategy | None = None
    criteria: EvaluationCriteria | None = None
    scores: results.ScoringMatrix | None = None
    depth: results.RunDepth | None = None
    iteration: results.IterationState | None = None
    failures: list[FailedCall] = Field(default_factory=list[FailedCall])
    started_at: str | None = None
    finished_at: str | None = None
    run_id: str | None = None
    asked_by: str | None = None
    votes: list[Vote] = Field(default_factory=list[Vote])

    def check(self) -> None:
        """Check this message against the contract's rules before it is written.

        Raises `ValueError` naming the rule. Source: the storage contract, Validation Rules.
        """
        if self.stage3.is_missing:
            raise ValueError("stage3 is missing")
        answers = {answer.model: answer.response for answer in self.stage1}
        for answer in self.stage1:
            if answer.consultation is not None:
                answer.consultation.check(answer.response, first=True)
        rounds = self.iteration.rounds if self.iteration else []
        critiques, labels = rounds[0].critiques if rounds else {}, self.label_to_model or {}
        for correction in self.stage2_5 or []:
            who = correction.model
            if who not in answers:
                raise ValueError(f"stage2_5 has {who}, who is not in stage1")
            if correction.original_response != answers[who]:
                raise ValueError(f"stage2_5's original response of {who} is not its stage1 response")
            if not correction.corrected_response.strip():
                raise ValueError(f"stage2_5's corrected response of {who} is empty")
            if correction.peer_critiques != handed(who, critiques, labels, self.stage2):
                raise ValueError(f"stage2_5's critiques of {who} are not its peers' reviews")
            if correction.consultation is not None:
                correction.consultation.check(correction.corrected_response)
        # Without labels on record they are the seeds': Response A and so on, one per answer.
        unnamed = (f"Response {letter}" for letter in ascii_uppercase[: len(self.stage1)])
        _check_ballots(self.stage2, self.label_to_model or {*unnamed})
        self._check_rounds(rounds)

    def _check_rounds(self, rounds: Sequence[results.IterationRound]) -> None:
        texts = {answer.model: answer.response for answer in self.stage1}
        for number, each in enumerate(rounds, 1):
            if each.round_number != number:
                raise ValueError(f"round {each.round_number} is where round {number} belongs")
            labels = each.label_to_model or {}
            _check_ballots(each.stage2, labels)
            for label, points in each.critiques.items():
                if any(labels.get(label) in (point.source_model, *point.also_from) for point in points):
                    raise ValueError(f"{labels.get(label)} is handed a critique of its own")
            for result in each.refinements:
                if result.original_response != texts.get(result.model):
                    raise ValueError(f"round {number} of {result.model} begins with another answer")
                texts[result.model] = result.refined_response
        for correction in self.stage2_5 or [] if rounds else []:
            if correction.corrected_response != texts[correction.model]:
                raise ValueError(f"the rounds of {correction.model} end in another answer")


class OtherMessage(Record):
    """A message that is neither, such as another program's system prompt: kept, but not shown."""

    role: Literal["other"]


Message = Annotated[UserMessage | AssistantMessage | OtherMessage, Field(discriminator="role")]


class Source(Record):
    """Where a conversation happened.

    `message` is the card. `card` is the newest one, where the platform no longer let that be edited.
    `parent` is the channel of a private thread, which is a `channel` of its own. `program` is the
    name of the token with which a program asked; then nobody is the `user`.
    """

    platform: str
    workspace: str | None = None
    channel: str | None = None
    thread: str | None = None
    message: str | None = None
    card: str | None = None
    user: str | None = None
    parent: str | None = None
    program: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer, if it has one, and the thread, files and links that were read with it.

    An answer without a question has an empty one.
    """

    question: str
    answer: AssistantMessage | None
    context: Discussion | None = None
    files: Sequence[FileRecord] = ()
    links: Sequence[LinkRecord] = ()


class Conversation(Record):
    """One conversation document: `data/conversations/{id}.json`."""

    id: str
    created_at: str
    title: str
    messages: list[Message]
    schema_version: int = 0
    source: Source | None = None

    @property
    def answers(self) -> list[AssistantMessage]:
        return [message for message in self.messages if isinstance(message, AssistantMessage)]

    @property
    def askers(self) -> list[str | None]:
        """For each message, who asked the question that it is or answers.

        If an answer doesn't say (`asked_by`), it is the one who began the conversation.
        """
        began = self.source.user if self.source else None
        asker = began
        found: list[str | None] = []
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                asker = message.asked_by or began
            found.append(asker)
        return found[::-1]


def exchanges(conversation: Conversation) -> list[Exchange]:
    """Pair each question of a conversation with its answer, oldest first."""
    found: list[Exchange] = []
    for message in conversation.messages:
        if isinstance(message, UserMessage):
            asked = Exchange(message.content, None, message.context, message.files, message.links)
            found.append(asked)
        elif isinstance(message, AssistantMessage):
            waiting = found.pop() if found and found[-1].answer is None else Exchange("", None)
            found.append(replace(waiting, answer=message))
    return found


def _check_ballots(reviews: Iterable[results.Stage2Result], labels: Collection[str]) -> None:
    for review in reviews:
        if strange := {*review.parsed_ranking} - {*labels}:
            raise ValueError(f"{review.model} ranks unknown labels: {sorted(strange)}")


def peer_critiques(member: str, reviews: list[results.Stage2Result]) -> str:
    """Join every other member's whole review, each under its critic's name (the storage contract)."""
    return "\n\n".join(
        f"Peer evaluation from {review.model}:\n{review.ranking}"
        for review in reviews
        if review.model != member
    )


def handed(
    who: str,
    critiques: Mapping[str, Iterable[results.CritiqueItem]],
    labels: Mapping[str, str],
    reviews: list[results.Stage2Result],
) -> str:
    """Return what a member was handed in a round: the points made of it if there are any, else reviews.

    `critiques` go by label, `labels` are label -> member.
    """
    if not critiques:
        return peer_critiques(who, reviews)
    return results.format_critiques_for_refinement(
        point for label in labels if labels[label] == who for point in critiques.get(label, [])
    )


def timestamp(moment: datetime) -> str:
    """Write a moment as documents do: `2026-01-20T10:30:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
