"""Operands that lie across the loops: tiles are transposed, and no bit depends on the layout."""

import itertools
from functools import partial

import numpy as np
import pytest
from compiler.fusion.support import plan_of
from compiler.library.support import run
from fuzz.executors import as_bytes, run_plan_as_plain_python

import accnp
import accnp.numpy as jnp

DTYPES = [np.float32, np.float64, np.int8, np.uint16, np.int32, np.int64, np.bool_, np.complex64,
          np.complex128]  # fmt: skip
CODES = {"float32": "f4", "float64": "f8", "int8": "i1", "uint16": "u2", "int32": "i4",
         "int64": "i8", "bool": "b1", "complex64": "c8", "complex128": "c16"}  # fmt: skip


def numbers(shape, dtype=np.float32):
    x = np.random.default_rng(3).standard_normal(shape) * 50
    return (x > 0) if dtype == np.bool_ else x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 16), (5, 37), (16, 256), (9, 100)])
@pytest.mark.parametrize("apart", [True, False], ids=["library", "inline"])
def test_transpose_of_a_tile(dtype, rows, columns, apart):
    name = f"transpose_{np.dtype(dtype).itemsize}" if apart else "transpose"
    source, out = numbers((columns, rows + 3), dtype), np.zeros((16, 256), dtype)
    text = f"""
def kernel(lo, hi, a0, a1):
    tile = tile_{CODES[np.dtype(dtype).name]}()
    {name}(tile, 256, at(a0, 2), {rows + 3}, {rows}, {columns})
    for r in range({rows}):
        for c in range({columns}):
            a1[r * 256 + c] = tile[r * 256 + c]
"""
    run(text, 1, source, out)
    np.testing.assert_array_equal(out[:rows, :columns], source.T[2 : 2 + rows])


