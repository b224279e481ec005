"""Keeps one run's card and thread in step with it.

The card shows the newest state: changes are coalesced, one edit is under way at a time, and the
last state is never lost. As soon as the run is over its asker is told, once: on the card and by a
mention, which ends the digest in its thread; where the card is lost, by a new card in the channel or
by direct message. The thread gets each message once, in order, even if one process begins it and
another completes it.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

import structlog

from bot.errors import Gone, Malformed, NotAllowed, NoThread, Revoked, Unreachable, VenueError
from bot.render.markdown import render
from bot.service.delivery.chat import Button, ButtonAction, Card, File, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import CARD_AGAIN, Ledger, Mention, Receipt, Sent
from bot.service.delivery.venue import Venue
from bot.service.runs import Runs
from bot.transcript.html import to_html
from bot.transcript.markdown import to_markdown
from bot.view.card import answer, card, title
from bot.view.message import Line, Message, Title
from bot.view.run import RunView, fold
from bot.view.thread import PartKind, ThreadPart, record, thread
from bot.view.wording import commands as wording
from council.document.conversation import Conversation
from council.document.results import was_skipped
from council.events import Event, MemberStarted, RunAdmitted, RunCompleted, RunFailed, RunQueued
from council.tasks import TaskGroup, offload_slowly
from storage.errors import StorageError
from storage.journal.progress import Posts
from storage.journal.rows import Delivery, MentionState, RunRow

log = structlog.get_logger()


WITH_DIGEST = "digest"  # the key of a mention that is part of it


class RunRecord:
    """What is kept of one run: where it is shown now, and what it has posted, by key and content.

    Whatever was posted is on record, so a process that continues the run doesn't post it again; the
    `ledger` has what may have arrived without a response.
    """

    def __init__(self, run: RunRow, runs: Runs, posts: Posts) -> None:
        self.run = run
        self.posts = posts
        self.ledger = Ledger(run.telling, self._note)
        self.acknowledgements = runs.acknowledgements
        self._journal, self._store = runs.costs.journal, runs.costs.store
        self._where = run.origin
        self._is_forgotten = False

    async def place(self, **where: str | None) -> None:
        """Keep new values of a `Source`'s `message`, `card` or `thread`, as soon as they are known."""
        self._where = self._where.model_copy(update=where)
        try:
            await self._journal.place(self.run.id, self._where)
        except StorageError:  # only a restart now would have to look for the card
            log.exception("place_not_recorded", run=self.run.id)
        for message in {where.get("message"), where.get("card")} - {None}:
            await self._retract_if_forgotten(str(message))

    async def _retract_if_forgotten(self, message: str) -> bool:
        """Have a message deleted if the run was forgotten while it was posted; return whether it was."""
        if await self.run_exists():
            return False
        try:
            await self._journal.work.retract(self._where, message)
        except StorageError:  # nothing else names it
            log.exception("message_not_listed", run=self.run.id, message=message)
        return True

    async def _note(self, telling: MentionState) -> None:
        try:
            await self._journal.record_mention(self.run.id, telling)
        except StorageError:  # only a restart now could mention the asker once more
            log.exception("telling_not_recorded", run=self.run.id)

    async def run_exists(self) -> bool:
        try:
            return await self._journal.origin(self.run) is not None
        except StorageError:  # if the journal can't be read, nothing counts as forgotten
            log.exception("run_not_read", run=self.run.id)
            return True

    async def is_follow_up(self) -> bool:
        """Return whether an earlier run has answered in the same conversation."""
        try:
            answers = (await self._store.load(self.run.conversation_id)).answers
        except StorageError:  # this run's answer isn't stored either
            return False
        return any(each.run_id != self.run.id for each in answers[:1])

    async def render_page(self) -> File:
        return await offload_slowly(page_of, await self._store.load(self.run.conversation_id))

    def receipt(self, key: str, content: str) -> Receipt | None:
        """Return the receipt of a post, or nothing if it is on record, or the run no longer is."""
        if self._is_forgotten or self.posts.has(key, content):
            return None
        return Receipt(key, self.ledger, self.keeping(key, content))

    def keeping(self, key: str, content: str) -> Sent:
        """Return what keeps the id of a post."""

        async def keep(message: str) -> None:
            try:
                await self.posts.record(key, content, message)
            except StorageError:  # it is posted; only a restart at this moment could post it again
                if await self._retract_if_forgotten(message):
                    self._is_forgotten = True
                else:
                    log.exception("post_not_recorded", key=key)

        return keep

    def has_mentioned(self, mention: Mention) -> bool:
        return any(self.posts.has(key, mention.text) for key in ("mention", WITH_DIGEST))


