"""Accuracy of the math functions against mpmath: sampled, special and edge points, float32 and
float64."""

import math

import numpy as np
import pytest
from compiler.library.support import mapped
from mpmath import mp, mpf

INF, NAN = math.inf, math.nan
EDGES = [
    0,
    -0.0,
    1,
    -1,
    0.5,
    -0.5,
    2,
    -2,
    math.pi,
    INF,
    -INF,
    NAN,
    88.72,
    88.73,
    -87.3,
    -103.9,
    -104,
]
EDGES += [
    709.78,
    709.79,
    -745.1,
    -745.2,
    89.41,
    89.42,
    710.4,
    710.5,
    1e-5,
    -1e-5,
    127.99,
    128,
    -149,
]
EDGES += [
    -150,
    -149.5,
    1024,
    -1074,
    -1075,
    0.625,
    0.62499,
    65535.9,
    65536,
    1e6,
    2.0**40,
    1e22,
    9.1,
    26.5,
]


def points(dtype, n=200):
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    ints = np.uint32 if dtype == np.float32 else np.uint64
    anything = rng.integers(0, np.iinfo(ints).max, n, dtype=ints, endpoint=True).view(dtype)
    usual = rng.standard_normal(n) * rng.choice([0.01, 0.3, 1, 3, 30, 300], n)
    near_one = 1 + rng.standard_normal(n // 2) * rng.choice([1e-6, 1e-3, 0.1], n // 2)
    limits = [info.tiny, info.max, info.smallest_subnormal]
    limits = [*limits, *(-x for x in limits)]
    return np.concatenate([a if isinstance(a, np.ndarray) and a.dtype == dtype else
                           np.asarray(a, dtype) for a in
                           (EDGES, limits, anything, usual, near_one, -near_one)])  # fmt: skip


def real(f, special=None, domain=None, odd=True):
    """A reference: given values at special points, NaN outside the domain, x at zero if odd."""

    def call(x):
        if x != x:
            return NAN
        if special and x in special:
            return special[x]
        if x == 0 and odd:
            return x
        if domain and not domain(x):
            return NAN
        with mp.workprec(200 if 1e-20 < abs(x) < 1e20 else 2600):
            return +f(mpf(x))

    return call


def positive(x):
    return x > 0


def inside(x):
    return abs(x) <= 1


def _logistic(x):
    if abs(x) > 1e4:
        return mpf(x > 0)
    return mp.exp(x) / (1 + mp.exp(x)) if x < 0 else 1 / (1 + mp.exp(-x))


def _erfc(x):
    return mp.erfc(x) if abs(x) < 100 else mpf(0 if x > 0 else 2)


def _tanh_cdf(x):
    if abs(x) > 100:  # beyond exp(-70000)
        return mpf(x > 0)
    return _logistic(2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3))


