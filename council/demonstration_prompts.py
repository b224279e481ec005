"""The prompts of the built-in model, which is too small for those in `council.prompts`.

Asked with a role, fences and rules, SmolLM2-135M loses half of the facts that it knows; asked with
hardly more than the question, it keeps them (`python -m bench.first_run`). So nothing here is fenced.
Nor would a fence help: the model follows no rule about it, and copies its marks into its answers. Runs
that need more than a question and its answers are asked with the full prompts.
"""

from collections.abc import Sequence

from council.brief import Brief
from council.calls import ChatMessage
from council.document.conversation import AggregateRanking
from council.profile import Member

QUESTION = "Question: {}\nAnswer:"
BALLOT = "Review each answer, then rank them, best first. Reply as JSON."


def suits(brief: Brief) -> bool:
    """Return whether a run's prompts are these; only what was criticized is then corrected."""
    profile = brief.profile
    return (
        profile.demonstration
        and profile.answer_format == "plain"
        and profile.criteria is None
        and profile.strategy == "consensus"
        and not (brief.history.turns or brief.attachments or brief.context)
    )


def answer(brief: Brief, member: Member) -> tuple[ChatMessage, ...]:
    """Ask for an answer."""
    return (*_persona(member), _user(QUESTION.format(brief.question)))


def review(brief: Brief, answers: Sequence[tuple[str, str]]) -> tuple[ChatMessage, ...]:
    """Ask for a review of labelled answers."""
    listed = "\n\n".join(f"{label}: {text}" for label, text in answers)
    return (_user(f"{brief.question}\n\n{listed}\n\n{BALLOT}"),)


def correction(
    brief: Brief, member: Member, *, original: str, critiques: Sequence[str]
) -> tuple[ChatMessage, ...]:
    """Hand an answer back with the reviews of it."""
    said = "\n\n".join(critiques)
    return (
        *answer(brief, member),
        {"role": "assistant", "content": original},
        _user("\n\n".join(filter(None, (said, QUESTION.format(brief.question))))),
    )


def synthesis(
    brief: Brief, *, responses: Sequence[tuple[str, str, str]], ranking: AggregateRanking | None
) -> tuple[ChatMessage, ...]:
    """Ask for the final answer below the members' answers, the one ranked first at the top."""
    places = [place.label for place in ranking.places] if ranking and ranking.ballots else []
    ranked = sorted(responses, key=lambda each: places.index(each[0]) if each[0] in places else 99)
    answers = (text for _, _, text in ranked)
    return (_user("\n\n".join((*answers, QUESTION.format(brief.question)))),)


def _user(content: str) -> ChatMessage:
    return {"role": "user", "content": content}


def _persona(member: Member) -> tuple[ChatMessage, ...]:
    if member.persona is None:
        return ()
    return ({"role": "system", "content": member.persona.prompt},)