def page_of(conversation: Conversation) -> File:
    """Return a conversation's transcript as an HTML page; too slow for an event loop."""
    return File(f"council-{conversation.id[:8]}.html", to_html(conversation))


def files_of(conversation: Conversation) -> tuple[File, ...]:
    """Return a conversation's transcript, as a page and as Markdown; too slow for an event loop."""
    markdown = File(f"council-{conversation.id[:8]}.md", to_markdown(conversation))
    return page_of(conversation), markdown


OVER = (RunCompleted, RunFailed)

THREAD_TITLE = 90

REPLACED = "card replaced"
"""The key under which it is remembered that a lost card was replaced."""

DIGEST_SECONDS = 5.0
"""How long after the answer the mention waits for what comes before it in the thread."""


class Presenter:
    """Shows one run in its venue: `observe` its events, and `show` until it is over.

    `posts` are those on record below its card.
    """

    def __init__(
        self,
        run: RunRow,
        view: RunView,
        venue: Venue,
        posts: Posts,
        runs: Runs,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._view = view
        self._heard: list[tuple[Event, float]] = []
        self._run = run
        self._venue = venue
        self._on_record = RunRecord(run, runs, posts)
        self._metrics = runs.metrics
        self._clock = clock
        self._changed = asyncio.Event()
        self._kinds: set[type[Event]] = set()
        self._observed = 0
        self._changes = 0
        self._opening: asyncio.Task[None] | None = None
        self._thread: tuple[ThreadPart, ...] | None = None
        self._whole: set[str] = set()
        self._is_open = self._has_own = self._follows = False
        self._why: tuple[Line, ...] = ()
        self._mention: Mention | None = None
        self._is_complete = False
        self._fits = True
        self._is_stalled = False
        self._lost: VenueError | None = None
        self._refused: VenueError | None = None

    @property
    def view(self) -> RunView:
        """The run as far as it has been heard."""
        # Folded only on access: a replayed run's events come all at once and are viewed once.
        for event, now in self._heard:
            self._view = fold(self._view, event, now)
        self._heard.clear()
        return self._view

    def observe(self, event: Event) -> None:
        """Take in an event; what it changes is shown later."""
        self._heard.append((event, self._clock()))
        self._kinds.add(type(event))
        self._changes += 1
        self._observed += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    async def caught_up(self) -> None:
        """Wait until the run asks something new, waits in the queue or is over."""
        await self._until(lambda: not self._kinds.isdisjoint({RunQueued, MemberStarted, *OVER}))

    async def ended_without_answer(self) -> bool:
        """Wait until the run is over; return whether it has no answer."""
        await self._until(lambda: self.view.is_over)
        return self.view.final is None

    def card(self) -> Card:
        buttons = tuple(Button(action, self._run.id) for action in self._actions())
        return Card(card(self.view, self._clock()), buttons)

    def _actions(self) -> tuple[ButtonAction, ...]:
        if not self.view.is_over:
            return ("stop",)
        if self.view.error is None:
            notes = self.view.final and self.view.final.notes
            follow: ButtonAction = "answer" if notes and notes.ask else "follow"
            again: ButtonAction = "full" if was_skipped(self.view.message.depth) else "again"
            return (follow, "transcript", again, "helpful", "unhelpful")
        return ("retry", "over")

    async def post_card(self) -> bool:
        """Post the run's first card; return whether the channel takes it."""
        await self._until(lambda: not self._kinds.isdisjoint({RunQueued, RunAdmitted, *OVER}))
        return await self._post_card()

    async def show_place(self) -> None:
        if not self._lost:
            try:
                await self._edit()
            except VenueError as error:  # the next change is another chance
                log.info("card_not_edited", reason=error)

    async def _post_card(self) -> bool:
        try:
            await self._venue.post_card(
                self.card, Receipt("card", self._on_record.ledger, self._card_is)
            )
        except VenueError as error:
            log.info("card_not_posted", reason=error)
            self._lost = error
            return isinstance(error, Unreachable)
        return True

    async def pick_up(self) -> None:
        """Continue on the card of an earlier process; a run that is over gets no other live card."""
        try:
            is_there = await self._venue.pick_up(self._on_record.posts.messages, self._card_is)
        except VenueError as error:
            self._lost = error
            return
        if is_there:
            return
        if self.view.is_over:
            self._lost = Gone(wording.NO_CARD)
        else:
            await self._post_card()

    async def _card_is(self, message: str) -> None:
        await self._on_record.place(message=message)

    async def _card_moved(self, message: str) -> None:
        await self._on_record.place(card=message)

    async def show(self) -> Delivery | None:
        """Keep card and thread in step until the run is over, its asker told, and all of it shown.

        Returns `untold` if the asker could not be told, and `None` if the thread isn't complete. A
        program has no thread: it fetches the answer.
        """
        if self._run.origin.program is not None:
            await self._follow()
            await self._edit()
            return "shown"
        async with TaskGroup() as group:
            self._opening = group.create_task(self._open_early())
            await self._follow()
            is_told = await self._tell()
        if not is_told:
            return "untold"
        await self._complete()
        return None if self._is_stalled else "shown"

    async def _follow(self) -> None:
        """Edit the card while the run continues, up to its last state but one."""
        seen = -1
        while not self.view.is_over:
            while self._observed == seen:
                await self._changed.wait()
            seen = self._observed
            if self._lost or self.view.is_over:
                continue
            try:
                await self._edit()
            except (Gone, NotAllowed) as error:
                log.info("card_lost", reason=error)
                self._lost = error
            except VenueError as error:  # the next change is another chance
                log.info("card_not_edited", reason=error)

    async def _edit(self) -> None:
        is_over, shown = False, 0

        def newest() -> Card:
            nonlocal is_over, shown
            is_over = self.view.is_over
            shown, self._changes = shown + self._changes, 0
            return self.card()

        await self._on_record.acknowledgements.acknowledged()
        fits = await self._venue.edit_card(newest, self._urgency, self._card_moved)
        self._metrics.edited(self._run.origin.platform, shown)
        if is_over:
            self._fits, self._is_complete = fits, True

    def _urgency(self) -> Urgency:
        return Urgency.ANSWER if self.view.is_over else Urgency.PROGRESS

    # ── telling the asker ────────────────────────────────────────────────────────────────────

    async def _tell(self) -> bool:
        """Tell the asker in the first place that still exists: card, channel, direct message.

        Who deletes a card that replaced a lost one, too, doesn't want it there.
        """
        text = wording.FAILED if self.view.error else wording.DONE
        sent = self._on_record.keeping("mention", text)
        mention = self._mention = Mention(text, sent, self._on_record.ledger)
        places = (
            (lambda: self._lost is None, self._tell_on_card),
            (
                lambda: self._lost and not self._on_record.ledger.is_spent(REPLACED),
                self._tell_in_channel,
            ),
            (lambda: True, self._tell_directly),
        )
        for is_left, tell in places:
            if not await self._on_record.run_exists():  # forgotten: nobody is told
                return True
            try:
                if is_left():
                    await tell(mention)
                    return True
            except (Unreachable, Revoked) as error:
                log.warning("not_told", reason=error)
                return self._on_record.has_mentioned(mention)
            except VenueError as error:
                log.info("place_lost", place=tell.__name__.strip("_"), reason=error)
        return False

    async def _tell_on_card(self, mention: Mention) -> None:
        try:
            if not self._is_complete:
                await self._complete_card()
        except (Gone, NotAllowed, Malformed) as error:
            self._lost = error
            raise
        async with TaskGroup() as group:
            ready = group.create_task(self._prepare_thread())
            await asyncio.wait({ready}, timeout=DIGEST_SECONDS)
            if ready.done() and not self._is_stalled:
                await self._post_thread("digest", takes_silence=False)
            if not self._on_record.has_mentioned(mention):
                await self._venue.mention(mention)

    async def _complete_card(self) -> None:
        try:
            await self._edit()
        except Malformed:
            log.exception("card_malformed")
            plain = (Line(title(self.view)), Line(wording.NOT_ON_CARD))  # any platform can take that
            shown = self.card()
            await self._venue.edit_card(
                lambda: replace(shown, message=Message(shown.message.key, plain)),
                self._urgency,
                self._card_moved,
            )
            self._fits, self._is_complete = False, True

    async def _tell_in_channel(self, mention: Mention) -> None:
        """Replace a lost card; where two may be there already, their asker is only mentioned."""

        async def placed(card: str) -> None:
            await self._on_record.place(message=card, card=None, thread=None)
            await self._on_record.ledger.settle(REPLACED)

        if self._on_record.has_mentioned(mention):
            return
        if self._on_record.ledger.is_spent(CARD_AGAIN):
            await self._venue.mention(mention, link=False)
            return
        self._fits = await self._venue.repost(self.card(), mention, placed)
        self._lost, self._is_complete = None, True
        self._is_open, self._refused = False, None  # a thread may open on the new card

    async def _tell_directly(self, mention: Mention) -> None:
        if not self._on_record.has_mentioned(mention):
            await self._venue.direct(Card(self.card().message), mention)

    # ── the thread ───────────────────────────────────────────────────────────────────────────

    async def _open_early(self) -> None:
        """Open the thread once the ranking is known or the chairman writes: the card refers to it."""

        def is_due() -> bool:
            ranked = self.view.stage("stage2").progress == "done"
            return ranked or self.view.stage("stage3").progress != "waiting"

        await self._until(lambda: self.view.is_over or is_due())
        if not self.view.is_over:
            with self._taking_refusals():
                await self._open_thread()

    async def _prepare_thread(self) -> None:
        """Open the thread, and post what comes before the digest: the rest of a long answer."""
        if self._opening:
            await self._opening
        if self._refused:
            return
        with self._taking_refusals():
            await self._on_record.acknowledgements.acknowledged()
            if self._thread is None:  # once they are final, they stay the same
                # Counting changed words and choosing critics' sentences would block the loop too long.
                self._thread = await offload_slowly(thread, self.view)
                self._follows = await self._on_record.is_follow_up()
            if not self._is_open and (self._thread or self.view.final):
                await self._open_thread()
        await self._post_thread("answer")

    async def _post_thread(self, kind: PartKind, *, takes_silence: bool = True) -> None:
        """Post the thread's messages of one kind that aren't posted yet."""
        if self._refused or not self._is_open:
            return
        had_own = self._has_own
        with self._taking_refusals(takes_silence=takes_silence):
            for at, each in enumerate(shown := self._shown()):
                if each.kind == kind and each.message.key not in self._whole:
                    blocks = (*(() if at else self._why), *each.message.blocks)
                    await self._post(
                        replace(each.message, blocks=blocks),
                        Urgency.THREAD if kind == "member" else Urgency.ANSWER,
                        self._buttons(each, shown),
                        self._mention if kind == "digest" else None,
                    )
        if had_own and not self._has_own:
            await self._post_thread(kind, takes_silence=takes_silence)

    async def _post(
        self, message: Message, urgency: Urgency, buttons: tuple[Button, ...], mention: Mention | None
    ) -> None:
        """Post a message in as many parts as it takes; below the last one its buttons and a mention.

        Raises `VenueError`. A part that the platform can't take is replaced by a line that says so.
        """
        record = self._on_record
        await record.acknowledgements.acknowledged()
        parts = [*await self._venue.parts(message)]
        parts[-1:] = [replace(part, buttons=buttons) for part in parts[-1:]]
        for number, part in enumerate(parts):
            key = f"{message.key}.{number}"
            ends = mention if number == len(parts) - 1 else None
            receipt = record.receipt(key, part.content)
            if not receipt or (ends and record.posts.has(WITH_DIGEST, ends.text)):
                continue
            try:
                if ends and not record.has_mentioned(ends):
                    said = replace(ends, sent=record.keeping(WITH_DIGEST, ends.text))
                    await self._venue.mention(said, part)
                else:
                    await self._venue.post(part, key, receipt, urgency)
            except Malformed:
                log.exception("part_malformed", key=key)
                await self._venue.post(Part(wording.NOT_IN_THREAD), key, receipt, urgency)
        self._whole.add(message.key)

    def _shown(self) -> list[ThreadPart]:
        """Return what is posted below the card: members' messages below a first question's alone."""
        parts = [*(self._thread or ())]
        is_first = self._has_own and not self._follows and any(each.kind == "digest" for each in parts)
        if not is_first and self.view.profile.thread == "digest":
            parts = [each for each in parts if each.kind == "digest"]
        return [ThreadPart("answer", self._answer()), *parts] if self._is_cut else parts

    def _buttons(self, posted: ThreadPart, shown: list[ThreadPart]) -> tuple[Button, ...]:
        """Return *Open* below a member's message or, where there are none, for each below the digest."""
        if posted.kind == "member":
            return (Button("open", self._run.id, posted.seat),)
        if posted.kind == "answer" or any(each.kind == "member" for each in shown):
            return ()
        return tuple(
            Button("open", self._run.id, each.seat, self.view.seats[each.seat].short)
            for each in self._thread or ()
            if each.kind == "member"
        )

    @contextmanager
    def _taking_refusals(self, *, takes_silence: bool = True) -> Generator[None]:
        """Note why the thread can't be posted; the asker is told in any case.

        A mention that may have arrived isn't followed by another: silence about it is raised.
        """
        try:
            yield
        except (Unreachable, Revoked) as error:
            if not takes_silence:
                raise
            log.warning("thread_stalled", reason=error)
            self._is_stalled = True
        except VenueError as error:
            log.info("thread_given_up", reason=error)
            if isinstance(error, NoThread) and self._has_own:
                self._has_own = False  # what is posted in place is less
            else:
                self._refused = error
        except Exception:
            log.exception("thread_crashed")
            self._is_stalled = True

    async def _open_thread(self) -> None:
        thread_id, why = await self._venue.open_thread(title(self.view)[:THREAD_TITLE])
        self._is_open, self._has_own = True, thread_id is not None
        self._why = (Line(wording.no_thread(why)),) if why else ()
        if thread_id:
            await self._on_record.place(thread=thread_id)

    async def _complete(self) -> None:
        """Post what is left of the thread, or a file with all that was refused there."""
        if self._lost:
            return
        await self._prepare_thread()  # it may be on a new card
        await self._post_thread("digest")
        await self._post_thread("member")
        if self._refused:
            await self._hand_over(str(self._refused), is_cut=self._is_cut)

    @property
    def _is_cut(self) -> bool:
        return not self._fits and self.view.final is not None

    def _answer(self) -> Message:
        blocks = answer(self.view, self.view.final, self._clock()) if self.view.final else ()
        return Message("answer", (Title(title(self.view)), *blocks))

    async def _hand_over(self, why: str, *, is_cut: bool) -> None:
        try:
            note = wording.in_file(why, with_answer=is_cut)
            if receipt := self._on_record.receipt("transcript", note):
                await self._venue.attach(note, receipt, await self._file())
            if is_cut:  # the card says where the rest of the answer is
                await self._venue.edit_card(self.card, self._urgency, self._card_moved)
        except (Unreachable, Revoked) as error:
            log.warning("transcript_stalled", reason=error)
            self._is_stalled = True
        except (VenueError, StorageError) as error:  # the button below the card still sends it
            log.info("transcript_not_posted", reason=error)
        except Exception:
            log.exception("transcript_crashed")
            self._is_stalled = True

    async def _file(self) -> File:
        await self._on_record.acknowledgements.acknowledged()
        if self.view.conversation_id:
            return replace(await self._on_record.render_page(), name=f"council-{self._run.id[:8]}.html")
        said = "\n\n".join(map(render, record(self.view)))
        return File(f"council-{self._run.id[:8]}-thread.md", said)
