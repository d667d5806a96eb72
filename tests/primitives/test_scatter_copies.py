"""Many updates of few elements: runs of updates go to private copies, which are
combined in order.
"""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

N = 1 << 17
RNG = np.random.default_rng(3)
NUMPY = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("places", [9, 2000])
@pytest.mark.parametrize(
    ("how", "dtype"),
    [(how, dtype) for how in NUMPY for dtype in ("float32", "int32", "bool")]
    + [("add", "complex64"), ("multiply", "complex64")],
)
def test_elements(how, dtype, places):
    x = RNG.integers(0, 3, places).astype(dtype)
    u = RNG.integers(0, 2 if how == "multiply" else 3, N).astype(dtype)
    i = RNG.integers(-places - 3, places + 3, N).astype(np.int32)
    expected = x.copy()
    inside = (i >= -places) & (i < places)
    NUMPY[how].at(expected, i[inside], u[inside])
    for threads in (1, 2):
        with accnp.threads(threads):
            actual = accnp.jit(lambda x, i, u: getattr(x.at[i], how)(u))(x, i, u)
        np.testing.assert_array_equal(actual, expected)


def test_sums_do_not_depend_on_threads():
    x, u = np.zeros(50, np.float32), RNG.standard_normal(N).astype(np.float32)
    i = RNG.integers(0, 50, N).astype(np.int32)
    results = []
    for threads in (1, 2):
        with accnp.threads(threads):
            results.append(np.asarray(jnp.asarray(x).at[i].add(u)))
    np.testing.assert_array_equal(*results)
    exact = np.zeros(50)
    np.add.at(exact, i, u.astype(np.float64))
    np.testing.assert_allclose(results[0], exact, rtol=1e-4, atol=1e-3)


def test_rows_and_pairs():
    rows, i = RNG.standard_normal((4000, 33)).astype(np.float32), RNG.integers(0, 20, 4000)
    expected = np.zeros((20, 33))
    np.add.at(expected, i, rows.astype(np.float64))
    actual = accnp.ops.segment_sum(jnp.asarray(rows), jnp.asarray(i), 20)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)
    a, b, u = RNG.integers(0, 7, N), RNG.integers(0, 5, N), RNG.standard_normal(N)
    expected = np.zeros((7, 5))
    np.add.at(expected, (a, b), u)
    actual = jnp.zeros((7, 5)).at[a, b].add(u.astype(np.float32))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)


def test_inspect_says_why_an_update_copies():
    x = jnp.ones((30, 30))

    def returns_operand(x):
        y = x * 2
        return y.at[3].set(1.0), y

    assert "updated in place" in str(accnp.inspect(lambda x: jnp.cumsum(x).at[3].set(1.0))(x))
    assert "its values before the update are also a result" in str(
        accnp.inspect(returns_operand)(x)
    )
    assert "not donated" in str(accnp.inspect(lambda x: x.at[3].set(1.0))(x))
