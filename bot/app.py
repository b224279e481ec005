"""The composition root: everything is built here, nothing at import."""

import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.config.configuration import NOBODY_TO_ASK, Configuration
from bot.errors import ConfigurationError
from bot.past.lookup import Lookup
from bot.service.access import Admins
from bot.service.channels import Channels, Operator
from bot.service.costs import BudgetWarnings, Costs
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.service.operator_notices import OperatorNotices, Remedies
from bot.service.run_tasks import Behind, RunTasks
from bot.service.runs import Runs
from bot.service.shared_tasks import Claims, SharedTasks
from bot.view.wording import cli as wording
from council.accounts import Directory
from council.profile import Profile
from council.tasks import beside
from storage.errors import DatabaseError, StorageError
from storage.forgetting import Forgetting
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.journal.journal import Journal
from storage.overrides import Overrides
from storage.sqlite.opening import open_folder
from storage.stores import Stores
from storage.tokens import Tokens

if TYPE_CHECKING:
    from council.models.client import ModelClient

log = structlog.get_logger()


MAKE_SECONDS = 30.0
"""How long a start waits while another makes the jobs' tables."""


class Library:
    """Everything that is kept: documents, index, past answers and journal.

    `locks` records which process works on what; `coordination` is what processes on one database share.
    """

    def __init__(self, stores: Stores) -> None:
        self.database, self.store = stores.database, stores.documents
        self.locks, self.coordination = stores.locks, stores.coordination
        self.index = Index(self.database)
        self.past_answers = PastAnswers(self.database)
        self.journal = Journal(self.database)
        self.forgetting = Forgetting(self.journal.work, self.store, self.index, stores.audit)
        self.overrides = Overrides(self.journal.work, stores.audit)
        self.tokens = Tokens(self.database, self.overrides)


@dataclass(frozen=True, slots=True)
class Council:
    """A council ready to be asked: its profiles, its runs, and where its members are asked."""

    profiles: Mapping[str, Profile]
    runs: Runs
    directory: Directory


@asynccontextmanager
async def open_library(folder: Path, address: str | None = None) -> AsyncGenerator[Library]:
    """Open a data folder, creating it if it is missing, or the PostgreSQL database at an address.

    Raises `StorageError`.
    """
    async with open_stores(folder, address) as stores:
        library = Library(stores)
        if recovered := stores.recovered:
            log.error(
                "database_was_damaged",
                set_aside=str(recovered.set_aside),
                carried_over=recovered.carried_over,
                complete=recovered.complete,
            )
            await library.index.repair(library.store)
        try:
            await library.forgetting.finish()
        except StorageError:  # it is tried again at every start
            log.exception("not_forgotten")
        try:
            await library.overrides.finish()
        except StorageError:  # likewise
            log.exception("change_not_audited")
        yield library


def open_stores(folder: Path, address: str | None) -> AbstractAsyncContextManager[Stores]:
    """Open what everything is kept in. Raises `StorageError`, also where a library is missing."""
    if address is None:
        return open_folder(folder)
    try:
        from storage.postgres.opening import open_server
    except ModuleNotFoundError as error:
        raise DatabaseError(wording.NO_POSTGRES) from error
    return open_server(address)


def client_of(configuration: Configuration, directory: Directory) -> "partial[ModelClient]":
    """Return how to open the models' client. Raises `ConfigurationError` if there are no models."""
    from council import demonstration
    from council.models.client import ModelClient

    if configuration.is_demonstration and not demonstration.available():
        raise ConfigurationError([NOBODY_TO_ASK])
    settings, key = configuration.settings, configuration.settings.openrouter_api_key
    return partial(
        ModelClient,
        directory.find,
        base_url=settings.provider,
        api_key=key.get_secret_value() if key else None,
        dialect=settings.openrouter_dialect,
        keys=configuration.keys,
    )


def log_unlisted(model: str, near: str | None) -> None:
    log.warning("model_not_listed", model=model, did_you_mean=near)


