"""Loops over stencils with random slices: their kernels know how the operands lie in one array."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import accnp as jax
import accnp.numpy as jnp
from accnp.compiler.loops.ir import For
from accnp.compiler.loops.visiting import statements
from accnp.compiler.specs import launches
from accnp.ir.generated import GeneratedKernel


def slices(rng: np.random.Generator, shape: tuple[int, ...], inner: tuple[int, ...]) -> Any:
    """A random part of an array with the shape of its inside."""
    starts = [int(rng.integers(0, n - m + 1)) for n, m in zip(shape, inner, strict=True)]
    return tuple([slice(s, s + m) for s, m in zip(starts, inner, strict=True)])


@pytest.mark.parametrize("seed", range(80))
def test_random_stencils(seed: int) -> None:
    """A sum of products of slices is written into a slice of another array, or of the same one."""
    rng = np.random.default_rng(seed)
    shape = tuple([int(rng.integers(4, 40)) for _ in range(int(rng.integers(1, 4)))])
    shape = *shape[:-1], shape[-1] + (0, 0, 130)[seed % 3]  # short rows and long ones
    most = [n // 2 + 1 if seed % 2 else 4 for n in shape]  # slices that overlap, and others
    inner = tuple([int(n - rng.integers(1, k)) for n, k in zip(shape, most, strict=True)])
    dtype = rng.choice(["float32", "float64", "int32"])
    parts = [slices(rng, shape, inner) for _ in range(int(rng.integers(2, 6)))]
    target, in_place = slices(rng, shape, inner), bool(rng.integers(2))
    x, y = (rng.integers(-3, 4, shape).astype(dtype) for _ in range(2))

    def value(a: Any) -> Any:
        total = a[parts[0]]
        for k, part in enumerate(parts[1:]):
            total = total - a[part] if k % 2 else total + a[part]
        return total

    def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = carry
        if in_place:
            return a.at[target].set(value(a)), b
        return b.at[target].set(value(a)), a

    with jax.enable_x64(True):
        actual = jax.jit(lambda a, b: jax.lax.fori_loop(0, 3, step, (a, b)))(x, y)
    a, b = x.copy(), y.copy()
    for _ in range(3):
        if in_place:
            a[target] = value(a.copy())
        else:
            b[target] = value(a)
            a, b = b, a
    np.testing.assert_array_equal(actual[0], a)
    np.testing.assert_array_equal(actual[1], b)


def five_points(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
    a, b = carry
    around = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
    return b.at[1:-1, 1:-1].set(0.2 * around), a


@pytest.fixture
def specialized(monkeypatch: pytest.MonkeyPatch) -> list[GeneratedKernel]:
    """The kernels that are specialized to the layout of their operands during a test."""
    kernels: list[GeneratedKernel] = []

    def specialize(text: GeneratedKernel, pointers: Any) -> GeneratedKernel:
        kernels.append(launches.specialize_layout(text, pointers))
        return kernels[-1]

    monkeypatch.setattr("accnp.engine.native.specialize_layout", specialize)
    return kernels


def test_kernels_know_neighbors_and_equal_strides(specialized: list[GeneratedKernel]) -> None:
    """Arrays of any shape have the same kernel."""
    for shape in ((40, 50), (60, 71)):
        a = jnp.ones(shape)
        f = jax.jit(lambda a, b: jax.lax.fori_loop(0, 3, five_points, (a, b)))
        f(a, a + 1)[0].block_until_ready()
    first, second = [text for text in specialized if text.kernel.shifted]
    assert not first.kernel.long
    assert first.source == second.source
    assert first.kernel.shifted == second.kernel.shifted
    assert [s.distance for s in first.kernel.shifted] == [1, 2]
    strides = re.findall(r"a\d\[o \* (\w+) \+ j\]", first.source)
    assert len(strides) == 6
    assert len(set(strides)) == 1


def test_kernels_of_long_rows_know_it(specialized: list[GeneratedKernel]) -> None:
    a = jnp.ones((40, launches.LONG_SIZE + 2))
    f = jax.jit(lambda a, b: jax.lax.fori_loop(0, 3, five_points, (a, b)))
    f(a, a + 1)[0].block_until_ready()
    (text,) = [text for text in specialized if text.kernel.long]
    rows = [s for s in statements(text.kernel.body) if isinstance(s, For)][-1]
    assert text.kernel.long == (rows.stop,)
    assert f"    # {rows.stop.name} >= {launches.LONG_SIZE}\n" in text.source
