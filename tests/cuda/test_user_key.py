"""Disk cache keys of user kernels: the key changes with everything that a kernel reads. Kernels
that read values without a key are compiled in each process.
"""

import math
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

from accnp.compiler.cache_state import counters
from accnp.compiler.numba.user_cuda import Argument, ptx_of_user
from accnp.compiler.numba.user_key import user_key
from accnp.config import cache_dir

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numba.cuda as a part of Numba is deprecated
    from numba import cuda, float32

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
@cuda.jit(device=True)
def inner(v):
    return v * SCALE

@cuda.jit(fastmath=FAST)
def outer(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = inner(x[i]) + TABLE[i % 2] + math.sin(x[i]) * float32(2) + len(SHAPE)
"""
SPACE = {
    "cuda": cuda, "math": math, "float32": float32, "SCALE": 2.0, "FAST": False,
    "TABLE": (1.0, 2.0), "SHAPE": (3, 4), "__name__": "somewhere",
}  # fmt: skip


def kernel(text=TEXT, **changed):
    space = SPACE | changed
    exec(text, space)
    return space["outer"]


def test_the_same_function_has_the_same_key():
    assert user_key(kernel()) == user_key(kernel())
    assert user_key(kernel("\n\n" + TEXT)) == user_key(kernel())  # lines do not matter


@pytest.mark.parametrize(
    "other",
    [
        {"SCALE": 3.0},
        {"SCALE": 2},
        {"SCALE": np.float32(2)},
        {"FAST": True},
        {"TABLE": (1.0, 3.0)},
        {"TABLE": np.array([1.0, 2.0])},
        {"SHAPE": (3, 4, 5)},
        {"float32": np.float32},
        {"text": TEXT.replace("i % 2", "i % 1")},
        {"text": TEXT.replace("v * SCALE", "v + SCALE")},
        {"text": TEXT.replace("math.sin", "math.cos")},
        {"text": TEXT.replace("def inner(v)", "def inner(v, w=1)")},
    ],
)
def test_key_depends_on_everything_that_the_function_reads(other):
    assert user_key(kernel(**other)) not in (None, user_key(kernel()))


def test_closures():
    def closure(k):
        @cuda.jit
        def f(x):
            x[0] = k

        return f

    assert user_key(closure(1)) == user_key(closure(1)) != user_key(closure(2))


@pytest.mark.parametrize(
    "unknown",
    [
        types.ModuleType("mine"),
        types.SimpleNamespace(a=1),
        lambda v: v,
        np.array([None]),
        type("Mine", (), {}),
    ],
)
def test_values_without_key(unknown):
    assert user_key(kernel(TABLE=unknown)) is None


F4 = Argument(np.dtype("f4"), 1)


def test_cached_kernel_is_used_by_the_next_process(tmp_path):
    with cache_dir(str(tmp_path)):
        first = ptx_of_user(kernel(), [F4, F4], 32)
        compiled, hits = counters.compiles, counters.disk_hits
        assert ptx_of_user(kernel(), [F4, F4], 32) == first
        assert (counters.compiles, counters.disk_hits) == (compiled, hits + 1)
        for others in (
            ([F4, F4], 64),
            ([F4, F4], 32, (8, 0)),
            ([Argument(np.dtype("f8"), 1), F4], 32),
            ([F4, Argument(np.dtype("f4"), 2)], 32),
        ):
            ptx_of_user(kernel(), *others)
        assert counters.compiles == compiled + 4
        assert counters.disk_hits == hits + 1
        assert ptx_of_user(kernel(SCALE=5.0), [F4, F4], 32).text != first.text
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from accnp.config import config; config.update('cache_dir', sys.argv[1])\n"
        "from accnp.compiler.kernel_cache import counters\n"
        "from cuda import test_user_key as t\n"
        "t.ptx_of_user(t.kernel(), [t.F4, t.F4], 32)\n"
        "print(counters.compiles, counters.disk_hits)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path), str(ROOT / "tests"),
               str(ROOT)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["0", "1"]


def test_functions_without_key_are_not_cached(tmp_path):
    with cache_dir(str(tmp_path)):
        mine = types.ModuleType("mine")
        mine.SCALE = 2.0
        text = TEXT.replace("v * SCALE", "v * mine.SCALE")
        ptx_of_user(kernel(text, mine=mine), [F4, F4], 32)
        assert not [p for p in tmp_path.glob("*.obj") if b".entry" in p.read_bytes()]