WAVE = {INF: NAN, -INF: NAN}
REFERENCE = {
    "exp": real(mp.exp, {INF: INF, -INF: 0.0}, odd=False),
    "exp2": real(lambda x: mp.power(2, x), {INF: INF, -INF: 0.0}, odd=False),
    "expm1": real(mp.expm1, {INF: INF, -INF: -1.0}),
    "logistic": real(_logistic, {INF: 1.0, -INF: 0.0}, odd=False),
    "tanh": real(mp.tanh, {INF: 1.0, -INF: -1.0}),
    "sinh": real(mp.sinh, {INF: INF, -INF: -INF}),
    "cosh": real(mp.cosh, {INF: INF, -INF: INF}, odd=False),
    "log": real(mp.log, {INF: INF, 0.0: -INF}, positive, False),
    "log2": real(lambda x: mp.log(x) / mp.log(2), {INF: INF, 0.0: -INF}, positive, False),
    "log10": real(mp.log10, {INF: INF, 0.0: -INF}, positive, False),
    "log1p": real(mp.log1p, {INF: INF, -1.0: -INF}, lambda x: x > -1),
    "asinh": real(mp.asinh, {INF: INF, -INF: -INF}),
    "acosh": real(mp.acosh, {INF: INF, 1.0: 0.0}, lambda x: x >= 1, False),
    "atanh": real(mp.atanh, {1.0: INF, -1.0: -INF}, lambda x: abs(x) < 1),
    "cbrt": real(lambda x: mp.sign(x) * mp.cbrt(abs(x)), {INF: INF, -INF: -INF}),
    "rsqrt": real(lambda x: 1 / mp.sqrt(x), {INF: 0.0}, positive, False),
    "sin": real(mp.sin, WAVE),
    "cos": real(mp.cos, WAVE, odd=False),
    "tan": real(mp.tan, WAVE),
    "asin": real(mp.asin, domain=inside),
    "acos": real(mp.acos, {1.0: 0.0}, inside, False),
    "atan": real(mp.atan, {INF: mp.pi / 2, -INF: -mp.pi / 2}),
    "erf": real(mp.erf, {INF: 1.0, -INF: -1.0}),
    "erfc": real(_erfc, {INF: 0.0, -INF: 2.0}, odd=False),
    "normal_cdf": real(lambda x: _erfc(-x / mp.sqrt(2)) / 2, {INF: 1.0, -INF: 0.0}, odd=False),
    "silu": real(lambda x: x * _logistic(x), {INF: INF, -INF: NAN}),
    "mish": real(lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), {INF: INF, -INF: NAN}),
    "normal_gelu": real(lambda x: x * _erfc(-x / mp.sqrt(2)) / 2, {INF: INF, -INF: NAN}),
    "tanh_gelu": real(lambda x: x * _tanh_cdf(x), {INF: INF, -INF: NAN}),
    "tanh_cdf": real(_tanh_cdf, {INF: 1.0, -INF: 0.0}, odd=False),
    "erf_inv": real(mp.erfinv, {1.0: INF, -1.0: -INF}, inside),
}


def worst_ulp(actual, expected, inputs, dtype):
    """The largest error in units of the last place; special values and signs must be equal."""
    info = np.finfo(dtype)
    worst = 0.0
    for k, (g, e) in enumerate(zip(actual, expected)):
        where = f"at {[a[k] for a in inputs]}: got {g!r}, expected {float(e)!r}"
        if isinstance(e, float) or not mp.isfinite(e):
            e = float(e)
            same = g == e and np.signbit(g) == np.signbit(e)
            assert same or (np.isnan(g) and np.isnan(e)), where
            continue
        size = abs(e)
        with mp.workprec(100):
            top = mpf(float(info.max)) * (1 + mpf(2) ** -(info.nmant + 2))
        if size >= top:
            assert np.isinf(g), where
            continue
        assert np.isfinite(g), where
        exponent = max(int(mp.floor(mp.log(size, 2))) if size else -9999, info.minexp)
        worst = max(worst, float(abs(mpf(float(g)) - e) / mpf(2) ** (exponent - info.nmant)))
    return worst


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCE)
def test_within_two_ulp(name, dtype):
    x = points(dtype)
    if name == "rsqrt":
        x = x[x != 0]
    actual = mapped(f"{name}(x0)", dtype, x)
    assert worst_ulp(actual, [REFERENCE[name](float(v)) for v in x], (x,), dtype) <= 2.0


def _pow(x, y):
    if x == 1 or y == 0:
        return 1.0
    if x != x or y != y:
        return NAN
    if x == 0 or math.isinf(x) or math.isinf(y):
        with np.errstate(all="ignore"):
            # as C; NumPy takes a square root for 1/2, which differs at -0 and -inf
            return 0.0 if (x, y) == (0, 0.5) else INF if (x, y) == (-INF, 0.5) else _c_pow(x, y)
    if x < 0 and y != math.floor(y):
        return NAN
    sign = -1 if x < 0 and y % 2 == 1 else 1
    logarithm = mp.log(abs(mpf(x))) * mpf(y)
    if abs(logarithm) > 800:
        return sign * (INF if logarithm > 0 else 0.0)
    with mp.workprec(300):
        return sign * mp.exp(mp.log(abs(mpf(x))) * mpf(y))


