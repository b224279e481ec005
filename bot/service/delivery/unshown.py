"""Where a program's run is shown: nowhere. Nothing is posted; the program asks for what there is."""

from collections.abc import Callable

from typing_extensions import override

from bot.service.delivery.chat import Card
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Receipt, Sent
from bot.service.delivery.venue import Venue


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
