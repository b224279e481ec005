"""The prompts of the built-in model, which is too small for those in `council.prompts.prompts`.

Asked with a role, fences and rules, SmolLM2-135M loses half of the facts that it knows; asked with
hardly more than the question, it keeps them (`python -m bench.first_run`). So nothing here is fenced.
Nor would a fence help: the model follows no rule about it, and copies its marks into its answers. Runs
that need more than a question and its answers are asked with the full prompts.
"""

import re
from collections.abc import Sequence
from math import fsum

from council.brief import Brief
from council.calls import ChatMessage
from council.document.conversation import AggregateRanking
from council.profile import Member

CHAIR = "You give correct, short answers."
FINAL = "{} Give the correct answer once more, in one short and simple sentence."
BALLOT = "Review each answer, then rank them, best first. Reply as JSON."

REPEAT_PENALTY = 1.0
"""None, for corrections and final answers. The model's own penalty for repetition reaches into the
prompt, so they would avoid the very words that they are to repeat."""

_WORD = re.compile(r"\w+")


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
    return (*_persona(member), _user(brief.question))


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
        _assistant(original),
        _user("\n\n".join(filter(None, (said, brief.question)))),
    )


def synthesis(
    brief: Brief, *, responses: Sequence[tuple[str, str, str]], ranking: AggregateRanking | None
) -> tuple[ChatMessage, ...]:
    """Ask for the final answer after the members' answers, each as a turn of its own.

    The one that shares most words with the others comes last; where they share as many, the one
    ranked first.
    """
    places = [place.label for place in ranking.places] if ranking and ranking.ballots else []
    ranked = sorted(responses, key=lambda each: places.index(each[0]) if each[0] in places else 99)
    texts = [text for _, _, text in ranked]
    said = [_words(text) - _words(brief.question) for text in texts]
    shared = [fsum(_shared(words, other) for other in said) for words in said]
    agreeing = sorted(range(len(texts)), key=lambda each: shared[each], reverse=True)
    asked = _user(brief.question)
    last = _user(FINAL.format(brief.question))
    turns = [(asked, _assistant(texts[each])) for each in reversed(agreeing)]
    return (_system(CHAIR), *(message for turn in turns for message in turn), last)


def _shared(words: set[str], other: set[str]) -> float:
    """Return the share of the shorter answer's words that the longer one has, too."""
    return len(words & other) / max(1, min(len(words), len(other)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _system(content: str) -> ChatMessage:
    return {"role": "system", "content": content}


def _assistant(content: str) -> ChatMessage:
    return {"role": "assistant", "content": content}


def _user(content: str) -> ChatMessage:
    return {"role": "user", "content": content}


def _persona(member: Member) -> tuple[ChatMessage, ...]:
    if member.persona is None:
        return ()
    return (_system(member.persona.prompt),)
