"""Special values of the elementwise functions: all cases of the array API standard, in both
precisions.
"""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from array_api.values import ALL, FINITE, Case, meets, read

import accnp
import accnp.numpy as jnp

CASES = read()
TOLERANCE = {"float32": 1e-6, "float64": 1e-14}
COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = [np.float32, np.float64]


def pairs(values: list[tuple[float, float]], dtype: str) -> np.ndarray:
    """Return complex numbers with these parts, because a + 1j * b loses signs of zeros and
    infinities.
    """
    return np.array(values, dtype).view(COMPLEX[dtype])[:, 0]


def operands(cases: list[Case], dtype: str, complex_: bool) -> list[np.ndarray]:
    if complex_:
        return [pairs([c.operands[0] for c in cases], dtype)]
    return [np.array(column, dtype) for column in zip(*(c.operands for c in cases), strict=True)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("name", "complex_"), CASES, ids=[f"{n}{' complex' * c}" for n, c in CASES]
)
def test_cases_of_the_standard(name: str, complex_: bool, dtype: str) -> None:
    cases = CASES[name, complex_]
    with accnp.enable_x64():
        xs = [jnp.asarray(x) for x in operands(cases, dtype, complex_)]
        function = getattr(jnp, name)
        result = np.asarray(function(*xs))
        np.testing.assert_array_equal(np.asarray(accnp.jit(function)(*xs)), result)
    wrong = []
    for case, value in zip(cases, result, strict=True):
        parts = (value.real, value.imag) if len(case.expected) == 2 else (value,)
        if not all(meets(p, e, TOLERANCE[dtype]) for p, e in zip(parts, case.expected)):
            wrong.append(f"{case.rule}: {name}{case.operands} gives {value!r}")
    assert not wrong, "\n".join(wrong)


ENTIRE = ["exp", "expm1", "cosh", "sinh", "cos", "sin", "tan", "tanh"]
CUT = ["log", "log1p", "log2", "log10", "sqrt", "acos", "acosh", "asin", "asinh", "atan", "atanh"]
ODD = ["asinh", "atanh", "sinh", "tanh", "asin", "atan", "sin", "tan"]


def plane(dtype: str) -> np.ndarray:
    return pairs([(a, b) for a in ALL for b in ALL], dtype)


def same(x: np.ndarray, y: np.ndarray) -> None:
    """Compare bitwise, except for NaN and other values with an unspecified sign."""
    for a, b, other in ((x.real, y.real, x.imag), (x.imag, y.imag, x.real)):
        np.testing.assert_array_equal(np.abs(a), np.abs(b))
        clear = ~(np.isnan(a) | np.isnan(other) | (np.isinf(other) & (a == 0)))
        np.testing.assert_array_equal(np.signbit(a)[clear], np.signbit(b)[clear])


@pytest.mark.parametrize("name", [*ENTIRE, *CUT])
def test_conjugate_of_the_operand_gives_the_conjugate(name: str) -> None:
    z = plane("float64")
    with accnp.enable_x64():
        f = accnp.jit(getattr(jnp, name))
        same(np.asarray(f(z.conj())), np.asarray(f(z)).conj())
        if name in ODD:
            same(np.asarray(f(-z)), -np.asarray(f(z)))
        if name == "cosh":
            same(np.asarray(f(-z)), np.asarray(f(z)))


AS_IF = {  # function: what it must be at special values
    "asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh",
}  # fmt: skip


@pytest.mark.parametrize("name", AS_IF)
def test_trigonometric_functions_follow_hyperbolic_special_cases(name: str) -> None:
    z = plane("float64")
    turned = pairs(list(zip(-z.imag, z.real)), "float64")
    with accnp.enable_x64():
        w = np.asarray(getattr(jnp, AS_IF[name])(turned))
        same(np.asarray(getattr(jnp, name)(z)), pairs(list(zip(w.imag, -w.real)), "float64"))


def test_cosine_follows_hyperbolic_cosine_special_cases() -> None:
    z = plane("float64")
    with accnp.enable_x64():
        w = np.asarray(jnp.cosh(pairs(list(zip(-z.imag, z.real)), "float64")))
        same(np.asarray(jnp.cos(z)), w)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverse_functions_far_out_and_next_to_the_branch_points(name: str) -> None:
    from mpmath import mp

    rng = np.random.default_rng(4)
    far = rng.standard_normal(40) * 10.0 ** rng.uniform(-300, 300, 40)
    offset = rng.standard_normal(40) * 10.0 ** rng.uniform(-15, -1, 40)
    near = rng.choice([-1.0, 1.0], 40) * (1 + offset)
    small = rng.standard_normal(40) * 10.0 ** rng.uniform(-15, 0, 40)
    z = np.concatenate([far + 1j * small, near + 1j * small, small + 1j * near, small + 1j * far])
    with accnp.enable_x64():
        actual = np.asarray(getattr(jnp, name)(z))
    for v, g in zip(z, actual, strict=True):
        with mp.workprec(2200):
            e = complex(getattr(mp, name)(mp.mpc(complex(v))))
        assert abs(complex(g) - e) <= 1e-14 * abs(e), (v, g, e)


