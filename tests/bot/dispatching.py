"""The dispatcher that both adapters' tests put between their platform and real storage."""

import random

from bot.app import Library
from bot.service.access import Admins
from bot.service.channels import Channels, Operator
from bot.service.costs import BudgetWarnings, Costs
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Limits
from bot.service.metrics import Metrics
from bot.service.operator_notices import OperatorNotices
from bot.service.run_tasks import RunTasks
from bot.service.runs import Runs
from council.models.costs import Catalog
from tests.council.scripted import Clock, ScriptedCouncil, no_list, profile


def dispatcher_of(
    library: Library,
    council: ScriptedCouncil,
    admins: frozenset[str] = frozenset(),
    limits: Limits | None = None,
) -> Dispatcher:
    channels = Channels(Operator(profiles={"default": profile()}), library.overrides)
    metrics = Metrics()
    costs = Costs(
        catalog=Catalog(no_list),
        journal=library.journal,
        store=library.store,
        channels=channels,
        warnings=BudgetWarnings(library.journal, metrics),
    )
    runs = Runs(
        council.ask,
        costs,
        library.index,
        now=Clock(),
        entropy=random.Random(1),  # noqa: S311 - a test draws the same each time
        metrics=metrics,
        operators=OperatorNotices(library.journal, Admins(admins)),
    )
    return Dispatcher(RunTasks(runs, limits), Admins(admins))
