"""Special functions compared with SciPy in float32 and float64, and their derivatives with finite
differences.
"""

import mpmath
import numpy as np
import pytest
import scipy.special
from mpmath import mp

import accnp
import accnp.numpy as jnp
from accnp.scipy import special
from benchmarks.accuracy_special import hurwitz

REAL = np.concatenate([np.linspace(-6.3, 6.1, 25), [-30.0, 30.0, 0.0, 1.0]])
POSITIVE = np.concatenate([np.geomspace(1e-3, 80, 25), [1.0, 2.0]])
UNIT = np.concatenate([np.linspace(0.001, 0.999, 21), [1e-9, 0.5]])
ORDERS = np.arange(1, 5.0)


def grid(*axes):
    return [g.ravel() for g in np.meshgrid(*axes, indexing="ij")]


few = POSITIVE[::4]
CASES = {
    "betainc": grid(few, few, UNIT[::4]),
    "betaln": grid(few, few),
    "beta": grid(few, few),
    "boxcox": grid(few, np.array([-1.5, 0.0, 0.5, 2.0])),
    "boxcox1p": grid(few, np.array([-1.5, 0.0, 0.5, 2.0])),
    "comb": grid(np.arange(7.0), np.arange(5.0)),
    "dawsn": [REAL],
    "digamma": [np.concatenate([POSITIVE, [-0.5, -3.3]])],
    "entr": [np.concatenate([POSITIVE, [0.0, -1.0]])],
    "erf": [REAL],
    "erfc": [REAL],
    "erfcx": [REAL[REAL > -5]],
    "erfinv": [np.concatenate([UNIT, -UNIT])],
    "exp1": [POSITIVE],
    "expi": [POSITIVE],
    "expit": [REAL],
    "expn": grid(np.arange(4.0), few),
    "factorial": [np.arange(-1, 12.0)],
    "gamma": [np.concatenate([POSITIVE[POSITIVE < 30], [-0.5, -1.5]])],
    "gammainc": grid(POSITIVE[::2], POSITIVE[::2]),
    "gammaincc": grid(POSITIVE[::2], POSITIVE[::2]),
    "gammaln": [POSITIVE],
    "gammasgn": [np.array([-3.5, -2.5, -0.5, 0.0, 0.5, 4.0])],
    "hyp1f1": grid(ORDERS, ORDERS + 0.5, np.linspace(-5, 5, 7)),
    "hyp2f1": grid(ORDERS[:2], ORDERS[:2], ORDERS + 0.5, np.linspace(-0.9, 0.9, 5)),
    "i0": [REAL],
    "i0e": [REAL],
    "i1": [REAL],
    "i1e": [REAL],
    "kl_div": grid(np.array([0.0, 0.3, 1.0, 2.0, -1.0]), np.array([0.0, 0.3, 1.0, 2.0, -1.0])),
    "log_ndtr": [REAL],
    "logit": [UNIT],
    "ndtr": [REAL],
    "ndtri": [UNIT],
    "owens_t": grid(REAL[::3], REAL[::3]),
    "poch": grid(few, few[few < 10]),
    "polygamma": grid(np.arange(3.0), few),
    "rel_entr": grid(np.array([0.0, 0.3, 1.0, 2.0, -1.0]), np.array([0.0, 0.3, 1.0, 2.0, -1.0])),
    "spence": [POSITIVE],
    "xlog1py": grid(np.array([0.0, 1.0, 2.0]), few),
    "xlogy": grid(np.array([0.0, 1.0, 2.0]), few),
    "zeta": grid(ORDERS + 0.5, few),
}
SINGLE = {"digamma": 1e-5}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(name, dtype):
    with accnp.enable_x64(dtype == np.float64):
        xs = [x.astype(dtype) for x in CASES[name]]
        if name == "polygamma":
            xs[0] = xs[0].astype(int)
        function = getattr(special, name)
        actual = np.asarray(function(*xs))
        assert actual.dtype == dtype
        expected = np.asarray(getattr(scipy.special, name)(*[np.float64(x) for x in xs]))
        with np.errstate(over="ignore"):
            expected = expected.astype(dtype)
        rtol = 1e-11 if dtype == np.float64 else SINGLE.get(name, 5e-6)
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)
        np.testing.assert_array_equal(np.asarray(accnp.jit(function)(*xs)), actual)


