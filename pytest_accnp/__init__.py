"""The pytest plugin of accnp: benchmarks that wait for results, cold caches, comparisons.

Input: tests that use the fixtures `benchmark` of pytest-benchmark, `accnp_cold` or `accnp_compare`.
Output: the results of pytest-benchmark with counts in `extra_info`, and a table of comparisons.

pytest loads this module in every environment in which accnp is installed, so it imports only the
standard library and pytest. It uses accnp (`accnp.bench.pytest_support`) when a fixture needs it,
or when the program under test has imported it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from accnp.bench.measure import Measurement
    from accnp.bench.pytest_support import Cold

__all__ = ["accnp_cold", "accnp_compare"]

COMPARED = "accnp_compare"  # the name of a test's property that holds a comparison
_MARKER = (
    "accnp(wait=True, counts=True): whether timed functions wait for results of accnp, and whether "
    "extra_info gets traces, compiles, launches and bytes."
)
_OPTIONS = ("wait", "counts")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options to the command line and to the ini file."""
    group = parser.getgroup("accnp", "accnp: timed functions of pytest-benchmark")
    group.addoption(
        "--accnp-no-wait",
        action="store_true",
        help="do not wait for results of accnp in timed functions",
    )
    group.addoption(
        "--accnp-no-counts",
        action="store_true",
        help="do not call timed functions two more times to count launches and bytes",
    )
    group.addoption(
        "--accnp-as-jax",
        action="store_true",
        help="let `import jax` import accnp in the tests (see accnp.as_jax)",
    )
    parser.addini("accnp_wait", "wait for results of accnp in timed functions", "bool", True)
    parser.addini("accnp_counts", "count traces, compiles, launches and bytes", "bool", True)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put accnp in the place of JAX before a conftest file imports it."""
    if early_config.known_args_namespace.accnp_as_jax:
        importlib.import_module("accnp.as_jax").as_jax()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and register the collector of comparisons."""
    config.addinivalue_line("markers", _MARKER)
    config.pluginmanager.register(_Comparisons(), "accnp-comparisons")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the arguments of the marker, and whether pytest-benchmark is available."""
    marker = item.get_closest_marker("accnp")
    if marker is None:
        return
    wrong = [repr(value) for value in marker.args]
    wrong += [name for name in marker.kwargs if name not in _OPTIONS]
    if wrong:
        raise pytest.UsageError(
            f"pytest.mark.accnp takes wait=... and counts=...; got {', '.join(wrong)}"
        )
    names = getattr(item, "fixturenames", ())
    if "benchmark" in names and not item.config.pluginmanager.has_plugin("benchmark"):
        pytest.fail(
            "the fixture 'benchmark' requires pytest-benchmark, which is not installed or not "
            "loaded: pip install pytest-benchmark (accnp_compare and accnp_cold do not require it)",
            pytrace=False,
        )


def _wanted(node: pytest.Item, name: str) -> bool:
    """Return the value of an option for a test: from its marker, the command line, or the ini
    file."""
    marker = node.get_closest_marker("accnp")
    if marker is not None and name in marker.kwargs:
        return bool(marker.kwargs[name])
    if node.config.getoption(f"accnp_no_{name}"):
        return False
    return bool(node.config.getini(f"accnp_{name}"))


# --- pytest-benchmark's fixture ---


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, None]:
    """Make the fixture of pytest-benchmark wait for results of accnp."""
    outcome = yield
    if fixturedef.argname != "benchmark" or outcome.excinfo is not None:
        return
    benchmark_module = sys.modules.get("pytest_benchmark.fixture")
    fixture = outcome.get_result()
    if benchmark_module is not None and type(fixture) is benchmark_module.BenchmarkFixture:
        fixture.__class__ = _waiting_fixture(benchmark_module.BenchmarkFixture)
        fixture.accnp_node = request.node


_classes: dict[type, type] = {}


def _waiting_fixture(base: Any) -> type:
    """Return a subclass of pytest-benchmark's fixture that waits for results of accnp."""
    if base in _classes:
        return _classes[base]

    class WaitingBenchmark(base):
        accnp_node: pytest.Item

        def __call__(self, function_to_benchmark: Any, *args: Any, **kwargs: Any) -> Any:
            def measure(function: Any) -> Any:
                return base.__call__(self, function, *args, **kwargs)

            def again(function: Any) -> None:
                function(*args, **kwargs)

            return _timed(self, function_to_benchmark, measure, again)

        def pedantic(
            self,
            target: Any,
            args: Any = (),
            kwargs: Any = None,
            setup: Any = None,
            teardown: Any = None,
            rounds: int = 1,
            warmup_rounds: int = 0,
            iterations: int = 1,
        ) -> Any:
            def measure(function: Any) -> Any:
                return base.pedantic(
                    self, function, args, kwargs, setup, teardown, rounds, warmup_rounds, iterations
                )

            def again(function: Any) -> None:
                arguments = (setup() if setup is not None else None) or (args, kwargs or {})
                function(*arguments[0], **arguments[1])
                if teardown is not None:
                    teardown(*arguments[0], **arguments[1])

            once = rounds == 1 and iterations == 1 and not warmup_rounds
            return _timed(self, target, measure, None if once else again)

    _classes[base] = WaitingBenchmark
    return WaitingBenchmark