@asynccontextmanager
async def open_council(
    configuration: Configuration,
    library: Library,
    metrics: Metrics | None = None,
    *,
    unlisted: Callable[[str, str | None], None] = log_unlisted,
) -> AsyncGenerator[Council]:
    """Open the way to the models; without any configured, start the built-in one.

    `metrics` counts calls and runs, `unlisted` tells of models that the provider doesn't list. Raises
    `ConfigurationError` if there are no models at all.
    """
    counts = metrics or Metrics()
    profiles, directory = configuration.profiles, Directory(configuration.profiles.values())
    opening = client_of(configuration, directory)
    async with AsyncExitStack() as stack:
        addresses: Mapping[str, str] = {}
        if configuration.is_demonstration:
            from council import demonstration

            addresses = await stack.enter_async_context(demonstration.serve())
            profile = demonstration.demonstration_profile([*addresses])
            profiles = {profile.name: profile}
            directory.add(profiles.values())
        channels = Channels(operator_of(configuration, profiles), library.overrides)
        client = await stack.enter_async_context(
            opening(addresses=addresses, unpriced_call=lambda: channels.operator.budgets.unpriced_call)
        )

        async def look() -> None:
            for model, near in (await client.catalog.unlisted(profiles.values())).items():
                unlisted(model, near)

        if not configuration.is_demonstration:
            await stack.enter_async_context(beside(look()))
        costs = Costs(
            catalog=client.catalog,
            journal=library.journal,
            store=library.store,
            channels=channels,
            prices=client.price,
            warnings=BudgetWarnings(library.journal, counts),
        )
        has_key = configuration.settings.openrouter_api_key is not None
        runs = Runs(
            client.ask,
            costs,
            library.index,
            metrics=counts,
            operators=OperatorNotices(library.journal, _admins(configuration)),
            remedies=Remedies(directory.find, has_key=has_key),
        )
        yield Council(profiles, runs, directory)


def open_dispatcher(
    configuration: Configuration, library: Library, council: Council, *, behind: Behind | None = None
) -> Dispatcher:
    limits, durability = configuration.operations.limits, configuration.operations.durability
    tasks = RunTasks(council.runs, limits, durability, locks=library.locks, behind=behind)
    return Dispatcher(tasks, _admins(configuration))


def _admins(configuration: Configuration) -> Admins:
    return Admins(frozenset(configuration.settings.council_admins or ()))


def operator_of(configuration: Configuration, profiles: Mapping[str, Profile]) -> Operator:
    return Operator(
        profiles=profiles,
        access=configuration.operations.access,
        budgets=configuration.operations.budgets,
        retention=configuration.settings.council_retention_days,
        origins=configuration.origins,
    )


@asynccontextmanager
async def open_shared_dispatcher(
    configuration: Configuration, library: Library, runs: Runs
) -> AsyncGenerator[tuple[Dispatcher, SharedTasks]]:
    """Open the dispatcher of one of several processes on a database. Raises `StorageError`."""
    coordination = library.coordination
    if coordination is None or configuration.database is None:
        raise ValueError("a folder has one process")
    from storage.postgres.connection import server
    from storage.postgres.jobs import open_jobs

    address = configuration.database
    async with AsyncExitStack() as stack:
        async with library.locks.acquire("jobs", wait=MAKE_SECONDS):  # nobody else makes their tables
            opened = await stack.enter_async_context(open_jobs(address, server(address)))
        durability = configuration.operations.durability
        claims = Claims(coordination, durability.stalled_seconds)
        runs.wait_for_claim = claims.wait_for_claim
        tasks = SharedTasks(
            runs,
            configuration.operations.limits,
            durability,
            coordination=coordination,
            jobs=opened,
            claims=claims,
            worker=f"{socket.gethostname()}-{os.getpid()}",
            locks=library.locks,
        )
        yield Dispatcher(tasks, _admins(configuration)), tasks


def open_lookup(library: Library) -> Lookup:
    return Lookup(library.past_answers, library.store, library.journal, library.forgetting)
