"""Runs and the dispatcher that tests put between a platform, or none, and real storage."""

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

from bot.app import Library
from bot.service.access import Admins
from bot.service.channels import Channels, Operator
from bot.service.costs import BudgetWarnings, Costs, Prices, unknown
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Limits
from bot.service.metrics import Metrics
from bot.service.operator_notices import OperatorNotices
from bot.service.run_tasks import RunTasks
from bot.service.runs import Runs
from council.calls import Ask
from council.models.costs import Catalog
from tests.council.scripted import Clock, ScriptedCouncil, no_list, profile


def runs_of(
    library: Library,
    ask: Ask,
    *,
    catalog: Catalog | None = None,
    prices: Prices = unknown,
    now: Callable[[], datetime] | None = None,
    **more: Any,
) -> Runs:
    """Return runs of one council, whose chance is the same each time; `more` is for `Runs`."""
    metrics = Metrics()
    costs = Costs(
        catalog=catalog or Catalog(no_list),
        prices=prices,
        journal=library.journal,
        store=library.store,
        channels=Channels(Operator(profiles={"default": profile()}), library.overrides),
        warnings=BudgetWarnings(library.journal, metrics, now or Clock()),
    )
    entropy = random.Random(1)  # noqa: S311 - a test draws the same each time
    return Runs(ask, costs, library.index, now=now or Clock(), entropy=entropy, metrics=metrics, **more)


def dispatcher_of(
    library: Library,
    council: ScriptedCouncil,
    admins: frozenset[str] = frozenset(),
    limits: Limits | None = None,
) -> Dispatcher:
    operators = OperatorNotices(library.journal, Admins(admins))
    runs = runs_of(library, council.ask, operators=operators)
    return Dispatcher(RunTasks(runs, limits), Admins(admins))