def _timed(
    fixture: Any,
    function: Callable[..., Any],
    measure: Callable[[Callable[..., Any]], Any],
    again: Callable[[Callable[..., Any]], None] | None,
) -> Any:
    """Measure a function; if the program has imported accnp, wait for results and count."""
    if "accnp" not in sys.modules:
        return measure(function)
    wait, counts = (_wanted(fixture.accnp_node, name) for name in _OPTIONS)
    return _support().timed(fixture, function, measure, again, wait=wait, counts=counts)


def _support() -> Any:
    """Return the part of the plugin that uses accnp. It is imported only for tests that need it."""
    return importlib.import_module("accnp.bench.pytest_support")


# --- fixtures of accnp ---


@pytest.fixture
def accnp_cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cold]:
    """Provide cold caches: an empty folder for compiled kernels, and empty caches in memory.

    `accnp_cold.clear()` empties them again: pass it as `setup` of `benchmark.pedantic` to time
    first calls. Modules stay loaded; `accnp_cold.process(statement, setup)` measures in a fresh
    process with an empty folder. At the end of the test, the folder of the session is restored.
    """
    with _support().Cold(lambda: tmp_path_factory.mktemp("accnp-cache")) as cold:
        yield cold


@pytest.fixture
def accnp_compare(request: pytest.FixtureRequest) -> Callable[..., Measurement]:
    """Compare a function with peers that take turns with it.

    `accnp_compare(f, *args, peers={"numpy": call}, rtol=1e-4)` has the arguments of `accnp.timeit`
    and returns its `Measurement`, whose `ratio(peer)` has the median over the rounds and the
    quartiles. Peers are calls without arguments. Their results must agree within `rtol` and `atol`
    (`rtol=None` disables this check). The comparison is printed at the end of the session. With
    `--benchmark-disable`, and under xdist, each call is made once, and the result is not
    `reliable`: check ratios only if it is.
    """
    config = request.config
    quick = hasattr(config, "workerinput") or config.getoption("benchmark_disable", False)

    def compare(
        f: Callable[..., Any],
        /,
        *args: Any,
        peers: Mapping[str, Callable[[], Any]],
        rtol: float | None = 1e-4,
        atol: float = 1e-5,
        **options: Any,
    ) -> Measurement:
        support = _support()
        comparison = support.compare(f, args, peers, rtol, atol, quick, options)
        if not quick:
            request.node.user_properties.append((COMPARED, support.lines(comparison)))
        return comparison

    return compare


class _Comparisons:
    """Collects the comparisons of tests, and prints them at the end of the session."""

    def __init__(self) -> None:
        self.found: list[tuple[str, list[str]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, lines in report.user_properties:
                if name == COMPARED and isinstance(lines, list):
                    self.found.append((report.nodeid, lines))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.found:
            return
        terminalreporter.section("accnp: comparisons", sep="-")
        terminalreporter.write_line("ratio: time of the function over that of the peer, by rounds")
        for nodeid, lines in self.found:
            terminalreporter.write_line(nodeid)
            for line in lines:
                terminalreporter.write_line(f"    {line}")
