"""Kernels of elementwise operations, test values for them, and functions that run them on the CPU
and in the PTX interpreter."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from cuda.interpreter import Memory, Module
from primitives.cases import CASES

import accnp as jax
from accnp.compiler.kernel_cache import get_kernel
from accnp.compiler.ptx_code import Ptx
from accnp.dtypes import finfo
from accnp.ir.aval import Aval
from accnp.ir.kernel import CODES, Access, KernelSpec, Phase, Statement, code_dtype, dtype_code
from accnp.ir.op import OPS
from accnp.primitives.kinds import dtype_kind

INTEREST = [
    0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.5, np.pi, np.inf, -np.inf, np.nan, 88.72, -103.9, 709.8,
    -745.2, 1e-5, 128, -150, 65536, -60265.17, 1e6, 1e22, 0.2, 9.1, 26.5,
]  # fmt: skip


def points(code: str, n: int, seed: int) -> np.ndarray:
    """Return numbers of a type: special values, random bits, and common magnitudes."""
    dtype, rng = code_dtype(code), np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind == "c":
        half = f"f{dtype.itemsize // 2}"
        both = np.empty(n, dtype)
        both.real, both.imag = points(half, n, seed + 1), points(half, n, seed + 2)
        both[: n // 2] = (rng.standard_normal(n) + 1j * rng.standard_normal(n))[: n // 2]
        return both
    unsigned = np.dtype(f"u{dtype.itemsize}")
    anything = rng.integers(0, np.iinfo(unsigned).max, n, unsigned, endpoint=True).view(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = np.array([0, 1, 2, 7, 31, 32, 33, 64, info.max, info.min, info.max - 1], dtype)
        small = rng.integers(max(info.min, -9), 9, n).astype(dtype)
        return rng.choice(np.concatenate([edges, edges, anything[: n // 3], small]), n)
    info = finfo(dtype)
    limits = [info.tiny, -info.tiny, info.max, info.smallest_subnormal]
    usual = rng.standard_normal(n) * rng.choice([0.01, 0.3, 1, 3, 30, 300], n)
    with np.errstate(all="ignore"):
        parts = [INTEREST, limits, anything[: n // 4], usual]
        return rng.permutation(np.concatenate([np.asarray(p, dtype) for p in parts]))[:n]


class ElementwiseCase(NamedTuple):
    """One operation on operands of certain types."""

    op: str
    text: str
    operands: tuple[str, ...]
    result: str


@functools.cache
def elementwise_cases() -> list[ElementwiseCase]:
    """Return every elementwise operation of the table in every type."""
    unique: dict[ElementwiseCase, None] = {}
    for name, op in sorted(OPS.whole().items()):
        if op.kind != "map":
            continue
        for case in CASES[name]:
            dtypes = [np.dtype(x.dtype) for x in case.inputs]
            first = dtypes[-1]
            for code in sorted(CODES):
                mine = code_dtype(code)
                # Operands of the same type as the last change with it; others, as a condition, do
                # not.
                types = [mine if d == first else d for d in dtypes]
                if op.dtypes and dtype_kind(mine) not in op.dtypes and first.kind in op.dtypes:
                    continue
                work = _elementwise_case(name, op, case, types)
                if work is not None:
                    unique.setdefault(work)
    return list(unique)


def _elementwise_case(
    name: str, op: Any, case: Any, types: list[np.dtype]
) -> ElementwiseCase | None:
    from types import SimpleNamespace

    from accnp.compiler.fusion.lower import scalar_text

    avals = [Aval((5,), t) for t in types]
    try:
        result = op.infer(*avals, **case.params)
        value: Any = SimpleNamespace(
            op=op, aval=result, params=case.params, inputs=[SimpleNamespace(aval=a) for a in avals]
        )
        text = scalar_text(value)
    except Exception:
        return None
    codes = tuple(dtype_code(t) for t in types)
    out = dtype_code(result.dtype)
    return ElementwiseCase(name, text, codes, out) if {*codes, out} <= CODES else None


def elementwise_spec(cases: list[ElementwiseCase]) -> KernelSpec:
    """Return a kernel over one axis that computes all cases; operands of the same position and type
    are shared."""
    accesses: dict[tuple[int, str], Access] = {}
    phase = Phase()
    for w in cases:
        for k, code in enumerate(w.operands):
            if (k, code) not in accesses:
                access = accesses[k, code] = Access(None, code_dtype(code), (1,), 0)
                phase.full.append(Statement(f"x{k}{code}", access.dtype, access=access))
    stores = []
    for j, w in enumerate(cases):
        args = tuple(f"x{k}{code}" for k, code in enumerate(w.operands))
        phase.full.append(Statement(f"t{j}", code_dtype(w.result), w.text, args))
        stores.append(Access(None, code_dtype(w.result), (1,), 0, True))
        phase.stores.append((stores[-1], f"t{j}"))
    every = [*accesses.values(), *stores]
    for number, access in enumerate(every):
        access.number = number
    return KernelSpec("map", (), (), (N,), [], [], [phase], every)


N = 300


def groups(cases: list[ElementwiseCase], size: int) -> list[list[ElementwiseCase]]:
    """Return groups of up to `size` cases of the same types: compiling one at a time takes long."""
    by_types: dict[Any, list[ElementwiseCase]] = {}
    for w in cases:
        by_types.setdefault(w.operands[0] if w.operands else "", []).append(w)
    return [g[k : k + size] for g in by_types.values() for k in range(0, len(g), size)]


def run_on_cpu(text: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Run a CPU kernel on copies of the arrays and return them."""
    arrays = [a.copy() for a in arrays]
    kernel = get_kernel(text.source, "kernel", text.signature, callees=callees(text))
    kernel.call(text.extent, text.extent, *[a.ctypes.data for a in arrays], *text.ints)
    return arrays


def callees(text: Any) -> tuple:
    return tuple((name, its) for name, its, *_ in text.callees)


def interpret(
    kernel: Ptx, arrays: list[np.ndarray], ints: list[int], blocks: int = 2, threads: int = 64
) -> tuple[list[np.ndarray], Any]:
    """Interpret a GPU kernel on copies of the arrays; return them and the interpreter's machine."""
    memory = Memory()
    places = [memory.put(a) for a in arrays]
    machine = Module(kernel.text).launch(kernel.name, blocks, threads, [*places, *ints], memory)
    return [memory.get(p, a) for p, a in zip(places, arrays, strict=True)], machine


def check_no_python(fake: Any, f: Any, args: Any) -> None:
    """Check that a jitted function of loops on a fake GPU is one call of machine code, which
    neither calls a library nor copies to the host, and that results match the CPU."""
    there = jax.device_put(args, jax.devices("gpu")[0])
    g = jax.jit(f)
    jax.block_until_ready(g(*there))
    fake.calls.clear()
    actual = jax.block_until_ready(g(*there))
    assert fake.calls["enter"] == 1
    assert not {"call", "copy_out", "upload"} & {*fake.calls}
    expected = jax.tree.leaves(f(*map(jax.numpy.asarray, args)))
    for a, b in zip(jax.tree.leaves(actual), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def same_bits(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where two arrays have the same bits or are both NaN."""
    if expected.dtype.kind == "c":
        return same_bits(actual.real, expected.real) & same_bits(actual.imag, expected.imag)
    if dtype_kind(expected.dtype) != "f":
        return actual == expected
    return (actual == expected) & (np.signbit(actual) == np.signbit(expected)) | (
        np.isnan(actual) & np.isnan(expected)
    )
