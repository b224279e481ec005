"""Serve in a process of its own: prints the configuration as one line of JSON, then waits.

`python -m tests.slack_server [port]`; everything else goes through `/_control`.
"""

import asyncio
import json
import sys

from tests.slack_server import SlackServer
from tests.slack_server.control import Control


async def serve(port: int) -> None:
    """Serve until the process is stopped."""
    async with SlackServer(port=port) as slack:
        sys.stdout.write(json.dumps(await Control(slack).configuration()) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        sys.exit(0)
