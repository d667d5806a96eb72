"""Processes that end while threads compile: they end quickly and with the right exit status."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import accnp, accnp.numpy as jnp, os, threading, time

def work(i):
    def f(x):
        for k in range(12):
            x = jnp.tanh(x) * 0.5 + jnp.exp(-x) * (i + k)
        return x.sum(0), x @ x
    accnp.jit(f)(jnp.ones((10, 10)))

accnp.jit(lambda x: x + 1)(jnp.ones(3)).block_until_ready()  # loads the compiler
threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
for thread in threads:
    thread.start()
time.sleep({delay})
{end}
"""
# Each thing that has pending work or memory as the interpreter is taken down.
LEFT = {
    "one kernel": "import accnp.numpy as jnp; (jnp.ones(5) + 1).block_until_ready()",
    "helpers, work in flight": """
import accnp as jnp
import numpy as np
with jnp.threads(3):
    jnp.sum(jnp.exp(jnp.ones((2000, 1000)))).block_until_ready()
x = jnp.ones((500, 500))
kept = [jnp.jit(lambda x: jnp.pure_callback(np.cbrt, x, x @ x))(x) for _ in range(3)]
""",
    "libraries": """
import accnp as jnp
x = jnp.eye(50) * 3
print(jnp.linalg.solve(x, x)[0, 0], jnp.sort(x, axis=None)[-1], jnp.scipy.special.gamma(x)[0, 0])
""",
    "an error in flight": """
import accnp as jnp
import contextlib
def bad(x):
    raise ValueError(1)
with contextlib.suppress(RuntimeError):  # if the work has ended by then
    jnp.jit(lambda x: jnp.debug.callback(bad, x @ x))(jnp.ones((500, 500)))
""",
}
LATE = """
import atexit

def late():
    x = jnp.ones((300, 300))
    y = jnp.cos(x @ x).sum(axis=0)  # for the worker, whose thread would compile two kernels
    print((jnp.cumsum(y * 0) + jnp.exp(x[0] * 0).max()).sum(), flush=True)

{first}
import accnp as jnp
jnp.ones(3).sum().block_until_ready()
{then}
"""
ENDS = {"falls off": ("", 0), "exit": ("raise SystemExit(3)", 3), "error": ("1 / 0", 1)}


@pytest.mark.parametrize("left", LEFT)
def test_no_use_after_free_at_exit(left, tmp_path):
    """The descriptors of launchers were freed before the launchers, and one process of a hundred
    ended by SIGSEGV.

    The test lets glibc overwrite freed memory; it has no effect with other C libraries.
    """
    filled = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2", "ACCNP_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LEFT[left]],
        env=os.environ | filled,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("first", "then"),
    [("atexit.register(late)", ""), ("", "atexit._run_exitfuncs(); late()")],
    ids=["a handler older than the import", "handlers called by hand"],
)
def test_work_after_exit_handlers(first, then, tmp_path):
    """Threads started for this work never ran, and the process waited for them."""
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(first=first, then=then)],
        env=os.environ | {"ACCNP_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("300.0")


@pytest.mark.parametrize(
    ("end", "delay"),
    [
        (end, delay)
        for i, end in enumerate(ENDS)
        for j, delay in enumerate([0.0, 0.01, 0.03, 0.06, 0.1, 0.2])
        if (i + j) % 2 == 0
    ],
)
def test_exit_while_compiling(end, delay, tmp_path):
    text, code = ENDS[end]
    program = PROGRAM.format(delay=delay, end=text)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ACCNP_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr


def test_an_interrupt_while_the_limit_is_measured():
    """Threads wrote to buffers that were freed when the call ended."""
    program = """
import accnp, threading
from accnp.runtime.bandwidth import bandwidth

def interrupted(self):
    raise KeyboardInterrupt

accnp.config.update("threads", 4)
for _ in range(3):
    plain, threading.Thread.join = threading.Thread.join, interrupted
    try:
        bandwidth()
    except KeyboardInterrupt:
        threading.Thread.join = plain
assert bandwidth() > 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_does_not_wait_for_its_parents_threads():
    program = PROGRAM.format(
        delay=0.02,
        end="""
child = os.fork()
if child == 0:
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""",
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ACCNP_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
