"""Where a program's run is shown: nowhere. Nothing is posted; the program asks for what there is."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from typing_extensions import override

from bot.errors import NotAllowed
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Receipt, Sent
from bot.service.delivery.venue import Card, File, Mention, Part, Venue
from bot.view.message import Message
from council.brief import Brief, Discussion, SentFile


class Unshown(Venue):
    """The place of one program's run; `changed` hears that there is something new to read."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed

    @override
    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        return True

    @override
    async def post_card(self, newest: Callable[[], Card], sent: Receipt) -> str:
        return ""

    @override
    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        self._changed()
        return True

    @override
    async def open_thread(self, title: str) -> NoReturn:
        raise _nowhere()

    @override
    async def parts(self, message: Message) -> Sequence[Part]:
        return ()

    @override
    async def post(
        self, part: Part, key: str, sent: Receipt, urgency: Urgency = Urgency.THREAD
    ) -> NoReturn:
        raise _nowhere()

    @override
    async def attach(self, note: str, sent: Receipt, *files: File) -> NoReturn:
        raise _nowhere()

    @override
    async def mention(
        self, mention: Mention, digest: Part | None = None, *, link: bool = True
    ) -> NoReturn:
        raise _nowhere()

    @override
    async def repost(self, card: Card, mention: Mention, placed: Sent) -> NoReturn:
        raise _nowhere()

    @override
    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        raise _nowhere()

    @override
    async def fetch(self, file: SentFile) -> bytes:
        raise _nowhere()

    @override
    async def direct(self, card: Card, mention: Mention) -> NoReturn:
        raise _nowhere()


def _nowhere() -> NotAllowed:
    return NotAllowed("nothing is posted for a program")
