"""Threads that compile in contexts of their own do not wait for each other, and a child of the
process does not wait for its parent's threads."""

import os
import threading

import llvmlite.binding as llvm
import llvmlite.binding.ffi as ffi
import pytest

from accnp.runtime.llvm_lock import apart

TEXT = "define i32 @f() {\n  ret i32 1\n}\n"


def held(entered: threading.Event, leave: threading.Event) -> threading.Thread:
    """A thread that holds llvmlite's lock until it is told to leave."""

    def hold() -> None:
        with ffi.lib._lock:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    return thread


def test_the_lock_is_passed_by_apart_only():
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
    holder = held(entered, leave)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_has_a_free_lock():
    entered, leave = threading.Event(), threading.Event()
    holder = held(entered, leave)
    try:
        child = os.fork()
        if child == 0:
            free = ffi.lib._lock._lock.acquire(timeout=5)
            os._exit(0 if free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        leave.set()
        holder.join(10)
