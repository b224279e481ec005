"""Follow-ups by button: the form that asks for one, and the question made from it.

A form can be opened and submitted by different processes, so everything is looked up again each time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import Refusal
from bot.service.admission.access import Requester
from bot.service.commands import RunOptions
from bot.service.requests.question import Question
from bot.view.wording import commands as wording
from bot.view.wording.commands import NOT_HERE
from bot.view.wording.failures import explain
from council.brief import Discussion
from council.document.conversation import Source
from council.text import clip
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, StorageError
from storage.journal.rows import RunRow

LONGEST_TEXT = 3000
"""How much a form takes: Slack's limit, which is below Discord's."""
_LONGEST_ASK = 1000


@dataclass(frozen=True, slots=True)
class Form:
    """What a form offers: an initial text, and the councils to choose from, one preselected."""

    run_id: str
    text: str = ""
    profiles: tuple[str, ...] = ()
    profile: str | None = None

    @property
    def answers(self) -> bool:
        """Whether it asks for what the chairman wants to know."""
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Opens forms and reads what was entered; knows no platform."""

    store: Conversations

    async def form(self, run: RunRow, profiles: Sequence[str], *, answers: bool = False) -> Form:
        """Return the form for a follow-up to a run, or for what its chairman asked. Raises `Refusal`."""
        _check(run)
        text = f"{clip(await self._ask(run), _LONGEST_ASK)}\n\n" if answers else ""
        name = run.brief.profile.name
        several = tuple(profiles) if len(profiles) > 1 else ()
        return Form(run.id, text, several, name if name in several else None)

    def question(
        self,
        run: RunRow,
        source: Source,
        text: str,
        *,
        profile: str,
        entry_key: str,
        asker: str,
        standing: Requester,
        context: Discussion | None,
    ) -> Question:
        """Return a submitted form as a question of the same conversation; raises `Refusal`.

        `source` is where it is to be answered; `context` is what people wrote there, unless the thread
        is the conversation's own.
        """
        _check(run)
        return Question(
            text=text,
            source=source,
            entry_key=entry_key,
            asker=asker,
            standing=standing,
            context=context,
            options=RunOptions.read({"profile": profile or None}),
            conversation_id=run.conversation_id,
        )

    async def _ask(self, run: RunRow) -> str:
        """Return the question that the chairman's notes ask."""
        try:
            answers = (await self.store.load(run.conversation_id)).answers
        except ConversationNotFound as error:
            raise Refusal(NOT_HERE) from error
        except StorageError as error:
            raise Refusal(explain(error, run.id)) from error
        answer = next((each for each in answers if each.run_id == run.id), None)
        if answer is None or answer.stage3.notes is None or not answer.stage3.notes.ask:
            raise Refusal(wording.NOTHING_ASKED)
        return answer.stage3.notes.ask


def _check(run: RunRow) -> None:
    if not run.is_over:
        raise Refusal(wording.STILL_RUNNING)
    if run.status != "answered":
        raise Refusal(wording.NO_ANSWER)
