"""The program's start."""

import gc

import pytest

from bot import __main__, cli


def test_the_start_returns_the_command_line_and_leaves_garbage_collected() -> None:
    """Garbage isn't collected only while modules are imported."""
    try:
        assert __main__.command_line() is cli.main
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_ctrl_c_while_the_program_loads_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gc.disable", interrupt)
    with pytest.raises(SystemExit, match="130"):
        __main__.main()
