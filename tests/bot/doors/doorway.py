"""A door over real storage, its models played by a script."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bot.actions import Actions
from bot.app import open_lookup
from bot.doors.door import Caller, Door
from bot.service.access import Access
from bot.service.channels import Operator
from bot.service.limits import Budgets
from council.profile import Member
from council.usage import Price
from storage.index.rows import IndexRow
from storage.scope import Scope
from tests.bot.service.test_dispatcher import Office, office
from tests.council.scripted import ScriptedCouncil, profile

CI = Caller(id="0123456789abcdef", name="ci", scope=Scope("slack", "T1", "C1"), day=2.0)
ELSEWHERE = replace(CI, id="fedcba9876543210", name="other", scope=Scope("slack", "T1", "C2"))


def prices(profile: str, member: Member) -> Price:
    del profile, member
    return Price(0.000_001, 0.000_002)


@dataclass(frozen=True)
class Doorway:
    """A door, and the office behind it."""

    door: Door
    office: Office

    def configure(
        self, *, access: Access | None = None, budgets: Budgets | None = None, profiles: str = "default"
    ) -> None:
        self.office.dispatcher.reconfigure(
            Operator(
                profiles={
                    name: profile().model_copy(update={"name": name}) for name in profiles.split()
                },
                access=access or Access(),
                budgets=budgets or Budgets(),
            )
        )


@asynccontextmanager
async def doorway(
    folder: Path, council: ScriptedCouncil | None = None, **settings: object
) -> AsyncGenerator[Doorway]:
    chosen = {"prices": prices, **settings}
    async with office(folder, council or ScriptedCouncil(), **chosen) as place:  # pyright: ignore[reportArgumentType] - named per test
        actions = Actions(place.dispatcher, open_lookup(place.library), _nowhere)
        yield Doorway(Door(place.dispatcher, actions, place.library, place.runs), place)


def _nowhere(row: IndexRow) -> None:
    del row
