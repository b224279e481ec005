"""The questions of `--from-history`: this terminal's own, where people voted on the answer."""

from collections.abc import AsyncIterator

from bot.app import Library
from bot.terminal.ask import HERE
from bot.view.wording import evaluation as wording
from council.calls import JsonObject
from council.document.conversation import AssistantMessage, exchanges
from council.evaluation.items import EvalItem
from storage.index.past_answers import Cursor
from storage.scope import Scope

PAGE = 50


async def voted_items(library: Library) -> tuple[EvalItem, ...]:
    """Return a question for each past answer that people voted on, the newest first.

    Only what began a conversation is one: a follow-up can't be understood alone. Examples and answers
    with as many votes for as against are left out. Raises `StorageError`.
    """
    return tuple([item async for item in _voted(library)])


async def _voted(library: Library) -> AsyncIterator[EvalItem]:
    before: Cursor | None = None
    while True:
        page = await library.past_answers.history(Scope.of(HERE), before=before, limit=PAGE)
        for row in page.rows:
            first, *_ = (*exchanges(await library.store.load(row.id)), None)
            if (
                first
                and first.question
                and first.answer
                and (item := _item(row.id, first.question, first.answer))
            ):
                yield item
        if page.older is None:
            return
        before = page.older


def _item(id_: str, question: str, answer: AssistantMessage) -> EvalItem | None:
    """Return a question with what people thought of its answer as the judge's guide."""
    for_it = sum(vote.helpful for vote in answer.votes)
    against = len(answer.votes) - for_it
    if for_it == against or (answer.settings or {}).get("example"):
        return None
    checked: JsonObject = {"checker": "judge"}
    text = answer.stage3.response
    if for_it > against:
        return EvalItem(id=id_, input=question, target=(text,), metadata=checked)
    reasons = [vote.reason for vote in answer.votes if vote.reason and not vote.helpful]
    rubric = tuple(wording.better_than(text, reasons))
    return EvalItem(id=id_, input=question, rubric=rubric, metadata=checked)
