"""Distributions and statistics compared with SciPy in float64."""

import inspect
import math

import jax
import numpy as np
import pytest
import scipy.stats

import accnp
import accnp.numpy as jnp
from accnp.scipy import stats

LINE = np.array([-3.0, -1.0, -0.3, 0.0, 0.2, 0.7, 1.0, 2.5, 8.0])
UNIT = np.array([1e-6, 0.1, 0.4, 0.5, 0.9])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 7.0])
# name: points, shape parameters, keywords.
PLACED = {"loc": 0.5, "scale": 1.7}
CASES = {
    "beta": (LINE, (1.5, 2.5), PLACED),
    "cauchy": (LINE, (), PLACED),
    "chi2": (LINE, (3.0,), PLACED),
    "expon": (LINE, (), PLACED),
    "gamma": (LINE, (2.3,), PLACED),
    "gennorm": (LINE, (1.4,), {}),
    "gumbel_l": (LINE, (), PLACED),
    "gumbel_r": (LINE, (), PLACED),
    "laplace": (LINE, (), PLACED),
    "logistic": (LINE, (), PLACED),
    "norm": (LINE, (), PLACED),
    "pareto": (LINE, (1.8,), PLACED),
    "t": (LINE, (4.0,), PLACED),
    "truncnorm": (LINE, (-0.7, 1.1), PLACED),
    "uniform": (LINE, (), PLACED),
    "vonmises": (LINE, (1.2,), {}),
    "wrapcauchy": (LINE, (0.4,), {}),
    "bernoulli": (COUNTS, (0.3,), {}),
    "betabinom": (COUNTS, (5.0, 1.5, 2.0), {"loc": 1.0}),
    "binom": (COUNTS, (5.0, 0.3), {"loc": 1.0}),
    "geom": (COUNTS, (0.3,), {"loc": 1.0}),
    "nbinom": (COUNTS, (2.0, 0.3), {"loc": 1.0}),
    "poisson": (COUNTS, (2.2,), {}),
}
METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
INVERSE = ("ppf", "isf")


# Shape parameters that are none, each in its turn.
NONE = {
    **dict.fromkeys(["beta", "gamma", "chi2", "pareto", "gennorm"], (0.0, -1.0)),
    "vonmises": (-1.0,),
    "betabinom": (-1.0,), "binom": (-1.0,), "geom": (-0.5, 1.5), "bernoulli": (-0.5, 1.5),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*NONE, "expon", "gumbel_l", "gumbel_r", "truncnorm"}))
def test_invalid_parameters_give_nan(name):
    """The result is nan on every side of the support, also for infinity divided by infinity."""
    points, shapes, keywords = CASES[name]
    points = np.array([-np.inf, *points, np.inf])
    rows = [[*shapes[:i], v, *shapes[i + 1 :], 1.0] for i in range(len(shapes))
            for v in NONE.get(name, ())]  # fmt: skip
    if "scale" in keywords:
        rows += [[*shapes, scale] for scale in (-1.0, 0.0, np.inf)]
    *columns, scales = np.array(rows).T[..., None]
    more = {"scale": scales} if "scale" in keywords else {}
    none = np.isfinite(scales) | np.isinf(points)
    for method in METHODS:
        if method not in INVERSE and (f := getattr(getattr(stats, name), method, None)):
            assert np.isnan(np.asarray(f(points, *columns, **more))[none]).all(), method


def test_numbers_that_are_not_whole_have_no_probability():
    probabilities = stats.betabinom.pmf(jnp.array([0.25, 1.0, 1.5]), 2, 2.0, 2.0)
    expected = scipy.stats.betabinom.pmf([0.25, 1.0, 1.5], 2, 2.0, 2.0)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
    ends = [f(jnp.inf, jnp.inf) for f in (stats.gamma.cdf, stats.gamma.sf, stats.chi2.cdf)]
    assert [float(x) for x in ends] == [1, 0, 1]


def test_derivatives_at_the_ends_of_truncated_numbers():
    """They are 0, as in JAX; they were nan because of the logarithm of 0."""
    t = stats.truncnorm
    for f, end in ((t.cdf, 0.5), (t.logcdf, 0.5), (t.sf, -1.0), (t.logsf, -1.0)):
        assert accnp.grad(f, (0, 1, 2))(end, -1.0, 0.5) == (0, 0, 0)


