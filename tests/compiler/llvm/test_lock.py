"""Threads that compile in contexts of their own do not wait for each other, and a child of the
process does not wait for its parent's threads."""

import gc
import os
import subprocess
import sys
import threading

import llvmlite.binding as llvm
import llvmlite.binding.ffi as ffi
import pytest

from accnp.compiler.llvm.lock import apart, in_order

BY_LLVM = True

TEXT = "define i32 @f() {\n  ret i32 1\n}\n"


def start_lock_holder(entered: threading.Event, leave: threading.Event) -> threading.Thread:
    """A thread that holds llvmlite's lock until it is told to leave."""

    def hold() -> None:
        with ffi.lib._lock:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    return thread


@pytest.fixture
def nothing_is_collected():
    """What a collection drops in this thread would wait for the lock that a test holds."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("nothing_is_collected")
def test_lock_is_bypassed_only_within_apart():
    context = llvm.create_context()
    done = {"apart": threading.Event(), "in turn": threading.Event()}

    def parse(name: str) -> None:
        if name == "apart":
            with apart, ffi.lib.LLVMPY_ParseAssembly._lock:
                done[name].set()
        else:
            with ffi.lib.LLVMPY_ParseAssembly._lock:
                done[name].set()

    entered, leave = threading.Event(), threading.Event()
    holder = start_lock_holder(entered, leave)
    threads = [threading.Thread(target=parse, args=(name,)) for name in done]
    try:
        for thread in threads:
            thread.start()
        assert done["apart"].wait(10)
        assert not done["in turn"].wait(0.1)
    finally:
        leave.set()
    for thread in (*threads, holder):
        thread.join(10)
    assert done["in turn"].is_set()
    assert llvm.parse_assembly(TEXT, context).get_function("f").name == "f"


CHILD = """
import gc, os, threading
import accnp as jnp
import llvmlite.binding.ffi as ffi
from accnp.forks import collection_paused

jnp.jit(lambda x: x + 1)(jnp.ones(3)).block_until_ready()  # loads the compiler
entered, leave = threading.Event(), threading.Event()

def hold():
    with collection_paused, ffi.lib._lock:
        entered.set()
        leave.wait()

threading.Thread(target=hold, daemon=True).start()
assert entered.wait(10) and not gc.isenabled()
child = os.fork()
if child == 0:
    assert gc.isenabled()
    assert float(jnp.jit(lambda x: jnp.tanh(x * 2).sum())(jnp.zeros(5))) == 0
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
leave.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_compiles_while_parent_compiles():
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=os.environ | {"ACCNP_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_llvm_work_runs_outside_the_main_thread():
    """An interrupt between the end of a module and the note of it ended it twice (SIGSEGV)."""
    assert in_order(threading.current_thread)() is not threading.main_thread()
