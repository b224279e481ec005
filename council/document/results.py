"""What each stage and round returns, as documents store it: answers, reviews, corrections, comparisons.

Field for field as the storage contract, the data model and, for the rounds, the refinement contract have
them; fields beyond a contract are optional, and those of other programs are kept.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from council.calls import Citation
from council.consultation import Consultation
from council.document.changes import share_changed
from council.errors import Failure
from council.profile import MOST_ROUNDS, Depth
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
            known = [cls.model_fields.get(name) for name in strange]
            if not known or any(
                each is None or each.is_required() or CONTRACT in each.metadata for each in known
            ):
                raise
            return handler({name: value for name, value in fields.items() if name not in strange})

    def dump(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_defaults=True)


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
        return self.response


Severity = Literal["high", "medium", "low"]
GRADES: tuple[Severity, ...] = ("high", "medium", "low")
"""The gravest first."""


PointKind = Literal["objection", "strength"]
PointSource = Literal["structured", "section", "sentence"]


class ReviewPoint(Record):
    """What a review says for or against the answer of one label.

    `severity` is as the reviewer graded it, `None` if it didn't. `source` says where it was read: in a
    JSON ballot's entry, as the section below the answer's name, or, long ago, in a sentence.
    `quote` is the words of the answer that it is about; `found` says whether they are there, `None`
    where there are none, or too few to tell.
    """

    label: str
    kind: PointKind
    text: str
    severity: Severity | None = None
    source: PointSource
    quote: str | None = None
    found: bool | None = None


class OlderCritique(Record):
    """An objection as documents stored it before reviews had points."""

    label: str
    text: str
    severity: Severity = "medium"


class Stage2Result(Record):
    """One member's review; `parsed_ranking` lists labels, best first, `[]` when uncounted.

    `order` is the labels as this reviewer read them; `scores` are 1 to 10, by label and criterion.
    `points` are what it says for and against the answers, in its order; `None` where that isn't known,
    or in a document from before, which may have `critiques` (`council.reviews.ballots.with_points`).
    `cleared` are the labels whose sections in prose have only strengths.
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
        points = self.points or ()
        if any(point.kind == "objection" and point.label == label for point in points):
            return True
        # What a form that was filled in doesn't name it doesn't hold.
        is_form = self.points is not None and all(point.source == "structured" for point in points)
        return False if is_form or label in self.cleared else None


class ObjectionReply(Record):
    """An author's reply to one objection: whether it holds, and how the author checked it.

    Where nobody objected, `critic` is the author itself, and `objection` the error that it found.
    """

    critic: str
    objection: str
    holds: bool
    reason: str = ""


class Stage2_5Result(Record):  # noqa: N801 - the data model's own name
    """One member's correction, beside its first answer and its peers' critiques.

    `fallback` is why the answer before is kept; `change_summary` says how the text moved.
    `maintained`: no critique was made of it, so the member wasn't asked again. `replies`: what it
    replied to each objection, `None` where it wasn't asked or gave no reply.
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
    replies: list[ObjectionReply] | None = None
    truncated: bool = False
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None

    @property
    def text(self) -> str:
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
    """The final answer. `model` is the author.

    `source`: the chairman; one of its fallbacks; the best-ranked member in the chair; the
    best-ranked corrected answer, verbatim; or the only answer there was, not reviewed. `notes` come
    from the one in the chair; the last two sources have none. What another program keeps of a
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
        return bool(self.failed)


class ScoringMatrix(Record):
    """All answers by their weighted scores, best first and the disqualified last."""

    answers: list[ScoredAnswer]
    ballots: int


class DifferingPoint(Record):
    """An important point on which answers differ; `checkable` if a source or calculation settles it."""

    text: str
    checkable: bool = False


class Comparison(Record):
    """One comparison: whether the answers recommend the same, where they differ, which is better.

    `same` is `None` where the judge can't tell. `better` is a label, `None` for a tie. `steering` are
    the labels of answers that speak of labels, of other answers or of the judging.
    """

    same: bool | None
    points: tuple[DifferingPoint, ...] = ()
    better: str | None = None
    steering: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        return self.same is True and not self.points and not self.steering


Ran = Literal["quick", "full"]
DepthReason = Literal[
    "asked",
    "agreed",
    "audited",
    "different",
    "undecided",
    "cut_off",
    "steering",
    "no_verdict",
    "one_answer",
    "stopped",
]
"""Why a run went as deep as it did.

`asked`: that depth was chosen. Of `auto`: the answers `agreed`; they did, and were reviewed all the same
(`audited`); they were `different`; the judge couldn't tell (`undecided`); an answer was `cut_off` or was
`steering` its readers; there was `no_verdict`. There was `one_answer`, or the run was `stopped`.
"""


class JudgeReport(Record):
    """What the judge said of the first answers: whether they agree, and the points that differ."""

    model: str
    agree: bool
    points: list[DifferingPoint]


