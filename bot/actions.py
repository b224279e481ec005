"""What people can do with the council: one table for all platforms, from command or press to reply.

An adapter reads an `Incoming` from what its platform sends, and says in a `Responder` how to answer
there. Whether somebody may do it is decided here.
"""

# ruff: noqa: ARG002 - a place that doesn't offer something refuses whatever it is given

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, cast

import structlog

from bot.errors import Refusal, VenueError
from bot.past.lookup import Lookup
from bot.past.pages import Choice, Link, Sheet, Verb
from bot.service import access
from bot.service.accept import Question
from bot.service.access import Requester
from bot.service.commands import CONFIG, FORGET, HELP, IN_FULL, PAST, Command, Given, RunOptions, is_help
from bot.service.delivery.chat import File
from bot.service.delivery.posts import Sent
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher, Form, ReasonForm, follow_up
from bot.service.help import LABELS as PAGES
from bot.service.help import Page
from bot.view.message import Line, Message
from bot.view.wording.commands import NOT_OFFERED
from bot.view.wording.past import done
from council.brief import Discussion, SentFile
from council.document.conversation import Source
from storage.journal.rows import RunRow

log = structlog.get_logger()

CLICKS_REMEMBERED = 1000

Action = str
"""A command's name, a button's action, `past` and the verb of a button below past answers, or a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Somebody who acts, and what the platform says about them; what takes time is asked when needed.

    `here` is where they are, without what they belong to; `standing` has both, for any place.
    `is_admin` says whether the platform calls them one.
    """

    name: str
    here: Requester
    standing: Callable[[Source], Awaitable[Requester]]
    is_admin: Callable[[], Awaitable[bool]]

    @classmethod
    def known(cls, name: str, requester: Requester, *, is_admin: bool) -> "Actor":
        """Return one of whom everything is known, and the same everywhere."""

        async def standing(here: Source) -> Requester:
            del here
            return requester

        async def admin() -> bool:
            return is_admin

        return cls(name=name, here=requester, standing=standing, is_admin=admin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What an action is about: a run and a member's seat, past answers, or what was typed."""

    run_id: str = ""
    seat: int = 0
    about: str = ""
    given: Given = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Something that somebody does.

    `key` is the same for every delivery of it. `now` is the platform's word for the moment: what a
    thread holds by then comes before a question that is asked by it.
    """

    actor: Actor
    place: Source
    action: Action
    payload: Payload = Payload()
    key: str = ""
    now: str = ""


class AskerReply(Protocol):
    """How the asker of a question is answered."""

    async def say(self, text: str) -> None:
        """Send a sentence to them alone."""
        ...

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        """Show a sheet, in place of the page they `turned`."""
        ...

    def venue(self, run: RunRow) -> Venue:
        """Return where a run is shown that this has begun."""
        ...


class Responder(AskerReply, Protocol):
    """How somebody who acts is answered where they act; what isn't shared, they alone see.

    What a place doesn't offer is refused there.
    """

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        """Show a sheet to the whole channel; `sent` keeps each message's id.

        Raises `Refusal` if they may not write there.
        """
        raise Refusal(NOT_OFFERED)

    async def form(self, form: Form | ReasonForm) -> None:
        """Open a form. Raises `VenueError` where that is impossible."""
        raise Refusal(NOT_OFFERED)

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        """Hand over a transcript; `sent` keeps its id where a whole channel sees it."""
        raise Refusal(NOT_OFFERED)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what takes longer than the platform waits for a reply."""
        ...

    def venue_of(self, run: RunRow) -> Venue | None:
        """Return where a run is shown already; `None` if it isn't this bot's."""
        raise Refusal(NOT_OFFERED)

    async def below(self, run: RunRow) -> Source:
        """Return where a follow-up to a run is answered. Raises `Refusal` if the bot may not write."""
        raise Refusal(NOT_OFFERED)

    async def asked(self, below: Source, *, is_new: bool) -> None:
        """Tell where a follow-up is answered, or that it was asked before."""
        raise Refusal(NOT_OFFERED)


Handler = Callable[[Incoming, Responder], Awaitable[None]]
"""Does what somebody asks for. Raises `Refusal` with what they alone read."""
OfRun = Callable[[Incoming, RunRow, Responder], Awaitable[None]]
"""Does what somebody asks of a run, which they may."""


class Actions:
    """Does what people ask for by command, button and form.

    `link` returns the address of a past answer on the platform.
    """

    def __init__(self, dispatcher: Dispatcher, lookup: Lookup, link: Link) -> None:
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._link = link
        self._clicks: deque[str] = deque(maxlen=CLICKS_REMEMBERED)
        looks: Mapping[Verb, Handler] = {
            "turn": self._look,
            "see": self._look,
            "ask": self._ask_to_forget,
            "share": self._share,
            "transcript": self._past_transcript,
            "forget": self._forget,
            "help": self._help,
            "cancel": self._cancel,
        }
        self.table: dict[Action, Handler] = {
            HELP.name: self._help,
            CONFIG.name: self._configure,
            FORGET.name: self._ask_to_forget,
            **{command.name: partial(self._look_up, command) for command in PAST},
            **{past(verb): handler for verb, handler in looks.items()},
            "stop": self._of_run("stop", self._stop),
            "retry": self._of_run("retry", self._retry),
            "again": self._of_run("ask again", self._ask_again),
            "full": self._of_run("ask again", self._ask_again),
            "over": self._of_run("ask again", self._ask_again),
            "transcript": self._of_run("look", self._transcript),
            "follow": self._of_run("follow up", self._open_form),
            "answer": self._of_run("follow up", self._open_form),
            "question": self._of_run("follow up", self._follow_up),
            "helpful": self._of_run("vote", self._vote),
            "unhelpful": self._of_run("vote", self._vote),
            "reason": self._of_run("vote", self._vote),
            # The last three are below threads of earlier versions.
            **dict.fromkeys(
                ("open", "corrected", "changes", "reviews"), self._of_run("look", self._open)
            ),
            "votes": self._of_run("look", self._transcript),
        }

    async def handle(self, incoming: Incoming, reply: Responder) -> None:
        await self.table[incoming.action](incoming, reply)

    async def is_first(self, click: str) -> bool:
        """Return whether a click is delivered for the first time: a second press of Stop is another."""
        if click in self._clicks:
            return False
        self._clicks.append(click)
        return await self._dispatcher.tasks.is_first(click)

    async def ask(self, question: Question, reply: AskerReply) -> RunRow | None:
        """Ask a question; return its run if it is new. One that only asks for help gets the help."""
        if is_help(question.text) and not question.attachments and not question.sent:
            await reply.show(await self._page("help", question.place))
            return None
        return await self._begin(question, reply)

    async def _begin(self, question: Question, reply: AskerReply) -> RunRow | None:
        run = await self._dispatcher.accept(question)
        if run is None:
            return None
        self._dispatcher.tasks.begin(run, reply.venue(run))
        return run

    def _of_run(self, permission: access.Permission, handler: OfRun) -> Handler:
        """Return what finds the run that somebody acts on, if they may do this there."""

        async def handle(incoming: Incoming, reply: Responder) -> None:
            run = await self._dispatcher.run(incoming.payload.run_id, incoming.place)
            asker = run.origin.user
            # Asking the platform takes time.
            depends = access.depends_on_admin(permission, incoming.place, asker)
            is_admin = depends and await self._is_admin(incoming)
            access.check(permission, incoming.place, is_admin=is_admin, asker=asker)
            await handler(incoming, run, reply)

        return handle

    async def _is_admin(self, incoming: Incoming) -> bool:
        by_platform = await incoming.actor.is_admin()
        return self._dispatcher.admins.include(incoming.place, by_platform=by_platform)

    # ── commands ─────────────────────────────────────────────────────────────────────────────

    async def _help(self, incoming: Incoming, reply: Responder) -> None:
        """Show the help, or turn to another page of it."""
        pages: dict[str, Page] = {"": "help", **{page: page for page in PAGES}}
        about = incoming.payload.about
        if about not in pages:
            raise Refusal(NOT_OFFERED)
        await reply.show(await self._page(pages[about], incoming.place), turned=bool(about))

    async def _page(self, page: Page, here: Source) -> Sheet:
        others = (Choice(label, "help", other) for other, label in PAGES.items() if other != page)
        return Sheet(await self._dispatcher.help(here, page), tuple(others))

    async def _configure(self, incoming: Incoming, reply: Responder) -> None:
        shown = await self._dispatcher.configure(
            incoming.payload.given,
            incoming.place,
            incoming.actor.here,
            is_admin=await self._is_admin(incoming),
        )
        await reply.show(Sheet(shown))

    async def _look_up(self, command: Command, incoming: Incoming, reply: Responder) -> None:
        given = incoming.payload.given
        await reply.show(await self._lookup.answer(command, given, incoming.place, self._link))

    async def _ask_to_forget(self, incoming: Incoming, reply: Responder) -> None:
        given = incoming.payload.given or {"what": incoming.payload.about}
        is_admin = await self._is_admin(incoming)
        asked = self._lookup.ask_to_forget(given, incoming.place, self._link, is_admin=is_admin)
        await reply.show(await asked)

    # ── buttons below past answers ───────────────────────────────────────────────────────────

    async def _look(self, incoming: Incoming, reply: Responder) -> None:
        sheet = await self._lookup.press(incoming.payload.about, incoming.place, self._link)
        await reply.show(sheet, turned=incoming.action == past("turn"))

    async def _share(self, incoming: Incoming, reply: Responder) -> None:
        about, place = incoming.payload.about, incoming.place
        sheet = await self._lookup.press(about, place, self._link, "share")
        await reply.share(sheet, partial(self._dispatcher.keep_copy, place, sheet.about))

    async def _past_transcript(self, incoming: Incoming, reply: Responder) -> None:
        async def give() -> None:
            about, place = incoming.payload.about, incoming.place
            sent = partial(self._dispatcher.keep_copy, place, (about,))
            await reply.files(await self._lookup.transcript(about, place), sent)

        await reply.later(give)

    async def _forget(self, incoming: Incoming, reply: Responder) -> None:
        async def forget() -> None:
            forgotten = await self._lookup.forget(
                incoming.payload.about,
                incoming.place,
                self._dispatcher.tasks.halt,
                is_admin=await self._is_admin(incoming),
            )
            self._dispatcher.tasks.spawn(self._lookup.scrub())
            left = await self._dispatcher.retracted(incoming.place.platform, forgotten.id)
            await reply.say(done(forgotten.what, left))

        await reply.later(forget)

    async def _cancel(self, incoming: Incoming, reply: Responder) -> None:
        del incoming  # anybody may leave things as they are
        nothing = Message("past", (Line("Nothing was deleted."),))
        await reply.show(Sheet(nothing), turned=True)

    # ── a run's buttons and forms ────────────────────────────────────────────────────────────

    async def _stop(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        del incoming  # who may is known
        await reply.say(await self._dispatcher.tasks.stop(run.id))

    async def _retry(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        standing = await incoming.actor.standing(incoming.place)
        retried = self._dispatcher.retry(run, incoming.place, standing, reply.venue_of)
        await reply.say(await retried)

    async def _ask_again(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        """Ask a run's question again, with its options; the same part of a thread is read again."""
        options = RunOptions.of(run.brief.profile)
        if incoming.action == "full":
            options = replace(options, own={**options.own, **IN_FULL})
        brief, place = run.brief, incoming.place
        context = brief.context if place.thread else None
        question = Question(
            text=brief.question,
            source=place,
            entry_key=incoming.key,
            standing=await incoming.actor.standing(place),
            asker=incoming.actor.name,
            attachments=brief.attachments,
            pictures=await self._dispatcher.pictures(run),
            sent=brief.sent,
            needs_files=brief.needs_files,
            context=context.without_messages if context else None,
            options=options,
        )
        await self._begin(question, reply)

    async def _transcript(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        sent = partial(self._dispatcher.keep_copy, incoming.place, (run.conversation_id,))

        async def give() -> None:
            await reply.files(await self._dispatcher.transcript(run), sent)

        await reply.later(give)

    async def _open(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        await reply.show(Sheet(await self._dispatcher.opened(run, incoming.payload.seat)))

    async def _open_form(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        answers = incoming.action == "answer"
        await reply.form(await self._dispatcher.form(run, incoming.place, answers=answers))

    async def _follow_up(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        below, given = await reply.below(run), incoming.payload.given
        standing = await incoming.actor.standing(below)
        is_read = below.thread is not None and not standing.is_direct
        files = cast("tuple[SentFile, ...]", given.get("files") or ())
        question = follow_up(
            run,
            below,
            str(given["text"]),
            options=RunOptions.read({"profile": str(given["profile"]) or None}),
            # One form asks one question, however often it is submitted.
            entry_key=f"form {incoming.key}",
            asker=incoming.actor.name,
            standing=standing,
            context=Discussion(until=incoming.now) if is_read else None,
            sent=files,
        )
        await reply.asked(below, is_new=await self._begin(question, reply) is not None)

    async def _vote(self, incoming: Incoming, run: RunRow, reply: Responder) -> None:
        """Count a vote; one that an answer didn't help counts before somebody says why."""
        given = incoming.payload.given.get("reason")
        said = await self._dispatcher.vote(
            run,
            incoming.place,
            helpful=incoming.action == "helpful",
            reason=None if given is None else str(given),
        )
        if incoming.action == "unhelpful":
            try:
                await reply.form(ReasonForm(run.id))
            except VenueError as error:  # the vote counts without a reason
                log.info("form_not_shown", reason=error)
            else:
                return
        await reply.say(said)


def past(verb: Verb) -> Action:
    return f"past {verb}"
