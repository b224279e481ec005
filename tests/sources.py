"""The program's source, parsed."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parsed(file: Path) -> ast.Module:
    """Parse a file once, without collecting garbage meanwhile.

    A finalizer may log a traceback, for which Python 3.11 parses source again: within another parse that
    is a `SystemError` (https://github.com/python/cpython/issues/106905).
    """
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        gc.enable()
