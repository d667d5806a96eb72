"""Processes that end while threads compile: they end as they said, and soon."""

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
ENDS = {"falls off": ("", 0), "exit": ("raise SystemExit(3)", 3), "error": ("1 / 0", 1)}


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.1, 0.2])
@pytest.mark.parametrize("end", ENDS)
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