def test_extreme_distribution_parameters():
    """Differences of large logarithms, and the derivative at a kink of a scaled function."""
    df = np.array([11.0, 23.9, 24.1, 300.0, 4e9])
    actual = stats.t.logpdf(jnp.float32(1.3), df.astype("f4"))
    np.testing.assert_allclose(actual, scipy.stats.t.logpdf(1.3, df), rtol=3e-6)
    derivative = accnp.grad(stats.vonmises.pdf, 1)(1.0, 0.0)
    assert float(derivative) == pytest.approx(math.cos(1) / 2 / math.pi, rel=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("inverse", [False, True])
def test_against_scipy(name, inverse):
    """All functions of a distribution as one program: values, derivatives without nan,
    and types."""
    points, shapes, keywords = CASES[name]
    points = UNIT if inverse else points
    known = getattr(stats, name)
    methods = [m for m in METHODS if hasattr(known, m) and (m in INVERSE) == inverse]
    if not methods:
        return

    def keys(method):
        return {} if name == "bernoulli" and method in ("cdf", "ppf") else keywords

    def every(x, *shapes):
        return [getattr(known, m)(x, *shapes, **keys(m)) for m in methods]

    with accnp.enable_x64(True):
        actual = accnp.jit(every)(points, *shapes)
        for method, mine in zip(methods, actual, strict=True):
            theirs = getattr(getattr(scipy.stats, name), method)
            with np.errstate(all="ignore"):
                expected = theirs(points, *shapes, **keys(method))
            np.testing.assert_allclose(
                np.asarray(mine), expected, rtol=2e-10, atol=1e-14, err_msg=method
            )
        alone = getattr(known, methods[0])(points, *shapes, **keys(methods[0]))
        np.testing.assert_array_equal(np.asarray(alone), np.asarray(actual[0]))
        derivatives = accnp.jvp(lambda x: every(x, *shapes), (points,), (np.ones_like(points),))[1]
        for method, derivative in zip(methods, derivatives, strict=True):
            assert not np.isnan(np.asarray(derivative)).any(), method
    single = every(np.float32(0.3), *[np.float32(s) for s in shapes])
    assert {v.dtype for v in single} == {np.dtype(np.float32)}


def test_far_tails():
    with accnp.enable_x64(True):
        for z in (-40.0, -12.0, 9.0):
            assert float(stats.norm.logcdf(z)) == pytest.approx(
                scipy.stats.norm.logcdf(z), rel=1e-12
            )
        for a, b, x in ((8.0, 9.0, 8.5), (-9.0, -8.0, -8.2), (-1.0, 30.0, 5.0)):
            for method in ("logpdf", "logcdf", "logsf"):
                expected = getattr(scipy.stats.truncnorm, method)(x, a, b)
                actual = getattr(stats.truncnorm, method)(x, a, b)
                assert float(actual) == pytest.approx(expected, rel=1e-9)


# Beyond the support, and where a logarithm comes from the smaller one of two probabilities; the
# value is SciPy's, but for those of the Gumbel distributions: log(exp(-exp(y))), by hand.
AWKWARD = [
    ("expon.ppf", (-0.1,), None), ("expon.ppf", (1.1,), None), ("pareto.ppf", (-0.1, 2.0), None),
    ("pareto.ppf", (1.1, 2.0), None), ("gamma.logsf", (1e-20, 2.0), None),
    ("gamma.logcdf", (60.0, 2.0), None), ("chi2.logsf", (1e-9, 3.0), None),
    ("beta.logsf", (1e-20, 2.0, 3.0), None), ("beta.logcdf", (1 - 1e-8, 2.0, 3.0), None),
    ("truncnorm.logcdf", (39.0, 38.0, 40.0), None), ("truncnorm.logcdf", (38.01, 38.0, 40.0), None),
    ("truncnorm.logsf", (-39.0, -40.0, -38.0), None), ("gumbel_r.logsf", (-3.0,), None),
    ("cauchy.logpdf", (1e200,), None), ("cauchy.logpdf", (-1e9,), None),
    ("gumbel_r.logsf", (1000.0,), -1000.0), ("gumbel_l.logcdf", (-1000.0,), -1000.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "value"), AWKWARD)
def test_awkward_points(name, args, value):
    distribution, _, method = name.partition(".")
    f = getattr(getattr(stats, distribution), method)
    expected = (
        getattr(getattr(scipy.stats, distribution), method)(*args) if value is None else value
    )
    with accnp.enable_x64(True):
        actual, derivative = accnp.value_and_grad(f)(*args)
    # SciPy's own logarithms of some -700 are off by one unit.
    np.testing.assert_allclose(float(actual), expected, rtol=2e-13)
    assert not np.isnan(float(derivative))


def test_vectors():
    with accnp.enable_x64(True):
        rng = np.random.default_rng(0)
        x, mean = rng.normal(size=(5, 3)), rng.normal(size=3)
        root = rng.normal(size=(3, 3))
        spread = root @ root.T + np.eye(3)
        expected = scipy.stats.multivariate_normal.logpdf(x, mean, spread)
        np.testing.assert_allclose(
            np.asarray(stats.multivariate_normal.logpdf(x, mean, spread)), expected, rtol=1e-11
        )
        np.testing.assert_allclose(
            np.asarray(stats.multivariate_normal.pdf(x, mean, 2.0)),
            scipy.stats.multivariate_normal.pdf(x, mean, 2.0 * np.eye(3)),
            rtol=1e-11,
        )
        assert float(stats.multivariate_normal.logpdf(1.0, 0.0, 2.0)) == pytest.approx(
            scipy.stats.multivariate_normal.logpdf(1.0, 0.0, 2.0)
        )
        many = np.stack([spread, 2 * spread])
        both = np.asarray(stats.multivariate_normal.logpdf(x[:, None], mean, many))
        assert both.shape == (5, 2)
        np.testing.assert_allclose(both[:, 0], expected, rtol=1e-11)
        p, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0])
        assert float(stats.dirichlet.logpdf(p, alpha)) == pytest.approx(
            scipy.stats.dirichlet.logpdf(p, alpha)
        )
        assert float(stats.dirichlet.pdf(p[:2], alpha)) == pytest.approx(
            scipy.stats.dirichlet.pdf(p, alpha)
        )
        assert float(stats.dirichlet.logpdf(np.array([0.5, 0.6, 0.2]), alpha)) == -math.inf
        counts = np.array([1, 2, 3])
        assert float(stats.multinomial.logpmf(counts, 6, p)) == pytest.approx(
            scipy.stats.multinomial.logpmf(counts, 6, p)
        )
        assert float(stats.multinomial.pmf(counts, 5, p)) == 0
        mu = np.array([0.0, 0.4, 10.0, 80.0, 1000.0])
        np.testing.assert_allclose(
            np.asarray(stats.poisson.entropy(mu)), scipy.stats.poisson.entropy(mu), rtol=1e-7
        )


