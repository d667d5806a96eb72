"""At exit, the compiler's objects are frozen, unless an object has a finalizer that must run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FROZEN = "import atexit, gc; atexit.register(lambda: print('frozen', gc.get_freeze_count() > 0))\n"
COMPUTE = """
import accnp.numpy as jnp
print(float(jnp.tanh(jnp.arange(10.0)).sum()))
"""


def output(code: str, cache: Path) -> list[str]:
    """Return the output of a process that compiles first and then runs some code."""
    result = subprocess.run(
        [sys.executable, "-c", FROZEN + COMPUTE + code],
        env={**os.environ, "ACCNP_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not result.stderr
    return result.stdout.splitlines()[1:]


def test_the_compiler_is_frozen_at_exit(tmp_path: Path) -> None:
    code = """
class Plain:
    pass
one = Plain()
one.me = one
def numbers():
    yield 1
ended = list(numbers())
"""
    assert output(code, tmp_path) == ["frozen True"]


# Objects in reference cycles, which only a garbage collection finds.
FINALIZED = {
    "__del__": """
class Noisy:
    def __del__(self):
        print("deleted")
one = Noisy()
one.me = one
""",
    "__del__ of a base": """
class Noisy:
    def __del__(self):
        print("deleted")
class Quiet(Noisy):
    pass
Quiet.shared = Quiet()
""",
    "callback of a weak reference": """
import weakref
class Plain:
    pass
one = Plain()
one.me = one
ref = weakref.ref(one, lambda r: print("deleted"))
del one
""",
    "suspended generator": """
def steps():
    try:
        yield me
    finally:
        print("deleted")
me = [None]
me[0] = steps()
next(me[0])
""",
}


def test_each_kind_of_finalizer_is_found(tmp_path: Path) -> None:
    code = f"""
from accnp.compiler.background_compile import finish
from accnp.fast_exit import _finalized_objects
finish()
for kind, program in {FINALIZED!r}.items():
    before = _finalized_objects()
    space = {{}}
    exec(program, space)
    print(kind, before, len(_finalized_objects()) - len(before))
    del before
    space.clear()
    gc.collect()
"""
    expected = [
        line
        for kind in FINALIZED
        for line in (f"{kind} [] 1", *["deleted"] * (kind != "callback of a weak reference"))
    ]
    assert output(code, tmp_path) == [*expected, "frozen True"]


def test_storing_a_kernel_needs_no_finalizer(tmp_path: Path) -> None:
    """Otherwise, a program that ends while a kernel is written to a slow disk would end slowly."""
    code = f"""
import os
from accnp.compiler.background_compile import finish
from accnp.compiler.disk_cache import DiskCache
from accnp.fast_exit import _finalized_objects
finish()
def write(file, data, write=os.write):
    print(_finalized_objects())
    return write(file, data[:40])
os.write = write
cache = DiskCache({str(tmp_path / "other")!r})
print(cache.put("key", b"data" * 20), cache.get("key") == b"data" * 20)
"""
    assert output(code, tmp_path) == ["[]"] * 4 + ["True True", "frozen True"]


def test_finalizers_run_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "text"
    code = f"""
class Log:
    pass
log = Log()
log.file = open({str(path)!r}, "w")
log.me = log
log.file.write("the last line")
"""
    printed = output(FINALIZED["__del__"] + FINALIZED["suspended generator"] + code, tmp_path)
    assert printed == ["frozen False", "deleted", "deleted"]
    assert path.read_text() == "the last line"


def test_objects_outside_of_cycles_are_finalized_as_always(tmp_path: Path) -> None:
    code = """
import weakref
class Plain:
    pass
one = Plain()
weakref.finalize(one, print, "finalized")
import atexit
atexit.register(print, "at exit")
"""
    assert output(code, tmp_path) == ["at exit", "finalized", "frozen True"]


def test_handlers_called_by_hand_freeze_nothing(tmp_path: Path) -> None:
    code = """
import atexit, gc
atexit._run_exitfuncs()
print(gc.get_freeze_count())
print(float(jnp.tanh(jnp.arange(3.0)).sum()) > 0)
"""
    assert output(code, tmp_path) == ["frozen False", "0", "True"]
