"""Time that passes at once, for what waits by the event loop's clock: no test then races a short limit."""

import asyncio


def let_pass(seconds: float) -> None:
    """Put the running loop's clock forward; what is due by then comes next."""
    loop = asyncio.get_running_loop()
    now = loop.time

    def later() -> float:
        return now() + seconds

    loop.time = later


class Rest:
    """Sleep that takes no time and remembers how long it should have been."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Note the wait."""
        self.waits.append(seconds)
