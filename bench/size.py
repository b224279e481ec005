"""The size of the house: lines of Python by package, against the falling budgets of bench/size.toml."""

import argparse
import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUDGETS = "bench/size.toml"
SOURCE = ("bot", "council", "storage")


def main() -> int:
    """Print the sizes; return 1 if one is above its budget, or a budget above what it once was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lower", action="store_true", help="make each budget as small as what it bounds"
    )
    lower = parser.parse_args().lower
    budgets: dict[str, int] = tomllib.loads((ROOT / BUDGETS).read_text(encoding="utf-8"))
    sizes, folders, bodies = _measure()
    for folder, (lines, files) in sorted(folders.items()):
        print(f"{lines:8,} lines in {files:3} files  {folder}")
    print(f"\n{len(bodies):8,} functions, {sum(bodies) / len(bodies):.1f} lines of body each\n")
    faults: list[str] = []
    for name, budget in budgets.items():
        print(f"{sizes[name]:8,} {name}, of {budget:,}")
        if sizes[name] > budget:
            faults.append(
                f"{name}: {sizes[name] - budget:,} too many. Take as much away in the same change."
            )
        if budget > (once := min(_committed(name), default=budget)):
            faults.append(f"{name}: its budget was {once:,}, and budgets only fall.")
    if lower:
        rows = (f"{name} = {min(budget, sizes[name])}\n" for name, budget in budgets.items())
        (ROOT / BUDGETS).write_text("".join(rows), encoding="utf-8")
    print("\n".join(faults))
    return 1 if faults else 0


def _measure() -> tuple[Counter[str], dict[str, tuple[int, int]], list[int]]:
    """Return sizes by budget, lines and files by folder of the source, and its functions' lines of body.

    A body begins after the docstring.
    """
    sizes: Counter[str] = Counter()
    lines_in: Counter[str] = Counter()
    files_in: Counter[str] = Counter()
    bodies: list[int] = []
    for name in _git("ls-files", "--cached", "--others", "--exclude-standard", "*.py").splitlines():
        path = Path(name)
        if not (ROOT / path).exists():
            continue  # deleted, not committed yet
        text = (ROOT / path).read_text(encoding="utf-8")
        sizes[path.parts[0]] += text.count("\n")
        if path.parts[0] not in SOURCE:
            continue
        sizes["source"] += text.count("\n")
        sizes["files"] += 1
        folder = "/".join(path.parts[:-1][:2])
        lines_in[folder] += text.count("\n")
        files_in[folder] += 1
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body if ast.get_docstring(node) is None else node.body[1:]
                bodies.append((body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0)
    return sizes, {folder: (lines_in[folder], files_in[folder]) for folder in lines_in}, bodies


def _committed(name: str) -> list[int]:
    """Return the budgets that the commits at hand have set."""
    return [
        int(found)
        for found in re.findall(
            rf"^\+{name} = (\d+)$", _git("log", "--format=", "-p", "--", BUDGETS), re.MULTILINE
        )
    ]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603, S607
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
