"""The database in DATABASE_URL: whether it is this program's, who else uses it, and its index."""

from bot.checks.channels import Stored, settings_of_channels
from bot.checks.check import Check, Outcome, wrong
from bot.checks.folder import DATABASE, INDEX, INDEX_SECONDS, of_the_index
from bot.view.wording.doctor import doctor as wording
from bot.view.wording.terminal import cli as cli_wording
from storage.errors import StorageError
from storage.index.index import Index
from storage.overrides import Overrides

WHERE = "DATABASE_URL"
CONFIG = "COUNCIL_CONFIG"
ROLE = "Database role"
AGREEMENT = "Other processes"


class ServerChecks:
    """Checks of a PostgreSQL database; they create nothing."""

    def __init__(self, address: str, fingerprint: str) -> None:
        self._address = address
        self._fingerprint = fingerprint
        self._is_current = False

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(DATABASE, self._sound),
            Check(ROLE, self._role, needs=(DATABASE,)),
            Check(AGREEMENT, self._agreement, needs=(DATABASE,)),
            Check(INDEX, self._consistent, needs=(DATABASE,), seconds=INDEX_SECONDS),
        ]

    async def _sound(self) -> Outcome:
        try:
            from storage.postgres.inspection import inspect_server
        except ModuleNotFoundError:
            return wrong(WHERE, wording.cannot_be_opened(cli_wording.NO_POSTGRES))
        try:
            age = await inspect_server(self._address)
        except StorageError as error:
            return wrong(WHERE, wording.cannot_be_opened(str(error)))
        if age == "newer":
            return wrong(WHERE, wording.NEWER)
        self._is_current = age == "current"
        told = {"new": wording.NO_DATABASE_YET, "older": wording.MIGRATED_AT_START}
        return Outcome(told.get(age, wording.SOUND))

    async def _role(self) -> Outcome:
        from storage.postgres.inspection import is_superuser

        try:
            if await is_superuser(self._address):
                return wrong(WHERE, wording.SUPERUSER, "warning")
        except StorageError as error:
            return wrong(WHERE, wording.cannot_be_opened(str(error)))
        return Outcome(wording.ORDINARY_ROLE)

    async def _agreement(self) -> Outcome:
        from storage.postgres.inspection import configurations

        try:
            found = await configurations(self._address) if self._is_current else []
        except StorageError as error:
            return wrong(WHERE, wording.cannot_be_opened(str(error)))
        differing = sum(each != self._fingerprint for each in found)
        if differing:
            return wrong(CONFIG, wording.processes_differ(differing, len(found)), "warning")
        return Outcome(wording.processes_agree(len(found)))

    async def channel_settings(self) -> Stored:
        """Return what admins have set in channels, once the database is known to be sound."""
        if not self._is_current:
            return {}
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            return await settings_of_channels(Overrides(stores.database, stores.audit))

    async def _consistent(self) -> Outcome:
        if not self._is_current:
            return Outcome(wording.MIGRATED_AT_START)
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            report = await Index(stores.database).check(stores.documents)
        return of_the_index(WHERE, report)
