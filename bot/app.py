"""The composition root: everything is built here, nothing at import."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from bot.config.configuration import NOBODY_TO_ASK, Configuration
from bot.config.settings import OPENROUTER
from bot.errors import ConfigurationError
from bot.past.lookup import Lookup
from bot.service.admission.budget_warnings import BudgetWarnings
from bot.service.admission.channels import Channels, Operator
from bot.service.admission.costs import Costs
from bot.service.admission.operator_notices import OperatorNotices
from bot.service.admission.permissions import Admins
from bot.service.dispatcher import Dispatcher
from bot.service.local_queue import LocalQueue
from bot.service.metrics import Metrics
from bot.service.remedies import Remedies
from bot.service.run_tasks import RunQueue
from bot.service.runs.runs import Runs, build_runs
from bot.view.wording import cli as wording
from council.accounts import Directory
from council.models.costs import Catalog
from council.profile import Profile
from storage.database import Database
from storage.documents.conversations import Documents
from storage.errors import DatabaseError, StorageError
from storage.forgetting import Forgetting
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.journal.journal import Journal
from storage.journal.operator_notices import NoticeRecord
from storage.overrides import Overrides
from storage.processes.coordination import Coordination
from storage.processes.jobs import Jobs
from storage.processes.locks import Locks
from storage.sqlite.opening import open_folder
from storage.stores import Stores
from storage.tokens import Tokens

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Library:
    """Everything that is kept: documents, index, past answers and journal.

    `locks` records which process works on what, `servers` what model servers take; `coordination` is
    what processes on one database share.
    """

    database: Database
    store: Documents
    index: Index
    past_answers: PastAnswers
    journal: Journal
    forgetting: Forgetting
    overrides: Overrides
    tokens: Tokens
    notices: NoticeRecord
    locks: Locks
    coordination: Coordination | None = None


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
        database, documents = stores.database, stores.documents
        index = Index(database)
        if recovered := stores.recovered:
            log.error(
                "database_was_damaged",
                set_aside=str(recovered.set_aside),
                carried_over=recovered.carried_over,
                complete=recovered.complete,
            )
            await index.repair(documents)
        journal = Journal(database)
        forgetting = Forgetting(journal.work, documents, index, stores.audit)
        overrides = Overrides(journal.work, stores.audit)
        try:
            await forgetting.finish()
        except StorageError:  # it is tried again at every start
            log.exception("not_forgotten")
        try:
            await overrides.finish()
        except StorageError:  # likewise
            log.exception("change_not_audited")
        yield Library(
            database=database,
            store=documents,
            index=index,
            past_answers=PastAnswers(database),
            journal=journal,
            forgetting=forgetting,
            overrides=overrides,
            tokens=Tokens(database, overrides),
            notices=NoticeRecord(database),
            locks=stores.locks,
            coordination=stores.coordination,
        )


def open_jobs(address: str) -> AbstractAsyncContextManager[Jobs]:
    """Open the jobs that processes share out among themselves. Raises `StorageError`."""
    from storage.postgres.connection import server
    from storage.postgres.jobs import open_jobs as open_in

    return open_in(address, server(address))


def open_stores(folder: Path, address: str | None) -> AbstractAsyncContextManager[Stores]:
    """Open what everything is kept in. Raises `StorageError`, also where a library is missing."""
    if address is None:
        return open_folder(folder)
    try:
        from storage.postgres.opening import open_server
    except ModuleNotFoundError as error:
        raise DatabaseError(wording.NO_POSTGRES) from error
    return open_server(address)


Unlisted = Callable[[str, str | None], None]
"""Tells of a model that the provider doesn't list, and of one like it."""


def log_unlisted(model: str, near: str | None) -> None:
    """Log a model that the provider doesn't list."""
    log.warning("model_not_listed", model=model, did_you_mean=near)


@asynccontextmanager
async def open_council(
    configuration: Configuration,
    library: Library,
    metrics: Metrics | None = None,
    *,
    unlisted: Unlisted = log_unlisted,
) -> AsyncGenerator[Council]:
    """Open the way to the models; without any configured, start the built-in one.

    `metrics` counts calls and runs, `unlisted` tells of models that the provider doesn't list. Raises
    `ConfigurationError` if there are no models at all.
    """
    from council.models.client import ModelClient

    settings, counts = configuration.settings, metrics or Metrics()
    key = settings.openrouter_api_key
    async with AsyncExitStack() as stack:
        profiles = configuration.profiles
        addresses: Mapping[str, str] = {}
        if configuration.is_demonstration:
            from council import demonstration

            if not demonstration.available():
                raise ConfigurationError([NOBODY_TO_ASK])
            addresses = await stack.enter_async_context(demonstration.serve())
            profile = demonstration.demonstration_profile([*addresses])
            profiles = {profile.name: profile}
        directory = Directory(profiles.values())
        channels = Channels(operator_of(configuration, profiles), library.overrides)
        client = await stack.enter_async_context(
            ModelClient(
                directory.find,
                base_url=settings.openrouter_base_url or OPENROUTER,
                api_key=key.get_secret_value() if key else None,
                dialect=settings.openrouter_dialect,
                keys=configuration.keys,
                addresses=addresses,
                unpriced_call=lambda: channels.operator.budgets.unpriced_call,
            )
        )
        if not configuration.is_demonstration:
            _look_for_unlisted(client.catalog, profiles.values(), unlisted, stack)
        costs = Costs(
            catalog=client.catalog,
            journal=library.journal,
            store=library.store,
            channels=channels,
            prices=client.price,
            warnings=BudgetWarnings(library.journal, counts),
        )
        runs = build_runs(
            client.ask,
            costs,
            library.index,
            metrics=counts,
            operators=OperatorNotices(library.notices, _admins(configuration)),
            remedies=Remedies(directory.find, has_key=key is not None),
        )
        yield Council(profiles, runs, directory)


def _look_for_unlisted(
    catalog: Catalog, profiles: Iterable[Profile], tell: Unlisted, stack: AsyncExitStack
) -> None:
    """In the background, tell of the configured models that the provider doesn't have."""

    async def look() -> None:
        for model, near in (await catalog.unlisted(profiles)).items():
            tell(model, near)

    async def end() -> None:
        looking.cancel()
        await asyncio.wait({looking})

    looking = asyncio.create_task(look())
    stack.push_async_callback(end)


def open_dispatcher(
    configuration: Configuration,
    library: Library,
    council: Council,
    queue: RunQueue | None = None,
) -> Dispatcher:
    """Open the dispatcher, which takes every platform's questions."""
    return Dispatcher(
        runs=council.runs,
        journal=library.journal,
        store=library.store,
        index=library.index,
        queue=queue or LocalQueue(configuration.operations.limits, library.journal),
        durability=configuration.operations.durability,
        admins=_admins(configuration),
        locks=library.locks,
    )


def _admins(configuration: Configuration) -> Admins:
    return Admins(frozenset(configuration.settings.council_admins or ()))


def operator_of(configuration: Configuration, profiles: Mapping[str, Profile]) -> Operator:
    """Return what is configured for all channels, with these profiles."""
    return Operator(
        profiles=profiles,
        access=configuration.operations.access,
        budgets=configuration.operations.budgets,
        retention=configuration.settings.council_retention_days,
        origins=configuration.origins,
    )


def open_lookup(library: Library) -> Lookup:
    """Open the lookup, which finds past answers."""
    return Lookup(library.past_answers, library.store, library.journal, library.forgetting)
