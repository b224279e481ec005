"""What each stage returns, as documents store it: answers, reviews, corrections, the final answer.

Field for field as the storage contract and the data model have them; fields beyond the contract are
optional, and those of other programs are kept.
"""

from typing import Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo

from council.calls import Citation
from council.consultation import Consultation
from council.errors import Failure
from council.text.json_objects import JsonObject

CONTRACT = "of the contract, though optional"

Agreement = Literal["strong", "mixed", "split"]


class Record(BaseModel):
    """A stored object: unknown fields are kept, optional fields are written only when set."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

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
        """Return the JSON form, without the fields at their defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)


def _is_contract(field: FieldInfo | None) -> bool:
    return field is None or field.is_required() or CONTRACT in field.metadata


class Stage1Result(Record):
    """One member's answer. `model` is the member's name, `answered_by` a fallback's real id.

    `response` is what `consultation` calls `detailed`; `unstructured` is why a consultant's reply
    is kept as plain text.
    """

    model: str
    response: str
    answered_by: str | None = None
    persona: str | None = None
    truncated: bool = False
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None

    @property
    def text(self) -> str:
        """The answer."""
        return self.response


Severity = Literal["high", "medium", "low"]
GRADES: tuple[Severity, ...] = ("high", "medium", "low")
"""The gravest first."""


PointKind = Literal["objection", "strength"]
PointSource = Literal["structured", "section", "sentence"]


class ReviewPoint(Record):
    """What a review says for or against the answer of one label.

    `severity` is as the reviewer graded it, `None` if it didn't. `source` says where it was read: in a
    JSON ballot's entry, in the section below the answer's name, or in a sentence that begins with it.
    """

    label: str
    kind: PointKind
    text: str
    severity: Severity | None = None
    source: PointSource


class OlderCritique(Record):
    """An objection as documents stored it before reviews had points."""

    label: str
    text: str
    severity: Severity = "medium"


class Stage2Result(Record):
    """One member's review; `parsed_ranking` lists labels, best first, `[]` when uncounted.

    `order` is the labels as this reviewer read them; `scores` are 1 to 10, by label and criterion.
    `points` are what it says for and against the answers, in its order; `None` where that can't be told,
    or in a document from before, which may have `critiques` (`council.reviews.critiques.points_of`).
    `cleared` are the labels whose sections in prose were read as praise, sentence by sentence.
    """

    model: str
    ranking: str
    parsed_ranking: list[str]
    answered_by: str | None = None
    order: list[str] = []
    scores: dict[str, dict[str, int]] = {}
    points: list[ReviewPoint] | None = None
    cleared: list[str] = []
    critiques: list[OlderCritique] | None = None
    truncated: bool = False

    def objects_to(self, label: str) -> bool | None:
        """Return whether it holds anything against an answer; `None` where its words don't say."""
        about = [point for point in self.points or () if point.label == label]
        if any(point.kind == "objection" for point in about):
            return True
        return False if about or self._says_all else None

    def clears(self, label: str) -> bool:
        """Return whether it certainly holds nothing against an answer."""
        return (self._says_all or label in self.cleared) and self.objects_to(label) is False

    @property
    def _says_all(self) -> bool:
        """Whether what it doesn't name it doesn't hold: a form was filled in."""
        return self.points is not None and all(point.source == "structured" for point in self.points)


class Stage2_5Result(Record):  # noqa: N801 - the data model's own name
    """One member's correction, beside its first answer and its peers' critiques.

    `fallback` is why the answer before is kept; `change_summary` says how the text moved.
    `maintained`: no critique was made of it, so the member wasn't asked again. `kept_because`: it read
    the critiques and keeps its answer, for this reason.
    `consultation` is that of the corrected response, `unstructured` why a consultant gave none.
    """

    model: str
    original_response: str
    peer_critiques: str
    corrected_response: str
    changed: bool = False
    change_summary: str | None = None
    answered_by: str | None = None
    fallback: Failure | None = None
    maintained: bool = False
    kept_because: str | None = None
    truncated: bool = False
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None

    @property
    def text(self) -> str:
        """The answer as it is now."""
        return self.corrected_response


MemberAnswer = Stage1Result | Stage2_5Result
"""What a member says at some point of a run: its first answer, or a correction."""

AnswerSource = Literal["chairman", "fallback", "best_ranked", "verbatim", "single", "missing"]


class ChairNotes(Record):
    """What the chairman says besides its answer, each as one text; a missing note is `None`.

    `dissent`: who disagrees, how, and why. `only`: an important point that one member alone raised.
    `changed`: what the reviews changed, and who changed it. `ask`: the one fact, as a question to the
    team, that would change the recommendation.
    """

    dissent: str | None = None
    only: str | None = None
    changed: str | None = None
    ask: str | None = None


class Stage3Result(Record):
    """The final answer. `model` is whoever wrote the text.

    `source`: the chairman; one of its fallbacks; the best-ranked member in the chair; the
    best-ranked corrected answer, verbatim; or the only answer there was, not reviewed. `notes` come
    from whoever was in the chair; the last two sources have none. What another program keeps of a
    question that nobody answered in the end is read as `missing`, with empty texts; it is never written.
    """

    model: str
    response: str
    source: AnswerSource = "chairman"
    answered_by: str | None = None
    stopped_early: bool = False
    truncated: bool = False
    notes: ChairNotes | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is no final answer."""
        return self.source == "missing"


class RankedAnswer(Record):
    """One answer's place over all counted ballots.

    `mean_position`: 1 is best, `None` when no counted ballot names it. `wins`: how many of the
    other answers most ballots put below it.
    """

    label: str
    model: str
    mean_position: float | None
    votes: int
    wins: int


class Rank(NamedTuple):
    """A place in a ranking, 1 is best; `shared` if another answer has it, too."""

    number: int
    shared: bool
    mean_position: float


class AggregateRanking(Record):
    """The council's ranking, best first, with how alike its ballots are.

    Answers with the same mean position and as many wins share a rank. `agreement` is the mean Kendall
    tau over pairs of ballots that share two or more labels, from -1 to 1; `None` where there is no such
    pair: of three members who don't rank themselves, no two ballots have more than one answer in common.
    """

    places: list[RankedAnswer]
    agreement: float | None
    agreement_word: Agreement | None = None
    ballots: int
    uncounted: list[str] = []

    def rank(self, model: str) -> Rank | None:
        """Return the rank of a member's answer; `None` where no counted ballot names it."""
        place = next((each for each in self.places if each.model == model), None)
        if place is None or place.mean_position is None:
            return None
        standings = [(each.mean_position, each.wins) for each in self.places]
        standing = place.mean_position, place.wins
        return Rank(standings.index(standing) + 1, standings.count(standing) > 1, place.mean_position)


class ScoredAnswer(Record):
    """One answer's scores, from 1 to 10.

    `means` by criterion, without those that nobody scored; `total` is their weighted mean; `votes`
    says how many reviewers scored it; `failed` names the must-haves that it fails.
    """

    label: str
    model: str
    means: dict[str, float]
    total: float | None
    votes: int
    failed: list[str] = []

    @property
    def is_disqualified(self) -> bool:
        """Whether it fails a must-have."""
        return bool(self.failed)


class ScoringMatrix(Record):
    """All answers by their weighted scores, best first and the disqualified last."""

    answers: list[ScoredAnswer]
    ballots: int