FLAT = {"gammasgn", "factorial", "comb", "entr", "kl_div", "rel_entr"}  # or not smooth at the cases
ORDER = {"expn": 1, "polygamma": 1, "betainc": 2}


@pytest.mark.parametrize("name", [n for n in CASES if n not in FLAT])
def test_derivatives(name):
    with accnp.enable_x64(True):
        function = getattr(special, name)
        first = ORDER.get(name, 0)
        xs = [x[1::5] for x in CASES[name]]
        if name == "polygamma":
            xs[0] = xs[0].astype(int)
        for k in range(first, len(xs)):

            def alone(v, k=k):
                return function(*[v if i == k else x for i, x in enumerate(xs)])

            step = 1e-5 * np.maximum(np.abs(xs[k]), 0.1)
            expected = (np.asarray(alone(xs[k] + step)) - np.asarray(alone(xs[k] - step))) / (
                2 * step
            )
            actual = np.asarray(accnp.jvp(alone, (xs[k],), (np.ones_like(xs[k]),))[1])
            keep = np.isfinite(expected)
            scale = np.maximum(np.abs(expected[keep]), 1e-3)
            np.testing.assert_array_less(np.abs(actual[keep] - expected[keep]) / scale, 2e-4)
            back = accnp.grad(lambda v, f=alone: f(v).sum())(jnp.asarray(xs[k]))
            np.testing.assert_allclose(np.asarray(back), actual, rtol=1e-10)


def test_two_results():
    x = np.linspace(0.1, 5, 9)
    with accnp.enable_x64(True):
        for name in ("sici", "fresnel"):
            mine, expected = getattr(special, name)(x), getattr(scipy.special, name)(x)
            for a, b in zip(mine, expected, strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-13)
            derivative = accnp.jvp(lambda v, n=name: getattr(special, n)(v)[0], (x,), (x * 0 + 1,))[
                1
            ]
            step = 1e-6
            near = getattr(scipy.special, name)
            np.testing.assert_allclose(
                np.asarray(derivative),
                (near(x + step)[0] - near(x - step)[0]) / (2 * step),
                rtol=1e-5,
            )
            rows = accnp.vmap(getattr(special, name))(x[None])[1]
            np.testing.assert_array_equal(np.asarray(rows)[0], np.asarray(mine[1]))


def test_fresnel_integrals_of_large_numbers():
    """Compared with mpmath; SciPy's errors are hundreds of ulp there."""
    x = np.concatenate([np.linspace(4.5, 6, 40), np.geomspace(6, 1e17, 80)]).reshape(12, 10)
    x[::2] *= -1
    with accnp.enable_x64(True):
        integrals = [np.asarray(part) for part in special.fresnel(x)]
        at_inf, _ = special.fresnel(np.array([-np.inf, np.nan]))[0]
        at_nan = special.fresnel(np.nan)
    assert at_inf == -0.5
    assert np.isnan(at_nan[0])
    assert np.isnan(at_nan[1])
    with mp.workprec(400):
        for part, exact in zip(integrals, (mp.fresnels, mp.fresnelc), strict=True):
            expected = [exact(mp.mpf(v)) for v in x.ravel().tolist()]
            error = [abs(mp.mpf(g) - w) / 2**-54 for g, w in zip(part.ravel().tolist(), expected)]
            assert max(error) < 6


def test_wofz_and_bessel_functions():
    z = np.array([1 + 1j, -2.0 + 0.5j, 0j])
    np.testing.assert_allclose(np.asarray(special.wofz(z)), scipy.special.wofz(z), rtol=1e-5)
    x = np.linspace(0.0, 9, 7)
    expected = np.stack([scipy.special.jv(k, x) for k in range(4)])
    np.testing.assert_allclose(
        np.asarray(special.bessel_jn(x, v=3)), expected, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        np.asarray(special.bernoulli(6)), scipy.special.bernoulli(6), rtol=1e-6
    )
    np.testing.assert_allclose(
        float(special.multigammaln(5.0, 2)), scipy.special.multigammaln(5.0, 2), rtol=1e-6
    )


