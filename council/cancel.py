"""Cancelling calls in flight, with a cause."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from council.errors import Cause, Failure, ModelError

T = TypeVar("T")


class Cancellation:
    """Guards calls: once cancelled, it ends those in flight and starts no others.

    The first cause counts. A cancellation made `within` others is cancelled with any of them.
    """

    def __init__(self, *within: "Cancellation") -> None:
        self.cause: Cause | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._linked: list[Callable[[Cause], None]] = []
        self._timers: list[asyncio.TimerHandle] = []
        for each in within:
            each.link(self.cancel)

    def link(self, cancel: Callable[[Cause], None]) -> None:
        """Pass this cancellation's cause on to `cancel`, at once if there already is one."""
        self._linked.append(cancel)
        if self.cause is not None:
            cancel(self.cause)

    def expire(self, cause: Cause, after: float) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(after, self.cancel, cause))

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def cancel(self, cause: Cause) -> None:
        """End every guarded call at once."""
        if self.cause is not None:
            return
        self.cause = cause
        for call in self._calls:
            call.cancel()
        for cancel in self._linked:
            cancel(cause)

    async def guard(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call and return its result.

        Raises `ModelError` with the cancellation's cause if that ended the call. A call that returned
        before it could be ended keeps its result.
        """
        if self.cause is not None:
            call.close()
            raise ModelError(Failure(cause=self.cause, attempts=0))
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._calls.discard(task)
            if not task.done():  # we are being cancelled ourselves: cancel the call, too
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()  # read it, or asyncio logs it as never retrieved
        if task.cancelled() and self.cause is not None:
            raise ModelError(Failure(cause=self.cause))
        return task.result()


class Stop:
    """The Stop button: one press ends the members' calls, a second one the chairman's too."""

    def __init__(self) -> None:
        self.everything = Cancellation()
        self.members = Cancellation(self.everything)

    @property
    def pressed(self) -> bool:
        return self.members.cause == "stopped"

    def press(self) -> None:
        """End the members' calls; if they are ended already, everything."""
        if self.members.cause is None:
            self.members.cancel("stopped")
        else:
            self.everything.cancel("stopped")
