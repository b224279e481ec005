"""The program's start."""

import gc

from bot import cli
from bot.__main__ import command_line


def test_the_start_returns_the_command_line_and_leaves_garbage_collected() -> None:
    """Garbage isn't collected only while modules are imported."""
    try:
        assert command_line() is cli.main
        assert gc.isenabled()
    finally:
        gc.unfreeze()