def test_incomplete_gamma_by_its_first_operand():
    """Compared with mpmath on both sides of the limit of the series."""
    import mpmath

    points = [(0.5, 0.3), (3.0, 10.0), (30.0, 20.0), (100.0, 150.0), (0.02, 3.0), (5.0, 5.0)]
    with accnp.enable_x64(True), mp.workdps(30):
        for a, x in points:
            derivative = mpmath.diff(lambda q, x=x: mpmath.gammainc(q, 0, x, regularized=True), a)
            actual = accnp.grad(special.gammainc)(a, x)
            assert float(actual) == pytest.approx(float(derivative), rel=1e-11)
            assert float(accnp.grad(special.gammaincc)(a, x)) == pytest.approx(
                -float(derivative), rel=1e-11
            )
            density = mpmath.mpf(x) ** (mpmath.mpf(a) - 1) * mp.exp(-x) / mpmath.gamma(a)
            sample = accnp.lax.random_gamma_grad(a, x)
            assert float(sample) == pytest.approx(float(-derivative / density), rel=1e-10)


@pytest.mark.parametrize(
    ("a", "places"), [(1.9e4, 1), (2.1e4, -3), (1e6, -0.5), (1e6, 4), (1e12, -2)]
)
def test_derivatives_of_large_gamma_samples(a, places):
    """Compared with an integral in high precision; the series was cut off too early (5 % error)."""
    import mpmath

    x, at = a + places * a**0.5, mpmath.mpf(a)
    with accnp.enable_x64(True), mp.workdps(25):
        order, whole, root = mp.digamma(at), mp.loggamma(at), mp.sqrt(at)

        def density(t):
            return mp.exp((at - 1) * mp.log(t) - t - whole)

        def turned(u):
            t = at + u * root
            return density(t) * (mp.log(t) - order) * root

        u = (mpmath.mpf(x) - at) / root
        tail = (
            [u, u + 1, u + 2, u + 4, u + 8, u + 14] if u > 0 else [u - 14, u - 8, u - 4, u - 1, u]
        )
        of_cdf = mp.quad(turned, tail) * (1 if u > 0 else -1)
        of_sample = of_cdf / density(mpmath.mpf(x))
        derivatives = accnp.lax.random_gamma_grad(a, x), accnp.grad(special.gammainc)(a, x)
        assert float(derivatives[0]) == pytest.approx(float(of_sample), rel=1e-12)
        assert float(derivatives[1]) == pytest.approx(-float(of_cdf), rel=3e-11)


def test_special_functions_are_part_of_fused_kernels():
    program = accnp.inspect(lambda x: special.gammainc(2.0, x) * 2 + special.i0e(x))
    assert len(program(jnp.ones(5)).kernels) == 1


def test_invalid_arguments_raise():
    with pytest.raises(TypeError, match="floating"):
        special.ndtr(1)
    with pytest.raises(NotImplementedError, match="exact"):
        special.factorial(5, exact=True)
    with pytest.raises(TypeError, match="2"):
        special.dawsn(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="order"):
        accnp.grad(special.expn)(1.0, 2.0)
    with pytest.raises(AttributeError, match="did you mean 'dawsn'"):
        _ = special.dawson


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_box_cox_at_zero_to_the_zero(dtype):
    x = jnp.asarray([0, 1, 2, -1], dtype)
    actual = np.asarray(special.boxcox(x, jnp.asarray(0, dtype)), "float32")
    np.testing.assert_allclose(actual, [-np.inf, 0, np.log(2), np.nan], rtol=1e-2)
    assert special.boxcox1p(jnp.asarray(-1, dtype), jnp.asarray(0, dtype)) == -np.inf


@pytest.mark.parametrize("name", ["i1", "i1e", "dawsn", "erf", "erfinv"])
def test_odd_functions_keep_the_sign_of_zero(name):
    zeros = np.asarray(getattr(special, name)(jnp.array([0.0, -0.0])))
    np.testing.assert_array_equal(np.signbit(zeros), [False, True])


def test_box_cox_where_one_and_x_round_to_one():
    """Rounding 1 + x loses all of x, which the power makes significant."""
    x, by = np.array([1e-20, 1e-10, 1e-10, -1e-9]), np.array([1e21, 5e10, -5e10, 3e10])
    with accnp.enable_x64():
        actual = np.asarray(special.boxcox1p(jnp.asarray(x), jnp.asarray(by)))
        gradient = accnp.grad(lambda v: special.boxcox1p(v, by).sum())(jnp.asarray(x))
    np.testing.assert_allclose(actual, scipy.special.boxcox1p(x, by), rtol=1e-13)
    np.testing.assert_allclose(gradient, np.exp((by - 1) * np.log1p(x)), rtol=1e-13)


