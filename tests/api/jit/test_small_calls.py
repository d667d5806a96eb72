"""Functions whose small eager calls run as compiled programs: results match those of recorded
operations bitwise.
"""

import jax
import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp.api.jit.jit import JitFunction
from accnp.api.jit.small_calls import compiled_if_small

M = np.array([[0.5, 2.0, -1.0], [0.25, -3.0, 0.0], [1.0, 1.5, 8.0]], np.float32)
V = np.linspace(-2, 2, 7, dtype=np.float32)
CALLS = {
    "expm": lambda m: m.scipy.linalg.expm(M),
    "expm of a stack": lambda m: m.scipy.linalg.expm(np.stack([M, M.T * 20])),
    "expm of integers": lambda m: m.scipy.linalg.expm(np.eye(2, dtype=np.int32)),
    "expm of triangles": lambda m: m.scipy.linalg.expm(np.triu(M), upper_triangular=True),
    "polar": lambda m: m.scipy.linalg.polar(M),
    "polar by svd": lambda m: m.scipy.linalg.polar(M[:2], "left", method="svd"),
    "polyval": lambda m: m.numpy.polyval(V, M),
    "polyval of a number": lambda m: m.numpy.polyval(V, 2.0),
    "polyval of integers": lambda m: m.numpy.polyval(np.arange(3), 2),
    "polyval in a loop": lambda m: m.numpy.polyval(V, V, unroll=2),
    "cross": lambda m: m.numpy.cross(M, M[0]),
    "det": lambda m: m.numpy.linalg.det(M),
    "det of a stack": lambda m: m.numpy.linalg.det(np.stack([M[:2, :2]] * 3)),
    "large det": lambda m: m.numpy.linalg.det(np.eye(5, dtype=np.float32) + V[:5]),
    "unwrap": lambda m: m.numpy.unwrap(V * 4, axis=0),
    "unwrap of integers": lambda m: m.numpy.unwrap(np.array([0, 3, 6, 1]), period=8),
    "unwrap with a jump": lambda m: m.numpy.unwrap(M * 5, 4, 0, 5.0),
    "cov": lambda m: m.numpy.cov(M),
    "cov of columns": lambda m: m.numpy.cov(M, rowvar=False, ddof=0),
    "gradient": lambda m: m.numpy.gradient(V),
    "gradient over two axes": lambda m: m.numpy.gradient(M, 0.5, np.array([0.0, 1.0, 3.0], "f")),
    "gradient over one axis": lambda m: m.numpy.gradient(M, axis=-1),
    "map_coordinates": lambda m: m.scipy.ndimage.map_coordinates(M, [V, V + 1], 1, "nearest"),
    "map_coordinates of a stack": lambda m: m.scipy.ndimage.map_coordinates(
        M, np.stack([V, V + 1]), 0, cval=2.5
    ),
    "polyfit": lambda m: m.numpy.polyfit(V, V * V + 1, 2),
    "weighted polyfit": lambda m: m.numpy.polyfit(V, V * V, 1, full=True, w=V + 3),
    "lstsq": lambda m: m.numpy.linalg.lstsq(M[:, :2], M[:, 2]),
    "percentile": lambda m: m.numpy.percentile(V, 30),
    "percentiles": lambda m: m.numpy.percentile(M, V[3:] * 20 + 50, axis=0),
    "nanquantile": lambda m: m.numpy.nanquantile(V, 0.3, method="nearest"),
    "median": lambda m: m.numpy.median(M, axis=(0, 1), keepdims=True),
    "nanmedian": lambda m: m.numpy.nanmedian(np.array([np.nan, 1, 5], "f")),
    "matrix_rank": lambda m: m.numpy.linalg.matrix_rank(M),
    "cond": lambda m: m.numpy.linalg.cond(M, np.inf),
    "norm": lambda m: m.numpy.linalg.norm(M, 1, axis=0),
    "interp": lambda m: m.numpy.interp(V, V, V * V, left="extrapolate"),
    "interp of a number": lambda m: m.numpy.interp(0.5, V, V * V, period=3.0),
    "corrcoef": lambda m: m.numpy.corrcoef(M),
    "corrcoef of two": lambda m: m.numpy.corrcoef(V, V * V),
    "frexp": lambda m: m.numpy.frexp(V),
    "floor_divide": lambda m: m.numpy.floor_divide(V, 0.3),
    "quotient of integers": lambda m: m.numpy.floor_divide(np.arange(-3, 3), 2),
    "operators": lambda m: divmod(m.numpy.asarray(V), M[0, 1] * 0.75),
    "reflected operator": lambda m: 7 // m.numpy.asarray(V + 5),
    "sinc": lambda m: m.numpy.sinc(V),
    "hypot of a number": lambda m: m.numpy.hypot(V, 2.0),
    "logaddexp": lambda m: m.numpy.logaddexp(V, M[0, 0]),
    "sph_harm_y": lambda m: m.scipy.special.sph_harm_y(
        np.array([1, 2]), np.array([0, -1]), V[4:6], V[:2]
    ),
    "truncnorm": lambda m: m.scipy.stats.truncnorm.logcdf(V, -1.0, 0.5),
    "betabinom": lambda m: m.scipy.stats.betabinom.pmf(np.arange(4), 9, 0.5, 1.5),
    "funm": lambda m: m.scipy.linalg.funm(M, m.numpy.sin),
    "sqrtm": lambda m: m.scipy.linalg.sqrtm(M @ M.T),
    "block_diag": lambda m: m.scipy.linalg.block_diag(M, 1.5, V),
    "packbits": lambda m: m.numpy.packbits(np.array([1, 0, 1]), bitorder="little"),
    "unpackbits": lambda m: m.numpy.unpackbits(np.arange(3, dtype=np.uint8), count=19),
    "rankdata": lambda m: m.scipy.stats.rankdata(V),
    "mode": lambda m: m.scipy.stats.mode(np.array([3, 1, 3, 2])),
    "poly": lambda m: m.numpy.poly(V[:3]),
    "logspace": lambda m: m.numpy.logspace(0, 2, 5),
    "geomspace": lambda m: m.numpy.geomspace(1, 100, 5),
    "trapezoid": lambda m: m.numpy.trapezoid(M, dx=0.5, axis=0),
    "diff": lambda m: m.numpy.diff(M, 2, append=0.0),
    "nanstd": lambda m: m.numpy.nanstd(M, axis=0, ddof=1),
    "var": lambda m: m.numpy.var(M, ddof=1),
    "isclose": lambda m: m.numpy.isclose(V, 0.666, 0.01),
    "nan_to_num": lambda m: m.numpy.nan_to_num(np.array([np.nan, np.inf], "f"), posinf=3),
    "digitize": lambda m: m.numpy.digitize(V, V[:3], right=True),
    "softplus": lambda m: m.nn.softplus(V),
    "elu": lambda m: m.nn.elu(V, 0.5),
    "standardize": lambda m: m.nn.standardize(M, axis=0),
    "log_softmax": lambda m: m.nn.log_softmax(M),
    "eigh": lambda m: m.numpy.linalg.eigh(M + M.T).eigenvalues,
    "qr": lambda m: m.numpy.linalg.qr(M, "r"),
    "svdvals": lambda m: m.numpy.linalg.svdvals(M),
    "schur": lambda m: m.scipy.linalg.schur(M + M.T),
    "hessenberg": lambda m: m.scipy.linalg.hessenberg(M),
    "expm_frechet": lambda m: m.scipy.linalg.expm_frechet(M, M.T),
    "average": lambda m: m.numpy.average(M, 0, M * M + 1, returned=True),
    "slogdet": lambda m: m.numpy.linalg.slogdet(M),
    "cov of two": lambda m: m.numpy.cov(V, V * V, bias=True),
    "linspace": lambda m: m.numpy.linspace(0.1, M[0], 6, axis=-1),
    "linspace of numbers": lambda m: m.numpy.linspace(1, 4, 4, retstep=True),
    "linspace of integers": lambda m: m.numpy.linspace(-2.75, 3, 4, dtype="int32"),
    "nanmax": lambda m: m.numpy.nanmax(np.array([[np.nan, 1], [np.nan, np.nan]], "f"), axis=1),
    "nanmin": lambda m: m.numpy.nanmin(V, initial=-3, where=V > 0),
    "nanargmax": lambda m: m.numpy.nanargmax(np.array([np.nan, 1, 5], "f")),
    "nansum": lambda m: m.numpy.nansum(M, axis=0, dtype="float16"),
    "nanprod of integers": lambda m: m.numpy.nanprod(np.arange(1, 5)),
    "nancumsum": lambda m: m.numpy.nancumsum(np.array([np.nan, 1, 5], "f")),
    "copysign": lambda m: m.numpy.copysign(V, -1.0),
    "fmin": lambda m: m.numpy.fmin(V, np.array([np.nan], "f")),
    "trunc": lambda m: m.numpy.trunc(V),
    "signbit": lambda m: m.numpy.signbit(V),
    "clip": lambda m: m.numpy.clip(V, -1, 0.5),
    "clip from below": lambda m: m.numpy.clip(np.arange(5), min=2),
    "convolve": lambda m: m.numpy.convolve(V, V[:3], "same"),
    "correlate": lambda m: m.numpy.correlate(V, V[:3] + 1j),
    "fftn": lambda m: m.numpy.fft.fftn(M),
    "irfft2": lambda m: m.numpy.fft.irfft2(M + 1j, (3, 3)),
    "rfftn": lambda m: m.numpy.fft.rfftn(M, axes=(0,)),
    "fftshift": lambda m: m.numpy.fft.fftshift(M, 1),
    "ifftshift": lambda m: m.numpy.fft.ifftshift(V),
    "triu": lambda m: m.numpy.triu(M, 1),
    "tril of a stack": lambda m: m.numpy.tril(np.stack([M, M]), k=-1),
    "diag": lambda m: m.numpy.diag(V[:3], 1),
    "diag of a matrix": lambda m: m.numpy.diag(M),
    "outer": lambda m: m.numpy.outer(V, np.arange(3)),
    "trace": lambda m: m.numpy.trace(M, 1),
    "take": lambda m: m.numpy.take(M, np.array([0, -1, 5]), 1),
    "clipped take": lambda m: m.numpy.take(V, np.array([0, -1, 9]), mode="clip"),
    "take_along_axis": lambda m: m.numpy.take_along_axis(M, np.array([[0, 2], [1, 9], [-1, 0]]), 1),
    "matrix_norm": lambda m: m.numpy.linalg.matrix_norm(M, ord="nuc"),
    "resize": lambda m: m.numpy.resize(V, (2, 5)),
    "unstack": lambda m: m.numpy.unstack(M, axis=1),
    "append": lambda m: m.numpy.append(V, 3),
    "argsort": lambda m: m.numpy.argsort(V * V, descending=True),
    "isin": lambda m: m.numpy.isin(np.arange(5), np.array([1, 3]), invert=True),
    "rot90": lambda m: m.numpy.rot90(M, 3),
    "count_nonzero": lambda m: m.numpy.count_nonzero(M > 0, axis=0),
    "inv": lambda m: m.numpy.linalg.inv(M),
    "scipy inv": lambda m: m.scipy.linalg.inv(M),
    "scipy eigh": lambda m: m.scipy.linalg.eigh(M + M.T, eigvals_only=True),
    "scipy svd": lambda m: m.scipy.linalg.svd(M[:2], full_matrices=False)[1],
    "scipy qr": lambda m: m.scipy.linalg.qr(M, mode="r"),
    "eigh_tridiagonal": lambda m: m.scipy.linalg.eigh_tridiagonal(V, V[1:], eigvals_only=True),
    "hadamard": lambda m: m.scipy.linalg.hadamard(4, "float32"),
    "dft": lambda m: m.scipy.linalg.dft(3, "sqrtn"),
    "helmert": lambda m: m.scipy.linalg.helmert(4, full=True),
    "hilbert": lambda m: m.scipy.linalg.hilbert(3),
    "leaky_relu": lambda m: m.nn.leaky_relu(V, 0.25),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_and_types(name):
    leaves = accnp.tree.leaves
    first, again = leaves(CALLS[name](accnp)), leaves(CALLS[name](accnp))
    with accnp.disable_jit():
        recorded = leaves(CALLS[name](accnp))
    for a, b, c, d in zip(first, again, recorded, leaves(CALLS[name](jax)), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes() == np.asarray(c).tobytes()
        assert (a.dtype, a.shape, a.weak_type) == (d.dtype, d.shape, d.weak_type)
        np.testing.assert_allclose(a, d, rtol=3e-4, atol=1e-5)


def test_large_numbers_bypass_the_cached_program():
    assert jnp.polyval(V[:2], 2**40).item() == pytest.approx(np.polyval(V[:2], 2.0**40), rel=1e-5)


def test_errors_name_the_function():
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"^linalg\.polar: matrices are needed; got shape \(7,\)"
        ):
            accnp.scipy.linalg.polar(V)
        with pytest.raises(TypeError, match=r"^linalg\.expm: dtype float16 is not supported"):
            accnp.scipy.linalg.expm(M.astype(np.float16))
        with pytest.raises(IndexError, match=r"^jnp\.polyval: coefficients must have an axis"):
            jnp.polyval(2.0, V)


def test_derivatives():
    def f(x):
        return jnp.polyval(x, 2.0) + accnp.scipy.linalg.expm(M * x[0]).sum()

    np.testing.assert_allclose(accnp.grad(f)(V), jax.grad(
        lambda x: jax.numpy.polyval(x, 2.0) + jax.scipy.linalg.expm(M * x[0]).sum()
    )(V), rtol=1e-3)  # fmt: skip


KEY = accnp.random.key(7)
SAMPLERS = {
    "gamma": lambda r, k: r.gamma(k, V + 3),
    "gamma of a number": lambda r, k: r.gamma(k, 2.0, (5,)),
    "loggamma": lambda r, k: r.loggamma(k, V + 3),
    "beta": lambda r, k: r.beta(k, V + 3, 2.0),
    "dirichlet": lambda r, k: r.dirichlet(k, V + 3, shape=(2,)),
    "chisquare": lambda r, k: r.chisquare(k, V + 3),
    "t": lambda r, k: r.t(k, 4.0, (3,)),
    "f": lambda r, k: r.f(k, V + 3, 2.5),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 3.0, (5,)),
    "ball": lambda r, k: r.ball(k, 3, 1.5, (4,)),
    "wald": lambda r, k: r.wald(k, V + 3),
    "poisson": lambda r, k: r.poisson(k, V + 3),
    "poisson of large means": lambda r, k: r.poisson(k, 40, (9,)),
    "binomial": lambda r, k: r.binomial(k, 10, V / 9 + 0.5),
    "multinomial": lambda r, k: r.multinomial(k, 10.0, np.full(4, 0.25, np.float32)),
    "uniform": lambda r, k: r.uniform(k, (5,), minval=-1, maxval=V[:5] + 3),
    "uniform from 0 to 1": lambda r, k: r.uniform(k, (5,)),
    "normal": lambda r, k: r.normal(k, (2, 3)),
    "complex normal": lambda r, k: r.normal(k, (3,), np.complex64),
    "randint": lambda r, k: r.randint(k, (6,), 0, 100),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (6,)),
    "permutation": lambda r, k: r.permutation(k, V),
    "permutation of a range": lambda r, k: r.permutation(k, 6),
    "choice": lambda r, k: r.choice(k, 9, (4,), replace=False),
    "weighted choice": lambda r, k: r.choice(k, V, (4,), p=np.full(7, 1 / 7, np.float32)),
    "multivariate_normal": lambda r, k: r.multivariate_normal(k, V[:2], np.eye(2, dtype="f")),
    "orthogonal": lambda r, k: r.orthogonal(k, 3),
    "truncated_normal": lambda r, k: r.truncated_normal(k, -1, 2.5, (5,)),
    "weibull_min": lambda r, k: r.weibull_min(k, 1.5, V + 3, (7,)),
    "triangular": lambda r, k: r.triangular(k, 0.0, 0.5, 1.0, (5,)),
    "lognormal": lambda r, k: r.lognormal(k, 0.5, (5,)),
    "categorical": lambda r, k: r.categorical(k, M),
    "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, 0.0, 1.0, (5,)),
    "gumbel": lambda r, k: r.gumbel(k, (5,)),
    "geometric": lambda r, k: r.geometric(k, 0.4, (5,)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_bits_of_samples(name):
    draw, key = SAMPLERS[name], KEY
    samples = draw(accnp.random, key)
    with accnp.disable_jit():
        recorded = draw(accnp.random, key)
    raw = draw(accnp.random, accnp.random.key_data(key))
    for x in (recorded, raw):
        assert np.asarray(samples).tobytes() == np.asarray(x).tobytes()
        assert (samples.dtype, samples.shape, samples.weak_type) == (x.dtype, x.shape, x.weak_type)


def test_known_samplers_neither_trace_nor_record(monkeypatch):
    traces = []
    for name in ("gamma", "beta", "poisson", "normal", "choice", "ball"):
        SAMPLERS[name](accnp.random, KEY)
        with monkeypatch.context() as m:
            m.setattr(JitFunction, "_trace", lambda *args: traces.append(args))
            assert SAMPLERS[name](accnp.random, accnp.random.key(1))._node.op.name == "const"
    assert not traces


def test_large_samples_are_recorded():
    assert accnp.random.normal(KEY, (300, 300))._node.op.name != "const"
    assert accnp.random.normal(KEY, (300,))._node.op.name == "const"


def test_raw_keys_are_refused_in_each_call():
    raw = accnp.random.key_data(KEY)
    accnp.random.gamma(raw, 2.0)
    with accnp.legacy_prng_key("error"):
        for _ in range(2):
            with pytest.raises(ValueError, match="Legacy uint32 key array"):
                accnp.random.gamma(raw, 2.0)
    with accnp.legacy_prng_key("warn"):
        for _ in range(2):
            with pytest.warns(UserWarning, match="Legacy uint32 key array"):
                accnp.random.gamma(raw, 2.0)


def test_calls_that_do_not_fit_the_signature_have_the_errors_of_the_function():
    for _ in range(2):
        with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'a'"):
            accnp.random.gamma(KEY)
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'b'"):
            accnp.random.gamma(KEY, b=2.0)
        with pytest.raises(TypeError, match=r"multiple values for argument 'a'"):
            accnp.random.gamma(KEY, 2.0, a=2.0)


@compiled_if_small("x")
def count_up_to(x):
    """A function that needs the concrete value of its operand."""
    return [jnp.arange(int(x)), jnp.ones(3)[x > 1]]


def test_functions_that_need_a_value_are_called_without_a_program():
    for _ in range(2):
        steps, rest = count_up_to(jnp.int32(4))
        assert steps.tolist() == [0, 1, 2, 3]
        assert rest.shape == (1, 3)
        assert count_up_to(0)[1].shape == (0, 3)
    with pytest.raises(accnp.errors.ConcretizationTypeError) as caught:
        accnp.jit(count_up_to)(4)
    assert "compiled/small_calls" not in str(caught.value)


def test_errors_of_values_have_no_trace_of_a_program():
    @compiled_if_small("x")
    def refuses(x):
        if x > 0:
            raise ValueError("refuses: x must not be positive; got 2; pass 0")
        return x

    with pytest.raises(ValueError, match="must not be positive") as caught:
        refuses(jnp.float32(2))
    assert caught.value.__context__ is None
    assert refuses(jnp.float32(-1)).item() == -1


def test_constants_are_not_shared():
    """Deleting or donating a result does not affect the results of other calls."""
    first, second = (accnp.scipy.linalg.hilbert(3) for _ in range(2))
    first.delete()
    accnp.jit(lambda x: x + 1, donate_argnums=0)(second)
    assert accnp.scipy.linalg.hilbert(3)[0].tolist() == pytest.approx([1, 1 / 2, 1 / 3])


def test_positional_only_parameters_refuse_keywords():
    for _ in range(2):
        with pytest.raises(TypeError, match="positional-only"):
            accnp.numpy.linalg.matrix_norm(x=M)
