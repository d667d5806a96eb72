"""Forks of a process with threads: the child can compute, whatever the threads were doing."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# What ends a child that hangs, and says where.
HEAD = '''
import faulthandler, os, sys, threading, time
import accnp as jnp

def child(work):
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(40, exit=True)
        work()
        os._exit(7)
    return pid

def check(pid):
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

def program(x):
    return jnp.sum(jnp.tanh(x * 3) + 1)

def compute():
    assert float(jnp.jit(program)(jnp.zeros(5))) == 5
    assert float(jnp.sort(jnp.arange(5.0) * 2)[-1]) == 8
    with jnp.threads(3):
        assert float(jnp.sum(jnp.ones((2000, 300)))) == 600000

def importing(then):
    """A thread that is loading something, and then does this."""
    from accnp.forks import loading
    inside = threading.Event()

    def load():
        with loading:
            inside.set()
            time.sleep(0.5)
            then()

    thread = threading.Thread(target=load)
    thread.start()
    assert inside.wait(40)
    return thread

'''
ENDS = {
    # Python's locks of modules cannot be had anew.
    "a thread imports Numba": """
from accnp.config import scope

def compile_by_numba():
    with scope("compiler", "numba"):
        jnp.jit(program)(jnp.zeros(5))

threading.Thread(target=compile_by_numba, daemon=True).start()
while "numba.core" not in sys.modules:
    time.sleep(0)
check(child(compute))
""",
    "a thread imports llvmlite": """
threading.Thread(target=lambda: jnp.jit(program)(jnp.zeros(5)), daemon=True).start()
while "llvmlite.binding" not in sys.modules:
    time.sleep(0)
check(child(compute))
""",
    # The fork waits for the hook, too, which waits for a thread that the import has started.
    "a thread imports what adds a hook": """
from accnp.forks import at_fork
lock, begun = threading.RLock(), threading.Event()

def hold():
    with lock:
        begun.set()
        time.sleep(1)

def release():
    if lock._is_owned():
        lock.release()

def add_hook():
    at_fork(release, before=lock.acquire, parent=release)
    threading.Thread(target=hold).start()
    assert begun.wait(40)

thread = importing(add_hook)
check(child(lambda: lock.acquire(timeout=10) or os._exit(1)))
thread.join()
""",
    # The hook of a module that was loaded after ours comes before it, and has taken its lock.
    "a thread imports what asks for the lock of logging": """
import logging
thread = importing(lambda: logging.getLogger("of a module"))
began = time.monotonic()
check(child(compute))
assert time.monotonic() - began < 20
thread.join()
""",
    "a thread imports logging": """
thread = importing(lambda: __import__("logging"))
check(child(lambda: __import__("logging").getLogger().setLevel(10)))
thread.join()
assert sys.modules["logging"]._lock.acquire(timeout=1)
""",
    "a thread makes the same kernel": """
from accnp.compiler.llvm import objects
made, reached = (objects.build, objects.build_unoptimized), threading.Event()

def slow(*args):
    reached.set()
    time.sleep(60)

objects.build = objects.build_unoptimized = slow
threading.Thread(target=lambda: jnp.jit(program)(jnp.zeros(5)), daemon=True).start()
assert reached.wait(40)
objects.build, objects.build_unoptimized = made
check(child(compute))
""",
    "a thread holds every lock": """
from accnp import forks
from accnp.compiler.kernel_cache import wait_for_background
compute()
wait_for_background()  # the parent ends when no thread is in LLVM
held = threading.Event()

def hold():
    for lock in forks._locks:
        lock.acquire()
    held.set()
    time.sleep(60)

threading.Thread(target=hold, daemon=True).start()
assert held.wait(40)
def more():
    compute()
    float(jnp.jit(lambda x: x / 3)(jnp.ones(7))[0])
    jnp.config.update("threads", 1)

check(child(more))
""",
    "threads work": """
def work(i):
    for k in range(1000):
        jnp.jit(lambda x: jnp.sum(x * k + i))(jnp.ones(10 + k))
        jnp.cumsum(jnp.arange(float(k + 1)))[-1].block_until_ready()

for i in range(3):
    threading.Thread(target=work, args=(i,), daemon=True).start()
for _ in range(12):
    time.sleep(0.02)
    check(child(compute))
""",
    "threads fork": """
compute()
threads = [threading.Thread(target=lambda: check(child(compute))) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
}


@pytest.mark.parametrize("what", ENDS)
def test_forked_child_computes(what):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + ENDS[what]],
        env=os.environ | {"ACCNP_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "_releaseLock" not in done.stderr  # the hook of logging, of Python 3.11


def test_interrupted_import_leaves_no_partial_module(tmp_path):
    """An interrupt while Numba was imported at the first compilation made later
    compilations fail."""
    (tmp_path / "slow.py").write_text("parts.append(1)\ntime.sleep(0.3)\nparts.append(2)\n")
    code = """
import builtins, signal, sys, time
from accnp.lazy_imports import imported
builtins.parts, builtins.time = [], time
sys.path.insert(0, sys.argv[1])
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    imported("slow")
except KeyboardInterrupt:
    assert parts == [1]
    imported("slow")
    assert parts == [1, 2]
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


def test_interrupt_does_not_stop_background_work():
    code = """
import signal, sys, threading, time
from accnp.forks import run_uninterrupted
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
done = threading.Event()
try:
    run_uninterrupted(lambda: (time.sleep(0.3), done.set()))
except KeyboardInterrupt:
    assert not done.is_set()
    assert done.wait(5)
    assert run_uninterrupted(lambda: run_uninterrupted(int, "7")) == 7
    try:
        run_uninterrupted(int, "x")
    except ValueError:
        sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