def test_digamma_where_positive_and_negative_terms_would_cancel():
    x = np.linspace(1, 3, 41)
    with accnp.enable_x64(True):
        actual = np.asarray(special.digamma(jnp.array(x)))
    np.testing.assert_allclose(actual, [float(mp.digamma(v)) for v in x.tolist()], rtol=8e-16)


def test_gammaln_below_zero():
    """The absolute error is a fraction of 2^-52 where the value is small; otherwise the relative
    error is."""
    x = np.concatenate([-np.linspace(2.003, 12.003, 101), [-1e-300, -1e-320, -0.3, -45.03, 3e200]])
    with accnp.enable_x64(True):
        actual = np.asarray(special.gammaln(jnp.array(x)))
        edges = special.gammaln(jnp.array([0.0, -0.0, -3.0, np.inf, -np.inf, 1.7e308, -1e17]))
    expected = [float(mp.re(mp.loggamma(v))) for v in x.tolist()]
    np.testing.assert_allclose(actual, expected, rtol=3e-16, atol=2e-16)
    assert np.isposinf(np.asarray(edges)).all()


def _complex_points():
    rng = np.random.default_rng(1)
    near = rng.normal(size=(2, 200)) * 5
    far = rng.normal(size=(2, 60)) * np.array([[3], [40]])
    x, y = np.concatenate([near, far], axis=1)
    cut = np.concatenate([np.linspace(-8.9, 9, 40), [1.0, 2.0]]) + 0j
    poles = 1e-9j + 1e-8 - np.arange(1, 12)
    return np.concatenate([x + 1j * y, cut, poles])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["gamma", "loggamma", "erfcx"])
def test_complex_numbers(name, dtype):
    with accnp.enable_x64(dtype == "complex128"):
        z = _complex_points().astype(dtype)
        actual = getattr(special, name)(jnp.asarray(z))
        assert (actual.dtype, actual.weak_type) == (dtype, False)
        expected = getattr(scipy.special, name)(z.astype(complex))
        limits = np.finfo(dtype)
        fits = (abs(expected) < limits.max / 4) & (abs(expected) > limits.tiny * 4)
        assert fits.mean() > 0.8
        tolerance = 1e-12 if dtype == "complex128" else 3e-7
        error = abs(np.asarray(actual)[fits] - expected[fits])
        assert (error <= tolerance * np.maximum(abs(expected[fits]), 1e-2)).all()


INF = float("inf")
ENDS = [0.0, -0.0, INF, -INF, np.nan, 1e300, -1e300, 713.0, -713.0, 8.0, -26.6, -30.0]


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e", "dawsn", "erfcx", "log_ndtr", "ndtri"])
def test_vectorized_functions_at_the_ends_of_their_domains(name):
    x = np.array([0.0, -0.0, 1.0, 5e-324, 1 - 2**-53, -1.0, 2.0] if name == "ndtri" else ENDS)
    exact = {
        "i0": {713.0: 6.70513e307, -713.0: 6.70513e307},
        "i1": {713.0: 6.70042e307, -713.0: -6.70042e307},
    }  # SciPy: inf
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(x)
    expected = np.array(
        [exact.get(name, {}).get(float(v), w) for v, w in zip(x, expected, strict=True)]
    )
    with accnp.enable_x64(True):
        actual = np.asarray(accnp.jit(getattr(special, name))(x))
    np.testing.assert_allclose(actual, expected, rtol=2e-5)
    if name in ("i1", "i1e"):
        assert np.signbit(actual[1])


def test_log_ndtr_far_to_the_left():
    x = np.array([-1e3, -3e4, -1e8, -1e15, -1e16, -1e18], np.float32)
    np.testing.assert_allclose(special.log_ndtr(x), scipy.special.log_ndtr(x), rtol=1e-6)
    with accnp.enable_x64(True):
        x = -(10.0 ** np.arange(3, 150, 7))
        np.testing.assert_allclose(special.log_ndtr(x), scipy.special.log_ndtr(x), rtol=1e-15)


