"""The process that reads one file: `python -m bot.inputs.child KIND`, content in, result out.

It bounds itself before it looks at anything: memory, processor time, files. It gets no secrets, keeps no
file, and ends with whoever started it. The result is JSON, with pictures in Base64.
"""

import ctypes
import json
import resource
import signal
import sys
from base64 import b64encode
from dataclasses import asdict
from typing import cast

from bot.inputs.extraction import extract
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MEMORY, SECONDS

OUT_OF_MEMORY = 3
"""The exit code for a file that takes more memory than is allowed."""
_DIE_WITH_PARENT = 1
"""`PR_SET_PDEATHSIG` (linux/prctl.h)."""


def bound() -> None:
    """Limit this process; what the system doesn't know is left out."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        # Memory of its own: reserved addresses and shared libraries take none (getrlimit(2)).
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Read what arrives on standard input."""
    bound()
    kind = cast("Extractable", sys.argv[1])
    try:
        found = extract(kind, sys.stdin.buffer.read())
        said = json.dumps(asdict(found), default=lambda content: b64encode(content).decode())
    except (MemoryError, RecursionError):
        sys.exit(OUT_OF_MEMORY)
    sys.stdout.write(said)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
