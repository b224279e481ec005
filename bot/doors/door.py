"""What every door does: a program's question becomes a run, which the program follows until it is over.

It is asked as people ask: by the action table, through the same access, budgets, limits and queue.
Nothing is posted for it. A request that is sent again takes over its run, so that it is paid for once.
"""

import asyncio
import hashlib
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from weakref import WeakValueDictionary

import orjson
import structlog

from bot.actions import Actions, Actor, Incoming, Payload, Responder
from bot.app import Library
from bot.errors import OverLimit, Refusal
from bot.inputs.files import FileReader
from bot.past.pages import Sheet
from bot.service.accept import NO_HISTORY, Question
from bot.service.access import NOBODY, Requester
from bot.service.commands import OVERRIDABLE, Command, Given, RunOptions
from bot.service.delivery.venue import ProgramVenue, Venue
from bot.service.dispatcher import Dispatcher
from bot.service.limits import NANO, Limits
from bot.service.runs import Runs
from bot.terminal.spending import STDIO
from bot.view.run import RunView, run_view
from bot.view.wording import commands
from bot.view.wording import doors as wording
from council.brief import Attachment, Ceilings, History
from council.document.conversation import Source, timestamp
from council.estimate import Estimate
from council.tasks import Stop
from storage.errors import ConversationNotFound, StorageError
from storage.journal.journal import Journal
from storage.journal.rows import OpenRun, RunRow
from storage.scope import TERMINAL, Scope
from storage.tokens import ProgramToken

log = structlog.get_logger()

KEPT_SECONDS = 24 * 3600
"""How long a request with an idempotency key joins its run."""
AGAIN_SECONDS = 60.0
"""How long after its end a run is taken over by the same request."""
LOOK_SECONDS = 1.0
"""Between two looks at what other processes may have done to a run: ended, stopped or forgotten it."""
STALE = timedelta(minutes=15)
"""A run that was accepted longer ago holds nobody up: its process may have died."""
PRICES_SECONDS = 5.0
"""How long an estimate waits for the models' prices."""


