"""Looks up what a run needs before its first call, once, and records it with the run."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from bot.inputs.files import FileReader
from bot.inputs.links import PageFetcher, PublicPages
from bot.service.admission.costs import Costs
from bot.service.durable_writes import keep, until_written
from bot.service.inputs import Fetch, Prepared, check, fit, has_inputs, read_inputs
from bot.service.runs.recording import utc_now
from council.brief import Brief, Discussion
from council.cancel import Stop
from council.document.conversation import timestamp
from council.errors import ModelError, RunStopped
from council.events import Emit
from council.prompts.opening import recent, room_beside, turns
from storage.errors import ConversationNotFound
from storage.journal.rows import RunRow

ReadDiscussion = Callable[[Brief, int], Coroutine[Any, Any, Discussion]]
"""Reads the thread in which a brief's question was asked, up to this many tokens."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a run's platform lets it read the thread around a question, and files."""

    read_discussion: ReadDiscussion | None = None
    fetch: Fetch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Completes the briefs of runs."""

    costs: Costs
    files: FileReader = field(default_factory=FileReader)
    fetcher: PageFetcher = field(default_factory=PublicPages)
    now: Callable[[], datetime] = utc_now

    async def prepare(self, run: RunRow, emit: Emit, stop: Stop, sources: Sources) -> Brief:
        """Look up what the first call needs, once, and record it with the run.

        That is: what the models support, the thread around the question, the files of both, and the
        conversation, which is complete now that earlier runs are over. Stop ends the reading, as it ends
        calls. Raises `NothingRead`.
        """
        brief = run.brief
        if brief.started_at is not None:
            return brief
        costs = self.costs
        profile = await costs.catalog.resolve(brief.profile)
        window = costs.catalog.window(profile)
        prepared = Prepared(brief)
        if has_inputs(brief):
            try:
                prepared = await stop.members.guard(self._read(brief, window, sources))
            except ModelError as error:  # it is read again after a Retry
                raise RunStopped from error
        read = prepared.brief.model_copy(
            update={
                "profile": profile,
                "started_at": timestamp(self.now()),
            }
        )

        async def beside_earlier() -> Brief:
            try:
                conversation = await until_written(lambda: costs.store.load(run.conversation_id), emit)
            except ConversationNotFound:  # this question begins it
                brief = fit(read, window)
                history = recent(run.brief.history.turns, room_beside(window, _texts(brief)))
                return brief.model_copy(update={"history": history})
            files = await until_written(lambda: costs.journal.earlier_files(run), emit)
            brief = fit(read, window, files)
            history = recent(turns(conversation), room_beside(window, _texts(brief)))
            return brief.model_copy(update={"history": history})

        brief = await beside_earlier()
        check(brief)
        budgets = await costs.budgets_of(run, emit)
        worst = await costs.worst(budgets, profile, run.origin)
        while True:
            # Now the texts and the prices are known.
            reservation = budgets.reservation(costs.estimate(brief), run.origin, worst)
            preparing = partial(costs.journal.prepare, run.id, brief, reservation, prepared.pictures)
            await keep(preparing, emit)
            # What is forgotten just now would stay in the row, and be sent.
            if brief.history.is_empty or (again := await beside_earlier()) == brief:
                break
            brief = again
        costs.warn(run.origin, budgets)
        return brief

    async def _read(self, brief: Brief, window: int, sources: Sources) -> Prepared:
        """Read the thread around a question, and the files of both."""
        if brief.context and sources.read_discussion:
            room = room_beside(window, _texts(brief))
            context = await sources.read_discussion(brief, room)
            brief = brief.model_copy(update={"context": context})
        return await read_inputs(self.files, brief, sources.fetch, self.fetcher)


def _texts(brief: Brief) -> list[str]:
    files = (*brief.attachments, *brief.earlier)
    return [
        brief.question,
        *(file.text for file in files),
        *(brief.context.texts if brief.context else ()),
    ]
