"""The pytest plugin: waiting for results, counts, warnings, cold caches, comparisons, and its cost
for other test suites.

Each suite runs in a process of its own, as users' suites do.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAST = ["--benchmark-min-rounds=2", "--benchmark-max-time=0.001", "--benchmark-min-time=0.00001"]
HEAD = """
import os
import numpy as np
import pytest
import accnp as jnp
from accnp.config import config

X = jnp.ones((50, 50)).block_until_ready()
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs pytest on a one-file suite in a new process and returns its
    result and its output."""

    def run(source, *words, head=HEAD, named=True, ini=""):
        known = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(known))
        for name in [n for n in os.environ if n.startswith("PYTEST_XDIST")]:
            monkeypatch.delenv(name)  # the new process is no worker
        pytester.makepyfile(test_suite=head + source)
        pytester.makeini(f"[pytest]\n{ini}")
        plugin = ["-p", "pytest_accnp"] if named else []
        done = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *words)
        return done, done.stdout.str() + done.stderr.str()

    return run


SUITE = """
calls = []

def launched(before):
    return jnp.counters()["launches"] - before

def test_waits(benchmark):
    before = jnp.counters()["launches"]
    y = benchmark(lambda: calls.append("waits") or X * X + X * 2)
    assert y.is_ready()
    assert launched(before) >= calls.count("waits")  # each call was computed

def test_trees(benchmark):
    before = jnp.counters()["launches"]
    benchmark(lambda: calls.append("trees") or {"a": [X * 3, 1], "b": None})
    assert launched(before) >= calls.count("trees")

@pytest.mark.accnp(wait=False)
def test_does_not_wait(benchmark):
    before = jnp.counters()["launches"]
    y = benchmark(lambda: X * X + X * 2)
    assert launched(before) <= 2  # of the two calls that count
    assert not y.is_ready()

@pytest.mark.accnp(wait=False)
def test_waits_by_itself(benchmark):
    benchmark(lambda: (X * X + X * 2).block_until_ready())

def test_jit(benchmark):
    benchmark(jnp.jit(lambda x: jnp.sin(x) * 3), X)

@pytest.mark.accnp(counts=False)
def test_no_counts(benchmark):
    benchmark(lambda: X * 2)
    assert benchmark.extra_info == {}

def test_plain(benchmark):
    assert benchmark(lambda a, *, b: a + b, 1, b=2) == 3

def test_forgets_to_return(benchmark):
    @benchmark
    def run():
        y = X * X + X * 2

def test_traces_only(benchmark):
    benchmark(lambda: str(jnp.make_jaxpr(lambda x: x * x + 1)(X)))

def test_updates_a_variable(benchmark):
    kept = [X]
    @benchmark
    def run():
        kept[0] = jnp.tanh(kept[0] * 2).block_until_ready()

def test_keeps_extra_info(benchmark):
    benchmark.extra_info["mine"] = 1
    benchmark(lambda: X * 2)

def test_pedantic(benchmark):
    order = []
    def setup():
        order.append("setup")
        return (X,), {"k": 2}
    def teardown(x, k):
        order.append("teardown")
    benchmark.pedantic(
        lambda x, k: order.append("call") or x * k, setup=setup, teardown=teardown, rounds=3
    )
    assert order == ["setup", "call", "teardown"] * 5  # two of them count

def test_once(benchmark):
    order = []
    benchmark.pedantic(lambda: order.append(1) or X * 7, rounds=1)
    assert order == [1]

def test_cold(benchmark, accnp_cold):
    f = jnp.jit(lambda x: jnp.cos(x) * 3)
    folder = accnp_cold.folder
    assert config.cache_dir == str(folder)
    before = jnp.counters()["compiles"]
    benchmark.pedantic(f, args=(X,), setup=accnp_cold.clear, rounds=2)
    assert jnp.counters()["compiles"] - before >= 2
    assert accnp_cold.folder != folder
    calls.append(accnp_cold.folder)

def test_the_cache_is_the_old_one():
    assert config.cache_dir == os.environ["ACCNP_CACHE_DIR"] != str(calls[-1])

def test_fresh_process(accnp_cold):
    times = accnp_cold.process("x + 1", "import accnp as jnp; x = jnp.arange(3)")
    assert times.setup > 0 and times.first > times.again > 0
    assert "fresh process, empty cache" in str(times)

def test_compare(accnp_compare):
    a = np.ones(50)
    found = accnp_compare(
        jnp.jit(lambda x: x * 2 + 1), jnp.ones(50), peers={"numpy": lambda: a * 2 + 1}, rounds=3
    )
    assert found.ratio("numpy").median > 0
    assert not found.quick
