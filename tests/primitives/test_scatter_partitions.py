"""Many updates of many elements: the elements are partitioned among threads, and results do not
depend on the partition.
"""

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp

N = 1 << 17
RNG = np.random.default_rng(4)
NUMPY = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
THREADS = (1, 2, 3)


def on_all_thread_counts(f, *arguments):
    """Return the result after checking that it is the same for several numbers of threads."""
    results = []
    for threads in THREADS:
        with accnp.threads(threads):
            results.append(np.asarray(accnp.jit(f)(*arguments)))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    return results[0]


@pytest.mark.parametrize("how", [*NUMPY, "set"])
@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_updates_come_in_order(how, mode, dtype):
    if dtype == "complex64" and how in ("min", "max"):
        return
    places = 40_001
    x = RNG.integers(0, 3, places).astype(dtype)
    u = (RNG.standard_normal(N) * 4).astype(dtype)
    i = RNG.integers(-places - 3, places + 3, N).astype(np.int32)
    at = np.where(i < 0, i + places, i)
    inside = (at >= 0) & (at < places)
    if mode == "clip":
        at, inside = at.clip(0, places - 1), np.ones(N, bool)
    expected = x.copy()
    if how == "set":
        expected[at[inside]] = u[inside]
    else:
        NUMPY[how].at(expected, at[inside], u[inside])
    actual = on_all_thread_counts(lambda x, i, u: getattr(x.at[i], how)(u, mode=mode), x, i, u)
    if dtype == "complex64" and how == "multiply":
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)


def test_kinds_of_indices():
    u = RNG.standard_normal((N, 5)).astype(np.float32)
    i = RNG.integers(0, 99_000, N)
    for kind in (np.int16, np.uint16, np.uint32, np.int32):
        expected = np.zeros((99_000, 5), np.float32)
        at = i.astype(kind).astype(np.int64)
        inside = at >= -99_000
        np.add.at(expected, at[inside], u[inside])
        actual = on_all_thread_counts(
            lambda i, u: jnp.zeros((99_000, 5), "float32").at[i].add(u), i.astype(kind), u
        )
        np.testing.assert_array_equal(actual, expected)


def test_columns_and_pairs():
    i, j = RNG.integers(0, 300, N).astype(np.int32), RNG.integers(0, 400, N).astype(np.int32)
    u = RNG.standard_normal((3, N)).astype(np.float32)
    expected = np.zeros((300, 400), np.float32)
    np.add.at(expected, (i, j), u[0])
    actual = on_all_thread_counts(
        lambda i, j, u: jnp.zeros((300, 400), "float32").at[i, j].add(u), i, j, u[0]
    )
    np.testing.assert_array_equal(actual, expected)
    expected = np.zeros((3, 120_000), np.float32)
    np.add.at(expected, (slice(None), i * 400 + j), u)
    actual = on_all_thread_counts(
        lambda i, u: jnp.zeros((3, 120_000), "float32").at[:, i].add(u), i * 400 + j, u
    )
    np.testing.assert_array_equal(actual, expected)


def test_all_updates_at_one_index():
    u = np.ones(N, np.float32)
    for where in (0, 59_999, 60_000, 99_999):
        sums = on_all_thread_counts(
            lambda i, u: jnp.zeros(100_000).at[i].add(u), np.full(N, where, "i4"), u
        )
        assert sums[where] == N
        assert np.count_nonzero(sums) == 1
