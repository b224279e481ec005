"""An event loop whose time passes only while nothing happens: a minute of waiting takes a millisecond.

Everything that goes by the loop's clock runs in this time: sleeps, timeouts, and the libraries'
backoffs. Computing takes no time in it, so a busy machine makes nothing time out.
"""

import asyncio
import inspect
import math
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = 0.001
"""Enough for the kernel to deliver what was sent within this process."""
LOOK_AGAIN = 0.01
"""Real seconds between looks at the work in threads, which time waits for."""
WORKS_IN_A_THREAD = "aiosqlite.core"
"""A library that does its work in a thread of its own, and makes a future for each piece of it."""


class _Selector(selectors.BaseSelector):
    """Waits for sockets in real time, and adds to the clock what the loop would have waited."""

    def __init__(self, grace: float, work: float) -> None:
        self._real = selectors.DefaultSelector()
        self._grace = grace
        self.work = work
        self.now = 0.0
        self.passed: Callable[[], object] = lambda: None
        self.is_stuck: Callable[[], bool] = lambda: False
        self.under_way = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return self._real.select(None)
        if timeout <= 0:
            return self._real.select(0)
        while self.under_way > 0:
            if found := self._real.select(LOOK_AGAIN):
                return found
            if self.is_stuck():
                break
        found = self._real.select(0)
        if not found:
            found = self._real.select(self._grace)
        if not found:
            # Whole microseconds: however often it was woken meanwhile, a moment is the same number.
            self.now = math.ceil(round((self.now + timeout) * 1e6, 3)) / 1e6
            self.passed()
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time.

    `grace` is how many real seconds others have to answer what was sent, before time moves on; `begun`
    is its beginning in seconds since 1970, now unless it is given; `work` is what another thread's work
    takes in it: some microseconds, and what comes of it has a place in the order.
    """

    def __init__(self, grace: float = GRACE, begun: float | None = None, work: float = 0.0) -> None:
        self._virtual = _Selector(grace, work)
        super().__init__(self._virtual)
        self._begun = time.time() if begun is None else begun
        self._own = threading.current_thread()
        self.elsewhere = 0

    def tell(self, passed: Callable[[], object], is_stuck: Callable[[], bool]) -> None:
        """Call `passed` whenever time has passed, which it also does while other processes are `stuck`."""

        def is_only_stuck() -> bool:
            return 0 < self.elsewhere == self._virtual.under_way and is_stuck()

        self._virtual.passed, self._virtual.is_stuck = passed, is_only_stuck

    @contextmanager
    def held(self) -> Generator[None]:
        """Let time wait for what another process does; `elsewhere` is how often it does so."""
        self._virtual.under_way += 1
        self.elsewhere += 1
        try:
            yield
        finally:
            self._virtual.under_way -= 1
            self.elsewhere -= 1

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual.now

    def wall(self) -> float:
        """Return seconds since 1970 in virtual time."""
        return self._begun + self._virtual.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run something in a thread; time waits for it, however soon it ends."""
        is_awaited = threading.Event()
        future = super().run_in_executor(executor, lambda: is_awaited.wait() and func(*args))
        self._virtual.under_way += 1
        future.add_done_callback(self._returned)
        is_awaited.set()
        return future

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        """Start a process; time waits for its end."""
        started: Any = await super().subprocess_exec(*args, **kwargs)
        self._virtual.under_way += 1
        self.create_task(started[0]._wait()).add_done_callback(self._returned)
        return started

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call something; what another thread wants comes when its work is over in virtual time, too."""
        if not self._virtual.work or threading.current_thread() is self._own:
            return super().call_soon_threadsafe(callback, *args, context=context)

        def deliver() -> None:
            self._virtual.under_way += 1
            callback(*args)

        def arrive() -> None:
            self._virtual.under_way -= 1
            self.call_later(self._virtual.work, deliver, context=context)

        return super().call_soon_threadsafe(arrive)

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future; time waits for one that a library's thread will set."""
        future = super().create_future()
        caller = inspect.currentframe()
        caller = caller.f_back if caller else None
        if caller and caller.f_globals.get("__name__") == WORKS_IN_A_THREAD:
            self._virtual.under_way += 1
            future.add_done_callback(self._returned)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own
        """Wait for threads in real time: since Python 3.12 a limit of minutes passes at once here."""
        del timeout
        await super().shutdown_default_executor()

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self._virtual.under_way -= 1


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], grace: float = GRACE) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(grace)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(main(loop))
