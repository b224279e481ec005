"""Takes questions from every platform; `run_tasks` takes each run to its end."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import structlog

from bot.errors import OverLimit, Refusal, Unavailable
from bot.service.admission.access import Admins, Requester, check_place
from bot.service.admission.budgets import Budgets
from bot.service.admission.channels import EffectiveSettings, Operator
from bot.service.admission.limits import Durability
from bot.service.commands import Given, RunOptions
from bot.service.delivery.chat import File
from bot.service.delivery.run_record import files_of
from bot.service.requests.configure import configure
from bot.service.requests.follow_ups import FollowUps
from bot.service.requests.help import Help, Page
from bot.service.requests.question import Question
from bot.service.requests.votes import Votes
from bot.service.run_tasks import RunQueue, RunTasks, VenueOf
from bot.service.runs import Runs
from bot.service.waits import ACCEPT_SECONDS
from bot.service.work import Retract, WorkLoop, retracting
from bot.view.message import Message
from bot.view.run import run_view
from bot.view.thread import opened
from bot.view.wording import commands, failures, inputs
from bot.view.wording.commands import NOT_HERE
from council.brief import Attachment, SentFile
from council.document.conversation import Conversation, Source
from council.profile import Profile
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, StorageError
from storage.index.index import Index
from storage.index.statistics import Typical
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.processes.locks import PLATFORMS, Locks
from storage.work import Do, Kind, Left

log = structlog.get_logger()

TYPICAL_SECONDS = 0.1
"""How long a card may wait for what questions take there."""
LONGEST_QUESTION = 20_000
RETRACT_SECONDS = 8.0
"""How long whoever deletes something waits to hear whether the bot's messages are gone, too."""


