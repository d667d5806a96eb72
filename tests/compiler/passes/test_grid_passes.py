"""Passes that distribute a loop nest over the blocks and threads of a GPU, on small kernels."""

from __future__ import annotations

import numpy as np
import pytest

from accnp.compiler.ir_tools import block_threads
from accnp.compiler.ir_tools.interpreter import run
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import VerificationError, verify
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.passes.divide_by_products import divide_by_products
from accnp.compiler.passes.join_kernels import join_kernels
from accnp.compiler.passes.patch import patch
from accnp.compiler.passes.reduce_columns import reduce_columns, reduce_columns_in_two_kernels
from accnp.compiler.passes.reduce_rows import RowPlan, reduce_rows
from accnp.compiler.passes.reduce_rows_across import reduce_rows_across
from accnp.compiler.passes.spread import spread
from accnp.compiler.passes.tile import tile
from accnp.compiler.unsupported import Unsupported

# y = x * z + w of three axes, of which x and w are strided and w lies across.
NEST = """
kernel k(y: f4[], x: f4[], z: f4[], w: f4[], n0, n1, n2, s0, s1, t0, t1, v) for lo..hi {
  for i in 0:i8..n0 {
    for j in 0:i8..n1 {
      for k in 0:i8..n2 independent {
        let a: f4 = x[<s0*i + s1*j + 1*k + 0>]
        let b: f4 = z[j]
        let c: f4 = w[<t0*i + 1*j + v*k + 0>]
        y[<t0*i + t1*j + 1*k + 0>] = add(mul(a, b), c)
      }
    }
  }
}
"""
SIZES = [(1, 1, 4), (2, 17, 132), (1, 40, 36), (3, 16, 128)]


def make_operands(
    n: tuple[int, int, int],
) -> tuple[dict[str, np.ndarray], dict[str, int], np.ndarray]:
    """Operands, integers, and the result."""
    n0, n1, n2 = n
    rng = np.random.default_rng(n1)
    x = rng.standard_normal((n0, n1, n2 + 4)).astype(np.float32)
    z, w = rng.standard_normal(n1).astype(np.float32), rng.standard_normal((n0, n2, n1))
    w = w.astype(np.float32)
    expected = x[:, :, :n2] * z[:, None] + w.transpose(0, 2, 1)
    y = aligned_array(expected.size)
    arrays = {"y": y, "x": aligned_array(x.size, x), "z": z, "w": w.ravel()}
    strides = {"s0": n1 * (n2 + 4), "s1": n2 + 4, "t0": n1 * n2, "t1": n2, "v": n1}
    return arrays, {"n0": n0, "n1": n1, "n2": n2, **strides}, expected.ravel()


