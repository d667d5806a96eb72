"""The pass that carries the starts of rows from row to row."""

from __future__ import annotations

import numpy as np
import pytest

from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.passes.carry_starts import carry_starts
from accnp.compiler.pipeline import Target, run_passes
from tests.compiler.running import compile_with_llvm, interpret_kernel, launch_kernel

# Two arrays with other strides, of two, three and four axes.
PLANES = """
kernel k(a0: f8[], a1: f8[], m, s0, t0) for lo..hi {
  for o in lo..hi {
    for j in 0:i8..m independent {
      let t: f8 = a1[<t0*o + 1*j + 2>]
      a0[<s0*o + 1*j + 0>] = add(t, t)
    }
  }
}
"""
CUBES = """
kernel k(a0: f8[], a1: f8[], m, n1, s0, s1, t0, t1) for lo..hi {
  for o in lo..hi {
    let q: i8 = floordiv(o, n1)
    let r: i8 = sub(o, mul(q, n1))
    for j in 0:i8..m independent {
      let t: f8 = a1[<t0*q + t1*r + 1*j + 0>]
      a0[<s0*q + s1*r + 1*j + 0>] = add(t, f8(q))
    }
  }
}
"""
FOUR = """
kernel k(a0: f8[], a1: f8[], m, n1, n2, s0, s1, s2, t0, t1, t2) for lo..hi {
  for o in lo..hi {
    let q: i8 = floordiv(o, n1)
    let r: i8 = sub(o, mul(q, n1))
    let p: i8 = floordiv(q, n2)
    let u: i8 = sub(q, mul(p, n2))
    for j in 0:i8..m independent {
      let t: f8 = a1[<t0*p + t1*u + t2*r + 1*j + 0>]
      a0[<s0*p + s1*u + s2*r + 1*j + 0>] = mul(t, t)
    }
  }
}
"""
USED = """
kernel k(a0: f8[], a1: f8[], m, n1, s0) for lo..hi {
  for o in lo..hi {
    let q: i8 = floordiv(o, n1)
    let r: i8 = sub(o, mul(q, n1))
    let x: f8 = a1[q]
    for j in 0:i8..m independent {
      a0[<s0*o + 1*j + 0>] = add(x, f8(<1*r + 1*o + 0>))
    }
  }
}
"""
SIZES = {
    "planes": (PLANES, {"m": 5, "s0": 7, "t0": 9}, 6),
    "cubes": (CUBES, {"m": 3, "n1": 4, "s0": 31, "s1": 7, "t0": 40, "t1": 9}, 12),
    "one row": (CUBES, {"m": 3, "n1": 1, "s0": 31, "s1": 7, "t0": 40, "t1": 9}, 7),
    "backwards": (CUBES, {"m": 3, "n1": 4, "s0": 4, "s1": 16, "t0": 4, "t1": 12}, 12),
    "four": (
        FOUR,
        {
            "m": 17, "n1": 3, "n2": 4, "s0": 300, "s1": 70, "s2": 20, "t0": 400, "t1": 90, "t2": 25,
        },
        24,
    ),
    "positions in use": (USED, {"m": 9, "n1": 4, "s0": 10}, 12),
}  # fmt: skip


def passed(text: str) -> Kernel:
    return run_passes(parse_kernel(text), Target(64), check=True)


def in_loop(kernel: Kernel) -> str:
    """The text of the loop over rows."""
    return print_kernel(kernel).split("for o in", 1)[1]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("first", [0, 1, 5])
def test_results_stay_the_same(name: str, first: int) -> None:
    text, integers, rows = SIZES[name]
    kernel, done = parse_kernel(text), passed(text)
    assert done != run_passes(kernel, Target(64), 6)
    x = np.random.default_rng(0).standard_normal(3000)
    expected, actual, native = np.zeros((3, 3000))
    interpret_kernel(kernel, {"a0": expected, "a1": x}, integers, (first, rows))
    interpret_kernel(done, {"a0": actual, "a1": x}, integers, (first, rows))
    address, code = compile_with_llvm(kernel)
    launch_kernel(address, kernel, {"a0": native, "a1": x}, integers, (first, rows))
    assert code is not None
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(native, expected)
    assert np.any(expected)


@pytest.mark.parametrize("name", ["planes", "cubes", "four"])
def test_rows_neither_divide_nor_multiply(name: str) -> None:
    loop = in_loop(passed(SIZES[name][0]))
    assert "floordiv" not in loop
    assert "*o " not in loop
    assert not any(f"{stride}*" in loop for stride in ("s0", "s1", "t0", "t1"))


def test_positions_that_are_used_are_carried() -> None:
    loop = in_loop(passed(USED))
    assert "carry q: i8" in loop
    assert "carry r: i8" in loop
    assert "f8(<1*r + 1*o + 0>)" in loop


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PLANES.replace("independent", "").replace("a1[", "a0["), id="steps in order"),
        pytest.param(PLANES.replace("s0*o", "1*o").replace("t0*o", "1*o"), id="no strides"),
        pytest.param(PLANES.replace("for o in lo..hi", "for o in lo..hi step 2"), id="step 2"),
    ],
)
def test_other_loops_stay_as_they_are(text: str) -> None:
    before = run_passes(parse_kernel(text), Target(64), 6)
    assert carry_starts(before) == before


def test_strides_that_change_with_the_row_stay_products() -> None:
    text = PLANES.replace("for j in", "let s: i8 = add(s0, o)\n    for j in").replace("s0*o", "s*o")
    done = passed(text)
    verify(done)
    assert "s*o" in in_loop(done)
