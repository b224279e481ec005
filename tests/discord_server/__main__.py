"""Run the fake Discord on its own: `python -m tests.discord_server [PORT]` prints its API base."""

import asyncio
import signal
import sys

from . import DiscordServer


async def main(port: int) -> None:
    """Serve until told to stop."""
    server = await DiscordServer().start(port)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    await over.wait()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
