"""Where the program starts: the command `council` is `main`, and `python -m bot` is `council run`."""

import gc
import sys
from collections.abc import Callable


def command_line() -> Callable[[], None]:
    # Modules stay: looking through them for garbage would take a tenth of a start.
    gc.disable()
    try:
        from bot.cli import main as run
    finally:
        gc.enable()
    gc.freeze()
    return run


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as shells expect."""
    try:
        run = command_line()
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    sys.argv[1:1] = ["run"]
    main()
