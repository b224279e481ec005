"""The conversation document, field for field as seeds 000 and 001 have it.

Fields beyond the contract are optional; those of other programs are kept. Reading is lenient
(any contract document is welcome, with or without `stage2_5`); `AssistantMessage.check` holds
what the council itself writes to the rules of seed 000.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from council.calls import JsonObject
from council.errors import Failure
from council.usage import Usage

CONTRACT = "of the contract, though optional"

Agreement = Literal["strong", "mixed", "split", "too few shared votes"]


class _Record(BaseModel):
    """A stored object: unknown fields are kept, optional fields are written only when set."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _read_strange_extras_as_missing(
        cls, data: object, handler: ModelWrapValidatorHandler[Self]
    ) -> Self:
        """Other programs may use a name of our optional fields for something of their own."""
        try:
            return handler(data)
        except ValidationError as error:
            if not isinstance(data, dict):
                raise
            fields = cast("JsonObject", data)
            strange = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
            if not strange or any(_is_contract(cls.model_fields.get(name)) for name in strange):
                raise
            return handler({name: value for name, value in fields.items() if name not in strange})

    def dump(self) -> JsonObject:
        """Give the JSON form, without the fields that stand at their default."""
        return self.model_dump(mode="json", exclude_defaults=True)


def _is_contract(field: FieldInfo | None) -> bool:
    return field is None or field.is_required() or CONTRACT in field.metadata


class Stage1Result(_Record):
    """One member's answer. `model` is the member's name, `answered_by` a fallback's real id."""

    model: str
    response: str
    answered_by: str | None = None
    persona: str | None = None
    truncated: bool = False


class Stage2Result(_Record):
    """One member's review; `parsed_ranking` lists labels, best first, `[]` when uncounted.

    `order` is the labels as this reviewer read them.
    """

    model: str
    ranking: str
    parsed_ranking: list[str]
    answered_by: str | None = None
    order: list[str] = []
    truncated: bool = False


class Stage2_5Result(_Record):  # noqa: N801 - the contract's own name (seed 001)
    """One member's correction, beside its first answer and its peers' critiques.

    `fallback` is why the first answer stands again; `change_summary` says how the text moved.
    """

    model: str
    original_response: str
    peer_critiques: str
    corrected_response: str
    changed: bool = False
    change_summary: str | None = None
    answered_by: str | None = None
    fallback: Failure | None = None
    truncated: bool = False


AnswerSource = Literal["chairman", "fallback", "best_ranked", "verbatim", "single"]


class Stage3Result(_Record):
    """The final answer. `model` is whoever wrote the text.

    `source`: the chairman; one of its fallbacks; the best-ranked member in the chair; the
    best-ranked corrected answer, verbatim; or the only answer there was, not reviewed.
    """

    model: str
    response: str
    source: AnswerSource = "chairman"
    answered_by: str | None = None
    stopped_early: bool = False
    truncated: bool = False


class Place(_Record):
    """One answer's standing over all counted ballots.

    `mean_position`: 1 is best, `None` when no counted ballot names it. `wins`: how many of the
    other answers most ballots put below it.
    """

    label: str
    model: str
    mean_position: float | None
    votes: int
    wins: int


class AggregateRanking(_Record):
    """The council's ranking, best first, with how far its ballots agree.

    `agreement` is the mean Kendall tau over pairs of ballots that share two or more labels, from
    -1 to 1; `None` where there is no such pair.
    """

    places: list[Place]
    agreement: float | None
    agreement_word: Agreement
    ballots: int
    uncounted: list[str] = []


class FailedCall(_Record):
    """A call that gave nothing: which, whose, why."""

    stage: str
    member: str
    failure: Failure


class RunUsage(_Record):
    """Tokens and cost: of the run, of each stage, of each call by its step key."""

    run: Usage
    stages: dict[str, Usage]
    calls: dict[str, Usage]


class UserMessage(_Record):
    """A question."""

    role: Literal["user"]
    content: str


class AssistantMessage(_Record):
    """A council's whole answer to one question."""

    role: Literal["assistant"]
    stage1: list[Stage1Result]
    stage2: list[Stage2Result]
    stage2_5: Annotated[list[Stage2_5Result] | None, CONTRACT] = None
    stage3: Stage3Result
    label_to_model: dict[str, str] | None = None
    aggregate_ranking: AggregateRanking | None = None
    usage: RunUsage | None = None
    settings: JsonObject | None = None
    failures: list[FailedCall] = []
    started_at: str | None = None
    finished_at: str | None = None

    def check(self) -> None:
        """Hold this message to the contract's rules before it is written.

        Raises `ValueError` naming the rule. Source: seed 000, Validation Rules.
        """
        answers = {answer.model: answer.response for answer in self.stage1}
        for correction in self.stage2_5 or []:
            who = correction.model
            if who not in answers:
                raise ValueError(f"stage2_5 has {who}, who is not in stage1")
            if correction.original_response != answers[who]:
                raise ValueError(f"stage2_5's original response of {who} is not its stage1 response")
            if not correction.corrected_response.strip():
                raise ValueError(f"stage2_5's corrected response of {who} is empty")
            expected = peer_critiques(who, self.stage2)
            if correction.peer_critiques != expected:
                raise ValueError(f"stage2_5's critiques of {who} are not its peers' reviews")
        if self.label_to_model is not None:
            for review in self.stage2:
                if strange := set(review.parsed_ranking) - self.label_to_model.keys():
                    raise ValueError(f"{review.model} ranks unknown labels: {sorted(strange)}")


Message = Annotated[UserMessage | AssistantMessage, Field(discriminator="role")]


class Source(_Record):
    """Where a conversation happened."""

    platform: str
    workspace: str | None = None
    channel: str | None = None
    thread: str | None = None
    message: str | None = None
    user: str | None = None


class Conversation(_Record):
    """One conversation document: `data/conversations/{id}.json`."""

    id: str
    created_at: str
    title: str
    messages: list[Message]
    schema_version: int = 0
    source: Source | None = None


def peer_critiques(member: str, reviews: list[Stage2Result]) -> str:
    """Join every other member's whole review, each under its critic's name (seeds 000, 001, 003)."""
    return "\n\n".join(
        f"Peer evaluation from {review.model}:\n{review.ranking}"
        for review in reviews
        if review.model != member
    )


def timestamp(moment: datetime) -> str:
    """Write a moment as documents do: `2026-01-20T10:30:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