def test_samples():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, (6, 7)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(stats.sem(x)), scipy.stats.sem(x), rtol=1e-5)
    holes = np.where(x == 3, np.nan, x)
    np.testing.assert_allclose(
        np.asarray(stats.sem(holes, nan_policy="omit")),
        scipy.stats.sem(holes, nan_policy="omit"),
        rtol=1e-5,
    )
    for axis in (0, 1, None):
        for keep in (False, True):
            mine = stats.mode(x, axis=axis, keepdims=keep)
            expected = scipy.stats.mode(x, axis=axis, keepdims=keep)
            np.testing.assert_array_equal(np.asarray(mine.mode), expected.mode)
            np.testing.assert_array_equal(np.asarray(mine.count), expected.count)
        for method in ("average", "min", "max", "dense", "ordinal"):
            np.testing.assert_array_equal(
                np.asarray(stats.rankdata(x, method, axis=axis)),
                scipy.stats.rankdata(x, method, axis=axis),
            )
    assert np.isnan(np.asarray(stats.rankdata(np.array([1.0, np.nan, 2.0])))).all()
    jitted = accnp.jit(lambda v: stats.mode(v, axis=1).mode)(x)
    np.testing.assert_array_equal(np.asarray(jitted), scipy.stats.mode(x, axis=1).mode)


@pytest.mark.parametrize("method", [None, "silverman", 0.4])
@pytest.mark.parametrize("shape", [(30,), (2, 30)])
def test_gaussian_kde(method, shape):
    rng = np.random.default_rng(2)
    data, weights = rng.normal(size=shape), rng.uniform(0.1, 1, 30)
    points = rng.normal(size=(*shape[:-1], 5))
    with accnp.enable_x64(True):
        for w in (None, weights):
            mine = stats.gaussian_kde(data, method, w)
            expected = scipy.stats.gaussian_kde(data, method, w)
            np.testing.assert_allclose(np.asarray(mine(points)), expected(points), rtol=1e-9)
            np.testing.assert_allclose(
                np.asarray(mine.logpdf(points)), expected.logpdf(points), rtol=1e-9
            )
            if len(shape) == 1:
                assert float(mine.integrate_box_1d(-1, 0.5)) == pytest.approx(
                    expected.integrate_box_1d(-1, 0.5)
                )


