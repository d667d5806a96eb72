"""Scatters of several coordinates become scatters of one, and mean the same."""

import re

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.compiler.fusion.scatters import FEW

N = 3 * FEW
RNG = np.random.default_rng(11)
SHAPE = (13, 17, 5)
NUMPY = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def draw_indices(*sizes, dtype=np.int32):
    """Places, some of them outside on either side."""
    return [RNG.integers(-n - 3, n + 3, N).astype(dtype) for n in sizes]


def scatter_one_by_one(how, mode, x, index, u):
    """The updates one by one."""
    at = [np.where(i < 0, i + n, i) for i, n in zip(index, x.shape, strict=False)]
    pairs = list(zip(at, x.shape, strict=False))
    inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in pairs])
    if mode == "clip":
        at, inside = [i.clip(0, n - 1) for i, n in pairs], np.ones(N, bool)
    where, out = tuple(i[inside] for i in at), x.copy()
    if how == "set":
        out[where] = u[inside]
    else:
        NUMPY[how].at(out, where, u[inside])
    return out


def ways(f, *arguments):
    """The value under jit, which is that of eager code."""
    actual, eager = accnp.jit(f)(*arguments), f(*arguments)
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(eager))
    return np.asarray(actual)


def coordinates(f, *arguments):
    """How many coordinates the places of a program's scatters have."""
    text = str(accnp.inspect(accnp.jit(f))(*arguments))
    program = text.split("-- program")[1].split("-- fusion")[0]
    lines = {line.split(":")[0]: line for line in program.splitlines() if line[:1] == "%"}
    names = [m[1] for m in map(re.compile(r"= scatter\w* %\d+ (%\d+)").search, lines.values()) if m]
    return [int(lines[name].split("]")[0].split(",")[-1]) for name in names]


@pytest.mark.parametrize("how", [*NUMPY, "set"])
@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("count", [2, 3])
def test_updates_of_several_axes(how, mode, count):
    x = RNG.integers(0, 3, SHAPE).astype(np.float32)
    u = RNG.integers(-4, 5, (N, *SHAPE[count:])).astype(np.float32)
    index = draw_indices(*SHAPE[:count])
    if mode == "promise_in_bounds":
        index = [i % n for i, n in zip(index, SHAPE, strict=False)]

    def f(x, u, *index):
        return getattr(jnp.asarray(x).at[index], how)(u, mode=mode)

    np.testing.assert_array_equal(ways(f, x, u, *index), scatter_one_by_one(how, mode, x, index, u))
    assert coordinates(f, *map(jnp.asarray, (x, u, *index))) == [1]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint32"])
def test_indices_of_other_dtypes(dtype):
    x, u = np.zeros(SHAPE[:2], np.float32), RNG.standard_normal(N).astype(np.float32)
    index = [abs(i).astype(dtype) for i in draw_indices(*SHAPE[:2])]
    with accnp.enable_x64(True):
        actual = ways(lambda u, *index: jnp.zeros(SHAPE[:2], "float32").at[index].add(u), u, *index)
    np.testing.assert_array_equal(
        actual, scatter_one_by_one("add", "drop", x, [i.astype(np.int64) for i in index], u)
    )


def test_indices_far_out_of_bounds():
    far = np.array([2**31 - 1, -(2**31), 2**33, -(2**33) + 1, 2**32], np.int64)
    i, j = np.resize(far, N), np.arange(N) % 17
    with accnp.enable_x64(True):
        actual = ways(lambda i, j: jnp.zeros((13, 17)).at[i, j].add(1.0), i, j)
        swapped = ways(lambda i, j: jnp.zeros((17, 13)).at[j, i].add(1.0), i, j)
    assert not actual.any()
    assert not swapped.any()


def test_axes_in_any_order_and_batches():
    """By `lax.scatter_add`: coordinates the other way round, behind an axis of windows and one of
    batches; and one that has a window of more than one element."""
    x = RNG.integers(0, 9, (4, 3, 13, 17)).astype(np.float32)
    starts = np.stack([RNG.integers(-1, 18, (4, N)), RNG.integers(-1, 14, (4, N))], -1)
    u = RNG.integers(0, 9, (4, N, 3)).astype(np.float32)
    dims = lax.ScatterDimensionNumbers((2,), (2, 3), (3, 2), (0,), (0,))

    def f(x, starts, u):
        return lax.scatter_add(x, starts.astype(jnp.int32), u, dims)

    expected = x.copy()
    for b in range(4):
        for (j, i), v in zip(starts[b], u[b], strict=True):
            if 0 <= i < 13 and 0 <= j < 17:
                expected[b, :, i, j] += v
    np.testing.assert_array_equal(ways(f, x, starts, u), expected)
    assert coordinates(f, *map(jnp.asarray, (x, starts, u))) == [1]

    window = lax.ScatterDimensionNumbers((1,), (0,), (0, 1))
    y, at, v = x[0, 0], starts[0][:, ::-1], u[0, :, :2]
    actual = ways(lambda *a: lax.scatter_add(a[0], a[1].astype(jnp.int32), a[2], window), y, at, v)
    expected = y.copy()
    for (i, j), w in zip(at, v, strict=True):
        if 0 <= i < 13 and 0 <= j <= 15:
            expected[i, j : j + 2] += w
    np.testing.assert_array_equal(actual, expected)


def test_derivatives_and_batches():
    x, (i, j) = RNG.standard_normal(SHAPE[:2]).astype(np.float32), draw_indices(*SHAPE[:2])
    u = RNG.standard_normal((2, N)).astype(np.float32)
    actual = ways(
        accnp.grad(lambda x: jnp.sum(x.at[i, j].get(mode="fill", fill_value=0) * u[0])), x
    )
    expected = scatter_one_by_one("add", "drop", np.zeros_like(x), (i, j), u[0])
    np.testing.assert_array_equal(actual, expected)
    together = ways(accnp.vmap(lambda u: jnp.asarray(x).at[i, j].set(u)), u)
    for one, v in zip(together, u, strict=True):
        np.testing.assert_array_equal(one, scatter_one_by_one("set", "drop", x, (i, j), v))


def test_few_indices_are_computed_inline():
    x, u = jnp.zeros(SHAPE[:2]), jnp.ones(FEW - 1)
    i = jnp.zeros(FEW - 1, jnp.int32)
    assert coordinates(lambda x, i, u: x.at[i, i].add(u), x, i, u) == [2]