class Savings(Record):
    """About what a run would have taken besides, less what the judge's call took.

    `cost` is in US dollars, `None` where a price isn't known. Either may be below zero.
    """

    tokens: int
    cost: float | None


class RunDepth(Record):
    """How deep a run was to go and went, and why.

    `changed` says of an audited run whether the reviews changed the recommendation, and is `None` where
    the judge couldn't tell.
    """

    asked: Depth
    ran: Ran
    reason: DepthReason
    audited: bool
    judge: JudgeReport | None
    saved: Savings | None = None
    changed: bool | None = None


def was_skipped(depth: RunDepth | None) -> bool:
    """Return whether a run went without reviews by choice, not because it was stopped."""
    return depth is not None and depth.ran == "quick" and depth.reason != "stopped"


class TerminationReason(StrEnum):
    """Why the rounds ended."""

    MAX_ROUNDS_REACHED = "max_rounds_reached"
    MODELS_CONVERGED = "models_converged"
    NO_SIGNIFICANT_CHANGES = "no_significant_changes"
    CONTEXT_LIMIT_REACHED = "context_limit_reached"
    USER_STOPPED = "user_stopped"
    ERROR_OCCURRED = "error_occurred"


class CritiqueItem(Record):
    """One point that a review makes about one answer.

    `target_response` is the answer's label, `also_from` are the reviewers who say the same.
    """

    source_model: str
    target_response: str
    critique_text: str
    severity: Severity = "medium"
    also_from: list[str] = Field(default_factory=list[str])


class RefinementResult(Record):
    """One model's answer before and after a round; `change` is the share of it that is new, 0 to 1."""

    model: str
    original_response: str
    refined_response: str
    critiques_addressed: list[str] = Field(default_factory=list[str])
    changes_made: bool = False
    change_summary: str | None = None
    replies: list[ObjectionReply] | None = None
    change: float | None = None
    answered_by: str | None = None
    truncated: bool = False
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None


class IterationRound(Record):
    """One round: which critiques were handed over, and what became of the answers.

    `critiques` go by label and are empty if whole reviews were handed over. `fallbacks` says why
    models gave no correction. `stage2`, `aggregate_ranking` and `scores` are here from
    round 2 on; those of round 1 are the message's.
    """

    model_config = ConfigDict(frozen=False)

    round_number: int
    critiques: dict[str, list[CritiqueItem]] = Field(default_factory=dict[str, list[CritiqueItem]])
    refinements: list[RefinementResult] = Field(default_factory=list[RefinementResult])
    models_that_changed: list[str] = Field(default_factory=list[str])
    models_unchanged: list[str] = Field(default_factory=list[str])
    fallbacks: dict[str, Failure] = Field(default_factory=dict[str, Failure])
    tokens_used: int = 0
    stage2: list[Stage2Result] = Field(default_factory=list[Stage2Result])
    label_to_model: dict[str, str] | None = None
    aggregate_ranking: AggregateRanking | None = None
    scores: ScoringMatrix | None = None

    @property
    def average_change(self) -> float:
        """The mean share of the answers that is new; an answer that is kept counts as 0."""
        models = len(self.models_that_changed) + len(self.models_unchanged)
        shares = {
            each.model: share_changed(each.original_response, each.refined_response)
            if each.change is None
            else each.change
            for each in self.refinements
        }
        # A model that is only said to have changed counts as wholly changed.
        said = dict.fromkeys(self.models_that_changed, 1.0) | shares
        return sum(said.values()) / models if models else 0.0


class IterationConfig(Record):
    """How many rounds there may be and what ends them early; the budget is in tokens of all rounds."""

    enabled: bool = True
    max_rounds: Annotated[int, CONTRACT] = Field(default=1, ge=1, le=MOST_ROUNDS)
    min_change_threshold: Annotated[float, CONTRACT] = Field(default=0.1, ge=0, le=1)
    context_budget: Annotated[int, CONTRACT] = Field(default=500_000, ge=1)


class IterationState(IterationConfig):
    """How far the rounds are; the last of `rounds` is the last that was completed."""

    model_config = ConfigDict(frozen=False)

    current_round: int = 0
    total_tokens_used: int = 0
    terminated: bool = False
    termination_reason: TerminationReason | None = None
    rounds: list[IterationRound] = Field(default_factory=list[IterationRound])

    def terminate(self, reason: TerminationReason) -> None:
        self.terminated = True
        self.termination_reason = reason


def format_critiques_for_refinement(critiques: Iterable[CritiqueItem | Mapping[str, object]]) -> str:
    """Write points as a numbered list for the author; empty if there are none."""
    items = map(CritiqueItem.model_validate, critiques)
    return "\n".join(
        f"{number}. [{item.severity}] {item.critique_text} "
        f"({', '.join([item.source_model, *item.also_from])})"
        for number, item in enumerate(items, 1)
    )
