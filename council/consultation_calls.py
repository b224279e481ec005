"""Asking for consultations: the form that a model must use, and how its reply is read.

A reply that can't be read, repaired or not, is asked for once more with what is wrong with it. If that
doesn't help, the words of the first one are kept as plain text, and the result says so.
"""

import asyncio
from collections.abc import Sequence
from typing import TypeVar, get_args

from council import consultation
from council.calls import AskAgain, Reply, object_schema
from council.consultation import Consultation, Opinion, Rebuttal
from council.document.conversation import timestamp
from council.document.results import Stage1Result, Stage2_5Result
from council.profile import Member, Profile
from council.prompts import prompts
from council.session import Session
from council.text.json_objects import JsonObject

R = TypeVar("R", Stage1Result, Stage2_5Result)


def schema(profile: Profile, *, critics: Sequence[str] | None = None) -> JsonObject | None:
    """Return the JSON schema of an answer, or of one after `critics`; `None` for plain text."""
    if profile.answer_format == "plain":
        return None
    kind = Opinion if critics is None else Rebuttal
    return form_schema(kind, critics or (), is_demonstration=profile.demonstration)


async def read(session: Session, member: Member, reply: Reply, *, after: int = 0) -> Reply:
    """Return a reply with the consultation in it, or with the reason why there is none.

    `after` is the round of reviews that it replies to: 0 for a first answer, which debates nothing.
    """
    if session.brief.profile.answer_format == "plain":
        return reply
    reading = await asyncio.to_thread(
        consultation.read_opinion, reply.text, Rebuttal if after else Opinion
    )
    opinion = reading.opinion
    if opinion is None:
        return reply.model_copy(update={"text": reading.words, "unstructured": reading.problem})
    position = opinion.debate if isinstance(opinion, Rebuttal) else None
    model = reply.answered_by or member.model
    given = Consultation(
        consultant=member.name,
        model=model,
        persona=member.persona.name if member.persona else "",
        response=opinion.response,
        confidence=opinion.confidence,
        debate=consultation.Debate(round=after + 1, **dict(position)) if position else None,
        metadata=consultation.Metadata(
            tokens_used=reply.usage.tokens,
            latency_ms=reply.latency_ms,
            model_version=model,
            timestamp=timestamp(session.now()),
        ),
    )
    return reply.model_copy(update={"text": opinion.response.detailed, "consultation": given})


def or_again(result: R) -> R | AskAgain[R]:
    """Return a result, or a request to ask again if its reply was no consultation."""
    if result.unstructured is None:
        return result
    return AskAgain(prompts.in_form(result.unstructured), result)


def form_schema(
    kind: type[Opinion], critics: Sequence[str] = (), *, is_demonstration: bool = False
) -> JsonObject:
    """Return the JSON schema that a model must follow, within OpenAI's strict subset.

    The subset has no lengths. The server of a demonstration makes a grammar of the schema: every text
    and list has an end, so the whole reply has one; code and references are not asked for.
    """

    def text(most: int, least: int = 2) -> JsonObject:
        return {
            "type": "string",
            **({"minLength": least, "maxLength": most} if is_demonstration else {}),
        }

    def some(items: JsonObject) -> JsonObject:
        return {"type": "array", "items": items, **({"maxItems": 1} if is_demonstration else {})}

    rarely: dict[str, JsonObject] = {
        "code_snippets": some(object_schema(language=text(10), code=text(50), description=text(30))),
        "references": some(text(30)),
    }
    response = object_schema(
        summary=text(80, 20),
        detailed=text(200, 40),
        approach=text(30),
        pros=some(text(50)),
        cons=some(text(50)),
        alternatives=some(object_schema(name=text(20), reason_not_chosen=text(50))),
        caveats=some(text(50)),
        **({} if is_demonstration else rarely),
    )
    confidence = object_schema(
        score={"type": "integer", "enum": [*range(consultation.LOWEST, consultation.HIGHEST + 1)]},
        reasoning=text(60),
        uncertainty_factors=some(text(50)),
    )
    if kind is Opinion:
        return object_schema(response=response, confidence=confidence)
    peer: JsonObject = {"type": "string", "enum": [*critics]} if critics else text(30)
    severity: JsonObject = {"type": "string", "enum": [*get_args(consultation.Severity)]}
    debate = object_schema(
        position_changed={"type": "boolean"},
        critiques=some(object_schema(target=peer, critique=text(60), severity=severity)),
        incorporated_from=some(object_schema(source=peer, idea=text(50))),
    )
    return object_schema(response=response, confidence=confidence, debate=debate)