def test_comb_of_zero_items_with_repetition():
    n, k = np.meshgrid([0.0, 1.0, 3.5, 6.0], np.arange(4.0))
    expected = scipy.special.comb(n, k, repetition=True)  # of nothing: 1; it was 0
    np.testing.assert_allclose(special.comb(n, k, repetition=True), expected, rtol=1e-6)


def test_complex_gamma_at_poles_and_its_derivative():
    poles = np.asarray(special.gamma(jnp.asarray([0, -1, -5]) + 0j))
    assert np.isnan(poles.real).all()
    assert np.isnan(np.asarray(special.loggamma(jnp.asarray([0j, -2])))).all()
    z = np.asarray([1.3 + 0.5j, -2.4 - 1j, 3.0 + 30j])
    with accnp.enable_x64():
        derivatives = accnp.vmap(accnp.grad(special.loggamma, holomorphic=True))(jnp.asarray(z))
        np.testing.assert_allclose(np.asarray(derivatives), scipy.special.digamma(z), rtol=1e-11)
        derivatives = accnp.vmap(accnp.grad(special.gamma, holomorphic=True))(jnp.asarray(z))
        expected = scipy.special.digamma(z) * scipy.special.gamma(z)
        np.testing.assert_allclose(np.asarray(derivatives), expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_box_cox_of_complex_numbers(name):
    x = np.asarray([1.5 + 0.5j, -2.0 - 1j, 3.0 + 0j, 0.2 + 40j])
    by = np.asarray([0.3 + 0.2j, 1e-9 + 0j, 2.0, 0.0])[:, None]
    call = getattr(special, name)
    with mp.workdps(40):
        log = [mp.log(mp.mpc(v) + (name == "boxcox1p")) for v in x]
        expected = [[(mp.exp(b * t) - 1) / b if b else t for t in log] for b in by[:, 0]]
        expected = np.asarray(expected).astype(complex)
    with accnp.enable_x64():
        np.testing.assert_allclose(np.asarray(call(jnp.asarray(x), by)), expected, rtol=1e-14)
        # The slopes by x and, at 0 as well, by the power: log(x)**2 / 2 there.
        gradient = accnp.grad(call, (0, 1), holomorphic=True)(jnp.asarray(x[0]), 0j)
        first = np.log(x[0] + (name == "boxcox1p"))
        np.testing.assert_allclose(gradient, [np.exp(-first), first**2 / 2], rtol=1e-13)
    actual = call(jnp.asarray(x.astype("complex64")), by.astype("complex64"))
    assert actual.dtype == "complex64"
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5)


def test_lists_and_weak_types_as_jax():
    for call in (special.ndtr, special.log_ndtr):
        np.testing.assert_array_equal(call([0.5, -1.0]), call(jnp.asarray([0.5, -1.0])))
        with pytest.raises(TypeError, match="floating numbers; got int32"):
            call([1, 2])
    assert special.owens_t(1.0, 2.0).weak_type is False