@pytest.mark.parametrize("kind", REAL)
def test_clip_propagates_nan(kind: type) -> None:
    x = np.array([math.nan, 1.0, 1.0], kind)
    low = np.array([0.0, math.nan, 0.0], kind)
    high = np.array([2.0, 2.0, math.nan], kind)
    with accnp.enable_x64():
        clipped = np.asarray(jnp.clip(x, low, high))
    assert clipped.dtype == kind
    assert np.isnan(clipped).all()


@pytest.mark.parametrize("kind", REAL)
def test_sign_of_nan_is_copied(kind: type) -> None:
    signs = np.array([-1.0, -0.0, 0.0, 1.0, math.copysign(math.nan, -1), math.nan], kind)
    for x in (np.full(6, math.nan, kind), np.full(6, 2.5, kind)):
        with accnp.enable_x64():
            copied = np.asarray(jnp.copysign(x, signs))
        assert copied.dtype == kind
        np.testing.assert_array_equal(np.signbit(copied), np.signbit(signs))
        np.testing.assert_array_equal(np.abs(copied), x)


def test_remainder_is_that_of_python() -> None:
    values = [v for v in FINITE if v and abs(v) < 1e20] + [4.0, -4.0, 2.5, -7.25]
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    with accnp.enable_x64():
        remainders = np.asarray(jnp.remainder(x, y))
        down = np.asarray(jnp.floor_divide(x, y))
    for a, b, r, q in zip(x, y, remainders, down, strict=True):
        assert (r, math.copysign(1, r)) == (a % b, math.copysign(1, a % b)), (a, b, r)
        assert q == a // b, (a, b, q)


@pytest.mark.parametrize("function", [jnp.mean, jnp.std, jnp.var])
def test_mean_of_empty_array_is_nan(function: object) -> None:
    assert np.isnan(function(jnp.zeros((0,))))
    assert np.isnan(np.asarray(function(jnp.zeros((2, 0)), axis=1))).all()
    assert np.isnan(function(jnp.array([1.0, math.nan])))


def test_reductions_of_empty_arrays_and_nan() -> None:
    assert jnp.sum(jnp.zeros((0,))) == 0
    assert jnp.prod(jnp.zeros((0,))) == 1
    assert jnp.all(jnp.zeros((0,), bool))
    assert not jnp.any(jnp.zeros((0,), bool))
    for name in ("sum", "prod", "max", "min", "cumulative_sum", "cumulative_prod"):
        assert np.isnan(np.asarray(getattr(jnp, name)(jnp.array([1.0, math.nan])))).any(), name
    assert jnp.any(jnp.array([math.nan]))
    assert jnp.all(jnp.array([math.nan]))
    assert jnp.count_nonzero(jnp.array([math.nan, 0.0, -0.0, 1.0])) == 2
    assert jnp.argmax(jnp.array([1.0, math.nan, 2.0])) == 1
    for z in (1j, 1 + 0j, complex(0, math.nan)):
        assert jnp.all(jnp.array([z]))
        assert jnp.any(jnp.array([0j, z]))
    assert not jnp.any(jnp.array([0j, complex(-0.0, -0.0)]))


def test_unique_distinguishes_nans_but_not_zeros() -> None:
    x = jnp.array([math.nan, 0.0, -0.0, math.nan, 1.0])
    values, counts = jnp.unique_counts(x)
    assert values.shape == (4,)
    assert counts.tolist() == [2, 1, 1, 1]
    every = jnp.unique_all(x)
    assert every._fields == ("values", "indices", "inverse_indices", "counts")
    assert every.inverse_indices.shape == x.shape
    assert jnp.unique_values(x).shape == (4,)
    assert jnp.unique_inverse(x)._fields == ("values", "inverse_indices")


OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "pow": "pow",
    "floor_divide": "floordiv", "remainder": "mod", "less": "lt", "equal": "eq",
}  # fmt: skip


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_numbers_match_functions(name: str, kind: type) -> None:
    """Simplified forms (x**2 as a product, x**0.5 as a square root) preserve the special values."""
    values = [*ALL, 0.5, -0.5, 2.0, -2.0, -1.0, -3.0]
    x = np.array(values, kind)
    function, operate = getattr(jnp, name), getattr(operator, OPERATORS[name])
    with accnp.enable_x64():
        a = jnp.asarray(x)
        for v in [*values, 0, 1, 2, 3, -1]:
            s = np.full(x.shape, v, kind)
            for expected, call in ((function(a, s), lambda a, v=v: operate(a, v)),
                                   (function(s, a), lambda a, v=v: operate(v, a))):  # fmt: skip
                e = np.asarray(expected)
                for result in (call(a), accnp.jit(call)(a)):
                    f = np.asarray(result)
                    assert f.dtype == e.dtype
                    np.testing.assert_allclose(f, e, rtol=4e-7 if kind is np.float32 else 1e-15)
                    if e.dtype.kind == "f":
                        clear = ~np.isnan(e)
                        np.testing.assert_array_equal(np.signbit(f[clear]), np.signbit(e[clear]))