def test_names_and_refusals():
    import accnp.scipy.stats.norm as norm

    assert norm is stats.norm
    assert str(norm.logpdf.__signature__) == "(x, loc=0, scale=1)"
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.pdf(1.0)
    with pytest.raises(ValueError, match="'median'"):
        stats.rankdata(jnp.ones(3), "median")
    with pytest.raises(NotImplementedError, match="omit"):
        stats.mode(jnp.ones(3), nan_policy="omit")


@pytest.mark.parametrize(
    ("call", "x", "shapes"),
    [
        (stats.gamma.cdf, -1.0, (0.5,)), (stats.gamma.sf, -1.0, (2.0,)),
        (stats.chi2.cdf, -0.5, (0.8,)), (stats.chi2.sf, -0.5, (0.8,)),
        (stats.beta.cdf, -1.0, (0.5, 2.0)), (stats.beta.sf, -1.0, (2.0, 0.5)),
        (stats.beta.cdf, 2.0, (2.0, 0.5)), (stats.beta.sf, 2.0, (0.5, 2.0)),
    ],
)  # fmt: skip
def test_no_derivative_beyond_the_support(call, x, shapes):
    gradients = accnp.grad(lambda x, s: call(x, *shapes, 0.0, s), (0, 1))(x, 1.5)
    assert [float(s) for s in gradients] == [0.0, 0.0]
    # Parameters that are none stay unknown there.
    assert np.isnan(float(call(x, *(-s for s in shapes))))


def test_derivatives_at_zero_are_those_of_the_density():
    assert float(accnp.grad(stats.laplace.cdf)(0.0)) == 0.5
    assert float(accnp.grad(stats.expon.sf)(0.0)) == -1.0
    assert float(accnp.grad(stats.expon.logsf)(0.0)) == -1.0


def test_the_exponential_distribution_far_out():
    """Logarithms stay accurate near 1 and beyond."""
    x = np.float32([1e-4, 0.9, 1.1, 20, 60])
    actual = np.asarray(stats.expon.logcdf(x))
    np.testing.assert_allclose(actual, scipy.stats.expon.logcdf(x.astype("f8")), rtol=1e-6)


def test_quantiles_outside_the_unit_interval_are_nan():
    for f in (stats.cauchy.ppf, stats.cauchy.isf):
        assert np.isnan(np.asarray(f(jnp.array([-0.5, 1.5, 3.0])))).all()


def test_conditions_for_weak_results():
    import jax
    import jax.scipy.stats

    bools, ints = np.ones(2, bool), np.ones(2, np.int32)
    for args in (
        (True, 0.5, 0.5), (True, True, True), (0.5, True, True), (np.bool_(True), 2, 2),
        (np.int32(1), 0.5, 2), (bools, 0.5, 0.5), (ints, 0.5, 2), (np.float32(0.5), 2, 2),
    ):  # fmt: skip
        for name, count in (("beta", 3), ("gamma", 2), ("cauchy", 1), ("bernoulli", 2)):
            mine = getattr(stats, name).cdf(*args[:count])
            expected = getattr(jax.scipy.stats, name).cdf(*args[:count])
            assert (mine.dtype, mine.weak_type) == (expected.dtype, expected.weak_type), (
                name,
                args,
            )


