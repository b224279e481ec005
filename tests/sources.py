"""The program's source, parsed."""

import ast
import gc
from pathlib import Path


def parsed(file: Path) -> ast.Module:
    """Parse a file, without collecting garbage meanwhile.

    A finalizer may log a traceback, for which Python 3.11 parses source again: within another parse that
    is a `SystemError` (https://github.com/python/cpython/issues/106905).
    """
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        gc.enable()
