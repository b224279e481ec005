"""A consultation: an answer with its reasons, its doubts, and how sure its author is.

The fields are those of the consultants' schema, exactly; names of consultants and personas are free.
What only the council knows (who, which model, when, which round) is never asked of a model.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema

from council.text import clip, whole
from council.text.json_objects import DEEPEST, JsonObject, as_list, as_object, mend, out_of_string, spans

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


AnOpinion = TypeVar("AnOpinion", bound=Opinion)

PROBLEMS = 3  # as many are named at once
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_SCORE_OF_TEN = re.compile(r"\s*(\d{1,2})(?:\.0+)?\s*(?:(?:/|(?:out )?of)\s*10)?\s*")
_SCORE_KEY = re.compile(r"""\bscore["'\u201c\u201d]?\s*[:=]\s*""")
_SCORE = re.compile(
    rf"""["'\u201c\u201d]?{_SCORE_OF_TEN.pattern}["'\u201c\u201d]?\s*(?:,(?!\s*\d)|[}}\n#]|//|/\*)"""
)
_LISTS = ("pros", "cons", "caveats", "references")


@dataclass(frozen=True, slots=True)
class ReadReply(Generic[AnOpinion]):
    """What a reply contains: an opinion, or the reason why it has none (`problem`).

    `words` is the reply as plain text: its detailed answer if that could be read.
    """

    opinion: AnOpinion | None
    problem: str
    words: str


def read_opinion(text: str, kind: type[AnOpinion]) -> ReadReply[AnOpinion]:
    """Read a reply that was asked for as `kind`. Slow on broken JSON: call it in a thread."""
    found, mended = _parsed(out_of_string(_THOUGHT.sub("", text)))
    if found is None:
        return ReadReply(None, "it is not a JSON object", text)
    fields = _tidied(_unwrapped(found))
    detailed = as_object(fields.get("response")).get("detailed")
    words = detailed if isinstance(detailed, str) and detailed.strip() else text
    try:
        opinion = kind.model_validate(fields)
    except ValidationError as error:
        return ReadReply(None, _problem(error), words)
    keys = [*_SCORE_KEY.finditer(text)]
    if mended and not (len(keys) == 1 and _SCORE.match(text, keys[0].end())):
        return ReadReply(None, "confidence.score: it must appear once, as a whole number", words)
    return ReadReply(opinion, "", words)


def _parsed(text: str) -> tuple[JsonObject | None, bool]:
    """Return the last consultation among a text's objects, and whether it had to be repaired.

    Once an object is broken, nobody can tell what it contains from what follows it: the whole text is
    repaired, and must then be one object.
    """
    found = spans(text)
    for span in reversed(found if all(each.closed for each in found) else ()):
        try:
            value = json.loads(text[span.start : span.end], object_pairs_hook=_unambiguous)
        except (ValueError, RecursionError):
            break
        if _is_deep(value):
            return None, False
        if {"response", "confidence"} & _unwrapped(value).keys() or len(found) == 1:
            return _encodable(value), False
    value = mend(text)
    if _is_deep(value):
        return None, True
    objects = [found for each in _list(value) if (found := as_object(each))]
    return (_encodable(objects[0]) if len(objects) == 1 else None), True


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in (*as_object(each).values(), *as_list(each))]
    return bool(level)


def _encodable(fields: JsonObject) -> JsonObject:
    """Replace halves of surrogate pairs, which are legal JSON but have no place in a text."""
    return json.loads(whole(json.dumps(fields, ensure_ascii=False)))


def _unambiguous(pairs: list[tuple[str, object]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key appears twice")
    return fields


def _unwrapped(fields: JsonObject) -> JsonObject:
    """Take an object out of a wrapper of one key: `{"consultation": {…}}`."""
    if len(fields) == 1 and "response" in (inner := as_object(next(iter(fields.values())))):
        return inner
    return fields


def _tidied(fields: JsonObject) -> JsonObject:
    tidy = _present(fields)
    if isinstance(tidy.get("response"), dict):
        tidy["response"] = _advice(_present(as_object(tidy["response"])))
    if isinstance(tidy.get("confidence"), dict):
        confidence = _present(as_object(tidy["confidence"]))
        confidence["score"] = _score(confidence.get("score"))
        confidence["uncertainty_factors"] = _strings(confidence.get("uncertainty_factors", []))
        tidy["confidence"] = _present(confidence)
    if isinstance(tidy.get("debate"), dict):
        debate = _present(as_object(tidy["debate"]))
        debate["critiques"] = critiques = _list(debate.get("critiques", []))
        for fields in map(as_object, critiques):
            if isinstance(severity := fields.get("severity"), str):
                fields["severity"] = severity.strip().lower()
        tidy["debate"] = debate
    return tidy


def _advice(advice: JsonObject) -> JsonObject:
    for name in ("summary", "detailed", "approach"):
        if isinstance(said := advice.get(name), list):
            advice[name] = "\n\n".join(_strings(cast("list[object]", said)))
    if isinstance(summary := advice.get("summary"), str):
        advice["summary"] = clip(summary.strip(), SUMMARY_LENGTH)
    for name in _LISTS:
        advice[name] = _strings(advice.get(name, []))
    for name, key in (("alternatives", "name"), ("code_snippets", "code")):
        entries = _list(advice.get(name, []))
        advice[name] = [
            {key: each} if isinstance(each, str) else _present(as_object(each))
            for each in entries
            if each
        ]
    return advice


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _strings(value: object) -> list[str]:
    said = (_string(each) for each in _list(value))
    return [text for text in said if text.strip()]


def _string(value: object) -> str:
    match value:
        case str():
            return value
        case dict():
            return ": ".join(map(_string, cast("Iterable[object]", value.values())))
        case None:
            return ""
        case _:
            return str(value)


def _score(value: object) -> object:
    """Return the whole number of a score that was written another way; never a rounded one."""
    if isinstance(value, str) and (written := _SCORE_OF_TEN.fullmatch(value)):
        return int(written[1])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _problem(error: ValidationError) -> str:
    known = {"missing": "it is missing", "string_pattern_mismatch": "it is empty"}
    problems: list[str] = []
    for each in error.errors(include_input=False, include_url=False):
        message = known.get(each["type"]) or f"{each['msg'][0].lower()}{each['msg'][1:]}"
        problems.append(f"{'.'.join(map(str, each['loc']))}: {message}")
    more = f"; and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
    return "; ".join(problems[:PROBLEMS]) + more