@pytest.mark.parametrize("shape", [(30,), (2, 30)])
def test_gaussian_kde_integrals_samples_and_tree(shape):
    import jax
    import jax.scipy.stats

    rng = np.random.default_rng(3)
    data, others = rng.normal(size=shape), rng.normal(size=(*shape[:-1], 12)) + 0.5
    weights = rng.uniform(0.1, 1, 30)
    d = 1 if len(shape) == 1 else 2
    mean, spread = np.full(d, 0.3), np.eye(d) * 0.7 + 0.1
    with accnp.enable_x64():
        mine, second = stats.gaussian_kde(data, None, weights), stats.gaussian_kde(others)
        expected, theirs = (
            scipy.stats.gaussian_kde(data, None, weights), scipy.stats.gaussian_kde(others),
        )  # fmt: skip
        integral = mine.integrate_gaussian(mean, spread)
        assert float(integral) == pytest.approx(
            expected.integrate_gaussian(mean, spread), rel=1e-12
        )
        assert float(mine.integrate_kde(second)) == pytest.approx(
            expected.integrate_kde(theirs), rel=1e-12
        )
        # An estimate is a tree of arrays: jit takes it and gives it back.
        points = others[..., :5]
        outputs = accnp.jit(lambda kde, x: (kde, kde.pdf(x)))(mine, points)
        np.testing.assert_allclose(np.asarray(outputs[1]), expected(points), rtol=1e-12)
        assert (outputs[0].d, outputs[0].n) == (d, 30)
        with pytest.raises(ValueError, match="integrate_gaussian: mean and cov have shapes"):
            mine.integrate_gaussian(np.ones(3), np.eye(3))
        with pytest.raises(ValueError, match="integrate_kde: the points have"):
            mine.integrate_kde(stats.gaussian_kde(np.ones((3, 1)) + np.arange(4.0)))
    narrow = data.astype(np.float32)
    for size in ((), (7,)):
        drawn = stats.gaussian_kde(narrow).resample(accnp.random.key(5), size)
        same = jax.scipy.stats.gaussian_kde(narrow).resample(jax.random.key(5), size)
        assert drawn.shape == same.shape == (d, *size)
        np.testing.assert_allclose(np.asarray(drawn), same, rtol=1e-5, atol=1e-6)


def test_ranks_of_empty_arrays():
    assert stats.rankdata(np.zeros(0)).shape == (0,)
    assert stats.rankdata(np.zeros((0, 3)), axis=0).shape == (0, 3)


def test_far_tails_of_cauchy_and_gennorm():
    q = np.array([0.0, 1e-300, 1e-12, 0.1, 0.25, 0.75, 1 - 1e-12, 1.0])
    z = np.array([-40.0, -8.5, -1e-8, 0.0, 0.3, 9.0])
    with accnp.enable_x64(True):
        actual = [stats.cauchy.ppf(q), stats.cauchy.isf(q), stats.gennorm.cdf(z, 1.5)]
        derivative = accnp.vmap(accnp.grad(lambda v: stats.gennorm.cdf(v, 1.5)))(jnp.asarray(z))
        steep = accnp.vmap(accnp.grad(stats.cauchy.ppf))(jnp.asarray(q))
    assert not np.isnan(steep).any()
    np.testing.assert_allclose(actual[0], scipy.stats.cauchy.ppf(q), rtol=1e-12)
    np.testing.assert_allclose(actual[1], scipy.stats.cauchy.isf(q), rtol=1e-12)
    np.testing.assert_allclose(actual[2], scipy.stats.gennorm.cdf(z, 1.5), rtol=1e-10)
    np.testing.assert_allclose(derivative, scipy.stats.gennorm.pdf(z, 1.5), rtol=1e-8)


