"""Buffers that begin a few elements after another one: their loads share vectors."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.llvm.lower import lower
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import Target, run_passes
from accnp.compiler.specs import launches
from tests.compiler.running import compile_with_llvm, interpret_kernel, launch_kernel

ROWS = """
kernel k(a0: KIND[], a1: KIND[], a2: KIND[], a3: KIND[], m, s0, t0) for lo..hi {
  shifted a2 = a1 + 1
  shifted a3 = a1 + 2
  for o in lo..hi {
    for j in 0:i8..m independent {
      let x: KIND = a1[<t0*o + 1*j + 0>]
      let y: KIND = a2[<t0*o + 1*j + 0>]
      let z: KIND = a3[<t0*o + 1*j + 0>]
      a0[<s0*o + 1*j + 0>] = sub(add(x, z), mul(y, x))
    }
  }
}
"""
FLAT = """
kernel k(a0: KIND[], a1: KIND[], a2: KIND[], a3: KIND[], m, s0, t0) for lo..hi {
  shifted a2 = a1 + 1
  shifted a3 = a1 + 2
  for i in lo..hi independent {
    let x: KIND = a1[i]
    a0[i] = sub(add(x, a3[i]), mul(a2[i], x))
  }
}
"""
KINDS = {"f4": np.float32, "f8": np.float64, "i4": np.int32, "i8": np.int64, "u4": np.uint32}


def neighbors(text: str, kind: str, rows: int, m: int, by: str) -> tuple[np.ndarray, np.ndarray]:
    """The results of the interpreter and of LLVM's code, where row k begins at element 2k."""
    kernel = parse_kernel(text.replace("KIND", kind))
    rng = np.random.default_rng(m)
    x = rng.integers(-9, 9, 2 * rows + m + 9).astype(KINDS[kind])
    integers = {"m": m, "s0": m + 1, "t0": m + 3}
    if by == "rows":
        x = rng.integers(-9, 9, rows * (m + 3)).astype(KINDS[kind])
    steps = (0, rows) if by == "rows" else (1, m)
    outputs = []
    for native in (False, True):
        out = np.zeros(rows * (m + 1), KINDS[kind])
        arrays = {"a0": out, "a1": x, "a2": x[1:], "a3": x[2:]}
        if native:
            address, code = compile_with_llvm(kernel)
            launch_kernel(address, kernel, arrays, integers, steps)
            assert code is not None
        else:
            interpret_kernel(kernel, arrays, integers, steps)
        outputs.append(out)
    return outputs[0], outputs[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 23, 31, 33, 64, 100, 299])
@pytest.mark.parametrize(("by", "text"), [("rows", ROWS), ("flat", FLAT)])
def test_results_are_those_of_separate_loads(kind: str, m: int, by: str, text: str) -> None:
    expected, actual = neighbors(text, kind, 3, m, by)
    np.testing.assert_array_equal(actual, expected)
    assert m < 3 or np.any(expected)


@pytest.mark.parametrize("text", [ROWS, FLAT])
def test_a_step_loads_one_vector_for_three_operands(text: str) -> None:
    text = text.replace("KIND", "f8")

    def loads(text: str) -> int:
        done = run_passes(parse_kernel(text), Target(64), check=True)
        return len(re.findall(r"= load <\d+ x double>", lower(done, 64, "nounwind")))

    assert loads(text.replace("shifted", "# shifted")) == 3
    assert loads(text) == 1


def test_without_long_vectors_each_operand_is_loaded() -> None:
    text = ROWS.replace("KIND", "f8")
    texts = []
    for name in (text, text.replace("shifted", "# shifted")):
        done = run_passes(parse_kernel(name), Target(32), check=True)
        texts.append(lower(done, 32, "nounwind"))
    assert texts[0] == texts[1]