def _c_pow(x, y):
    return float(np.power(np.float64(x), np.float64(y)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_within_one_ulp_and_as_c_at_special_points(dtype):
    rng = np.random.default_rng(3)
    special = np.array(
        [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, INF, -INF, NAN, 1e30, -1e30], dtype
    )
    grid = [a.ravel() for a in np.meshgrid(special, special)]
    base = np.concatenate([points(dtype), np.abs(rng.standard_normal(1000)).astype(dtype), grid[0]])
    spread = rng.standard_normal(1000) * rng.choice([1, 10, 100], 1000)
    power = np.concatenate([rng.permutation(points(dtype)), spread.astype(dtype), grid[1]])
    actual = mapped("pow(x0, x1)", dtype, base, power)
    expected = [_pow(float(a), float(b)) for a, b in zip(base, power)]
    assert worst_ulp(actual, expected, (base, power), dtype) <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_of_a_difference_within_two_ulp(dtype):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-90, 30, 400), [-INF, -INF, 0.0, -1e30, 3.0]]).astype(dtype)
    top = np.concatenate([x[:400] + rng.uniform(0, 80, 400), [1.0, 1e30, 1e30, -1e30, 3.0]])
    top = np.maximum(x, top.astype(dtype))
    actual = mapped("exp_difference(x0, x1)", dtype, x, top)
    expected = [mp.exp(mpf(float(a)) - mpf(float(b))) for a, b in zip(x, top)]
    assert worst_ulp(actual, expected, (x, top), dtype) <= 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums(name, dtype):
    """Beside zeros of the result the error of float32 is that of doubles, and that of float64
    a fraction of a last place of the operands."""
    rng = np.random.default_rng(6)
    base = mp.e if name == "logaddexp" else mpf(2)
    zeros = -rng.uniform(1, 20, 200)
    near = np.log(1 - np.exp(zeros)) if name == "logaddexp" else np.log2(1 - np.exp2(zeros))
    special = np.array([0, -0.0, 1, INF, -INF, NAN, np.finfo(dtype).max, -np.finfo(dtype).max])
    grid = [a.ravel() for a in np.meshgrid(special, special)]
    low = -100.0 if dtype == np.float32 else -700.0
    x = np.concatenate([near, rng.uniform(low, 0, 200), np.zeros(200), grid[0]]).astype(dtype)
    y = np.concatenate([zeros, rng.uniform(low, 0, 200), rng.uniform(low, 0, 200), grid[1]])
    y = y.astype(dtype)
    actual = mapped(f"{name}(x0, x1)", dtype, x, y)

    def exact(a, b):
        top, low = max(a, b), min(a, b)
        with mp.workprec(120):
            return top + mp.log1p(base ** (mpf(low) - mpf(top))) / mp.log(base)

    with np.errstate(all="ignore"):
        usual = getattr(np, name)(x.astype(np.float64), y)
    finite = np.isfinite(x) & np.isfinite(y)
    expected = [
        exact(float(a), float(b)) if known else float(u)
        for a, b, u, known in zip(x, y, usual, finite)
    ]
    assert worst_ulp(actual[200:], expected[200:], (x[200:], y[200:]), dtype) <= 2.0
    error = [abs(mpf(float(g)) - e) for g, e in zip(actual[:200], expected)]
    assert max(error) < (2.0**-45 if dtype == np.float32 else 2.0**-54)


