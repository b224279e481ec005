"""Takes questions from every platform; `run_tasks` takes each run to its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.errors import OverLimit, Refusal, Unavailable
from bot.service.accept import Question
from bot.service.access import Admins, Requester, check_place
from bot.service.channels import EffectiveSettings, Operator, configure
from bot.service.commands import Given, RunOptions
from bot.service.delivery.chat import File
from bot.service.help import Help, Page
from bot.service.limits import Budgets
from bot.service.presenter import files_of
from bot.service.run_tasks import RunTasks, VenueOf
from bot.service.runs import answer_in
from bot.service.waits import ACCEPT_SECONDS
from bot.service.work import Retract, retracting
from bot.view.message import Message, printable
from bot.view.run import run_view
from bot.view.thread import opened
from bot.view.wording import commands, failures, inputs
from bot.view.wording.commands import NOT_HERE
from council.brief import Discussion, SentFile
from council.document.conversation import Conversation, Source, Vote, timestamp
from council.profile import Profile
from council.text import clip
from storage.errors import ConversationNotFound, StorageError
from storage.index.statistics import Typical
from storage.journal.rows import RunRow
from storage.processes.locks import PLATFORMS
from storage.work import Do, Kind, Left

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
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class ReasonForm:
    """What asks somebody why a run's answer didn't help."""

    run_id: str


log = structlog.get_logger()

LONGEST_REASON = 500
TYPICAL_SECONDS = 0.1
"""How long a card may wait for what questions take there."""

LONGEST_QUESTION = 20_000

RETRACT_SECONDS = 8.0
"""How long who deletes something waits to learn whether the bot's messages are gone, too."""


class Dispatcher:
    """Accepts questions, and does what is asked of a run; knows no platform."""

    def __init__(self, tasks: RunTasks, admins: Admins | None = None) -> None:
        self.tasks = tasks
        self._runs = runs = tasks.runs
        self._journal = runs.costs.journal
        self._store = runs.costs.store
        self._index = runs.index
        self.admins = admins or Admins()
        self.channels = runs.costs.channels
        self.operators = runs.operators
        self.work = tasks.work

    def open(self, platform: str, retract: Retract, venue_of: VenueOf) -> None:
        """Delete the bot's messages on a platform this way, and show there what couldn't be shown."""
        does: dict[Kind, Do] = {"retract": retracting(retract)}
        if not self.tasks.is_shared:  # a worker does it
            does["deliver"] = self.tasks.delivering(partial(self.tasks.show_again, venue_of))
        self.work.open(does, platform)

    async def accept(self, question: Question) -> RunRow | None:
        """Record a question as a run; return `None` if it was delivered before.

        Files without a text hold the question. Raises `Refusal` or `UsageError` with what to tell the
        asker.
        """
        words = question.text.strip()
        files = (*question.attachments, *question.sent)
        text = words or (commands.in_files([file.name for file in files]) if files else "")
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
        bounds = self.tasks.bounds
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
        return await self.tasks.retry(run, venue_of, by)

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
        is_elsewhere = self.tasks.is_shared and not run.is_over
        return commands.IN_PROGRESS if is_elsewhere else commands.NOT_KEPT

    async def form(self, run: RunRow, here: Source, *, answers: bool = False) -> Form:
        """Return the form for a follow-up to a run, or for what its chairman asked. Raises `Refusal`."""
        profiles = await self.profile_names(here)
        _check(run)
        text = f"{clip(await self._asked_by(run), _LONGEST_ASK)}\n\n" if answers else ""
        name = run.brief.profile.name
        several = profiles if len(profiles) > 1 else ()
        return Form(run.id, text, several, name if name in several else None)

    async def _asked_by(self, run: RunRow) -> str:
        try:
            answer = answer_in(await self._stored(run), run)
        except ConversationNotFound as error:
            raise Refusal(NOT_HERE) from error
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        if answer is None or answer.stage3.notes is None or not answer.stage3.notes.ask:
            raise Refusal(commands.NOTHING_ASKED)
        return answer.stage3.notes.ask

    async def vote(self, run: RunRow, who: Source, *, helpful: bool, reason: str | None = None) -> str:
        """Store somebody's vote on a run's answer, in place of an earlier one; return what is counted.

        The conversation's document has the votes, one per person; the index that is derived from it
        counts them. `None` keeps the reason of an earlier vote that said the same. Raises `Refusal`.
        """
        vote = Vote(
            voter=str(who.user),
            platform=who.platform,
            helpful=helpful,
            at=timestamp(self._runs.recorder.now()),
            reason=None if reason is None else " ".join(printable(reason).split())[:LONGEST_REASON],
        )
        try:
            stored = await self._store.vote(run.conversation_id, run.id, vote)
        except ConversationNotFound as error:
            raise Refusal(commands.NOTHING_TO_VOTE_ON) from error
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        try:
            await self._index.upsert(stored)
            # What was forgotten meanwhile must not come back with its vote.
            if not await self._store.present([run.conversation_id]):
                await self._index.remove(run.conversation_id)
        except StorageError:  # the vote is safe in the document; the index is repaired from it
            log.exception("vote_not_indexed", conversation=run.conversation_id)
        if helpful:
            return commands.COUNTED_HELPFUL
        return commands.REASON_KEPT if vote.reason else commands.COUNTED_UNHELPFUL

    async def help(self, here: Source, page: Page = "help") -> Message:
        """Describe the council, the models that see a question, and what was spent here."""
        now = await self.in_force(here)
        default = now.settings["profile"].value
        names = sorted(now.open_profiles, key=lambda name: name != default)
        shown = Help(
            platform=here.platform,
            profiles=[now.profile(RunOptions(profile=name)) for name in names],
            limits=self.tasks.limits,
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


def follow_up(
    run: RunRow,
    source: Source,
    text: str,
    *,
    options: RunOptions,
    entry_key: str,
    asker: str,
    standing: Requester,
    context: Discussion | None,
    sent: tuple[SentFile, ...],
) -> Question:
    """Return a follow-up to a run as a question of the same conversation; raises `Refusal`.

    `source` is where it is to be answered; `context` is what people wrote there, unless the thread is
    the conversation's own.
    """
    _check(run)
    return Question(
        text=text,
        source=source,
        entry_key=entry_key,
        asker=asker,
        standing=standing,
        sent=sent,
        context=context,
        options=options,
        conversation_id=run.conversation_id,
    )


def _check(run: RunRow) -> None:
    if not run.is_over:
        raise Refusal(commands.STILL_RUNNING)
    if run.status != "answered":
        raise Refusal(commands.NO_ANSWER)