MAPS = {
    "copy": lambda m, x: x.T * 2,
    "with a row": lambda m, x: x.T + x[0][:, None],
    "with itself": lambda m, x: x[:33, :33] + x[:33, :33].T,
    "backwards": lambda m, x: x[::-1].T - 1,
    "one column": lambda m, x: x.T[:, 3:4] * 2,
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_transposed_operands(name):
    x = numbers((300, 37))
    actual = accnp.jit(lambda x: MAPS[name](jnp, x))(jnp.asarray(x))
    np.testing.assert_array_equal(np.asarray(actual), MAPS[name](np, x))


def test_a_map_in_tiles_runs_as_plain_python():
    x = numbers((40, 270)) / 50
    ((data, _),) = run_plan_as_plain_python(plan_of(lambda x: x.T + jnp.exp(x.T), x), [as_bytes(x)])
    exp = np.exp(x.T.astype(np.float64)).astype(np.float32)  # plain functions compute in double
    np.testing.assert_allclose(data.view(np.float32).reshape(270, 40), x.T + exp, rtol=1e-5)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_permuted_axes_are_copied(order):
    x = numbers((20, 33, 47))
    actual = np.asarray(accnp.jit(lambda x: x.transpose(order) * 2)(jnp.asarray(x)))
    np.testing.assert_array_equal(actual, x.transpose(order) * 2)


def folds(m, x, axis, order=None):
    x = x if order is None else x.transpose(order)
    return m.sum(x, axis), m.max(x, axis), m.sum(m.exp(x / 50), axis), m.sum(x * x + x, axis)


@pytest.mark.parametrize("shape", [(37, 300), (20, 1100), (1600, 50), (30, 20, 50), (1030, 3, 20)])
def test_reductions_of_transposed_operands_match_a_copy_bitwise(shape):
    x = numbers(shape)
    rank = len(shape)
    for order in itertools.permutations(range(rank)):
        view, copy = x.transpose(order), np.ascontiguousarray(x.transpose(order))
        for k in range(rank + 1):
            for axis in itertools.combinations(range(rank), k):
                turned = accnp.jit(partial(folds, jnp, axis=axis, order=order))(jnp.asarray(x))
                plain = accnp.jit(partial(folds, jnp, axis=axis))(jnp.asarray(copy))
                expected = folds(np, view.astype(np.float64), axis)
                for a, b, c in zip(turned, plain, expected, strict=True):
                    np.testing.assert_array_equal(np.asarray(a), np.asarray(b), str((order, axis)))
                    np.testing.assert_allclose(a, c, rtol=2e-4, atol=2e-3)


EACH = {
    "sum": lambda m, x: x.sum(1),
    "max": lambda m, x: x.max(1),
    "min of integers": lambda m, x: x.astype(m.int32).min(1),
    "any": lambda m, x: (x > 1000).any(1),
    "prod": lambda m, x: (1 + x / 1e4).prod(1),
    "of a function": lambda m, x: m.sum(m.exp(x / 50), 1),
    "with a column": lambda m, x: m.sum(x * x[0], 1),
    "with an epilogue": lambda m, x: x.mean(1) * 2 + x[:, 0],
    "with a value of each row": lambda m, x: m.sum(x * m.exp(x[:, 0] / 50)[:, None], 1),
    "complex": lambda m, x: m.sum(x + 1j, 1),
    "two": lambda m, x: m.sum(x, 1) / m.sum(x * x, 1),
}


@pytest.mark.parametrize("rows", [8, 37, 128, 300, 1024, 1600, 2100])
@pytest.mark.parametrize("name", EACH)
def test_transposed_rows_are_reduced_in_row_order(name, rows):
    x = numbers((rows, 70))
    x[rows // 2, 3], x[0, 5], x[:, 6] = np.nan, -np.inf, -0.0
    f = partial(EACH[name], jnp)
    turned = np.asarray(accnp.jit(lambda x: f(x.T))(jnp.asarray(x)))
    plain = np.asarray(accnp.jit(f)(jnp.asarray(np.ascontiguousarray(x.T))))
    assert turned.tobytes() == plain.tobytes()
    with np.errstate(all="ignore"):
        expected = EACH[name](np, x.T)
    if "integers" not in name:
        np.testing.assert_allclose(turned, expected, rtol=1e-3, atol=1e-2)


DOWN = {
    "sum, max and min": lambda m, x: (x.sum(0), x.max(0), x.min(0)),
    "integers": lambda m, x: (x.astype(m.int32).prod(0), x.astype(m.int8).max(0)),
    "any and all": lambda m, x: ((x > 1000).any(0), (x < 1000).all(0)),
    "of what is stored as bytes": lambda m, x: (x.any(0), x.all(0)),
    "of functions": lambda m, x: (m.sum(m.exp(x / 50), 0), m.max(x * x, 0)),
    "with a row and a column": lambda m, x: m.sum(x * x[0] - x[:, :1], 0),
    "with an epilogue": lambda m, x: x.var(0) * 2 + x[0],
    "complex": lambda m, x: m.sum(x + 1j, 0),
}


@pytest.mark.parametrize("rows", [20, 300, 1100])
@pytest.mark.parametrize("name", DOWN)
def test_contiguous_columns_are_reduced_in_column_order(name, rows):
    x = numbers((70, rows))
    x[3, rows // 2], x[4, 0], x[5, :], x[6, 1::2] = np.nan, -np.inf, -0.0, 0.0
    x = x > 0 if "bytes" in name else x.astype(np.float64) if "epilogue" in name else x
    f = partial(DOWN[name], jnp)
    turned = accnp.jit(lambda x: f(x.T))(jnp.asarray(x))
    plain = accnp.jit(f)(jnp.asarray(np.ascontiguousarray(x.T)))
    for a, b in zip(accnp.tree.leaves(turned), accnp.tree.leaves(plain), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_a_column_that_is_computed_along_memory_runs_as_plain_python():
    x = numbers((20, 30)) / 50
    plan = plan_of(lambda x: (jnp.sum(x.T, 0), jnp.max(jnp.exp(x.T), 0)), x)
    assert "columns_sum" in "".join(s.text.source for s in plan.steps)
    (total, _), (most, _) = run_plan_as_plain_python(plan, [as_bytes(x)])
    np.testing.assert_allclose(total.view(np.float32), x.sum(1), rtol=1e-4)
    np.testing.assert_allclose(most.view(np.float32), np.exp(x).max(1), rtol=1e-5)


@pytest.mark.parametrize("axis", [2, (1, 2)])
@pytest.mark.parametrize("last", [20, 300])
def test_contiguous_walk_over_several_axes(axis, last):
    """Kept axes that lie in a row are one; of several folded ones no copy is made."""
    x, w = numbers((70, 33, last)), numbers((last, 33))

    def weighted_mean(m, x, w):
        own = w if axis == 2 else w[:, 0]
        return m.mean(x, axis) * own + own[::-1]

    plan = plan_of(lambda x, w: weighted_mean(jnp, x.transpose(2, 1, 0), w), x, w)
    assert max(s.extent for s in plan.steps) <= 60
    for f in (
        weighted_mean,
        lambda m, x, w: m.sum(m.exp(x / 50), axis),
        lambda m, x, w: m.max(x, axis),
    ):
        turned = accnp.jit(lambda x, f=f: f(jnp, x.transpose(2, 1, 0), w))(jnp.asarray(x))
        copy = np.ascontiguousarray(x.transpose(2, 1, 0))
        plain = accnp.jit(lambda x, f=f: f(jnp, x, w))(jnp.asarray(copy))
        np.testing.assert_array_equal(np.asarray(turned), np.asarray(plain))
        np.testing.assert_allclose(turned, f(np, copy.astype(np.float64), w), rtol=2e-4, atol=2e-3)


def test_reduction_over_transposed_axes_copies_nothing():
    x = numbers((30, 40, 50))
    plan = plan_of(lambda x: x.transpose(2, 1, 0).sum((1, 2)), x)
    assert len(plan.steps) == 1
    several = plan_of(lambda x: x.transpose(2, 1, 0).var((1, 2)), x)  # reads it twice
    assert len(several.steps) == 1


@pytest.mark.parametrize("shape", [(4, 5, 6, 7), (40, 50, 60), (2, 1, 40, 3, 5), (100, 3, 1, 4)])
def test_nonadjacent_axes_are_reduced_one_after_the_other(shape):
    x = numbers(shape)
    for k in range(len(shape) + 1):
        for axis in itertools.combinations(range(len(shape)), k):
            actual = accnp.jit(partial(jnp.sum, axis=axis, keepdims=True))(jnp.asarray(x))
            expected = x.astype(np.float64).sum(axis, keepdims=True)
            np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-4, atol=1e-3)
    steps = plan_of(lambda x: x.sum((0, 2)), numbers((40, 50, 60))).steps
    assert [s.text.extent > 0 for s in steps] == [True, True]
    assert not any("transpose" in s.text.source for s in steps)


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 511, 512, 1030])
def test_rows_are_joined_to_columns_in_their_order(rows):
    x = numbers((rows, 100))
    parts = [x[k : k + 512] for k in range(0, rows, 512)]
    sums = [np.add.accumulate(p, axis=0, dtype=np.float32)[-1] for p in parts]
    expected = np.sum(np.array(sums, np.float64), axis=0).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x).sum(0)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["sum", "prod", "max", "any"])
