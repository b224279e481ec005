"""One name means one thing in the whole program."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
ADAPTERS = {"discord", "slack", "terminal"}
"""Folders whose files, and what is in them, are named alike on purpose."""


def test_no_public_class_name_stands_twice() -> None:
    """Whoever searches for a class finds one; the adapters' parallel names are excepted."""
    places: dict[str, list[Path]] = defaultdict(list)
    for folder in ("bot", "council", "storage"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(file.relative_to(ROOT))
    assert len(places) > 400
    twice = {
        name: [str(file) for file in files]
        for name, files in places.items()
        if len([file for file in files if file.parts[1] not in ADAPTERS]) > 1
        or (len(files) > 1 and {file.parts[1] for file in files} - ADAPTERS)
    }
    assert twice == {}
