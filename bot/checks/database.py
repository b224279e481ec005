"""The database in DATABASE_URL: whether it is this program's, who else uses it, and its index."""

from bot.checks.channels import Stored, settings_of_channels
from bot.checks.check import Check, Outcome, wrong
from bot.checks.folder import (
    DATABASE,
    INDEX,
    INDEX_SECONDS,
    NOT_YET,
    OLDER,
    SOUND,
    newer,
    not_opened,
    of_the_index,
)
from bot.view.wording import cli as cli_wording
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
            return not_opened(WHERE, cli_wording.NO_POSTGRES)
        try:
            age = await inspect_server(self._address)
        except StorageError as error:
            return not_opened(WHERE, str(error))
        if age == "newer":
            return newer(WHERE)
        self._is_current = age == "current"
        return Outcome({"new": NOT_YET, "older": OLDER}.get(age, SOUND))

    async def _role(self) -> Outcome:
        from storage.postgres.inspection import is_superuser

        try:
            if await is_superuser(self._address):
                return wrong(
                    WHERE,
                    "its role is a superuser: whoever gets at the address can read and change "
                    "everything on that server",
                    "Make an ordinary role that owns the council's database, as deploy/postgres-role.sh "
                    "does, and name it in the address",
                    "warning",
                )
        except StorageError as error:
            return not_opened(WHERE, str(error))
        return Outcome("no superuser")

    async def _agreement(self) -> Outcome:
        from storage.postgres.inspection import configurations

        try:
            found = await configurations(self._address) if self._is_current else []
        except StorageError as error:
            return not_opened(WHERE, str(error))
        differing = sum(each != self._fingerprint for each in found)
        if differing:
            have = "process has" if len(found) == 1 else "processes have"
            return wrong(
                CONFIG,
                f"{differing} of {len(found)} running {have} another council.toml than this one",
                "Give every machine the same file; what needs a restart is in docs/configuration.md",
                "warning",
            )
        if not found:
            return Outcome("none is running")
        return Outcome(f"{len(found)} {'has' if len(found) == 1 else 'have'} the same council.toml")

    async def channel_settings(self) -> Stored:
        """Return what admins have set in channels, once the database is known to be sound."""
        if not self._is_current:
            return {}
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            return await settings_of_channels(Overrides(stores.database, stores.audit))

    async def _consistent(self) -> Outcome:
        if not self._is_current:
            return Outcome(OLDER)
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            report = await Index(stores.database).check(stores.documents)
        return of_the_index(WHERE, report)
