"""With little memory left, MemoryError names the requested size, nothing hangs, and the process
continues when memory is available again.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accnp as jnp
from accnp import engine, lazy_imports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of Linux")

BY_LLVM = True  # an import of Numba that fails for lack of memory leaves a broken module

PROGRAM = """
import json, os, resource, sys, threading
import numpy as np
import accnp as jnp
from accnp import lax

def eager():
    return float((jnp.arange(1000.0) * 2 + 1).sum())

def jit():
    return float(jnp.jit(lambda x: jnp.sin(x).sum())(jnp.ones(1000)))

def native_loop():
    return float(jnp.jit(lambda x: lax.fori_loop(0, 1000, lambda i, v: v * 0.5 + 1, x))(1.0))

def blocks():
    loop = jnp.jit(lambda x: lax.fori_loop(0, 1000, lambda i, v: v * 0.5 + 1, x))
    return float(loop(jnp.ones(1 << 16)).sum())

def submitted():
    return float(jnp.jit(lambda x: (x @ x).sum())(jnp.ones((700, 700))))

def linalg():
    return float(jnp.linalg.svd(jnp.ones((20, 20)))[1][0])

def three_threads():
    found, errors = [], []
    started = threading.Event()
    def work():
        started.wait()
        try:
            found.append(float((jnp.ones(100000) * 3).sum()))
        except BaseException as error:
            errors.append(error)
    several = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in several:
        thread.start()
    def finish():
        started.set()
        for thread in several:
            thread.join()
        if errors:
            raise errors[0]
        return sum(found)
    return finish

# Python waits forever for a thread that finds no memory to start, so all start before the limit.
waiting = [three_threads() for _ in range(4 * (sys.argv[1] == "threads"))]

def threads():
    return waiting.pop()()

def large():
    return float((jnp.ones(MEGABYTES << 18, dtype="float32") * 2)[3])

case, MEGABYTES, warm = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
f = globals()[case]
if warm:
    f()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES << 20), hard))
lines = []
for _ in range(2):
    try:
        lines.append(f"result {f()}")
    except BaseException as error:
        lines.append(f"{type(error).__name__}: {error}".replace("\\n", " "))
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(*lines, f"then {f()}", sep="\\n")
"""
CASES = ("eager", "jit", "native_loop", "blocks", "submitted", "linalg", "threads")
QUICK = ("eager", "linalg", "threads")  # the others take part in `make test-full` alone
EVERY = [c if c in QUICK else pytest.param(c, marks=pytest.mark.full) for c in CASES]


NAMED = r"MemoryError: .*got a request of [1-9]\d* bytes"


def run(case: str, megabytes: int, warm: bool, folder: Path) -> tuple[list[str], str]:
    """Return the outcomes under the limit, and the result after it is lifted."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, case, str(megabytes), str(int(warm))],
        env={**os.environ, "ACCNP_CACHE_DIR": str(folder), "ACCNP_THREADS": "2"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *outcomes, after = done.stdout.splitlines()
    return outcomes, after


@pytest.mark.parametrize("megabytes", [20, 100, 300])
@pytest.mark.parametrize("case", EVERY)
def test_first_compilation(case: str, megabytes: int, tmp_path: Path) -> None:
    outcomes, after = run(case, megabytes, False, tmp_path)
    for outcome in outcomes:
        assert re.match(NAMED, outcome) or outcome == f"result {after.removeprefix('then ')}"


@pytest.mark.parametrize(
    ("raised", "room"),
    [
        ('RuntimeError("can\'t allocate read lock")', True),
        ("MemoryError()", True),
        ("SystemError('<built-in function compile> returned NULL')", False),
        ("ValueError(\"field 'target' is required for AnnAssign\")", False),
    ],
)
def test_imports_for_which_python_has_no_memory(
    raised: str, room: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython raises errors of several classes if it has no memory to compile a module."""
    monkeypatch.setattr(lazy_imports, "has_room", lambda nbytes: room)
    monkeypatch.setattr(lazy_imports, "_modules", {})
    monkeypatch.delitem(sys.modules, "short_of_memory", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "short_of_memory.py").write_text(f"raise {raised}")
    with pytest.raises(MemoryError, match=r"import short_of_memory: .* of [1-9]\d* bytes"):
        lazy_imports.imported("short_of_memory")
    (tmp_path / "short_of_memory.py").write_text("found = 3")
    importlib.invalidate_caches()
    assert lazy_imports.imported("short_of_memory").found == 3


def test_other_errors_of_imports_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "with_an_error.py").write_text("raise ValueError('its own')")
    with pytest.raises(ValueError, match="its own"):
        lazy_imports.imported("with_an_error")


def test_a_memory_error_of_python_gets_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def fail(*args):\n    raise MemoryError"
    own, ours = {}, {}
    exec(text, own)
    exec(compile(text, engine.__file__, "exec"), ours)
    x = jnp.ones(3) + 1
    monkeypatch.setattr(engine, "_materialize", ours["fail"])
    with pytest.raises(MemoryError, match=r"got a request of 1048576 bytes"):
        float(x.sum())
    monkeypatch.undo()
    assert float(x.sum()) == 6
    with pytest.raises(MemoryError, match=r"^$"):  # the user's own remains as it is
        jnp.jit(own["fail"])(x)


def test_openblas_does_not_wait_for_memory(tmp_path: Path) -> None:
    """OpenBLAS waits for the buffers of its threads. The kernels are on disk, so nothing is
    compiled."""
    _, after = run("linalg", 2000, True, tmp_path)
    for megabytes in (20, 50, 68):
        outcomes, again = run("linalg", megabytes, False, tmp_path)
        assert again == after
        for outcome in outcomes:
            assert re.match(NAMED, outcome) or outcome == f"result {after.removeprefix('then ')}"


@pytest.mark.parametrize("megabytes", [5, 20])
@pytest.mark.parametrize("case", EVERY)
def test_compiled_programs_need_no_compiler(case: str, megabytes: int, tmp_path: Path) -> None:
    outcomes, after = run(case, megabytes, True, tmp_path)
    assert outcomes == [f"result {after.removeprefix('then ')}"] * 2


@pytest.mark.parametrize("megabytes", [20, 100, 300])
def test_large_arrays(megabytes: int, tmp_path: Path) -> None:
    outcomes, after = run("large", megabytes, True, tmp_path)
    assert after == "then 2.0"
    for outcome in outcomes:
        assert re.match(r"MemoryError: .*request of \d+ bytes|result 2.0", outcome)


def test_threads_that_cannot_begin_are_not_waited_for() -> None:
    program = """
import threading
from accnp import forks

def fail(self):
    raise MemoryError

threading.Thread._bootstrap_inner = fail
threading.excepthook = lambda *_: None
assert forks.start_thread(print, "name") is None
assert forks.run_uninterrupted(lambda x: x + 1, 2) == 3
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