def test_derivatives_of_kummers_function_by_parameters():
    """Compared with mpmath: both series, poles, values of a that end the series, and large x of
    both signs."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-4, 6, 60), rng.uniform(0.2, 8, 60)
    a[::5], b[::7] = np.round(a[::5]), np.maximum(1, np.round(b[::7]))
    b[::11] *= -0.43
    x = rng.choice([-1, 1], 60) * 10 ** rng.uniform(-2, 2.7, 60)
    x[:4] = -2000, -900, 650, 700
    with accnp.enable_x64(), mpmath.workdps(40):
        gradients = accnp.grad(lambda *p: special.hyp1f1(*p).sum(), (0, 1))(a, b, x)
        step = mpmath.mpf(10) ** -15
        for k, gradient in enumerate(map(np.asarray, gradients)):
            for i, point in enumerate(zip(a, b, x, strict=True)):
                low, high = ([mpmath.mpf(v) for v in point] for _ in range(2))
                low[k], high[k] = low[k] - step, high[k] + step
                expected = (mpmath.hyp1f1(*high) - mpmath.hyp1f1(*low)) / (2 * step)
                np.testing.assert_allclose(
                    gradient[i], float(expected), rtol=1e-11, err_msg=str(point)
                )


def test_derivatives_of_gausss_function_by_parameters():
    """Compared with mpmath: on both sides of 0, near and at 1, far below 0, for polynomials; and
    with respect to x."""
    rng = np.random.default_rng(5)
    a, b, c = rng.uniform(-4, 6, 60), rng.uniform(-4, 6, 60), rng.uniform(0.2, 8, 60)
    a[::5], c[::7] = np.round(a[::5]), np.maximum(1, np.round(c[::7]))
    x = np.where(rng.random(60) < 0.5, rng.uniform(0, 1, 60), -(10 ** rng.uniform(-2, 4, 60)))
    x[::9] = 1 - 10 ** rng.uniform(-12, -1, 7)
    x[:3], c[:3] = 1, 9.5
    with accnp.enable_x64(), mpmath.workdps(60):
        gradients = accnp.grad(lambda *p: special.hyp2f1(*p).sum(), (0, 1, 2))(a, b, c, x)
        step = mpmath.mpf(10) ** -20
        for k, gradient in enumerate(map(np.asarray, gradients)):
            for i, point in enumerate(zip(a, b, c, x, strict=True)):
                low, high = ([mpmath.mpf(v) for v in point] for _ in range(2))
                low[k], high[k] = low[k] - step, high[k] + step
                expected = (mpmath.hyp2f1(*high) - mpmath.hyp2f1(*low)) / (2 * step)
                np.testing.assert_allclose(
                    gradient[i], float(expected), 1e-11, 1e-15, err_msg=str(point)
                )
        for k in range(3):
            first = accnp.grad(special.hyp2f1, k)
            gradient = accnp.grad(first, 3)(1.5, 0.7, 2.3, 0.4)
            ends = [first(1.5, 0.7, 2.3, 0.4 + e) for e in (1e-5, -1e-5)]
            np.testing.assert_allclose(gradient, (ends[0] - ends[1]) / 2e-5, rtol=1e-8)
    assert np.isnan(accnp.grad(special.hyp2f1)(0.5, 1.5, 2.5, 1.5))


def test_negative_orders_are_refused():
    with pytest.raises(ValueError, match=r"bessel_jn: v cannot be negative; got -3"):
        special.bessel_jn(1.0, v=-3)
    with pytest.raises(ValueError, match=r"multigammaln: d cannot be negative; got -2"):
        special.multigammaln(5.0, -2)


def test_zeta_and_polygamma():
    """Compared with mpmath in float32 and float64, for positive operands (including large ones) and
    negative ones."""
    s = np.array([1.01, 1.5, 2, 5, 17.25, 40, 70, 3, 2.5, 1.1, 6])
    q = np.array([0.5, 0.02, 1, 30, 2.5, 0.7, 900, 1e4, 0.3, 7, 12])
    x = np.array([0.1, 1, 2.5, 30, -0.5, -2.25, -9.9, -30.5, -1e-9, -0.999])
    for dtype, rtol, tiny in ((np.float32, 1.2e-7, 1e-40), (np.float64, 1e-15, 0)):
        with accnp.enable_x64(dtype is np.float64), mpmath.workdps(60):
            a, b = s.astype(dtype), q.astype(dtype)
            points = zip(map(mpmath.mpf, a.tolist()), map(mpmath.mpf, b.tolist()), strict=True)
            expected = [float(hurwitz(*point)) for point in points]
            np.testing.assert_allclose(special.zeta(a, b), expected, rtol, tiny)
            z = x.astype(dtype)
            for n in (0, 1, 2, 3, 6, 20):
                expected = np.array([float(mpmath.polygamma(n, float(v))) for v in z])
                actual = special.polygamma(np.full(z.shape, n), z)
                with np.errstate(over="ignore"):
                    expected = expected.astype(dtype)
                np.testing.assert_allclose(actual, expected, max(rtol, 1e-14))
    inf, nan = np.inf, np.nan
    ends = [(1, 2), (0.5, 2), (inf, 1), (inf, 2), (3, inf), (3, 0), (3, -2), (2.5, -0.5), (3, nan)]
    a, b = np.float32(ends).T
    np.testing.assert_array_equal(special.zeta(a, b), [inf, nan, 1, 0, 0, inf, inf, nan, nan])
    np.testing.assert_array_equal(special.polygamma(np.array([1, 2]), np.float32(0)), [inf, -inf])


def test_derivatives_of_zeta_by_the_order():
    """Compared with mpmath for both orders of differentiation: near 1, for large orders, and in
    half precision."""
    s = np.array([1.01, 1.5, 2, 5, 17, 40, 100, 1e4])
    q = np.array([0.5, 0.02, 1, 30, 2.5, 0.7, 1.5, 1])
    for dtype, rtol in ((np.float32, 4e-6), (np.float64, 1e-13)):
        with accnp.enable_x64(dtype is np.float64), mpmath.workdps(60):
            first = accnp.grad(lambda v, w: special.zeta(v, w).sum())
            second = accnp.grad(lambda v, w, f=first: f(v, w).sum())
            for order, f in ((1, first), (2, second)):
                actual = np.asarray(f(s.astype(dtype), q.astype(dtype)))
                points = zip(s.astype(dtype), q.astype(dtype), strict=True)
                expected = [float(mpmath.zeta(float(a), float(b), order)) for a, b in points]
                np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-30)
    derivative = accnp.grad(special.zeta)
    assert np.isnan(derivative(0.5, 1.5))
    assert derivative(np.float16(2), 1.5).dtype == np.float16
    with pytest.raises(ValueError, match="n must be an integer"):
        accnp.grad(special.polygamma)(2.0, 1.5)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize("point", [(0.0, 1.5), (2.0, 0.5), (-1.0, 2.0)])
def test_derivatives_of_a_product_with_a_logarithm(name, point):
    """d2/dxdy of x log(y) is 1/y, also at x = 0, and the same in either order."""
    x, y = point

    def f(v):
        return getattr(special, name)(v[0], v[1])

    inner = y + (name == "xlog1py")
    v = jnp.array(point)
    for hessian in (accnp.hessian(f), accnp.jit(accnp.hessian(f))):
        expected = [[0, 1 / inner], [1 / inner, -x / inner**2]]
        np.testing.assert_allclose(np.asarray(hessian(v)), expected, rtol=1e-6, atol=1e-7)
    third = np.asarray(accnp.jacfwd(accnp.hessian(f))(v))
    np.testing.assert_allclose(third[0, 1, 1], -1 / inner**2, rtol=1e-6)
    np.testing.assert_allclose(third[1, 1, 0], -1 / inner**2, rtol=1e-6)


def test_the_hessian_of_a_poisson_density_at_zero():
    def f(v):
        return accnp.scipy.stats.poisson.logpmf(0, v)

    np.testing.assert_allclose(float(accnp.grad(accnp.grad(f))(1.5)), 0.0)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 4e-6), (np.float64, 1e-14)])
def test_second_derivative_of_log_ndtr(dtype, rtol):
    """It is -h (x + h), where h is the density divided by the distribution function; the sum
    cancels if both are large."""
    points = [5.0, 0.5, -3.0, -5.9, -6.1, -12.0, -100.0, -1e3]
    with mpmath.workdps(60):
        h = [mpmath.npdf(x) / mpmath.ncdf(x) for x in points]
        expected = [float(-y * (mpmath.mpf(x) + y)) for x, y in zip(points, h, strict=True)]
    with accnp.enable_x64(dtype is np.float64):
        curvature = accnp.jit(accnp.vmap(accnp.grad(accnp.grad(accnp.scipy.stats.norm.logcdf))))
        np.testing.assert_allclose(curvature(np.array(points, dtype)), expected, rtol=rtol)
        ends = np.array([-np.inf, -(2.0**63), -1e30, np.inf, np.nan], dtype)
        np.testing.assert_array_equal(curvature(ends), [-1, -1, -1, 0, np.nan])


@pytest.mark.parametrize(("name", "singular"), [("xlogy", 0.0), ("xlog1py", -1.0)])
def test_mixed_derivative_of_xlogy_at_two_singular_points(name: str, singular: float) -> None:
    """It is 1 / y, infinite at y = 0, even at x = 0, where the first derivative in y is 0 / 0."""
    f = getattr(special, name)
    both = lambda v: f(v[0], v[1])  # noqa: E731
    at = jnp.array([0.0, singular])
    assert accnp.grad(both)(at)[1] == 0
    assert jnp.isposinf(accnp.hessian(both)(at)[0, 1])
    assert jnp.isposinf(accnp.jacrev(accnp.jacrev(both))(at)[1, 0])
    near = jnp.array([0.0, singular + 2.0])
    assert accnp.hessian(both)(near).tolist() == [[0.0, 0.5], [0.5, 0.0]]
