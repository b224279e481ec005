"""A consultation: an answer with its reasons, its doubts, and how sure its author is.

The fields are those of the consultants' schema, exactly; names of consultants and personas are free.
What only the council knows (who, which model, when, which round) is never asked of a model.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
SUMMARY_LENGTH = 500  # characters
LOWEST, HIGHEST = 1, 10

_TICKS = re.compile("`+")

Said = Annotated[str, Field(pattern=r"\S")]
Severity = Literal["minor", "moderate", "major"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class CodeSnippet(_Part):
    """Code that belongs to an answer."""

    language: str = ""
    code: str
    description: str = ""


class Alternative(_Part):
    """Another way that was considered."""

    name: str
    reason_not_chosen: str = ""


class ConsultantAnswer(_Part):
    """What a consultant answers."""

    summary: Annotated[str, Field(pattern=r"\S", max_length=SUMMARY_LENGTH)]
    detailed: Said
    approach: Said
    code_snippets: list[CodeSnippet] = []
    pros: list[str] = []
    cons: list[str] = []
    alternatives: list[Alternative] = []
    caveats: list[str] = []
    references: list[str] = []


class Confidence(_Part):
    """How sure a consultant is, from 1 (a guess) to 10 (settled), and why."""

    score: Annotated[int, Field(strict=True, ge=LOWEST, le=HIGHEST)]
    reasoning: str
    uncertainty_factors: list[str] = []


class Objection(_Part):
    """What a consultant objects to in what a peer said."""

    target: str
    critique: str
    severity: Severity


class Idea(_Part):
    """What a consultant adopted from a peer."""

    source: str
    idea: str


class Position(_Part):
    """A consultant's position after it read its peers."""

    position_changed: bool
    critiques: list[Objection] = []
    incorporated_from: list[Idea] = []


class Debate(Position):
    """A position in a round of debate; the first answers were round 1."""

    round: Annotated[int, Field(ge=2)]


class Metadata(_Part):
    """What a consultation took, a second try included, by which model, and when (ISO 8601)."""

    tokens_used: Annotated[int, Field(ge=0)] = 0
    latency_ms: Annotated[int, Field(ge=0)] = 0
    model_version: str = ""
    timestamp: str = ""


class Opinion(_Part):
    """What a model is asked for in stage 1."""

    response: ConsultantAnswer
    confidence: Confidence


class Rebuttal(Opinion):
    """What a model is asked for in stage 2.5."""

    debate: Position


class Consultation(_Part):
    """One consultant's whole answer, as it is stored."""

    consultant: str
    model: str = ""
    persona: str = ""
    response: ConsultantAnswer
    confidence: Confidence
    debate: Debate | SkipJsonSchema[None] = None
    metadata: Metadata

    def check(self, text: str, *, first: bool = False) -> None:
        """Check this consultation against the text beside it; raises `ValueError`.

        A `first` one comes before all debate.
        """
        if self.response.detailed != text:
            raise ValueError(f"the consultation of {self.consultant} is of another text")
        if first and self.debate is not None:
            raise ValueError(f"the consultation of {self.consultant} debates before the first reviews")


def json_schema() -> JsonSchemaValue:
    """Return the JSON Schema of a stored consultation, in the words of draft-07."""
    # Pydantic speaks 2020-12; for these models the two differ only in where definitions are.
    schema = Consultation.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs")
    return {"$schema": DRAFT_07, **schema, "definitions": definitions}


def for_reviewers(text: str, consultation: Consultation | None) -> str:
    """Return an answer as its peers read it: without any name, and without the score.

    A score that its author chose is no argument, and a high one would be worth choosing.
    """
    if consultation is None:
        return text
    advice = consultation.response
    return "\n\n".join(
        (
            f"Approach: {advice.approach}",
            advice.summary,
            advice.detailed,
            *_listed("Pros", advice.pros),
            *_listed("Cons", advice.cons),
            *_listed("Alternatives", (scored_alternative(each) for each in advice.alternatives)),
            *_listed("Caveats", advice.caveats),
            *_listed("Uncertain because", consultation.confidence.uncertainty_factors),
            *("\n".join(filter(None, (one.description, fenced(one)))) for one in advice.code_snippets),
            *_listed("References", advice.references),
        )
    )


def chairman_view(text: str, consultation: Consultation | None) -> str:
    """Return an answer as the chairman reads it: with its author's stated confidence."""
    if consultation is None:
        return text
    sure = consultation.confidence
    return (
        f"{for_reviewers(text, consultation)}\n\n"
        f"Its author's own confidence: {sure.score} of {HIGHEST}. {sure.reasoning}"
    )


def spoken_text(text: str, consultation: Consultation | None) -> str:
    """Return an answer as the model wrote it: what its own conversation continues from."""
    if consultation is None:
        return text
    return Opinion(response=consultation.response, confidence=consultation.confidence).model_dump_json()


def scored_alternative(alternative: Alternative) -> str:
    """Return an alternative with the reason against it, as one text."""
    return ": ".join(filter(None, (alternative.name, alternative.reason_not_chosen)))


def fenced(snippet: CodeSnippet) -> str:
    """Return a snippet as a Markdown code block, with a fence that its code can't close."""
    longest = max(map(len, _TICKS.findall(snippet.code)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{snippet.language}\n{snippet.code}\n{ticks}"


def _listed(title: str, items: Iterable[str]) -> Iterator[str]:
    if lines := "\n".join(f"- {item}" for item in items):
        yield f"{title}:\n{lines}"