"""


def test_benchmarks_are_counted_and_compared(run, pytester, monkeypatch):
    monkeypatch.setenv("ACCNP_CACHE_DIR", str(pytester.mkdir("cache")))
    done, output = run(SUITE, "--benchmark-json=out.json", *FAST)
    done.assert_outcomes(passed=17, warnings=2)
    entries = json.loads((pytester.path / "out.json").read_text())["benchmarks"]
    information = {b["name"]: b["extra_info"] for b in entries}
    _check_warning(output)
    _check_counts(information)
    _check_table(output)


def _check_warning(output):
    assert output.count("PendingResultWarning: the result of the timed function is pending") == 1
    assert output.count("PendingResultWarning: the timed function recorded 3 operations and") == 1
    assert output.count("See: python -m accnp docs errors.PendingResultWarning") == 2
    assert "test_suite.py::test_does_not_wait" in output
    assert "test_suite.py::test_forgets_to_return" in output


def _check_counts(information):
    names = {"traces", "compiles", "launches", "bytes", "memory_share", "busy"}
    counts = information["test_jit"]["accnp"]
    assert set(counts) == names
    assert (counts["traces"], counts["launches"]) == (1, 1)
    assert counts["bytes"] >= 2 * 50 * 50 * 4
    assert counts["memory_share"] > 0
    assert information["test_does_not_wait"]["accnp"]["memory_share"] is None
    assert information["test_plain"]["accnp"]["launches"] == 0
    assert information["test_keeps_extra_info"]["mine"] == 1
    assert information["test_once"]["accnp"]["launches"] == 1
    cold = information["test_cold"]["accnp"]
    assert cold["compiles"] >= 2
    assert cold["traces"] == 2


def _check_table(output):
    table = output.split("accnp: comparisons", 1)[1]
    assert "test_suite.py::test_compare" in table
    assert re.search(r"numpy: .*, ratio [\d.e+-]+ \([\d.e+-]+ to [\d.e+-]+\)", table)


def test_waiting_is_turned_off_by_the_ini_file_or_an_option(run, monkeypatch):
    source = """
def test_default(benchmark):
    assert not benchmark(lambda: X * 3).is_ready()
    assert ("accnp" in benchmark.extra_info) == (os.environ["COUNTS"] == "yes")

@pytest.mark.accnp(wait=True)
def test_marked(benchmark):
    assert benchmark(lambda: X * 3).is_ready()
"""
    warnings = "filterwarnings = ignore::accnp.errors.PendingResultWarning"
    monkeypatch.setenv("COUNTS", "yes")
    done, _ = run(source, "-W", "error", *FAST, ini=f"accnp_wait = false\n{warnings}")
    done.assert_outcomes(passed=1, failed=1)  # the command line goes first: the warning is an error
    monkeypatch.setenv("COUNTS", "no")
    done, _ = run(source, "--accnp-no-wait", "--accnp-no-counts", *FAST, ini=warnings)
    done.assert_outcomes(passed=2)


WITHOUT = """
@pytest.mark.accnp
def test_benchmark(benchmark):
    pass

def test_cold(accnp_cold):
    assert jnp.tanh(X).block_until_ready().is_ready()

def test_agrees(accnp_compare):
    found = accnp_compare(lambda: X + 1, peers={"p": lambda: np.asarray(X) + 1}, rounds=2)
    assert found.ratio("p").median > 0

def test_differs(accnp_compare):
    accnp_compare(lambda: X + 1, peers={"p": lambda: np.asarray(X)}, rounds=2)

def test_other_structure(accnp_compare):
    accnp_compare(lambda: X + 1, peers={"p": lambda: (np.asarray(X), 1)}, rounds=2)

def test_unchecked(accnp_compare):
    accnp_compare(lambda: X + 1, peers={"p": lambda: None}, rounds=2, rtol=None)

@pytest.mark.accnp(wiat=False)
def test_marker():
    pass
"""


def test_without_pytest_benchmark(run):
    done, output = run(WITHOUT, "-p", "no:benchmark")
    done.assert_outcomes(passed=3, failed=2, errors=2)
    assert "the fixture 'benchmark' requires pytest-benchmark, which is not installed" in output
    assert "accnp_compare: p has another result" in output
    assert "accnp_compare: 1 arrays in the result, 2 in p's" in output
    assert "pytest.mark.accnp takes wait=... and counts=...; got wiat" in output


def test_under_xdist_nothing_is_measured(run):
    source = """
def test_benchmark(benchmark):
    assert benchmark(lambda: X * 2).is_ready()
    assert benchmark.extra_info == {}

def test_compare(accnp_compare):
    found = accnp_compare(lambda: X + 1, peers={"p": lambda: np.asarray(X) + 1})
    assert len(found.seconds) == 1 and found.quick and not found.reliable

def test_cold(accnp_cold):
    assert jnp.tanh(X).block_until_ready().is_ready()
"""
    done, output = run(source, "-n", "1")
    done.assert_outcomes(passed=3)
    assert "accnp: comparisons" not in output


def test_plugin_does_not_import_accnp(run, pytester, monkeypatch):
    """The plugin is loaded by its entry point, as pytest loads plugins of installed packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ((group, entries),) = project["entry-points"].items()
    metadata = pytester.mkdir("pretended-1.0.dist-info")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pretended\nVersion: 1.0\n")
    text = "\n".join(f"{name} = {module}" for name, module in entries.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{text}\n")
    source = """
import sys

def test_nothing_is_loaded(request, benchmark):
    assert request.config.pluginmanager.has_plugin("pytest_accnp")
    benchmark(lambda: 1)
    assert not {"accnp", "numpy", "numba"} & set(sys.modules)
"""
    # Plugins of other installed packages load NumPy.
    others = {e.name for e in importlib.metadata.entry_points(group=group)} - {
        *entries,
        "benchmark",
    }
    without = [word for name in sorted(others) for word in ("-p", f"no:{name}")]
    for named in (False, True):  # the same plugin by its name is no second one
        done, _ = run(source, *FAST, *without, head="", named=named)
        done.assert_outcomes(passed=1)


def test_the_plugin_imports_the_standard_library_and_pytest_only():
    code = """
import sys, pytest
before = set(sys.modules)
import pytest_accnp
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["pytest_accnp"]