class OtherRequest(Refusal):
    """The same idempotency key came with another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a token's name and scope, its profile, and what a day may cost in US dollars.

    `id` tells a token from a later one of the same name.
    """

    id: str
    name: str
    scope: Scope
    profile: str | None = None
    day: float | None = None

    @classmethod
    def of(cls, token: ProgramToken) -> "Caller":
        day = None if token.day_limit is None else token.day_limit / NANO
        return cls(id=token.id, name=token.name, scope=token.scope, profile=token.profile, day=day)

    @classmethod
    def at_terminal(cls, day: float | None) -> "Caller":
        return cls(id=STDIO, name=STDIO, scope=Scope(TERMINAL, None, None), day=day)

    @property
    def place(self) -> Source:
        scope = self.scope
        return Source(
            platform=scope.platform, workspace=scope.workspace, channel=scope.channel, program=self.name
        )

    @property
    def requester(self) -> Requester:
        channel = self.scope.channel
        places = frozenset({channel}) if channel else NOBODY
        return Requester(workspace=self.scope.workspace, places=places, is_program=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What a program asks: `max_cost` in US dollars; `history` and `files` are data beside the question.

    `pictures` are the contents of the files' pictures in Base64, by SHA-256. `key` makes it the same
    request however often it is sent. Without one, `body` is the same for the same request: one whose
    client has left may be sent again.
    """

    text: str
    profile: str | None = None
    max_cost: float | None = None
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    history: History = NO_HISTORY
    files: tuple[Attachment, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    key: str | None = None
    body: str | None = None

    @property
    def digest(self) -> str:
        said = (
            self.text,
            self.profile,
            self.max_cost,
            *map(self.own.get, OVERRIDABLE),
            self.history.model_dump(),
            [file.model_dump() for file in self.files],
        )
        return hashlib.sha256(orjson.dumps(said)).hexdigest()


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is; `view` is `None` where another process carries it out, or nobody any more."""

    run: RunRow
    view: RunView | None

    @property
    def is_over(self) -> bool:
        return self.run.is_over or (self.view is not None and self.view.is_over)


@dataclass(slots=True)
class _Reply(Responder):
    """A responder that keeps what is said and shown."""

    venue_for: Callable[[RunRow], Venue]
    said: list[str] = field(default_factory=list[str])
    sheets: list[Sheet] = field(default_factory=list[Sheet])

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        del turned
        self.sheets.append(sheet)

    def venue(self, run: RunRow) -> Venue:
        return self.venue_for(run)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()


@dataclass(slots=True, eq=False)
class Changes:
    """What a follower of a run knows of it: when there is something new to read.

    `is_gone` says whether its connection is closed, `is_whole` that it was sent the whole answer.
    """

    is_gone: Callable[[], bool] = lambda: False
    is_whole: bool = False
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.happened.wait()
        self.happened.clear()


class ProgramQueue:
    """Where programs' runs wait: behind their own process's, and others' with the same data.

    `council run` and several `council mcp` may work from one folder or database. People go first: a
    program's run begins once the channel's runs, of any process, leave it a place.
    """

    def __init__(
        self,
        limits: Limits,
        journal: Journal,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.limits = limits
        self._runs = journal
        self._now = now
        self._sleep = sleep
        self._begun: set[str] = set()

    @asynccontextmanager
    async def place(self, run: RunRow, stop: Stop) -> AsyncGenerator[None]:
        """Wait until others leave a place to a run that has its turn here, and hold it."""
        while stop.members.cause is None and not await self._has_place(run):
            await self._sleep(LOOK_SECONDS)
        self._begun.add(run.id)
        try:
            yield
        finally:
            self._begun.discard(run.id)

    async def check(self, here: Source) -> None:
        """Raise `OverLimit` if too many questions of a program or in its channel aren't answered yet."""
        found = await self._open(here)
        limits = self.limits
        own = sum(run.program == here.program for run in found)
        if own >= limits.waiting_per_user + limits.runs_per_user:
            raise OverLimit(commands.too_many_of_person(limits.waiting_per_user))
        if sum(run.is_here for run in found) >= limits.waiting_per_channel + limits.runs_per_channel:
            raise OverLimit(commands.too_many_of_channel(limits.waiting_per_channel))

    async def _has_place(self, run: RunRow) -> bool:
        try:
            found = await self._open(run.origin)
        except StorageError as error:  # the run finds out by itself
            log.warning("runs_not_counted", run=run.id, reason=error)
            return True
        others = (each for each in found if each.id != run.id)
        begun = [each for each in others if each.has_begun or each.id in self._begun]
        own = sum(each.program == run.origin.program for each in begun)
        here = sum(each.is_here for each in begun)
        return here < self.limits.runs_per_channel and own < self.limits.runs_per_user

    async def _open(self, here: Source) -> list[OpenRun]:
        return await self._runs.open_runs(here, timestamp(self._now() - STALE))


@dataclass(eq=False)
class Door:
    """Asks, follows and looks up for programs.

    `queue` counts what other processes have under way. `holds` says that each run needs a lock of its
    own: other processes then know that it is being carried out.
    """

    dispatcher: Dispatcher
    _actions: Actions
    _library: Library
    _runs: Runs
    queue: ProgramQueue | None = None
    holds: bool = False
    reader: FileReader = field(default_factory=FileReader)
    followers: defaultdict[str, set[Changes]] = field(
        default_factory=lambda: defaultdict[str, set[Changes]](set)
    )
    _beginning: set[asyncio.Future[RunRow]] = field(default_factory=set[asyncio.Future[RunRow]])
    _looking: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )

    async def ask(self, caller: Caller, asked: Inquiry) -> RunRow:
        async with self.asking(caller, asked) as (run, _):
            return run

    @asynccontextmanager
    async def asking(
        self, caller: Caller, asked: Inquiry, is_gone: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[tuple[RunRow, Changes]]:
        """Yield the run of a request, followed until the block ends. Raises `Refusal`.

        It is that of the request's key, or one of the same body that nobody follows any more, or a new
        one, which is followed from before it can be found.
        """
        prefix, run_id = f"program:{caller.id}:body:{asked.body}:", str(uuid.uuid4())
        looking = self._looking.setdefault(prefix, asyncio.Lock())
        with ExitStack() as following:
            async with looking:
                entry_key, run = f"{prefix}{run_id}", None
                if asked.key is not None:
                    entry_key, run = await self._keyed(caller, asked.key)
                elif asked.body is not None:
                    run = await self._left(f"{caller.scope.platform}:{prefix}")
                changes = following.enter_context(self.following(run.id if run else run_id, is_gone))
                if run is None:
                    # A client that gives up must not leave a run that is recorded and never begun.
                    beginning = asyncio.ensure_future(self._begin(caller, asked, entry_key, run_id))
                    self._beginning.add(beginning)
                    beginning.add_done_callback(self._beginning.discard)
                    run = await asyncio.shield(beginning)
                    if run.id != run_id:
                        changes = following.enter_context(self.following(run.id, is_gone))
                elif not run.is_over:
                    await self._take_up(run)
            if asked.key is not None and run.brief.request != asked.digest:
                raise OtherRequest(
                    "Another request had this idempotency key before. Use a new key, or send the same "
                    "request again."
                )
            yield run, changes
            if changes.is_whole and asked.key is None:
                async with looking:  # nobody looks meanwhile who would find it still
                    try:
                        await self._library.journal.let_go(run.id)
                    except StorageError as error:  # the same request gets the answer once more
                        log.warning("run_not_let_go", run=run.id, reason=error)

    async def _left(self, prefix: str) -> RunRow | None:
        """Return a run that nobody follows any more, or a failed one, whose failure is anybody's."""
        for run in await self._library.journal.repeatable(prefix, AGAIN_SECONDS):
            stop = self.dispatcher.tasks.stops.get(run.id)
            is_stopped = run.stops > 1 or (stop is not None and stop.everything.cause is not None)
            if run.status == "failed" or not (is_stopped or self.is_followed(run.id)):
                return run
        return None

    async def _take_up(self, run: RunRow) -> None:
        """Continue an unfinished run that nobody carries out, as after a restart."""
        tasks = self.dispatcher.tasks
        if self.holds or run.id in tasks or tasks.is_draining:
            return
        current = await self._library.journal.get(run.id)  # it may have ended since it was found
        if current and not current.is_over:
            await tasks.resume([current], self.venue_of)

    async def _keyed(self, caller: Caller, key: str) -> tuple[str, RunRow | None]:
        entry_key = f"program:{caller.id}:key:{hashlib.sha256(key.encode()).hexdigest()}"
        while (earlier := await self._find(caller, entry_key)) and self._runs.recorder.since(
            earlier.created_at
        ) > KEPT_SECONDS:
            entry_key = f"{entry_key}:{earlier.created_at}"
        return entry_key, earlier

    async def _find(self, caller: Caller, entry_key: str) -> RunRow | None:
        return await self._library.journal.find(f"{caller.scope.platform}:{entry_key}")

    async def _begin(self, caller: Caller, asked: Inquiry, entry_key: str, run_id: str) -> RunRow:
        question = Question(
            text=asked.text,
            source=caller.place,
            entry_key=entry_key,
            standing=caller.requester,
            asker=wording.program(caller.name),
            attachments=asked.files,
            pictures=asked.pictures,
            options=RunOptions(profile=asked.profile or caller.profile, own=asked.own),
            history=asked.history,
            ceilings=Ceilings(run=asked.max_cost, day=caller.day),
            request=asked.digest,
            run_id=run_id,
        )
        if self.queue:
            await self.queue.check(caller.place)
        async with AsyncExitStack() as held:
            if self.holds:  # before it is there to be found: another process would resume it at once
                await held.enter_async_context(self._library.locks.acquire(run_id))
            run = await self._actions.ask(question, _Reply(self.venue_of))
            if run is not None:
                if self.holds:
                    self.dispatcher.tasks.spawn(self._hold(run.id, held.pop_all()))
                return run
        # The same request came twice at once.
        earlier = await self._find(caller, entry_key)
        if earlier is None:
            raise Refusal(wording.FORGOTTEN)
        return earlier

    async def _hold(self, run_id: str, held: AsyncExitStack) -> None:
        async with held:
            while run_id in self.dispatcher.tasks:  # noqa: ASYNC110 - only its end shows it
                await asyncio.sleep(LOOK_SECONDS)

    def venue_of(self, run: RunRow) -> Venue:
        """Return where a run is shown: nowhere; those who wait for it learn of changes."""

        def notify() -> None:
            for changes in self.followers.get(run.id, ()):
                changes.happened.set()

        return ProgramVenue(notify)

    @contextmanager
    def following(
        self, run_id: str, is_gone: Callable[[], bool] = lambda: False
    ) -> Generator["Changes"]:
        changes = Changes(is_gone)
        self.followers[run_id].add(changes)
        try:
            yield changes
        finally:
            self.followers[run_id].discard(changes)
            if not self.followers[run_id]:
                del self.followers[run_id]

    def is_followed(self, run_id: str) -> bool:
        """Return whether anybody waits for a run, or was just sent all of it."""
        return any(each.is_whole or not each.is_gone() for each in self.followers.get(run_id, ()))

    async def progress(self, run_id: str, caller: Caller) -> RunProgress:
        """Return how far a run of the caller's scope is. Raises `Refusal`."""
        run = await self.dispatcher.run(run_id, caller.place)
        view = self.dispatcher.tasks.view_of(run_id)
        if view and (view.is_over or not run.is_over):  # its last event may be still on its way
            return RunProgress(run, view)
        if not run.is_over or run.error:
            return RunProgress(run, None)
        try:
            conversation = await self._library.store.load(run.conversation_id)
        except ConversationNotFound as error:
            raise Refusal(wording.FORGOTTEN) from error
        return RunProgress(run, await asyncio.to_thread(run_view, conversation, run.id))

    async def until_over(self, run_id: str, caller: Caller, seconds: float) -> RunProgress:
        """Return how far a run is, as soon as it is over or so many seconds are. Raises `Refusal`."""
        by = asyncio.get_running_loop().time() + seconds
        with self.following(run_id) as changes:
            while True:
                progress = await self.progress(run_id, caller)
                left = by - asyncio.get_running_loop().time()
                if progress.is_over or left <= 0:
                    return progress
                await changes.wait(min(left, LOOK_SECONDS))

    async def cancel(self, run_id: str) -> None:
        """End a run that nobody follows any more, as two presses of Stop do."""
        if stop := self.dispatcher.tasks.stops.get(run_id):
            stop.everything.cancel("stopped")  # before anything is awaited: nobody takes it over
        with suppress(Refusal):  # it is over
            await self.dispatcher.tasks.stop(run_id)
            await self.dispatcher.tasks.stop(run_id)

    async def look_up(self, caller: Caller, command: Command, given: Given) -> Sheet:
        """Return what one of the commands for past answers shows there. Raises `Refusal`."""
        reply = _Reply(self.venue_of)
        incoming = Incoming(
            actor=Actor.known(wording.program(caller.name), caller.requester, is_admin=False),
            place=caller.place,
            action=command.name,
            payload=Payload(given=given),
        )
        await self._actions.handle(incoming, reply)
        return reply.sheets[0]

    async def estimate(self, caller: Caller, asked: Inquiry) -> tuple[Estimate, float | None]:
        """Return what a question may cost; no model is called. Raises `Refusal`.

        Beside it are the median dollars of the caller's last answers, `None` below three.
        """
        here = await self.dispatcher.in_force(caller.place)
        profile = here.asked(RunOptions(profile=asked.profile or caller.profile))
        here.check(caller.place, caller.requester, profile.name)
        with suppress(TimeoutError):
            async with asyncio.timeout(PRICES_SECONDS):
                await self._runs.costs.catalog.refresh()
        question = Question(
            text=asked.text,
            source=caller.place,
            entry_key="",
            standing=caller.requester,
            attachments=asked.files,
            history=asked.history,
        )
        typical = await self._library.index.typical(caller.place)
        found = self._runs.costs.estimate(question.brief(profile, self._runs.recorder.entropy))
        return found, typical.cost if typical else None

    async def resume(self, *, stdio: bool) -> None:
        """Continue what an earlier process left: the runs over standard input, or those of tokens."""
        found = await self._library.journal.unfinished_of_programs()
        for run in (each for each in found if (each.origin.program == STDIO) == stdio):
            async with AsyncExitStack() as held:
                if self.holds:
                    if not await held.enter_async_context(self._library.locks.acquire(run.id)):
                        continue
                    # Another process may have brought it to its end meanwhile.
                    current = await self._library.journal.get(run.id)
                    if current is None or current.delivery == "shown":
                        continue
                self.dispatcher.tasks.stop_of(run)
                await self.dispatcher.tasks.resume([run], self.venue_of)
                if self.holds:
                    self.dispatcher.tasks.spawn(self._hold(run.id, held.pop_all()))

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """End the runs of this process that another has stopped or forgotten."""
        tasks = self.dispatcher.tasks
        while True:
            await asyncio.sleep(seconds)
            if not (running := [*tasks.stops]):
                continue
            try:
                marks = await self._library.journal.marks(running)
            except StorageError as error:
                log.warning("stops_not_read", reason=error)
                continue
            for run_id in running:
                presses = marks.get(run_id)  # without any, it was forgotten
                if (stop := tasks.stops.get(run_id)) is None:
                    continue
                if presses is None or presses > 1:
                    stop.everything.cancel("stopped")
                elif presses and not stop.pressed:
                    stop.press()
