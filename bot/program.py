"""The running program: what it consists of, which part of the work it does, and what ends it."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from bot.app import Library
from bot.config.configuration import Configuration
from bot.health import Health
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.worker import Worker

Endings = list[Callable[[], Awaitable[str]]]
"""What ends the process by itself: each waits until something is lost for good, and returns why."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does: receive questions, carry out runs, or both."""

    receives: bool = True
    works: bool = True


EVERYTHING = Role()


@dataclass(slots=True)
class Program:
    """The running program; `stack` closes what was opened."""

    configuration: Configuration
    library: Library
    dispatcher: Dispatcher
    metrics: Metrics
    health: Health
    stack: AsyncExitStack
    role: Role
    worker: Worker | None = None
    endings: Endings = field(default_factory=Endings)