def _atan2(y, x):
    special = x != x or y != y or 0 in (x, y) or INF in (abs(x), abs(y))
    if special:
        r = math.atan2(y, x)
        return r if r != r or r == 0 else mpf(round(r / (math.pi / 4))) * mp.pi / 4
    with mp.workprec(2600):
        return +mp.atan2(mpf(y), mpf(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atan2_within_two_ulp(dtype):
    least = np.finfo(dtype).smallest_subnormal
    special = np.array([0, -0.0, 1, -1, INF, -INF, NAN, 1e38, 1e-38, least, 5 * least], dtype)
    grid = [a.ravel() for a in np.meshgrid(special, special)]
    y = np.concatenate([points(dtype, 200), grid[0]])
    x = np.concatenate([np.random.default_rng(1).permutation(points(dtype, 200)), grid[1]])
    actual = mapped("atan2(x0, x1)", dtype, y, x)
    expected = [_atan2(float(a), float(b)) for a, b in zip(y, x)]
    assert worst_ulp(actual, expected, (y, x), dtype) <= 2.0


def test_every_float32_binade_of_sin_with_huge_arguments():
    x = np.ldexp(np.float32(1.7320508), np.arange(-140, 128)).astype(np.float32)
    expected = [REFERENCE["sin"](float(v)) for v in x]
    assert worst_ulp(mapped("sin(x0)", np.float32, x), expected, (x,), np.float32) <= 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometric_functions_near_zeros_and_poles(name, dtype):
    """Where the reduced argument is small, all of its pieces count."""
    most = 16 if dtype == np.float32 else 40
    turns = np.round(2.0 ** np.random.default_rng(11).uniform(0, most, 600))
    x = np.array([float(mp.pi / 2 * mpf(float(k))) for k in turns]).astype(dtype)
    if dtype == np.float32:
        x = np.concatenate([x, np.array([-60265.17, 25735.927], dtype)])
    expected = [REFERENCE[name](float(v)) for v in x]
    assert worst_ulp(mapped(f"{name}(x0)", dtype, x), expected, (x,), dtype) <= 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "f"), [("lgamma", mp.loggamma), ("digamma", mp.digamma)])
def test_gamma_functions_have_small_relative_or_absolute_error(name, f, dtype):
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [rng.uniform(0.01, 40, 300), rng.uniform(-10, 0, 100), 10 ** rng.uniform(1, 30, 50)]
    )
    x = x.astype(dtype)
    actual = mapped(f"{name}(x0)", dtype, x)
    for g, v in zip(actual, x):
        e = float(mp.re(f(mpf(float(v)))))
        near_pole = abs(v - round(float(v))) if v < 0 else 1
        scale = max(1.0, abs(e)) / min(1.0, near_pole)
        assert abs(g - e) <= 16 * np.finfo(dtype).eps * scale, (v, g, e)
    poles = mapped(f"{name}(x0)", dtype, np.array([-1, -2, NAN], dtype))
    assert np.isinf(poles[0]) if name == "lgamma" else np.isnan(poles[0])
    assert np.isnan(poles[2])


COMPLEX = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atanh",
           "log1p",
           "expm1", "asin", "acos", "atan", "acosh"]  # fmt: skip


@pytest.mark.parametrize(("dtype", "bound"), [(np.complex64, 3e-7), (np.complex128, 4e-15)])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_close_to_mpmath(name, dtype, bound):
    rng = np.random.default_rng(2)
    z = (rng.standard_normal(200) * 2 + 2j * rng.standard_normal(200)).astype(dtype)
    f = {"log1p": lambda v: mp.log(1 + v), "expm1": lambda v: mp.exp(v) - 1}.get(name) or getattr(
        mp, name
    )
    actual = mapped(f"{name}(x0)", dtype, z)
    for g, v in zip(actual, z):
        e = complex(f(mp.mpc(complex(v))))
        assert abs(complex(g) - e) <= bound * abs(e), (v, g, e)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_pow_and_abs(dtype):
    z = np.array([1 + 2j, -3 + 0.5j, 0, 2, -1j], dtype)
    w = np.array([2, 0.5j, 2, 1 + 1j, 3], dtype)
    tolerance = 1e-6 if dtype == np.complex64 else 1e-14
    np.testing.assert_allclose(
        mapped("pow(x0, x1)", dtype, z, w), z**w, rtol=tolerance, atol=tolerance
    )
    real_type = np.float32 if dtype == np.complex64 else np.float64
    np.testing.assert_allclose(mapped("abs(x0)", real_type, z), np.abs(z), rtol=tolerance)
