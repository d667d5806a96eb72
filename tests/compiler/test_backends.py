"""Both back ends compute what the interpreter does, and the same bits as each other."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.llvm.lower import lower
from accnp.compiler.loops.builder import LoopBuilder, affine, call, cast
from accnp.compiler.loops.functions import FUNCTIONS, result_of
from accnp.compiler.loops.ir import Const, Expr, Kernel, Load, dtype, number_type
from accnp.compiler.loops.printer import print_kernel
from accnp.compiler.loops.types import B1, DTYPES, F4, F8, I4, I8, DType
from accnp.compiler.numba.source import numba_source
from accnp.compiler.pipeline import Target, run_passes
from tests.compiler.renaming import rename_randomly
from tests.compiler.running import (
    WIDTH,
    compile_from_text,
    compile_with_llvm,
    compile_with_numba,
    interpret_kernel,
    launch_kernel,
)

TYPES = (B1, I4, I8, F4, F8)
EXACT = ("add", "sub", "mul", "div", "neg", "sq", "abs", "fmax", "fmin", "sqrt", "floor", "select")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 1e-40, 3e38]


def data(of: DType, size: int, seed: int) -> np.ndarray:
    """Numbers of a type, special ones among them."""
    rng = np.random.default_rng(seed)
    if of == B1:
        return rng.random(size) < 0.5
    if of.kind != "float":
        return rng.integers(-100, 100, size).astype(of.numpy)
    values = rng.normal(size=size) * 10
    return np.where(rng.random(size) < 0.1, rng.choice(SPECIAL, size), values).astype(of.numpy)


class Writer:
    """Writes random expressions."""

    def __init__(self, builder: LoopBuilder, seed: int, functions: list[str]) -> None:
        self.b = builder
        self.random = random.Random(seed)
        self.functions = functions
        self.known: list[Expr] = []

    def operand(self, of: DType) -> Expr:
        candidates = [x for x in self.known if dtype(x) == of]
        if candidates and self.random.random() < 0.85:
            return self.random.choice(candidates)
        if of == B1:
            return Const(self.random.random() < 0.5, of)
        if of.kind == "float":
            return Const(self.random.choice([0.5, -2.0, 3.25]), of)
        return Const(self.random.choice([1, 3, -7]), of)

    def step(self) -> None:
        """Assign a random expression of what is known."""
        of = self.random.choice(TYPES)
        if self.random.random() < 0.2:
            value: Expr = cast(self.random.choice(self.known), of)
        else:
            name = self.random.choice(self.functions)
            kinds = [B1, of, of] if name == "select" else [of] * FUNCTIONS[name].arity
            if result_of(name, kinds) is None:
                return
            value = call(name, *[self.operand(k) for k in kinds])
        self.known.append(self.b.let("t", value))


def random_map(seed: int, functions: list[str]) -> Kernel:
    """A map of five arrays, one of each type, to others."""
    b = LoopBuilder()
    inputs = [b.buffer("x", of) for of in TYPES]
    outputs = [b.buffer("y", of) for of in TYPES]
    scalar = b.let("k", Load(inputs[3], Const(0, I8)))
    with b.loop("i", b.first, b.last, independent=True) as loop:
        w = Writer(b, seed, functions)
        w.known = [scalar, *[b.let("v", Load(x, loop.index)) for x in inputs]]
        for _ in range(8):
            w.step()
        for y in outputs:
            b.store(y, loop.index, w.operand(y.dtype))
    return b.kernel()


def random_rows(seed: int, functions: list[str]) -> Kernel:
    """A map of rows of three arrays, of which one is read in steps."""
    b = LoopBuilder()
    inputs = [b.buffer("x", of) for of in (F4, I4, F8)]
    rng = random.Random(seed)
    out = b.buffer("y", rng.choice([F4, F8, I4]))
    n, width = b.integer("n"), b.integer("width")
    step = rng.choice([1, 2, 3])
    with b.loop("o", b.first, b.last) as rows:
        fixed = b.let("k", Load(inputs[0], affine((rows.index, width))))
        with b.loop("j", Const(0, I8), n, independent=True) as loop:
            places = [affine((rows.index, width), (loop.index, k)) for k in (1, step, 1)]
            w = Writer(b, seed, functions)
            w.known = [
                fixed,
                *[b.let("v", Load(x, p)) for x, p in zip(inputs, places, strict=True)],
            ]
            for _ in range(6):
                w.step()
            b.store(out, affine((rows.index, n), (loop.index, 1)), w.operand(out.dtype))
    return b.kernel()


def random_fold(seed: int, functions: list[str]) -> Kernel:
    """Folds of rows of three arrays."""
    b = LoopBuilder()
    inputs = [b.buffer("x", of) for of in (F4, I4, F8)]
    rng = random.Random(seed)
    combine = rng.choice(["sum", "max", "min", "prod"])
    of = rng.choice([F4, F8, I4])
    out = b.buffer("y", of)
    n = b.integer("n")
    start = {"sum": 0, "prod": 1, "max": -1000, "min": 1000}[combine]
    with b.loop("o", b.first, b.last) as rows:
        with b.loop("b", Const(0, I8), n, 1024) as blocks:
            acc = blocks.carry("acc", Const(float(start) if of.kind == "float" else start, of))
            m = b.let("m", call("fmin", affine((n, 1), (blocks.index, -1)), Const(1024, I8)))
            with b.reduce(m) as reduction:
                place = affine((rows.index, n), (blocks.index, 1), (reduction.index, 1))
                w = Writer(b, seed, functions)
                w.known = [b.let("v", Load(x, place)) for x in inputs]
                for _ in range(rng.choice([0, 4])):
                    w.step()
                part = reduction.reduce_value("r", combine, b.let("w", cast(w.operand(of), of)))
            name = {"sum": "add", "prod": "mul", "max": "fmax", "min": "fmin"}[combine]
            total = blocks.follow(acc, call(name, acc, part))
        b.store(out, rows.index, total)
    return b.kernel()


def arrays_of(kernel: Kernel, size: int, outputs: int, seed: int = 3) -> dict[str, np.ndarray]:
    arrays = {b.name: data(b.dtype, size, seed + k) for k, b in enumerate(kernel.buffers)}
    for b in kernel.buffers[-outputs:]:
        arrays[b.name] = np.zeros(size, b.dtype.numpy)
    return arrays


def results(
    make: Callable[[Kernel], tuple[int, object]] | None,
    kernel: Kernel,
    size: int,
    outputs: int,
    integers: dict[str, int],
    steps: tuple[int, int],
) -> list[np.ndarray]:
    arrays = arrays_of(kernel, size, outputs)
    if make is None:
        interpret_kernel(kernel, arrays, integers, steps)
    else:
        address, code = make(kernel)
        nontemporal = isinstance(make, partial) and bool(make.keywords.get("nontemporal"))
        launch_kernel(address, kernel, arrays, integers, steps, nontemporal)
        del code
    return [arrays[b.name] for b in kernel.buffers[-outputs:]]


def bits(arrays: list[np.ndarray]) -> list[bytes]:
    """The bits, where every NaN is the same."""
    return [
        np.where(np.isnan(a), np.array(np.nan, a.dtype), a).tobytes()
        if a.dtype.kind == "f"
        else a.tobytes()
        for a in arrays
    ]


def not_exact() -> list[str]:
    # Shifts beyond the width have no meaning, and there are no complex numbers yet.
    return [n for n in FUNCTIONS if n not in ("floordiv", "shl", "shr", "real", "imag", "conj")]


@pytest.mark.parametrize("seed", range(14))
def test_maps_match_bitwise_in_all_forms(seed: int):
    kernel = random_map(seed, not_exact())
    verify(kernel)
    assert print_kernel(parse_kernel(print_kernel(kernel))) == print_kernel(kernel)
    n = [1, 5, 31, 64, 65, 200][seed % 6]
    actual = results(compile_with_llvm, kernel, 256, 5, {}, (0, n))
    assert bits(actual) == bits(results(compile_from_text, kernel, 256, 5, {}, (0, n)))
    scalar = results(lambda k: compile_with_llvm(k, 0), kernel, 256, 5, {}, (0, n))
    assert bits(actual) == bits(scalar)


@pytest.mark.parametrize("seed", range(7))
def test_maps_match_the_interpreter(seed: int):
    kernel = random_map(seed, [*EXACT, "lt", "ge", "ne", "and", "or", "xor", "not", "is_finite"])
    actual = results(compile_with_llvm, kernel, 128, 5, {}, (2, 99))
    assert bits(actual) == bits(results(None, kernel, 128, 5, {}, (2, 99)))


@pytest.mark.parametrize("seed", range(6))
def test_row_kernels_match_bitwise_in_all_forms(seed: int):
    kernel = random_rows(seed, [*EXACT, "lt", "not"])
    verify(kernel)
    n = [1, 15, 16, 17, 70, 100][seed]
    integers = {"n": n, "width": 3 * n}
    actual = results(compile_with_llvm, kernel, 12 * n, 1, integers, (0, 4))
    assert bits(actual) == bits(results(compile_from_text, kernel, 12 * n, 1, integers, (0, 4)))
    assert bits(actual) == bits(results(None, kernel, 12 * n, 1, integers, (0, 4)))
    aside = results(
        partial(compile_with_llvm, nontemporal=True), kernel, 12 * n, 1, integers, (0, 4)
    )
    assert bits(actual) == bits(aside)


@pytest.mark.parametrize("seed", range(7))
def test_reductions_match_bitwise_in_all_forms(seed: int):
    kernel = random_fold(seed, [*EXACT, "lt", "not"])
    verify(kernel)
    n = [1, 31, 100, 1024, 1025, 2100][seed % 6]
    size, integers = 3 * n, {"n": n}
    actual = results(compile_with_llvm, kernel, size, 1, integers, (0, 3))
    assert bits(actual) == bits(results(compile_from_text, kernel, size, 1, integers, (0, 3)))
    assert bits(actual) == bits(results(None, kernel, size, 1, integers, (0, 3)))


@pytest.mark.parametrize("make", [random_map, random_fold])
def test_numba_gives_the_same_bits(make: Callable[..., Kernel]):
    kernel = make(4, [*EXACT, "tanh", "lt"])
    outputs = 5 if make is random_map else 1
    integers = {} if make is random_map else {"n": 40}
    actual = results(compile_with_llvm, kernel, 128, outputs, integers, (0, 3))
    assert bits(actual) == bits(results(compile_with_numba, kernel, 128, outputs, integers, (0, 3)))


PLACES = """
kernel k(a0: f4[], a1: f4[], n) for lo..hi {
  for i in lo..hi independent {
    let q: i8 = mul(i, 2:i8)
    a1[i] = a0[INDEX]
  }
}
"""


@pytest.mark.parametrize("index", ["<i*n + 0>", "<n*i + i*n + 1>", "<q*n + 1*i + 0>", "<n*q + 2>"])
def test_indices_with_variable_strides(index: str):
    kernel = parse_kernel(PLACES.replace("INDEX", index))
    verify(kernel)
    actual = results(compile_with_llvm, kernel, 100, 1, {"n": 2}, (0, 20))
    assert bits(actual) == bits(results(None, kernel, 100, 1, {"n": 2}, (0, 20)))


@pytest.mark.parametrize(("code", "gathers"), [("f4", True), ("i8", True), ("i2", False)])
def test_distant_elements_are_gathered(code: str, gathers: bool):
    text = f"""
    kernel k(a0: {code}[], a1: {code}[], n) for lo..hi {{
      for i in lo..hi independent {{ a1[i] = neg(a0[<n*i + 3>]) }}
    }}
    """
    kernel = parse_kernel(text)
    assert ("gather" in lower(run_passes(kernel, Target(64)), 64, "nounwind")) == gathers
    actual = results(compile_with_llvm, kernel, 700, 1, {"n": 7}, (1, 90))
    assert bits(actual) == bits(results(None, kernel, 700, 1, {"n": 7}, (1, 90)))


@pytest.mark.parametrize("code", ["f4", "i8", "i2", "b1"])
@pytest.mark.parametrize(
    ("index", "gathers"),
    [("i8(k)", True), ("add(<1*i + 2>, mul(i8(k), n))", True), ("add(<1*i + 2>, i8(same))", False),
     ("add(i8(k), add(w, i8(same)))", True), ("w", True), ("i8(same)", False)],
)  # fmt: skip
def test_computed_indices(code: str, index: str, gathers: bool):
    text = f"""
    kernel k(a0: {code}[], a1: {code}[], a2: i4[], a3: i8[], a4: {code}[], n) for lo..hi {{
      let same: i4 = 5:i4
      for i in lo..hi independent {{
        let k: i4 = fmin(fmax(a2[i], 0:i4), 50:i4)
        let w: i8 = fmin(fmax(a3[i], 0:i8), 50:i8)
        a4[i] = a0[{index}]
        a1[i] = a0[i]
      }}
    }}
    """
    kernel = parse_kernel(text)
    verify(kernel)
    short = code in ("i2", "b1")
    lowered = run_passes(kernel, Target(64), check=True)
    assert ("vector(" in print_kernel(lowered)) == (not (short and gathers))
    assert ("gather" in lower(lowered, 64, "nounwind")) == (gathers and not short)
    actual = results(compile_with_llvm, kernel, 300, 1, {"n": 3}, (1, 90))
    assert bits(actual) == bits(results(None, kernel, 300, 1, {"n": 3}, (1, 90)))
    assert bits(actual) == bits(results(compile_from_text, kernel, 300, 1, {"n": 3}, (1, 90)))


@pytest.mark.parametrize("code", ["f4", "i8", "i2", "b1"])
def test_tiles(code: str):
    text = f"""
    kernel k(a0: {code}[], a1: {code}[], n, m) for lo..hi {{
      stack tile: {code}[4096]
      for u in lo..hi {{
        transpose tile[256] = a0[<16*u + 3>] step n shape 13:i8 by m
        for r in 0:i8..13:i8 {{
          for q in 0:i8..m independent {{ a1[<n*r + 1*q + 0>] = tile[<256*r + 1*q + 0>] }}
        }}
      }}
    }}
    """
    kernel = parse_kernel(text)
    verify(kernel)
    size, integers = 3000, {"n": 70, "m": 40}
    actual = [
        bits(results(way, kernel, size, 1, integers, (1, 2)))
        for way in (
            compile_with_llvm,
            compile_from_text,
            None,
            *[compile_with_numba] * (code == "f4"),
        )
    ]
    assert all(x == actual[0] for x in actual)
    assert "nontemporal, peel" in print_kernel(run_passes(kernel, Target(64), check=True))


@pytest.mark.parametrize("combine", ["sum", "max", "or"])
@pytest.mark.parametrize("code", ["f4", "i8", "i2", "b1"])
def test_column_reductions(code: str, combine: str):
    if (code, combine) == ("f4", "or"):
        combine = "prod"
    text = f"""
    kernel k(a0: {code}[], a1: {code}[], n, m) for lo..hi {{
      stack sums: {code}[1024]
      stack places: i8[1024]
      for u in lo..hi {{
        for r in 0:i8..n independent {{ places[r] = <37*r + 1> }}
        columns {combine} sums = a0[<16*u + 3>] rows places shape n by m
        for q in 0:i8..m independent {{ a1[<m*u + 1*q + 0>] = sums[q] }}
      }}
    }}
    """
    kernel = parse_kernel(text)
    verify(kernel)
    assert print_kernel(parse_kernel(print_kernel(kernel))) == print_kernel(kernel)
    size, integers = 6000, {"n": 140, "m": 35}
    ways = (compile_with_llvm, compile_from_text, None, *[compile_with_numba] * (code == "f4"))
    actual = [bits(results(way, kernel, size, 1, integers, (0, 2))) for way in ways]
    assert all(x == actual[0] for x in actual)


@pytest.mark.parametrize("code", ["f2", "e2"])
def test_half_precision(code: str):
    text = f"""
    kernel k(a0: {code}[], a1: f4[], a2: {code}[]) for lo..hi {{
      for i in lo..hi independent {{
        let t: {code} = a0[i]
        let u: {code} = {code}(mul(f4(t), a1[i]))
        let v: {code} = select(lt(f4(u), 0.5:f4), fmax(u, t), neg(floor(t)))
        a2[i] = v
      }}
    }}
    """
    kernel = parse_kernel(text)
    verify(kernel)
    assert "vector(" in print_kernel(run_passes(kernel, Target(64), check=True))
    ways = (compile_with_llvm, compile_from_text, compile_with_numba, None)
    actual = [results(way, kernel, 200, 1, {}, (3, 150))[0].astype("f4") for way in ways]
    for x in actual[1:]:
        np.testing.assert_array_equal(x, actual[0])


# Two passes over rows: folds of what is loaded, stored and computed; the last pass normalizes.
PASSES = """
kernel k(a0: f4[], a1: f4[], a2: f8[], n) for lo..hi {
  heap row: f4[n]
  for o in lo..hi {
    for b in 0:i8..n step 1024 carry acc: f8 = 0.0:f8 then total carry top: f4 = -inf:f4 then most {
      let m: i8 = fmin(<1*n + -1*b + 0>, 1024:i8)
      reduce j in 0..m {
        let t: f4 = a0[<n*o + 1*b + 1*j + 0>]
        let y: f4 = div(t, 3.0:f4)
        row[<1*b + 1*j + 0>] = y
        reduction sum wide part: f8 of t
        reduction max part2: f4 of y
        reduction sum part3: f4 of sq(y)
      }
      next acc = add(acc, add(part, f8(part3)))
      next top = fmax(top, part2)
    }
    for j2 in 0:i8..n step 16 { prefetch a0[<n*o + 1*n + 1*j2 + 0>] }
    for q in 0:i8..n independent {
      a1[<n*o + 1*q + 0>] = sub(row[q], most)
    }
    a2[o] = total
  }
}
"""


@pytest.mark.parametrize("n", [1, 40, 1024, 1500])
def test_passes_over_rows(n: int):
    kernel = parse_kernel(PASSES)
    verify(kernel)
    ways = [compile_with_llvm, compile_from_text, None, *[compile_with_numba] * (n == 1500)]
    actual = [bits(results(way, kernel, 4 * n, 2, {"n": n}, (0, 3))) for way in ways]
    assert all(x == actual[0] for x in actual)


def test_several_carried_values_are_updated_simultaneously():
    """With a variable that has the name which the source for Numba would give to the next x."""
    text = """
    kernel entry(a: i8[], n) for lo..hi {
      for o in lo..hi {
        for i in 0:i8..n carry x: i8 = 0:i8 then x1 carry y: i8 = 1:i8 then y1 {
          let y_next: i8 = mul(x, 10:i8)
          next x = add(x, y)
          next y = add(x, y_next)
        }
        a[o] = <1*x1 + 1*y1 + 0>
      }
    }
    """
    kernel = parse_kernel(text)
    verify(kernel)
    actual = [
        results(way, kernel, 8, 1, {"n": 5}, (0, 8))
        for way in (compile_with_numba, compile_from_text, compile_with_llvm)
    ]
    expected = bits(results(None, kernel, 8, 1, {"n": 5}, (0, 8)))
    assert [bits(x) for x in actual] == [expected] * 3


@pytest.mark.parametrize("seed", range(4))
def test_variable_names_do_not_affect_code(seed: int):
    """The text for LLVM is the same whatever variables and buffers are called."""
    for kernel in (random_map(seed, not_exact()), random_fold(seed, list(EXACT))):
        other = rename_randomly(kernel, seed)._replace(name=kernel.name)
        verify(other)
        assert other.buffers[0].name != kernel.buffers[0].name
        target = Target(WIDTH)
        texts = [lower(run_passes(k, target), WIDTH, "nounwind") for k in (kernel, other)]
        assert texts[0] == texts[1]


def test_functions_of_the_closed_set_have_code_and_a_reference():
    for name, function in FUNCTIONS.items():
        for of in DTYPES.values():
            kinds = [B1, of, of] if name == "select" else [of] * function.arity
            if result_of(name, kinds) is None or name == "floordiv":
                continue
            b = LoopBuilder()
            x, y = b.buffer("x", of), None
            with b.loop("i", b.first, b.last, independent=True) as loop:
                v = b.let("v", Load(x, loop.index))
                args = [Const(True, B1), v, v] if name == "select" else [v] * function.arity
                value = call(name, *args)
                y = b.buffer("y", number_type(value))
                b.store(y, loop.index, value)
            kernel = b.kernel()
            verify(kernel)
            assert "define" in lower(run_passes(kernel, Target(64)), 64, "nounwind")
            arrays = {"x": np.ones(4, of.numpy), "y": np.zeros(4, y.dtype.numpy)}
            interpret_kernel(kernel, arrays, {}, (0, 4))


def test_numba_source_runs_outside_of_accnp():
    """In a process that imports nothing but the functions."""
    source = numba_source(random_map(1, list(EXACT)))
    code = f"""
from accnp.compiler.numba.functions import *
from accnp.compiler.numba.functions import NUMBA_TYPES
import numba
{source}
tokens = {[b.dtype.token for b in random_map(1, list(EXACT)).buffers]}
kinds = [numba.types.CPointer(NUMBA_TYPES[t]) for t in tokens]
made = numba.njit(numba.types.void(numba.types.int64, numba.types.int64, *kinds))(kernel)
print(len(made.signatures))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr[-2000:]
