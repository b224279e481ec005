"""The dependencies between the packages, drawn from their imports: `python -m pictures.structure`.

The drawing is Mermaid, in `docs/architecture.md` between two comments; a test keeps it true.
"""

import re
import sys
from pathlib import Path

import grimp

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
BEGIN, END = "<!-- structure: drawn by `python -m pictures.structure` -->", "<!-- /structure -->"
ROOTS = ("bot", "council", "storage")


def drawing() -> str:
    """Return the drawing: an arrow from each package to those it imports, less what others imply."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None)
    packages = {
        module
        for root in ROOTS
        for module in graph.find_descendants(root)
        if graph.find_children(module)
    } | {*ROOTS}
    imports: dict[str, set[str]] = {package: set() for package in packages}
    for module in graph.modules:
        home = _home(module, packages)
        for imported in graph.find_modules_directly_imported_by(module):
            there = _home(imported, packages)
            if there != home:
                imports[home].add(there)
    arrows = [
        f"    {_name(package)} --> {_name(imported)}"
        for package in sorted(packages)
        for imported in sorted(_direct(package, imports))
    ]
    nodes = [f'    {_name(package)}["{package.replace(".", "/")}"]' for package in sorted(packages)]
    return "\n".join(["```mermaid", "flowchart TD", *nodes, *arrows, "```"])


def _home(module: str, packages: set[str]) -> str:
    while module not in packages:
        module = module.rpartition(".")[0]
    return module


def _name(package: str) -> str:
    return package.replace(".", "_")


def _direct(package: str, imports: dict[str, set[str]]) -> set[str]:
    """Return what a package imports directly and not also through another of its imports."""
    # Two packages that import each other both keep their arrows.
    reached = {one: _reached(one, imports, {package}) for one in imports[package]}
    return {
        imported
        for imported in reached
        if not any(imported in reached[one] and one not in reached[imported] for one in reached)
    }


def _reached(package: str, imports: dict[str, set[str]], passed: set[str]) -> set[str]:
    found: set[str] = set()
    for imported in imports[package] - passed:
        if imported not in found:
            found |= {imported} | _reached(imported, imports, passed | {package})
    return found


def drawn(page: str) -> str:
    """Return a page with the drawing in its place."""
    whole = f"{BEGIN}\n{drawing()}\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: whole, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