def test_an_entropy_has_the_shape_of_all_parameters():
    loc = jnp.zeros((1, 4))
    entropy = stats.poisson.entropy(jnp.array([[1.0], [3.0]]), loc)
    assert entropy.shape == (2, 4)
    expected = np.broadcast_to(scipy.stats.poisson.entropy([[1.0], [3.0]]), (2, 4))
    np.testing.assert_allclose(np.asarray(entropy), expected, rtol=1e-5)
    assert stats.poisson.entropy(3.0, loc).shape == (1, 4)


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 3.0, 1.0]])
def test_dirichlet_on_the_faces_of_the_simplex(alpha: list[float]) -> None:
    alphas = np.array(alpha, np.float32)
    for x in ([0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]):
        point = np.array(x, np.float32)
        expected = scipy.stats.dirichlet.logpdf(np.array(x), alpha)
        for f in (
            accnp.scipy.stats.dirichlet.logpdf,
            accnp.jit(accnp.scipy.stats.dirichlet.logpdf),
        ):
            np.testing.assert_allclose(f(point, alphas), expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(f(point[:-1], alphas), expected, rtol=1e-5, atol=1e-6)
    assert (
        accnp.scipy.stats.dirichlet.logpdf(np.array([-0.1, 1.1, 0.0], np.float32), alphas)
        == -np.inf
    )


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_quantiles_of_bernoulli_at_the_ends(p):
    q = np.float32([-0.1, 0, 1e-9, 0.69, 0.71, 1, 1.1, np.nan])
    expected = scipy.stats.bernoulli.ppf(q.astype(float), p)
    np.testing.assert_array_equal(stats.bernoulli.ppf(q, p), expected)
    np.testing.assert_array_equal(accnp.jit(stats.bernoulli.ppf)(q, p), expected)


@pytest.mark.parametrize(
    ("x", "alpha"), [([np.nan, 0.5], [1, 1]), ([0.5, 0.5], [0, 1]), ([0.5, 0.5], [-1, 1])]
)
def test_dirichlet_of_nan(x, alpha):
    x, alpha = np.float32(x), np.float32(alpha)
    assert np.isnan(stats.dirichlet.logpdf(x, alpha))
    assert np.isnan(stats.dirichlet.pdf(x, alpha))


def test_multinomial_of_a_negative_number_of_trials():
    assert np.isnan(stats.multinomial.pmf(np.array([1, 2]), -3, np.float32([0.5, 0.5])))


# One function for each rule of which arguments' axes make the result strong.
WEAK = [
    "bernoulli.ppf", "beta.logpdf", "betabinom.logpmf", "cauchy.pdf", "chi2.cdf", "chi2.logpdf",
    "expon.logpdf", "gamma.logcdf", "gamma.sf", "geom.pmf", "logistic.cdf", "logistic.logpdf",
    "multivariate_normal.logpdf", "nbinom.pmf", "norm.logcdf", "pareto.logpdf", "poisson.cdf",
    "poisson.pmf", "t.pdf",
]  # fmt: skip


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_results(name):
    """Python numbers (w), with weak (W) and strong (i: promoted as weak) arrays that have axes."""
    module, function = name.split(".")
    parameters = inspect.signature(getattr(getattr(jax.scipy.stats, module), function)).parameters
    n = sum(p != "allow_singular" for p in parameters)
    kinds = ["w" * i + k + "w" * (n - i - 1) for i in range(n) for k in "Wi"]

    def weak(m, kinds):
        arrays = {
            "W": m.ShapeDtypeStruct((2,), np.float32, weak_type=True),
            "i": m.ShapeDtypeStruct((2,), np.int32),
        }

        def f(*operands):
            it = iter(operands)
            args = [0.5 if k == "w" else next(it) for k in kinds]
            return getattr(getattr(m.scipy.stats, module), function)(*args)

        try:
            return m.eval_shape(f, *[arrays[k] for k in kinds if k != "w"]).weak_type
        except ValueError:  # a covariance with one axis
            return None

    assert {k: weak(accnp, k) for k in kinds} == {k: weak(jax, k) for k in kinds}


def test_integers_of_any_size():
    """Integers are converted to the floating-point dtype of the result, as in JAX."""
    for x in (5, np.uint32(5), np.array([5], np.uint32), np.array([5], np.int8), 2.0):
        for loc in (4294967295, -(2**40), 10**15):

            def logpdf(m, x=x, loc=loc):
                y = m.scipy.stats.cauchy.logpdf(x, loc)
                return y.dtype, y.weak_type, np.asarray(y)

            (*types, actual), (*expected, value) = logpdf(accnp), logpdf(jax)
            assert types == expected
            np.testing.assert_allclose(actual, value, rtol=1e-6)


def test_multinomial_refuses_floats_as_jax():
    p = np.array([0.5, 0.5], np.float32)
    for m in (accnp, jax):
        with pytest.raises(ValueError, match="x and n must be of integer type"):
            m.scipy.stats.multinomial.pmf(np.array([1.0, 1.0], np.float32), 2, p)


UNCHECKED = {"norm": "pdf logpdf cdf ppf", "t": "pdf", "cauchy": "cdf", "laplace": "cdf"}
UNCHECKED |= {"logistic": "cdf sf", "expon": "pdf cdf", "gamma": "pdf", "poisson": "pmf"}


@pytest.mark.parametrize("name", UNCHECKED)
def test_docstrings_say_what_a_negative_scale_gives(name):
    """The documented result is nan, as in SciPy, or the number that JAX returns."""
    for key in UNCHECKED[name].split():
        f, theirs = getattr(getattr(stats, name), key), getattr(jax.scipy.stats, name)
        shapes = {"t": [2.0], "gamma": [2.0]}.get(name, [])
        arguments = [-1.0] if name == "poisson" else [*shapes, 0.0, -1.0]
        actual = float(f(0.25, *arguments))
        if "Invalid parameters give nan." in f.__doc__:
            assert math.isnan(actual)
        else:
            expected = float(getattr(theirs, key)(0.25, *arguments))
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
