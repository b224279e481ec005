"""The documents people read say what the program does."""

import re
import tomllib
from functools import cache
from pathlib import Path

from typer.main import get_group

from bench import settings
from bot.adapters import Health
from bot.app import open_library
from bot.cli import app
from bot.config.settings import Settings
from bot.service.commands import OVERRIDES
from bot.service.metrics import Metrics
from bot.status import Status

ROOT = Path(__file__).parent.parent
VARIABLES = {name.upper() for name in Settings.model_fields}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_example_environment_is_as_the_rows_have_it() -> None:
    """Every variable with its sentence, and no other: `python -m bench.settings --write` writes it."""
    assert text(".env.example") == settings.example()
    assert set(re.findall(r"^(\w+)=$", settings.example(), re.MULTILINE)) == VARIABLES


def test_tables_of_settings_and_scopes_are_as_the_rows_have_them() -> None:
    """`python -m bench.settings --write` writes them."""
    for page, tables in settings.pages():
        assert text(str(page)) == settings.filled(text(str(page)), tables)


def test_a_page_is_found_and_read_in_minutes() -> None:
    """Nine pages for users, and few words of our own in them: tables that rows fill, and marks, don't count."""
    users, developers = [*(ROOT / "docs").glob("*.md")], [*(ROOT / "docs/dev").glob("*.md")]
    assert len(users) <= 9
    for pages, most in ((users, 10_600), (developers, 6_000)):
        assert sum(settings.words(page.read_text(encoding="utf-8")) for page in pages) <= most


def test_everything_that_can_be_set_is_described() -> None:
    """A row without a sentence would be shown empty; Discord shows 100 characters of an option's."""
    for model in settings.TABLES.values():
        assert [key for key, said, _ in settings.rows(model) if not said] == []
    for override in OVERRIDES.values():
        assert 0 < len(override.channel) <= 100
        assert len(override.question) <= 100


async def test_the_page_for_operators_names_every_metric(tmp_path: Path) -> None:
    """And no other; those of any process are prometheus-client's."""
    async with open_library(tmp_path) as library:
        status = Status(Health(library.database), Metrics())
        shown = (await status.exposition()).decode()
    named = set(re.findall(r"`(council_\w+)`", text("docs/run.md")))
    assert named == set(re.findall(r"^# TYPE (council_\w+)", shown, re.MULTILINE))


def test_every_dependency_has_its_line() -> None:
    """What each library is for is in `docs/dev/dependencies.md`."""
    project = tomllib.loads(text("pyproject.toml"))
    groups = project["project"]["optional-dependencies"] | project["dependency-groups"]
    wanted = [
        *project["project"]["dependencies"],
        *(each for group in groups.values() for each in group),
    ]
    named = re.findall(r"\w[\w.-]*\w", text("docs/dev/dependencies.md"))
    assert {re.split(r"[<>=\[]", each)[0] for each in wanted} - {*named} == set()


def test_the_makefile_has_the_readmes_commands() -> None:
    """A new user types what the README says."""
    targets = set(re.findall(r"^(\w+):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", text("README.md"), re.MULTILINE)) <= targets


def test_the_page_for_everybody_has_every_command() -> None:
    """And none that isn't there."""
    cells = [line.split("|")[1] for line in text("docs/using.md").splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`council (\w+)", cell)}
    assert named == get_group(app).commands.keys()


def test_the_drawn_path_leads_through_folders_that_exist() -> None:
    """In the architecture's drawing."""
    [drawing] = re.findall(r"```mermaid\n(.*?)```", text("docs/dev/architecture.md"), re.DOTALL)
    named = re.findall(r"\b(?:bot|council|storage)(?:/[\w.]+)?", drawing)
    assert len(named) > 9
    assert [name for name in named if not (ROOT / name).exists()] == []


PAGES = sorted(page for each in ("*.md", "docs/**/*.md", "bench/*.md") for page in ROOT.glob(each))


def test_what_pages_name_is_there() -> None:
    """Files in code spans, linked pages, and the headings that links lead to."""
    for page in PAGES:
        said = page.read_text(encoding="utf-8")
        files = re.findall(
            r"`((?:bot|council|storage|tests|bench|pictures|docs|deploy)/[\w/.-]*\.\w+)`", said
        )
        assert [file for file in files if not (ROOT / file).exists()] == [], page
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)", said):
            linked = page.parent / target if target else page
            assert linked.exists(), (page, target)
            assert not anchor or anchor in anchors(linked), (page, f"{target}#{anchor}")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