def aligned_array(n: int, values: np.ndarray | None = None) -> np.ndarray:
    room = np.zeros(n + 16, np.float32)
    array = room[-room.ctypes.data % 64 // 4 :][:n]
    if values is not None:
        array[:] = values.ravel()
    return array


def check(kernel: Kernel, n: tuple[int, int, int], last: int, more: dict[str, int]) -> None:
    verify(kernel)
    assert parse_kernel(print_kernel(kernel)) == kernel
    arrays, integers, expected = make_operands(n)
    run(kernel, arrays, integers | more, 0, last)
    assert (arrays["y"] == expected).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("way", [(1, False), (4, False), (4, True)])
def test_loop_nest_becomes_one_loop(way: tuple[int, bool], n: tuple[int, int, int]):
    kernel = spread(parse_kernel(NEST), 32, *way)
    assert ("load a" in print_kernel(kernel)) == way[1]
    check(kernel, n, int(np.prod(n)), {})


@pytest.mark.parametrize("n", SIZES)
def test_patches(n: tuple[int, int, int]):
    kernel, across, down = patch(parse_kernel(NEST))
    width, height = -(-n[2] // 128), -(-n[1] // 16)
    check(kernel, n, n[0] * width * height, {across.name: width, down.name: height})


@pytest.mark.parametrize("n", SIZES)
def test_tiles(n: tuple[int, int, int]):
    kernel, across, down = tile(parse_kernel(NEST), 1)
    width, height = -(-n[2] // 32), -(-n[1] // 32)
    (shared,) = kernel.shared
    assert shared.length == 32 * 33
    assert print_kernel(kernel).count(" = w[") == 4
    check(kernel, n, n[0] * width * height, {across.name: width, down.name: height})


def test_divisions_become_multiplications():
    kernel = spread(parse_kernel(NEST), 32, 1, False)
    sizes = [v for v in kernel.integers if v.name in ("n1", "n2")]
    grid_kernel, divided = divide_by_products(kernel, sizes)
    assert {v.name for v in divided} == {"n1", "n2"}
    assert "floordiv" not in print_kernel(grid_kernel)
    n = (2, 17, 132)
    _, integers, _ = make_operands(n)
    factors = {}
    for k, v in enumerate(divided):
        size = integers[v.name]
        bits = 31 + (size - 1).bit_length()
        m, s = grid_kernel.integers[len(kernel.integers) + 2 * k :][:2]
        factors |= {m.name: (1 << bits) // size + 1, s.name: bits}
    check(grid_kernel, n, int(np.prod(n)), factors)
    assert divide_by_products(kernel, []) == (kernel, [])


@pytest.mark.parametrize("way", [(1, False), (4, False), (4, True)])
def test_kernels_in_one_launch(way: tuple[int, bool]):
    """Two parts of one array from another one."""
    text = """
    kernel k(y: f4[], x: f4[], s) for lo..hi {
      for i in lo..hi independent { y[i] = x[<s*i + 0>] }
    }
    """
    kernel = spread(parse_kernel(text), 8, *way)
    joined = join_kernels([kernel, kernel], [[0, 1], [0, 2]])
    verify(joined)
    assert parse_kernel(print_kernel(joined)) == joined
    y, x, z = aligned_array(300), aligned_array(204), aligned_array(200)
    x[:], z[:] = np.arange(204), -np.arange(200)
    # First block, blocks, elements, where y and x begin, and the stride of x.
    ints = [0, 3, 100, 0, 4, 2, 3, 2, 200, 100, 0, 1]
    names = [v.name for v in joined.integers]
    run(joined, {"a0": y, "a1": x, "a2": z}, dict(zip(names, ints, strict=True)), 0, 5)
    assert (y[:100] == x[4::2]).all()
    assert (y[100:] == z).all()


@pytest.mark.parametrize("pass_", [patch, lambda k: tile(k, 0)])
def test_other_kernels_are_refused(pass_):
    text = NEST.replace("let b: f4 = z[j]", "if true:b1 { z[j] = 1.0:f4 }")
    text = text.replace("mul(a, b)", "a").replace(" independent", "")
    with pytest.raises(Unsupported):
        pass_(parse_kernel(text.replace("true:b1", "lt(i, j)")))


def test_a_loop_for_some_blocks_has_numbers_of_blocks():
    kernel = spread(parse_kernel(NEST), 32, 1, False)
    (loop,) = kernel.body
    x = loop.body[0].var
    with pytest.raises(VerificationError, match="used where it is not defined"):
        verify(kernel._replace(body=(loop._replace(part=(x, x)),)))


COLUMNS = """
kernel k(y: f8[], x: f4[], n0, m, n1, s0) for lo..hi {
  for i in 0:i8..n0 {
    for j in 0:i8..n1 {
      for c in 0:i8..m step 8 carry acc: f8 = 0.0:f8 then whole {
        let end: i8 = fmin(<1*c + 8>, m)
        for r in c..end carry part: f4 = 0.0:f4 then sum {
          let a: f4 = x[<s0*i + n1*r + 1*j + 0>]
          next part = add(part, mul(a, a))
        }
        next acc = add(acc, f8(sum))
      }
      y[<n1*i + 1*j + 0>] = mul(whole, 2.0:f8)
    }
  }
}
"""


@pytest.mark.parametrize("m", [1, 8, 9, 70])
@pytest.mark.parametrize("apart", [False, True])
def test_columns(apart: bool, m: int):
    """Sums of rows in single precision, of parts in double precision, in the same order."""
    n0, n1 = 2, 35
    x = np.random.default_rng(m).standard_normal((n0, m, n1)).astype(np.float32)
    integers = {"n0": n0, "m": m, "n1": n1, "s0": m * n1}
    expected = np.zeros(n0 * n1)
    kernel = parse_kernel(COLUMNS)
    run(kernel, {"y": expected, "x": x.ravel()}, integers, 0, 1)
    y = np.zeros(n0 * n1)
    arrays = {"y": y, "x": x.ravel()}
    if not apart:
        grid_kernel = reduce_columns(kernel, 64, 4)
        verify(grid_kernel)
        assert parse_kernel(print_kernel(grid_kernel)) == grid_kernel
        run(grid_kernel, arrays, integers, 0, n0 * n1)
    else:
        split = reduce_columns_in_two_kernels(kernel, 64, 4)
        parts, tiles = -(-m // 8), -(-n0 * n1 // 32)
        arrays |= {b.name: np.zeros(parts * n0 * n1, np.float32) for b in split.partials}
        verify(split.first)
        verify(split.second)
        more = {split.columns.name: n0 * n1, split.tiles.name: tiles}
        run(split.first, arrays, integers | more, 0, tiles * parts)
        run(split.second, arrays, integers | {split.parts.name: parts}, 0, n0 * n1)
    assert (y == expected).all()


EXCHANGE = """
kernel k(y: i8[]) for lo..hi threads 64 {
  for t in 0:i8..64:i8 independent spread threads {
    do x: i8 = shuffle_at(t, 5:i8)
    do z: i8 = shuffle_down(x, 1:i8)
    if lt(t, 64:i8) { do barrier() }
    y[t] = z
  }
}
"""


def test_threads_exchange_values():
    y = np.zeros(64, np.int64)
    run(parse_kernel(EXCHANGE), {"y": y}, {}, 0, 1)
    assert list(y) == [5] * 32 + [37] * 32
    with pytest.raises(IndexError):  # of one thread, for which the others do not wait
        run(parse_kernel(EXCHANGE.replace("y[t] = z", "y[<3*t + 0>] = z")), {"y": y}, {}, 0, 1)


def test_deadlocked_threads_are_an_error(monkeypatch):
    monkeypatch.setattr(block_threads, "TIMEOUT", 0.5)
    text = EXCHANGE.replace("lt(t, 64:i8)", "lt(t, 9:i8)")
    with pytest.raises(RuntimeError, match="deadlock"):
        run(parse_kernel(text), {"y": np.zeros(64, np.int64)}, {}, 0, 1)


ROWS = """
kernel k(y: f4[], s: f4[], x: f4[], n0, n1, s0, s1) for lo..hi {
  for i in 0:i8..n0 {
    for b in 0:i8..n1 step 1024
        carry acc: f8 = 0.0:f8 then whole carry top: f4 = -inf:f4 then most {
      let m: i8 = fmin(sub(n1, b), 1024:i8)
      reduce j in 0..m {
        let a: f4 = x[<s0*i + s1*b + s1*j + 0>]
        reduction sum p: f4 of mul(a, a)
        reduction max q: f4 of a
      }
      next acc = add(acc, f8(p))
      next top = fmax(top, q)
    }
    let t: f4 = add(f4(whole), most)
    s[i] = t
    for r in 0:i8..n1 {
      let d: f4 = x[<s0*i + s1*r + 0>]
      y[<n1*i + 1*r + 0>] = mul(d, t)
    }
  }
}
"""
PLANS = {
    "a row for each warp, in registers": (100, RowPlan(64, False, 32, 4, 3, length=128)),
    "four rows for each warp": (7, RowPlan(64, False, 8, 1, 0, length=128)),
    "a loop, and shared memory": (300, RowPlan(64, False, 32, side=2, length=512)),
    "a row for a block": (1500, RowPlan(64, True, 32, 32, 32, (16, 12), length=2048, once=True)),
    "a row for a block, by a loop": (1100, RowPlan(64, True, 32, side=4, length=2048)),
}


def run_reduction(kernel: Kernel, n0: int, n1: int, last: int, more: dict[str, int]) -> dict:
    x = np.random.default_rng(n1).standard_normal(n0 * n1).astype(np.float32)
    arrays = {"y": np.zeros(n0 * n1, np.float32), "s": np.zeros(n0, np.float32), "x": x}
    across = {"s0": 1, "s1": n0} if more else {"s0": n1, "s1": 1}
    run(kernel, arrays, {"n0": n0, "n1": n1, **across, **more}, 0, last)
    return arrays


@pytest.mark.parametrize("name", PLANS)
def test_rows(name: str):
    n1, plan = PLANS[name]
    n0 = 9 if plan.width < 32 else 3
    kernel = parse_kernel(ROWS)
    grid_kernel = reduce_rows(kernel, plan)
    verify(grid_kernel)
    assert parse_kernel(print_kernel(grid_kernel)) == grid_kernel
    assert ("once" in print_kernel(grid_kernel)) == plan.once
    expected, actual = (
        run_reduction(kernel, n0, n1, 1, {}),
        run_reduction(grid_kernel, n0, n1, n0, {}),
    )
    assert (actual["s"] == expected["s"]).all()
    assert (actual["y"] == expected["y"]).all()


def test_strided_rows():
    text = ROWS[: ROWS.index("    for r in")] + "  }\n}\n"
    kernel = parse_kernel(text)
    grid_kernel, down = reduce_rows_across(kernel, 0)
    verify(grid_kernel)
    assert parse_kernel(print_kernel(grid_kernel)) == grid_kernel
    n0, n1 = 35, 70
    expected = run_reduction(kernel, n0, n1, 1, {"": 0})
    actual = run_reduction(grid_kernel, n0, n1, 2, {down.name: 2})
    assert (actual["s"] == expected["s"]).all()
    with pytest.raises(Unsupported):
        reduce_rows_across(parse_kernel(ROWS), 0)
