"""Counts equal the stored ones: kernels, bytes, traces, sources and allocations of the expressions
of all benchmark rows, and the modules that `import accnp` loads.

After an intended change, run `python -m benchmarks.counts --only GROUP --write`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import counts, registry
from benchmarks.expressions import Expression, normal

ROOT = Path(__file__).parent.parent
ANEW = "if this is meant: python -m benchmarks.counts --only '{}' --write"


@pytest.mark.parametrize("group", registry.names())
def test_counts_are_those_on_file(group):
    """Runs in a separate process, since functions that other tests have traced would not be
    counted."""
    pytest.importorskip("jax")
    command = [sys.executable, "-m", "benchmarks.counts", "--only", group]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, ANEW.format(group)])


def test_modules_of_the_import_are_those_on_file():
    name = counts.IMPORT
    changes = counts.differences(name, counts.count_imports(), counts.read(name))
    assert not changes, "\n".join([*changes, ANEW.format(name)])


def test_difference_is_explained():
    before = {"a": {"kernels": 1, "MB": 2.0}, "b": {"kernels": 3}}
    now = {"a": {"kernels": 2, "MB": 2.0}, "c": {"kernels": 1}}
    assert counts.differences("g", now, before) == [
        "g/a: kernels 1 on file, 2 now",
        "g/b: no longer counted",
        "g/c: not on file",
    ]
    assert counts.differences("g", now, now) == []


def test_counting():
    def make(m):
        return (lambda x: m.numpy.exp(x) * 2 + x.sum()), (normal(0, 1000, 300),)

    row = counts.count(Expression("", make))
    assert row["traces"] == row["plans"] == 1
    assert row["kernels"] == row["texts"] == 3
    assert row["allocations"] == row["steps"] == 0
    assert 3 * 1.2 <= row["MB"] < 3.7


def test_writing_keeps_the_other_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(counts, "FOLDER", tmp_path / "x")
    assert counts.read("b") == {}
    counts.write("b", {"y": {"kernels": 1}})
    counts.write("a", {"x": {"kernels": 2}, "z": {"kernels": 0}})
    assert counts.read("a") == {"x": {"kernels": 2}, "z": {"kernels": 0}}
    assert counts.read("b") == {"y": {"kernels": 1}}
