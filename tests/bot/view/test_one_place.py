"""Every sentence that people read is in `bot/view/wording`, where an editor reads it as a whole."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.sources import parsed

BOT = Path(__file__).parents[3] / "bot"
ELSEWHERE = {
    "bot/checks/channels.py": "what is wrong and its fix are beside the check that finds it",
    "bot/checks/check.py": "the same",
    "bot/checks/machine.py": "the same",
    "bot/checks/models.py": "the same",
    "bot/cli/__init__.py": "typer makes the help of commands and options of what is written where they are",
    "bot/cli/asking.py": "the same",
    "bot/cli/data.py": "the same",
    "bot/cli/execution.py": "the same",
    "bot/cli/serving.py": "the same",
    "bot/cli/setting_up.py": "the same",
    "bot/config/configuration.py": "a problem is named by its key or variable, beside its check",
    "bot/config/logs.py": "fields are listed by name",
    "bot/config/settings.py": "a setting is described where it is declared",
    "bot/service/commands.py": "the same: what a channel's setting is called",
    "bot/demo/scenario.py": "an example of what people and models write",
    "bot/service/admission/permissions.py": "rules are named, nobody reads them",
    "bot/discord/checks.py": "as in bot/checks",
    "bot/doctor.py": "the same",
    "bot/service/delivery/unshown.py": "an error of the program's own, which nobody reads",
    "bot/slack/checks.py": "the same",
    "bot/adapters.py": "a problem or a trouble is named where it is found",
    "bot/health.py": "the same",
    "bot/serve.py": "the same",
    "bot/terminal/budgets.py": "what a command says is in its function",
    "bot/terminal/init.py": "a question is put where its answer is read",
    "bot/terminal/plan.py": "the same",
    "bot/inputs/walls.py": "paths into a page, which nobody reads",
    "bot/slack/typed.py": "Slack's own words for what it can't show",
    "bot/monitoring.py": "a metric's help is read by programs, beside its name",
}
"""Files with sentences of their own, and why."""
# Marks and styles of a file format; what they hold comes from elsewhere.
_FORMAT = re.compile(r"<[a-z/][^>]*>|default-src|https?://|\\[a-z]\(|[{]\d|\|")
_PROSE = re.compile(r"[A-Za-z][a-z']*[,;]?( [a-z][a-z']*[,;]?){2,}")
_SILENT = {"ValueError", "RuntimeError", "NotImplementedError", "cast", "TypeVar"}


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module, values left out; no docstring, no log, no error of a programmer's."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Call(func=ast.Name(id=name)) if name in _SILENT:
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
                continue
            case ast.Subscript(value=ast.Name(id="Literal")):
                continue
            case ast.Constant(value=str(text)):
                yield node.lineno, text
            case ast.JoinedStr(values=parts):
                yield (
                    node.lineno,
                    "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "\u2026" for part in parts
                    ),
                )
                for part in parts:
                    if isinstance(part, ast.FormattedValue):
                        yield from literals(part)
            case _:
                yield from literals(node)


def sentences(path: Path) -> list[str]:
    """Return what reads like a sentence or a part of one."""
    found = literals(parsed(path))
    return [
        f"{line}: {text}" for line, text in found if _PROSE.search(text) and not _FORMAT.search(text)
    ]


def test_no_sentence_is_elsewhere() -> None:
    """A text of three words and more belongs to the wording."""
    misplaced = {
        name: found
        for path in sorted(BOT.rglob("*.py"))
        if BOT / "view" / "wording" not in path.parents
        and (name := path.relative_to(BOT.parent).as_posix()) not in ELSEWHERE
        and (found := sentences(path))
    }
    assert misplaced == {}


def test_the_exceptions_are_needed() -> None:
    """A file whose sentences have moved leaves the list."""
    assert [name for name in ELSEWHERE if not sentences(BOT.parent / name)] == []
