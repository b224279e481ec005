"""Presses of a run's buttons without a platform, and what whoever presses is told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, cast

from bot.actions import Actions, Actor, Incoming, Payload
from bot.app import Library, open_lookup
from bot.past.lookup import Lookup
from bot.past.pages import Sheet
from bot.service.access import AT_TERMINAL, Requester
from bot.service.delivery.chat import File
from bot.service.delivery.posts import Sent
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher, Form, ReasonForm
from bot.service.run_tasks import VenueOf
from council.document.conversation import Source
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow


@dataclass(frozen=True, slots=True)
class Click:
    """A press: on which run, by whom and where."""

    run_id: str
    source: Source
    is_admin: bool = False


@dataclass(slots=True)
class RecordingReply:
    """A `bot.actions.Responder` that keeps everything."""

    show_run: VenueOf
    here: Source
    said: list[str] = field(default_factory=list[str])
    sheets: list[Sheet] = field(default_factory=list[Sheet])
    forms: list[Form | ReasonForm] = field(default_factory=list[Form | ReasonForm])
    given: list[File] = field(default_factory=list[File])

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        del turned
        self.sheets.append(sheet)

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        self.sheets.append(sheet)
        await sent("shared")

    async def form(self, form: Form | ReasonForm) -> None:
        self.forms.append(form)

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        del sent
        self.given += files

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    def venue(self, run: RunRow) -> Venue:
        found = self.show_run(run)
        assert found is not None
        return found

    def venue_of(self, run: RunRow) -> Venue | None:
        return self.show_run(run)

    async def below(self, run: RunRow) -> Source:
        return self.here.model_copy(update={"thread": run.origin.thread or run.origin.message})

    async def asked(self, below: Source, *, is_new: bool) -> None:
        """Keep where, or that it isn't new."""
        self.said.append(f"asked in {below.thread}" if is_new else "asked before")


def actor(*, is_admin: bool = False, standing: Requester = AT_TERMINAL, name: str = "Ada") -> Actor:
    """Return somebody who may ask, and whether their platform calls them an admin."""

    async def known(place: Source) -> Requester:
        del place
        return standing

    async def may() -> bool:
        return is_admin

    return Actor(name=name, here=standing, standing=known, is_admin=may)


async def press(
    dispatcher: Dispatcher,
    action: str,
    click: Click,
    venue_of: VenueOf = lambda _: None,
    standing: Requester = AT_TERMINAL,
) -> str:
    """Press a run's button; return what whoever pressed it is told. Raises `Refusal`."""
    reply = RecordingReply(venue_of, click.source)
    incoming = Incoming(
        actor=actor(is_admin=click.is_admin, standing=standing),
        place=click.source,
        action=action,
        payload=Payload(run_id=click.run_id),
    )
    await Actions(dispatcher, cast("Lookup", None), nowhere).handle(incoming, reply)
    return "\n".join(reply.said)


def nowhere(row: IndexRow) -> None:
    del row


class Opened(Protocol):
    """A dispatcher, and the library that it works on."""

    @property
    def dispatcher(self) -> Dispatcher: ...

    @property
    def library(self) -> Library: ...


async def act(place: Opened, action: str, who: Source, payload: Payload = Payload()) -> RecordingReply:  # noqa: B008 - it is frozen
    """Do something, and return how it was answered. Raises `Refusal`."""
    reply = RecordingReply(lambda _: None, who)
    incoming = Incoming(actor=actor(), place=who, action=action, payload=payload)
    await Actions(place.dispatcher, open_lookup(place.library), nowhere).handle(incoming, reply)
    return reply
