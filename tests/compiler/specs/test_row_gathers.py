"""Elements of short rows at places that are the same in every row."""

import ml_dtypes
import numpy as np
import pytest
from compiler.fusion.support import plan_of

import accnp
import accnp.numpy as jnp
from accnp.compiler.specs import row_gathers

P = np.array([2, 0, -1, 1])
CASES = {
    "columns": lambda m, x: x[:, P],
    "columns twice": lambda m, x: x[:, [1, 1]] if m is np else x[:, np.array([1, 1])],
    "beyond the end": lambda m, x: x[:, [0, 9]] if m is np else x[:, np.array([0, 9])],
    "scaled": lambda m, x: x[:, P] * 2 + x[:, P[::-1]],
    "beside others": lambda m, x: x[:, P] + x[:, :1] - x[0, :4],
    "of both axes": lambda m, x: x[::2][:, P],
    "across": lambda m, x: x.T[P],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.int32, np.uint32, np.uint8, np.complex64, bool, ml_dtypes.bfloat16],
)
@pytest.mark.parametrize("permutes", [True, False])
def test_values(name, dtype, permutes, monkeypatch):
    monkeypatch.setattr(row_gathers, "has_vector_permute", lambda: permutes)
    accnp.clear_caches()
    x = (np.arange(60 * 5) % 7).reshape(60, 5).astype(dtype)
    f = CASES[name]
    if dtype is bool and name in ("scaled", "beside others"):

        def f(m, x):
            return x[:, P] | x[:, :1]

    clamped = name == "beyond the end"
    expected = x[:, [0, 4]] if clamped else np.asarray(f(np, x))
    for g in (lambda x: f(jnp, x), accnp.jit(lambda x: f(jnp, x))):
        np.testing.assert_array_equal(np.asarray(g(jnp.asarray(x))), expected)


def test_deeper_arrays_and_loops():
    x = np.arange(6 * 4 * 5, dtype=np.float32).reshape(6, 4, 5)
    expected = x
    for _ in range(3):
        expected = expected[..., [4, 3, 0, 1, 2]] * np.float32(1.5)
    order = np.array([4, 3, 0, 1, 2])
    loop = accnp.jit(lambda x: accnp.lax.fori_loop(0, 3, lambda i, x: x[..., order] * 1.5, x))
    np.testing.assert_array_equal(np.asarray(loop(x)), expected)


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_that_fill_a_vector_and_longer_ones(length, dtype):
    rng = np.random.default_rng(length)
    x = rng.integers(-99, 99, (50, length)).astype(dtype)
    y = rng.integers(-99, 99, 8).astype(dtype)
    order = rng.integers(0, length, 8)
    with accnp.enable_x64(True):
        actual = accnp.jit(lambda x, y: x[:, order] * y + order)(x, y)
        last = accnp.jit(lambda x: x[-1:, order])(x)
    np.testing.assert_array_equal(actual, x[:, order] * y + order)
    np.testing.assert_array_equal(last, x[-1:, order])


def test_a_row_is_permuted_by_one_instruction(monkeypatch):
    order = np.array([2, 0, 1])
    monkeypatch.setattr(row_gathers, "has_vector_permute", lambda: True)
    plan = plan_of(lambda x: x[:, order] * 2, np.ones((100_000, 3), np.float32))
    assert plan.steps[-1].text.source.count("permute(") == 1
    plan = plan_of(lambda x: x[:, order] * 2, np.ones((100_000, 17), np.float32))
    assert "permute(" not in plan.steps[-1].text.source


def test_indices_are_computed_once_for_all_rows(monkeypatch):
    monkeypatch.setattr(row_gathers, "has_vector_permute", lambda: False)
    order = np.array([2, 0, 1])
    plan = plan_of(lambda x: x[:, order], np.ones((100_000, 3), np.float32))
    source = plan.steps[-1].text.source
    head, rows = source.split("for o in range(lo, hi):")
    assert head.count("fmin(") == 1
    assert "fmin(" not in rows
    assert len(plan.steps) <= 2


def test_gradients():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    weights = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    order = np.array([3, 0, 3])
    actual = accnp.grad(lambda x: (x[:, order] * weights).sum())(x)
    expected = np.zeros((3, 4), np.float32)
    np.add.at(expected.T, order, weights.T)
    np.testing.assert_array_equal(np.asarray(actual), expected)


def test_windows_at_one_place_in_each_row_move_along_the_row():
    x = jnp.arange(24.0).reshape(4, 6)
    dims = accnp.lax.GatherDimensionNumbers(
        offset_dims=(1,),
        collapsed_slice_dims=(),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    starts = jnp.broadcast_to(jnp.int32(2), (4, 1))
    actual = accnp.lax.gather(x, starts, dims, (1, 3)) * 2
    assert np.array_equal(actual, np.asarray(x)[:, 2:5] * 2)


def test_a_branch_of_a_batched_loop_reads_a_window():
    def body(i, c):
        def halved(c):
            window = accnp.lax.dynamic_slice(c, (i,), (2,)) * 0.5
            return accnp.lax.dynamic_update_slice(c, window, (i + 1,))

        return accnp.lax.cond(c[0] > 0, halved, lambda c: -c, c)

    rows = jnp.array([[1.0, 2, 3, 4], [-1.0, 2, 3, 4]])
    actual = accnp.vmap(lambda c: accnp.lax.fori_loop(0, 1, body, c))(rows)
    assert np.array_equal(actual, [[1, 0.5, 1, 4], [1, -2, -3, -4]])
