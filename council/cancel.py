"""Ending calls in flight, for a stated cause."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from council.errors import Cause, Failure, ModelError

T = TypeVar("T")


class Cutoff:
    """Guards calls; once tripped it ends those in flight and lets no other start.

    The first cause stays. A cutoff made `within` another is tripped with it.
    """

    def __init__(self, within: "Cutoff | None" = None) -> None:
        self.cause: Cause | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._heirs: list[Callable[[Cause], None]] = []
        self._timers: list[asyncio.TimerHandle] = []
        if within:
            within.bequeath(self.trip)

    def bequeath(self, trip: Callable[[Cause], None]) -> None:
        """Pass this cutoff's cause on to `trip`, at once where there is one already."""
        self._heirs.append(trip)
        if self.cause is not None:
            trip(self.cause)

    def expire(self, cause: Cause, after: float) -> None:
        """Trip with `cause` in `after` seconds, unless closed before."""
        self._timers.append(asyncio.get_running_loop().call_later(after, self.trip, cause))

    def close(self) -> None:
        """Forget the timers."""
        for timer in self._timers:
            timer.cancel()

    def trip(self, cause: Cause) -> None:
        """End every guarded call at once."""
        if self.cause is not None:
            return
        self.cause = cause
        for call in self._calls:
            call.cancel()
        for trip in self._heirs:
            trip(cause)

    async def guard(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call; raises `ModelError` with the cutoff's cause when it was ended.

        A call that came back all the same before it could be ended keeps its result.
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
            if not task.done():  # we are being cancelled ourselves: take the call along
                task.cancel()
                await asyncio.wait({task})
        if task.cancelled() and self.cause is not None:
            raise ModelError(Failure(cause=self.cause))
        return task.result()


class Stop:
    """The button: one press ends the members' calls, a second one the chairman's too."""

    def __init__(self) -> None:
        self.everything = Cutoff()
        self.members = Cutoff(within=self.everything)

    @property
    def pressed(self) -> bool:
        """Whether the members' calls were ended by a press."""
        return self.members.cause == "stopped"

    def press(self) -> None:
        """End the members' calls; if they are ended already, everything."""
        if self.members.cause is None:
            self.members.trip("stopped")
        else:
            self.everything.trip("stopped")