def test_reductions_and_loops_share_masked_loads(op, dtype):
    """Both ask LLVM for loads under a mask, of vectors that may be the same."""
    if dtype == np.complex64 and op == "max":
        return
    x = numbers((3, 70), dtype)
    x = (x / 50).astype(dtype) if np.dtype(dtype).kind in "fc" else x
    for axis in (None, 1):
        with np.errstate(all="ignore"):
            expected = getattr(np, op)(x * x[:, :1], axis)
        a = jnp.asarray(x)
        actual = np.asarray(getattr(jnp, op)(a * a[:, :1], axis))
        np.testing.assert_allclose(actual, np.asarray(expected).astype(actual.dtype), rtol=1e-3)
    np.testing.assert_allclose(np.asarray(jnp.asarray(x).T * x.T), x.T * x.T, rtol=1e-5)


def products(n, dtype):
    """Rows whose lanes overflow or vanish where the whole does not, or does; zeros; edges."""
    big, tiny = {np.float32: (1e30, 1e-45), np.float64: (1e250, 5e-324)}[dtype]
    x = np.random.default_rng(5).uniform(0.99, 1.01, (40, n))
    x[::3, ::2] *= big
    x[::3, 1::2] /= big
    x[1::9, n // 2], x[2::9, n // 3], x[3::9, 0], x[4::9, -1] = 0, -np.inf, np.nan, -0.0
    x[5::9, 1], x[6], x[7], x[8] = -tiny * 5, big, 1 / big, 0.25
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [7, 100, 2500])
def test_overflowing_products_match_row_reductions_bitwise(dtype, n):
    x = products(n, dtype)
    with accnp.enable_x64(True):
        expected = np.asarray(jnp.asarray(x).prod(1))
        assert np.isfinite(np.log(abs(expected[::9]))).all()
        transposed = jnp.asarray(np.ascontiguousarray(x.T))
        for f in (
            lambda x: x.T.prod(1),
            lambda x: (x * dtype(1)).T.prod(1),
            lambda x: x.reshape(-1, 1, 40).transpose(2, 1, 0).prod((1, 2)),
            lambda x: (x.T.prod(1), x.T.sum(1))[0],
        ):
            actual = np.asarray(accnp.jit(f)(transposed))
            np.testing.assert_array_equal(actual, expected)
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))
