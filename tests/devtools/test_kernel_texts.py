"""The source of generated kernels that `accnp.inspect` shows: loop IR, and source for Numba."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler.__main__ import main
from accnp.compiler.ir_tools.interpreter import run
from accnp.compiler.ir_tools.parser import parse_kernels
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.kernel_cache import wait_for_background
from accnp.compiler.loops.printer import print_kernel
from accnp.devtools.inspect.inspected_kernel import InspectedKernel
from accnp.devtools.inspect.inspection import Inspection
from accnp.devtools.inspect.kernel_files import memory_of


def halve_until_one(a: float) -> float:
    while a > 1:
        a = a * 0.5
    return a


@jnp.kernel
def sum_in_loop(a: float) -> float:
    """A function with a loop and a call of another function."""
    s = 0.0
    for k in range(4):
        s = s + math.exp(a) * k + halve_until_one(a)
    return s


@jnp.kernel
def pick_from_tuple(a: float) -> float:
    """A function with a tuple, which Numba compiles."""
    both = (a, a * 2, 1.5)
    return max(both[0], both[1]) if a > 1 else both[2]


def loop_with_call(x: jnp.Array) -> jnp.Array:
    """A loop whose kernel calls the kernels of its body."""
    return jnp.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 2.0 + c.sum() + sum_in_loop(c), x)


# Launch the text of a kernel on memory that files give, and write it back.
STANDALONE_PROGRAM = """
import ctypes
import json
from types import FunctionType

import numba
import numpy as np
from accnp.compiler.numba.functions import *
from accnp.compiler.numba.functions import NUMBA_TYPES

known = set(globals())
exec(open("kernel.py").read())
for name, f in list(globals().items()):
    if name not in known and isinstance(f, FunctionType):
        globals()[name] = numba.njit(error_model="numpy")(f)
launch = json.load(open("launch.json"))
kinds = [NUMBA_TYPES[t.removesuffix("*")] for t in launch["signature"]]
kinds = [numba.types.CPointer(k) if t.endswith("*") else k
         for k, t in zip(kinds, launch["signature"])]
made = numba.cfunc(numba.void(numba.int64, numba.int64, *kinds), error_model="numpy")(
    globals()["kernel"].py_func
)
memory = {name: np.load(name) for name in launch["files"]}
pointers = [memory[name].ctypes.data + at for name, at in launch["pointers"]]
integers = [0, launch["extent"], *pointers, *launch["ints"]]
ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(integers))(made.address)(*integers)
for name, x in memory.items():
    np.save(name, x)
"""


class Launch:
    """Arguments of a kernel: memory with the float32 numbers 0, 1, 2, ... by file name; pointers as
    names and offsets; and integers.
    """

    def __init__(self, i: Inspection, kernel: InspectedKernel) -> None:
        assert i.plan is not None
        sizes = memory_of(i.plan, i.program)
        slots = dict.fromkeys([slot for slot, _ in kernel.pointers])
        self.memory = {
            f"{slot}.npy": np.arange(-(-sizes[slot] // 4), dtype=np.float32) for slot in slots
        }
        self.pointers = [(f"{slot}.npy", at) for slot, at in kernel.pointers]
        constants = kernel._step.constants
        for number, array in enumerate(constants):
            self.memory[f"c{number}.npy"] = array.view((array.nbytes,), np.dtype("u1")).copy()
            self.pointers.append((f"c{number}.npy", 0))
        self.integers = kernel.ints[len(constants) :]
        self.extent = kernel.extent

    def run(self, kernel: InspectedKernel) -> dict[str, np.ndarray]:
        """Run the machine code, which is not recompiled afterwards, and return the memory."""
        memory = {name: x.copy() for name, x in self.memory.items()}
        addresses = [memory[name].ctypes.data + at for name, at in self.pointers]
        code = kernel._step.load(False)
        wait_for_background()
        code.call(self.extent, self.extent, *addresses, *self.integers)
        return memory


@pytest.mark.parametrize("f", [sum_in_loop, pick_from_tuple, loop_with_call, jnp.sort])
def test_texts_of_kernels_compute_the_same_outside_of_accnp(
    f: Callable[..., object], tmp_path: Path
) -> None:
    """This includes kernels with user functions and kernels that other kernels call."""
    i = jnp.inspect(f)(jnp.ones(8))
    kernel = i.kernels[0]
    launch = Launch(i, kernel)
    facts = {
        "signature": kernel.signature, "files": [*launch.memory], "pointers": launch.pointers,
        "extent": launch.extent, "ints": launch.integers,
    }  # fmt: skip
    (tmp_path / "kernel.py").write_text(kernel.text)
    (tmp_path / "launch.json").write_text(json.dumps(facts))
    for name, x in launch.memory.items():
        np.save(tmp_path / name, x)
    done = subprocess.run(
        [sys.executable, "-c", STANDALONE_PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr[-2000:]
    for name, expected in launch.run(kernel).items():
        assert np.load(tmp_path / name).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "f",
    [
        jnp.exp,
        sum_in_loop,
        loop_with_call,
        jnp.sort,
        jnp.cumsum,
        jnp.sum,
        lambda x: x[:, 1:] + x[:, :-1],
        lambda x: jnp.exp(x).sum(0),
        lambda x: jnp.concatenate([x, x * 2]),
        lambda x: x @ x.T,
    ],
)
def test_ir_of_kernels_is_read_and_run_again(
    f: Callable[..., object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interpreter matches the machine code, except for the last bits of functions."""
    i = jnp.inspect(f)(jnp.ones((4, 4)))
    assert i.kernels
    for kernel in i.kernels:
        parsed = parse_kernels(kernel.ir)
        assert "\n".join(map(print_kernel, parsed)) == kernel.ir
        for k in parsed:
            verify(k)
        launch = Launch(i, kernel)
        last = parsed[-1]
        arrays = {
            b.name: launch.memory[name].view(np.uint8)[at:].view(b.dtype.numpy)
            for b, (name, at) in zip(last.buffers, launch.pointers, strict=True)
        }
        integers = {v.name: n for v, n in zip(last.integers, launch.integers, strict=True)}
        expected = launch.run(kernel)
        run(last, arrays, integers, 0, launch.extent, {k.name: k for k in parsed})
        for name, x in launch.memory.items():
            np.testing.assert_allclose(x, expected[name], rtol=1e-6)
        path = tmp_path / "k.ir"
        path.write_text(kernel.ir)
        words = [f"{name}={n}" for name, n in integers.items()]
        options = ["--range", "0", str(kernel.extent), "--integers", *words]
        assert main(["run", str(path), *options]) == 0
        assert " = [" in capsys.readouterr().out
