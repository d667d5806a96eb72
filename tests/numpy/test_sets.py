"""`unique` and set functions compared with JAX, with static sizes and with sizes that depend on
values.
"""

import jax
import numpy as np
import pytest
from api.support import assert_same, result_or_error
from api.tables import compare_expression, split_cases

import accnp
import accnp.numpy as jnp

RNG = np.random.default_rng(0)
A = RNG.integers(0, 6, 12).astype(np.float32)
B = RNG.integers(3, 9, 9).astype(np.float32)
N = A.copy()
N[[1, 5]] = np.nan
R = RNG.integers(0, 2, (7, 3)).astype(np.int32)
E = np.zeros((0,), np.float32)

TABLE = """
unique(A, size=4) | unique(A, size=9) | unique(A, size=9, fill_value=-1) | unique(N, size=8)
unique(A, True, True, True, size=9) | unique(N, True, True, True, size=3) | unique(N)
unique(N, True, True, True, size=9, equal_nan=False) | unique(R, size=20) | unique(E)
unique(R, True, True, True, axis=0, size=9) | unique(R, axis=1, size=2) | unique(R, axis=1, size=5)
unique(R, True, True, True, axis=-1, size=4, fill_value=7) | unique(R, axis=0)
unique(R, True, True, True, 0) | unique(E, size=3, fill_value=5) | unique(E, True, size=0)
unique(R > 0) | unique(A.astype('float16')) | unique(np.float32(3.0)) | unique(A + 1j * A[::-1])
unique_all(A, size=8) | unique_counts(A, size=3) | unique_inverse(R, size=2)
unique_values(N, size=9)
union1d(A, B, size=12) | union1d(A, B, size=3) | union1d(A, B, size=12, fill_value=-2)
union1d(A, R)
intersect1d(A, B, size=2) | intersect1d(A, B, size=7) | intersect1d(A, B, size=7, fill_value=9)
intersect1d(A, B, False, True, size=8) | intersect1d(A, B, return_indices=True, size=1)
intersect1d(A, B + 20, size=3) | intersect1d(A, B + 20, False, True, size=3)
intersect1d(E, E, size=2)
setdiff1d(A, B, size=2) | setdiff1d(A, B, size=8) | setdiff1d(A, B, size=8, fill_value=-3)
setdiff1d(B, A, size=5) | setdiff1d(E, B, size=3) | setdiff1d(A, E, size=9)
setdiff1d(B[:3], A, True, size=3) | setxor1d(A, B, size=3) | setxor1d(A, B, size=9)
setxor1d(A, B, size=9, fill_value=-3) | setxor1d(A, A, size=2) | setxor1d(A, E, size=9)
setxor1d(R, A, size=9) | isin(A, B) | isin(A, B, invert=True) | isin(A, E) | isin(A, E, invert=True)
isin(R, A, method='sort') | isin(N, N) | isin(A, B, method='compare_all') | isin(E, A)
"""


@pytest.mark.parametrize("text", split_cases(TABLE))
def test_as_jax(text):
    compare_expression(text, jnp, jax.numpy, A=A, B=B, N=N, R=R, E=E)


TRACED = """
unique(x, True, True, True, size=8) | union1d(x, y, size=12) | setxor1d(x, y, size=9)
intersect1d(x, y, False, True, size=8) | setdiff1d(x, y, size=5) | isin(x, y)
"""


@pytest.mark.parametrize("text", split_cases(TRACED))
def test_jit_and_vmap(text):
    def of(m):
        return lambda x, y: eval(text, {n: getattr(m, n) for n in dir(m)}, {"x": x, "y": y})

    for transform in ("jit", "vmap"):
        x, y = (A, B) if transform == "jit" else (np.stack([A, A[::-1] + 1]), np.stack([B, B * 2]))
        actual = getattr(accnp, transform)(of(jnp))(x, y)
        assert_same(actual, getattr(jax, transform)(of(jax.numpy))(x, y))


REFUSED = """
unique(E, size=3) | unique(R, axis=5) | unique(R, axis=2, size=3) | isin(A, B, method='foo')
unique(A, size=1.5) | union1d(A, B, size='x')
"""


@pytest.mark.parametrize("text", split_cases(REFUSED))
def test_raises_where_jax_raises(text):
    names = {"A": A, "B": B, "R": R, "E": E}
    jax_error = result_or_error(lambda: eval(text, {**vars(jax.numpy), **names}))
    error = result_or_error(lambda: eval(text, {**{n: getattr(jnp, n) for n in dir(jnp)}, **names}))
    assert isinstance(jax_error, Exception)
    assert isinstance(error, type(jax_error)), error


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d", "unique"])
def test_sizes_that_depend_on_traced_values_are_refused(name):
    arguments = (A,) if name == "unique" else (A, B)
    with pytest.raises(TypeError, match=name):
        accnp.jit(getattr(jnp, name))(*arguments)


def test_long_arrays():
    x = RNG.standard_normal(50_000).astype(np.float32)
    x[::5], x[::9], x[::100] = 0.0, -0.0, np.nan
    np.testing.assert_array_equal(jnp.unique(x), np.unique(x))
    y = RNG.integers(0, 90, 50_000)
    np.testing.assert_array_equal(jnp.unique(y.astype(np.int32)), np.unique(y))
