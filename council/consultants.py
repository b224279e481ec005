"""Asking for consultations: the form a model is held to, and what is made of its reply.

A reply that can't be read, mended or not, is asked for once more with what is wrong with it; then
its words stand as plain text, and the result says so.
"""

import asyncio
from collections.abc import Sequence
from typing import get_args

from council import prompts
from council.calls import ChatMessage, JsonObject, Outcome, Reply
from council.consultation import (
    HIGHEST,
    LOWEST,
    Consultation,
    Debate,
    Metadata,
    Opinion,
    Rebuttal,
    Severity,
)
from council.consultation_text import read_opinion
from council.document.conversation import timestamp
from council.errors import Failure
from council.profile import Member
from council.session import AskAgain, Form, Session
from council.usage import total


def form(
    session: Session,
    member: Member,
    messages: tuple[ChatMessage, ...],
    *,
    after: int = 0,
    critics: Sequence[str] = (),
) -> Form | None:
    """Return the form of a member's reply to `messages`; `None` where the council wants plain text.

    `after` is the round of reviews that it replies to, by `critics`: 0 for a first answer, which
    debates nothing.
    """
    profile = session.brief.profile
    if profile.answer_format == "plain":
        return None
    kind = Rebuttal if after else Opinion

    def consultation(opinion: Opinion, reply: Reply) -> Consultation:
        position = opinion.debate if isinstance(opinion, Rebuttal) else None
        return Consultation(
            consultant=member.name,
            model=reply.answered_by or member.model,
            persona=member.persona.name if member.persona else "",
            response=opinion.response,
            confidence=opinion.confidence,
            debate=Debate(round=after + 1, **dict(position)) if position else None,
            metadata=Metadata(
                tokens_used=reply.usage.tokens,
                latency_ms=reply.latency_ms,
                model_version=reply.answered_by or member.model,
                timestamp=timestamp(session.now()),
            ),
        )

    async def settle(reply: Reply, again: AskAgain) -> Reply:
        reading = await asyncio.to_thread(read_opinion, reply.text, kind)
        if reading.opinion is None:
            retried = await again(prompts.again(session.brief, messages, reply.text, reading.problem))
            reply = _with_both(reply, retried)
            if isinstance(retried, Reply):
                second = await asyncio.to_thread(read_opinion, retried.text, kind)
                if second.opinion is not None:
                    reading = second
                    reply = reply.model_copy(
                        update={
                            "truncated": retried.truncated,
                            "answered_by": retried.answered_by,
                            "citations": retried.citations,
                        }
                    )
        if reading.opinion is None:
            return reply.model_copy(update={"text": reading.words, "unstructured": reading.problem})
        made = consultation(reading.opinion, reply)
        return reply.model_copy(update={"text": made.response.detailed, "consultation": made})

    return Form(form_schema(kind, critics, terse=profile.demonstration), settle)


def _with_both(reply: Reply, retried: Outcome) -> Reply:
    """Add what a second try took to the first reply."""
    if retried.usage is None:
        return reply
    took = reply.latency_ms + (0 if isinstance(retried, Failure) else retried.latency_ms)
    return reply.model_copy(update={"usage": total((reply.usage, retried.usage)), "latency_ms": took})


def form_schema(kind: type[Opinion], critics: Sequence[str] = (), *, terse: bool = False) -> JsonObject:
    """Return the JSON schema that a model is held to, within OpenAI's strict subset.

    The subset knows no lengths. A `terse` schema is for small models whose server makes a grammar
    of it: every text and list has an end, so the whole reply has one; code and references are not
    asked for.
    """

    def text(most: int, least: int = 2) -> JsonObject:
        return {"type": "string", **({"minLength": least, "maxLength": most} if terse else {})}

    def some(items: JsonObject) -> JsonObject:
        return {"type": "array", "items": items, **({"maxItems": 1} if terse else {})}

    rarely: dict[str, JsonObject] = {
        "code_snippets": some(_object(language=text(10), code=text(50), description=text(30))),
        "references": some(text(30)),
    }
    response = _object(
        summary=text(80, 20),
        detailed=text(200, 40),
        approach=text(30),
        pros=some(text(50)),
        cons=some(text(50)),
        alternatives=some(_object(name=text(20), reason_not_chosen=text(50))),
        caveats=some(text(50)),
        **({} if terse else rarely),
    )
    confidence = _object(
        score={"type": "integer", "enum": [*range(LOWEST, HIGHEST + 1)]},
        reasoning=text(60),
        uncertainty_factors=some(text(50)),
    )
    if kind is Opinion:
        return _object(response=response, confidence=confidence)
    peer: JsonObject = {"type": "string", "enum": [*critics]} if critics else text(30)
    severity: JsonObject = {"type": "string", "enum": [*get_args(Severity)]}
    debate = _object(
        position_changed={"type": "boolean"},
        critiques=some(_object(target=peer, critique=text(60), severity=severity)),
        incorporated_from=some(_object(source=peer, idea=text(50))),
    )
    return _object(response=response, confidence=confidence, debate=debate)


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