# The last elements that any operand has are the last ones of a page, and no page follows.
AT_THE_END = """
import ctypes, mmap, sys
import numpy as np
from accnp.compiler.ir_tools.parser import parse_kernel
from tests.compiler.running import compile_with_llvm, launch_kernel
from tests.compiler.test_shifted_buffers import FLAT, ROWS
libc = ctypes.CDLL(None)
pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
for k in (0, 2):
    assert libc.mprotect(ctypes.c_void_p(start + k * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
page = np.frombuffer(pages, np.float64, 512, mmap.PAGESIZE)
kernels = {}
for text in (ROWS, FLAT):
    kernel = parse_kernel(text.replace("KIND", "f8"))
    kernels[text] = kernel, *compile_with_llvm(kernel)
for m in range(1, 60):
    for text, (kernel, address, _) in kernels.items():
        rows = 3 if text == ROWS else 1
        for x in (page[-rows * (m + 2):], page[:rows * (m + 2)]):
            x[:] = np.arange(len(x))
            out = np.zeros(rows * m + 40)
            arrays = {"a0": out, "a1": x, "a2": x[1:], "a3": x[2:]}
            steps = (0, rows) if text == ROWS else (0, m)
            launch_kernel(address, kernel, arrays, {"m": m, "s0": m, "t0": m + 2}, steps)
            y = x.reshape(rows, m + 2)
            expected = (y[:, :-2] + y[:, 2:]) - y[:, 1:-1] * y[:, :-2]
            assert np.array_equal(out[:rows * m], expected.ravel()) and not out[rows * m:].any()
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages by mprotect")
def test_only_elements_of_operands_are_read() -> None:
    run = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, env=os.environ
    )
    assert run.stdout == "done\n", run.stderr


def test_facts_are_printed_and_parsed() -> None:
    kernel = parse_kernel(ROWS.replace("KIND", "f4").replace("  for o", "  long m\n  for o"))
    verify(kernel)
    assert "  long m\n" in print_kernel(kernel)
    assert "  shifted a3 = a1 + 2\n" in print_kernel(kernel)
    assert parse_kernel(print_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("a2 = a1 + 1", "a0 = a1 + 1"), "is stored to"),
        (("a2 = a1 + 1", "a2 = a2 + 1"), "from one that is shifted as well"),
        (("a2: KIND", "a2: f8"), "has another type"),
        (("a3 = a1", "a2 = a1"), "shifted twice"),
        (("a3 = a1 + 2", "a3 = a2 + 1"), "a3, shifted by 1 from a2, is shifted from one that"),
        (("a1 + 2", "a1 + 0"), "shifted by 0 from a1, is too far away"),
        (("a1 + 2", "a1 + 9"), "shifted by 9 from a1, is too far away"),
    ],
)
def test_wrong_facts_are_refused(change: tuple[str, str], message: str) -> None:
    text = ROWS.replace(*change).replace("let y: KIND = a2", "let y: KIND = a1")
    with pytest.raises(VerificationError, match=message):
        verify(parse_kernel(text.replace("KIND", "f4")))


def test_kernels_of_loops_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing takes 0.5 to 2.5 ms. Kernels of loops are specialized first."""
    printed: list[str] = []

    def record(kernel: Kernel) -> str:
        printed.append(numba_source(kernel))
        return printed[-1]

    def advance(_: object, x: jnp.ndarray) -> jnp.ndarray:
        inner = x[1:-1, 1:-1] + x[2:, 1:-1] - x[:-2, 1:-1] + x[1:-1, 2:] - x[1:-1, :-2]
        return x.at[1:-1, 1:-1].set(inner)

    monkeypatch.setattr(launches, "numba_source", record)
    x = np.random.default_rng(3).random((90, 77))
    actual = accnp.jit(lambda x: accnp.lax.fori_loop(0, 2, advance, x))(x)
    assert len(printed) == len(set(printed)) == 2  # the update and the copy of its result
    assert np.isfinite(actual).all()
