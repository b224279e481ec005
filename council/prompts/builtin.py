"""The built-in model's prompts: it is too small for the council's.

Asked with a role, fences and rules, SmolLM2-135M loses half of the facts that it knows; asked with
hardly more than the question, it keeps them. So nothing here is fenced.
Nor would a fence help: the model follows no rule about it, and copies its marks into its answers. Runs
that need more than a question and its answers are asked with the council's prompts, in short forms.
"""

import re
from collections.abc import Sequence
from math import fsum

from council.brief import Brief
from council.calls import ChatMessage
from council.profile import Member
from council.prompts.chair import Material
from council.prompts.prompts import Prompts

CHAIR = "You give correct, short answers."
FINAL = "{} Give the correct answer once more, in one short and simple sentence."
BALLOT = "Review each answer, then rank them, best first. Reply as JSON."
# A grammar holds the model to each form, and it repeats whatever a prompt says about it.
RANKING = "Then rank them, best first. Reply as JSON."
CONSULTATION = "Reply as JSON: your answer, and how sure you are of it from 1 (a guess) to 10."

_WORD = re.compile(r"\w+")


class ShortPrompts(Prompts):
    """The council's prompts with short forms: a grammar holds the built-in model to each."""

    takes_notes = False
    corrects = False  # its corrections were its first answers made worse
    consultation = CONSULTATION

    def _structured_ballot(self, labels: Sequence[str]) -> list[str]:
        del labels
        return [RANKING]


class BarePrompts(ShortPrompts):
    """The question and the answers alone."""

    repeat_penalty = 1.0  # none: the model's own reaches into the prompt, whose words are to be repeated

    def answer(self, member: Member) -> tuple[ChatMessage, ...]:
        persona = member.persona
        system = (ChatMessage(role="system", content=persona.prompt),) if persona else ()
        return (*system, _user(self.brief.question))

    def review(self, member: Member, answers: Sequence[tuple[str, str]]) -> tuple[ChatMessage, ...]:
        del member
        listed = "\n\n".join(f"{label}: {text}" for label, text in answers)
        return (_user(f"{self.brief.question}\n\n{listed}\n\n{BALLOT}"),)

    def synthesis(self, member: Member, given: Material) -> tuple[ChatMessage, ...]:
        """Ask for the final answer after the members' answers, each as a turn of its own.

        The one that shares most words with the others comes last; where they share as many, the one
        ranked first.
        """
        del member
        ranking = given.ranking
        places = [place.label for place in ranking.places] if ranking and ranking.ballots else []
        ranked = sorted(
            given.responses, key=lambda each: places.index(each[0]) if each[0] in places else 99
        )
        texts = [text for _, _, text in ranked]
        news = [_words(text) - _words(self.brief.question) for text in texts]
        # The share of the shorter answer's words that the longer one has, too, over all pairs.
        shared = [
            fsum(len(words & other) / max(1, min(len(words), len(other))) for other in news)
            for words in news
        ]
        agreeing = sorted(range(len(texts)), key=lambda each: shared[each], reverse=True)
        messages = [ChatMessage(role="system", content=CHAIR)]
        for each in reversed(agreeing):
            said = ChatMessage(role="assistant", content=texts[each])
            messages += (_user(self.brief.question), said)
        return (*messages, _user(FINAL.format(self.brief.question)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _user(content: str) -> ChatMessage:
    return {"role": "user", "content": content}


def prompts_of(brief: Brief) -> Prompts:
    """Return a run's prompts: the council's, or the built-in model's."""
    profile = brief.profile
    if not profile.demonstration:
        return Prompts(brief)
    needs_more = brief.history.turns or brief.files or brief.context or profile.criteria
    if needs_more or profile.answer_format != "plain" or profile.strategy != "consensus":
        return ShortPrompts(brief)
    return BarePrompts(brief)
