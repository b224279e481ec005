"""Every property with many fresh examples: `make fuzz`.

A pytest plugin. Each property runs in rounds, since Hypothesis remembers every example of one run: a
round has a seed of its own, and two workers share the rounds.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROUND = 5_000

settings.register_profile(
    "fuzz",
    max_examples=ROUND,
    deadline=None,
    database=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[*HealthCheck],
)

_ran: Counter[str] = Counter()
_failed: set[str] = set()
_totals: defaultdict[str, int] = defaultdict(int)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the number of examples be chosen."""
    parser.addoption(
        "--examples", type=int, default=200_000, help="how many examples each property gets at least"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat each property, round after round."""
    if getattr(metafunc.function, "is_hypothesis_test", False):
        examples: int = metafunc.config.option.examples
        rounds = -(-examples // ROUND)
        metafunc.fixturenames.append("fuzz_round")
        metafunc.parametrize("fuzz_round", range(1, rounds + 1), indirect=True, ids="round{}".format)


@pytest.fixture
def fuzz_round(request: pytest.FixtureRequest) -> int:
    """Return the number of the round."""
    return int(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the examples of each property, and mix the properties, so that progress is even."""
    wrapped: set[int] = set()
    for item in items:
        test: Any = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False) and id(test.hypothesis) not in wrapped:
            wrapped.add(id(test.hypothesis))
            test.hypothesis.inner_test = _counted(test.hypothesis.inner_test)
    items.sort(key=lambda item: _round(item.nodeid))


def _round(test: str) -> int:
    found = re.search(r"[\[-]round(\d+)[\]-]", test)
    return int(found[1]) if found else 0


def _property(test: str) -> str:
    """Return a test's name without its round."""
    head, _, parameters = test.partition("[")
    kept = [each for each in parameters.removesuffix("]").split("-") if not each.startswith("round")]
    return f"{head}[{'-'.join(kept)}]" if kept else head


def _counted(inner: Callable[..., object]) -> Callable[..., object]:
    @wraps(inner)
    def counting(*args: object, **kwargs: object) -> object:
        _ran["examples"] += 1
        return inner(*args, **kwargs)

    return counting


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Note how many examples a round had; a property that failed is left alone."""
    name = _property(item.nodeid)
    if name in _failed:
        pytest.skip("it failed in an earlier round")
    before = _ran["examples"]
    try:
        yield
    except Exception:
        _failed.add(name)
        raise
    finally:
        item.user_properties.append(("examples", _ran["examples"] - before))


class _Progress:
    """Adds up the examples of all workers, and prints a failure as soon as there is one."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            told = dict(report.user_properties)
            _totals[_property(report.nodeid)] += int(str(told.get("examples", 0)))
        if report.failed:
            self._reporter.write_line(f"\n{report.nodeid}\n{report.longreprtext}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Watch the reports where they are printed: not in the workers."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(_Progress(reporter))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many examples each property had."""
    terminalreporter.section("examples")
    for name, examples in sorted(_totals.items()):
        terminalreporter.write_line(f"{examples:>9,}  {name}")
    terminalreporter.write_line(f"{sum(_totals.values()):>9,}  in {len(_totals)} properties")