class Dispatcher:
    """Accepts questions, and does what is asked of a run; knows no platform."""

    def __init__(
        self,
        *,
        runs: Runs,
        journal: Journal,
        store: Conversations,
        index: Index,
        queue: RunQueue,
        durability: Durability | None = None,
        admins: Admins | None = None,
        locks: Locks | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._runs = runs
        self._journal = journal
        self._store = store
        self._index = index
        self._queue = queue
        self.votes = Votes(store, index, runs.recorder.now)
        self.follow_ups = FollowUps(store)
        self.admins = admins or Admins()
        self.channels = runs.costs.channels
        self.operators = runs.endings.operators
        self.work = WorkLoop(journal.work, locks, sleep)
        durability = durability or Durability()
        self.tasks = RunTasks(runs, journal, store, queue, durability, self.work, clock=clock)

    def open(self, platform: str, retract: Retract, venue_of: VenueOf) -> None:
        """Delete the bot's messages on a platform this way, and show there what couldn't be shown."""
        does: dict[Kind, Do] = {"retract": retracting(retract)}
        if not self._queue.is_shared:  # a worker does it
            does["deliver"] = self.tasks.delivering(partial(self.tasks.show_again, venue_of))
        self.work.open(does, platform)

    async def accept(self, question: Question) -> RunRow | None:
        """Record a question as a run; return `None` if it was delivered before.

        Files without a text hold the question. Raises `Refusal` or `UsageError` with what to tell the
        asker.
        """
        words = question.text.strip()
        files = (*question.attachments, *question.sent)
        text = words or _in_files(files)
        if self.tasks.is_draining:
            raise Unavailable(commands.RESTARTING)
        if not text:
            raise Refusal(commands.NO_QUESTION)
        if len(text) > LONGEST_QUESTION:
            raise Refusal(commands.too_long(LONGEST_QUESTION))
        if not words and all(file.why for file in question.sent) and not question.attachments:
            raise Refusal(inputs.left_out([(file.name, file.why or "") for file in question.sent]))
        entry_key = f"{question.source.platform}:{question.entry_key}"
        by = asyncio.get_running_loop().time() + ACCEPT_SECONDS
        run: RunRow | None = None
        self._runs.acknowledgements.expect(entry_key)
        # Read beside the writing, so that no card waits for it.
        looking = asyncio.create_task(self._look_up_typical(question.source))
        try:
            async with asyncio.timeout_at(by):
                here = await self.channels.in_force(question.place)
            profile = here.asked(question.options)
            here.check(question.source, question.standing, profile.name)
            # A private run is paid for where it takes place.
            budgets = None if question.asked_in else here.budgets
            whole = replace(
                question, text=text, entry_key=entry_key, needs_files=question.needs_files or not words
            )
            run = await self._write_down(whole, profile, by, budgets)
        except (TimeoutError, StorageError) as error:
            log.warning("question_not_taken", reason=error)
            raise Unavailable(commands.NOT_SAVED) from error
        finally:
            if run is None:  # otherwise it is acknowledged by its card
                self._runs.acknowledgements.settle(entry_key)
                looking.cancel()
        if run is not None:
            self.tasks.typical[run.id] = looking
        return run

    async def _look_up_typical(self, here: Source) -> Typical | None:
        """Return what a question takes there, if that is known soon."""
        try:
            async with asyncio.timeout(TYPICAL_SECONDS):
                return await self._index.typical(here)
        except (TimeoutError, StorageError):  # the card is as well without
            return None

    async def _write_down(
        self, question: Question, profile: Profile, by: float, budgets: Budgets | None
    ) -> RunRow | None:
        entry_key, source = question.entry_key, question.source
        context = question.context if profile.context == "thread" else None
        bounds = self._queue.bounds
        try:
            with self.tasks.backlog.admitted(entry_key, source) as is_new:
                async with asyncio.timeout_at(by):
                    continued = question.conversation_id or await self._journal.conversation_in(source)
                    if context and await self._journal.opened_thread(source):
                        context = None  # what was said there is the conversation itself
                # No timeout around this: only the write itself knows whether it was done.
                whole = replace(question, conversation_id=continued, context=context)
                begun = await self._runs.recorder.record(
                    whole, profile, by=by, budgets=budgets, bounds=bounds
                )
        except OverLimit:
            async with asyncio.timeout_at(by):
                if await self._journal.knows(entry_key):
                    return None
            raise
        if bounds or (is_new and not begun.created):
            self.tasks.backlog.release(entry_key)
        return begun.run if begun.created else None

    async def retry(self, run: RunRow, by: Source, standing: Requester, venue_of: VenueOf) -> str:
        """Repeat a run that has no answer, on its card; return what happens. Raises `Refusal`."""
        here = await self.in_force(by)
        here.check(by, standing, run.brief.profile.name)
        if self.tasks.is_draining:
            raise Unavailable(commands.RESTARTING)
        return await self._queue.retry(self.tasks, run, venue_of, by)

    async def stop(self, run_id: str) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happens.

        Raises `Refusal`.
        """
        return await self._queue.stop(self.tasks, run_id)

    async def keep_copy(self, here: Source, conversations: Sequence[str], message: str) -> None:
        """Keep that a message shows these conversations to a channel: it is deleted with them."""
        try:
            await self._journal.work.keep_copy(here, conversations, message)
        except StorageError:  # it is there, and only stays when they are deleted
            log.exception("copy_not_recorded")

    async def retracted(self, platform: str, forgetting: str) -> Left | None:
        """Return which of the bot's messages about what was forgotten are still there, soon after.

        `None` where a platform has none.
        """
        if platform not in PLATFORMS:
            return None
        return await self.work.settled(platform, forgetting, RETRACT_SECONDS)

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before; a platform may deliver it to several."""
        return await self._queue.is_first(click)

    async def run(self, run_id: str, here: Source) -> RunRow:
        """Return the run whose button is pressed or whose form is sent here. Raises `Refusal`."""
        run = await self._journal.get(run_id)
        if run is None:
            raise Refusal(NOT_HERE)
        check_place(run.origin, here)
        return run

    async def pictures(self, run: RunRow) -> dict[str, str]:
        """Return the pictures that came with a run's question, in Base64. Raises `Refusal`."""
        own = [picture for file in run.brief.attachments for picture in file.pictures]
        try:
            return await self._journal.pictures(run, own) if own else {}
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error

    async def run_shown_as(self, here: Source, message: str) -> RunRow | None:
        """Find the run whose card or part is this message. Raises `Refusal`."""
        try:
            run = await self._journal.shown_as(here, message)
        except StorageError as error:
            raise Refusal(failures.explain(error, "")) from error
        if run:
            check_place(run.origin, here)
        return run

    async def transcript(self, run: RunRow) -> tuple[File, ...]:
        """Return a run's conversation as files. Raises `Refusal`."""
        try:
            return await asyncio.to_thread(files_of, await self._stored(run))
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error

    async def _stored(self, run: RunRow) -> Conversation:
        return await self._store.load(run.conversation_id)

    async def opened(self, run: RunRow, seat: int) -> Message:
        """Return what *Open* shows of a member. Raises `Refusal`."""
        if live := self.tasks.view_of(run.id):
            return await asyncio.to_thread(opened, live, seat)
        try:
            conversation = await self._stored(run)
        except ConversationNotFound as error:
            raise Refusal(self._why_no_detail(run)) from error
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        view = await asyncio.to_thread(run_view, conversation, run.id)
        if view is None:
            raise Refusal(self._why_no_detail(run))
        return await asyncio.to_thread(opened, view, seat)

    def _why_no_detail(self, run: RunRow) -> str:
        is_elsewhere = self._queue.is_shared and not run.is_over
        return commands.IN_PROGRESS if is_elsewhere else commands.NOT_KEPT

    async def help(self, here: Source, page: Page = "help") -> Message:
        """Describe the council, the models that see a question, and what was spent here."""
        now = await self.in_force(here)
        default = now.settings["profile"].value
        names = sorted(now.open_profiles, key=lambda name: name != default)
        shown = Help(
            platform=here.platform,
            profiles=[now.profile(RunOptions(profile=name)) for name in names],
            limits=self._queue.limits,
            spent=await self._index.spent(here),
            estimate=self._runs.costs.estimate_short,
            used=await self._runs.costs.used(here),
        )
        return shown.page(page)

    async def configure(
        self, given: Given, who: Source, standing: Requester, *, is_admin: bool
    ) -> Message:
        """Change a channel's settings and show them, with what counts toward its budgets.

        Raises `Refusal`.
        """
        used = self._runs.costs.used
        return await configure(self.channels, given, who, standing, is_admin=is_admin, used=used)

    async def in_force(self, here: Source) -> EffectiveSettings:
        """Return what is in force in a channel. Raises `Refusal`."""
        try:
            return await self.channels.in_force(here)
        except StorageError as error:
            raise Refusal(failures.explain(error, "")) from error

    def reconfigure(self, operator: Operator) -> None:
        """Use this configuration from the next question on; runs keep what they began with."""
        self.channels.operator = operator

    async def profile_names(self, here: Source) -> tuple[str, ...]:
        """Name the councils that can be asked in a channel. Raises `Refusal`."""
        return (await self.in_force(here)).open_profiles


def _in_files(files: Sequence[Attachment | SentFile]) -> str:
    named = [file.name for file in files]
    return commands.in_files(named) if named else ""
