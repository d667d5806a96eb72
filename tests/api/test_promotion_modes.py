"""Functions under `numpy_rank_promotion="raise"` and `numpy_dtype_promotion="strict"`.

The modes apply to operands that users pass. Composite functions combine ranks and dtypes
internally, as in JAX, and refuse the operands that JAX refuses.
"""

import jax as oracle
import numpy as np
import pytest
from api import promotion_modes as modes

import accnp as jax
import accnp.numpy as jnp

Q, X = np.ones((2, 8, 4, 3), np.float32), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
KEY, ROW = jax.random.key(0), np.array([True, False, True, True])


def rotations():
    turn = jax.scipy.spatial.transform.Rotation
    return turn.from_rotvec(X.reshape(8, 3) / 9)


BROADCAST = {
    "pinv": lambda: jnp.linalg.pinv(jnp.stack([jnp.eye(2)] * 3)),
    "hermitian pinv": lambda: jnp.linalg.pinv(jnp.stack([jnp.eye(2)] * 3), hermitian=True),
    "gradient of pinv": lambda: jax.grad(lambda x: jnp.linalg.pinv(x).sum())(
        jnp.stack([jnp.eye(2)] * 3)
    ),
    "trapezoid": lambda: jnp.trapezoid(X, jnp.arange(1.0, 3.0) ** 2, axis=0),
    "attention": lambda: jax.nn.dot_product_attention(Q, Q, Q, is_causal=True),
    "window": lambda: jax.nn.dot_product_attention(Q, Q, Q, local_window_size=2),
    "where": lambda: jnp.where(ROW, X, 0.0),
    "sum": lambda: jnp.sum(X[0, 0], where=X > 3),
    "nanmean": lambda: jnp.nanmean(X, 0, where=ROW),
    "nanvar": lambda: jnp.nanvar(X, 0, where=ROW),
    "polyfit": lambda: jnp.polyfit(jnp.arange(6.0), jnp.arange(6.0) ** 2, 2),
    "polyadd": lambda: jnp.polyadd(X[0], X[0, 0]),
    "outer": lambda: jnp.add.outer(jnp.arange(3), jnp.arange(4)),
    "gradient": lambda: jnp.gradient(X, jnp.arange(3.0), axis=1),
    "normals": lambda: jax.random.multivariate_normal(KEY, jnp.zeros(2), jnp.eye(2), (5,)),
    "polar": lambda: jax.scipy.linalg.polar(jnp.eye(3) + X[0, 0, 1], method="svd"),
    "matrix_rank": lambda: jnp.linalg.matrix_rank(X),
    "detrend": lambda: jax.scipy.signal.detrend(X, axis=0),
    "keys": lambda: jax.random.split(KEY, 3) == KEY,
    "inverse": lambda: rotations().inv().as_quat(),
    "mean": lambda: rotations().mean().as_quat(),
    "sparse": lambda: jax.experimental.sparse.BCOO.fromdense(X[0]) @ X[0, 0],
    "grad": lambda: jax.grad(lambda x: jnp.nanmean(x, where=ROW).sum())(X),
    "jit of vmap": lambda: jax.jit(jax.vmap(lambda x: jnp.where(ROW, x, 1.0)))(X),
}
MIXED = {
    "glorot": lambda: jax.nn.initializers.glorot_normal()(KEY, (3, 3), jnp.complex64),
    "tridiagonal": lambda: jax.scipy.linalg.eigh_tridiagonal(
        jnp.ones(3, "complex64"), jnp.full(2, 1j, "complex64"), eigvals_only=True
    ),
    "mgrid": lambda: jnp.mgrid[0:3, 0:2:0.5],
    "linspace": lambda: jnp.linspace(0, 9, 3, dtype="float16"),
    "ends": lambda: jnp.linspace(np.uint16(1), np.float32(3), 3, dtype="float32"),
    "logarithms": lambda: jnp.logspace(np.bool_(True), np.uint16(3), 3, dtype="int32"),
    "progression": lambda: jnp.geomspace(np.uint16(1), np.float32(8), 4, dtype="float32"),
}


def same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True)


@pytest.mark.parametrize("name", BROADCAST)
def test_rank_promotion_inside_functions(name):
    plain = BROADCAST[name]()
    with jax.numpy_rank_promotion("raise"):
        same(BROADCAST[name](), plain)


@pytest.mark.parametrize("name", MIXED)
def test_dtype_promotion_inside_functions(name):
    plain = MIXED[name]()
    with jax.numpy_dtype_promotion("strict"):
        same(MIXED[name](), plain)


def test_linspace_of_a_narrower_dtype():
    with jax.numpy_dtype_promotion("strict"), jax.enable_x64(True):
        assert jnp.linspace(0, 3, 3, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    "x", [np.int32(1), np.int64(3), np.bool_(True), np.arange(3), np.arange(3, dtype=np.uint8)]
)
def test_integers_of_numpy_under_derivatives(x):
    """NumPy integers are not traced, so NumPy's promotion applies to them."""

    def results(m):
        def f(x):
            return m.numpy.sum(2.0 * x + 0.5)

        zero = np.zeros(np.shape(x), m.dtypes.float0)
        value, back = m.vjp(f, x)
        return (
            m.value_and_grad(f, allow_int=True)(x),
            (value, back(np.float32(1))),
            m.jvp(f, (x,), (zero,)),
            m.linearize(f, x)[0],
            m.grad(lambda x, y: m.numpy.sum(x * 2.0) * y, (0, 1), allow_int=True)(x, 1.5),
        )

    for mode in ("strict", "standard"):
        with jax.numpy_dtype_promotion(mode):
            actual = results(jax)
        with oracle.numpy_dtype_promotion(mode):
            expected = results(oracle)
        for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.dtype == jax.dtypes.float0 or np.array_equal(a, b)


def test_integers_of_numpy_have_the_dtype_of_arrays():
    kinds = []
    for m in (jax, oracle):
        m.grad(lambda x: kinds.append(x.dtype) or 1.0, allow_int=True)(np.arange(3))
    assert kinds[0] == kinds[1] == np.int32


REFUSED = {
    "add": lambda: jnp.add(X, X[0]),
    "operator": lambda: jnp.asarray(X) * X[0],
    "vectorize": lambda: jnp.vectorize(jnp.add, signature="(),()->()")(X, X[0]),
    "solve": lambda: jnp.linalg.solve(X[:, :3, :3], X[0, 0, :3]),
    "triangular": lambda: jax.scipy.linalg.solve_triangular(X[0, :3, :3], X[:, :3]),
    "keys": lambda: jax.random.split(KEY, (2, 3)) == jax.random.split(KEY, 3),
    "compose": lambda: rotations() * rotations()[0],
    "apply": lambda: rotations()[0].apply(X.reshape(8, 3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ranks_of_operands(name):
    """Operands that the user passes are still checked."""
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="broadcast"):
        REFUSED[name]()


def test_ranks_of_operands_of_jaxprs():
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="broadcast"):
        jax.make_jaxpr(jnp.add)(X, X[0])


def test_gcd_broadcasts():
    with jax.numpy_rank_promotion("raise"):
        assert jnp.gcd(jnp.arange(6).reshape(2, 3), jnp.arange(3)).shape == (2, 3)
        assert str(jax.make_jaxpr(jnp.gcd)(jnp.arange(6).reshape(2, 3), jnp.arange(3)))


def test_ranks_of_operands_warn():
    f = jnp.vectorize(jnp.add, signature="(),()->()")
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        f(X, X[0])


def test_attention_refuses_dtypes_of_operands():
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="dtype"):
        jax.nn.dot_product_attention(Q, Q.astype("float16"), Q, is_causal=True)


def test_none_at_core_dimensions():
    with pytest.raises(ValueError, match="Cannot pass None at locations"):
        jnp.vectorize(lambda x, y: x, signature="(k),(k)->(k)")(jnp.arange(3), None)
    f = jnp.vectorize(lambda x, y: x, signature="(k),()->(k)")
    assert f(jnp.arange(3), None).shape == (3,)


STACKS = {
    "matrix": np.eye(3, dtype=np.float32) * 3 + 0.5,
    "stack": np.stack([np.eye(3, dtype=np.float32) * k + 0.5 for k in (2, 3)]),
    "tall": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 4, 3) ** 2,
}
STACKS["deep"] = np.stack([STACKS["stack"]] * 4)
STACKS["complex"] = STACKS["stack"] + np.complex64(0.5j)
STACKS["integers"] = (STACKS["stack"] * 2).astype(np.int32)
UNARY_CALLS = (
    "linalg.slogdet(A)", "linalg.det(A)", "linalg.inv(A)", "linalg.pinv(A)",
    "linalg.pinv(A, 1e-3)", "linalg.pinv(A, jnp.full(A.shape[:-2], 1e-3))",
    "linalg.matrix_rank(A)", "linalg.cond(A)",
    "linalg.matrix_rank(A, jnp.full(A.shape[:-2], 1e-3))", "linalg.cond(A, 1)",
    "linalg.cond(A, -2)", "linalg.cond(A, 'nuc')", "linalg.norm(A, 'fro', (-2, -1))",
    "linalg.norm(A, -jnp.inf, (-2, -1))", "linalg.norm(A, 'nuc', (-2, -1), True)",
    "linalg.norm(A, 3, -1)", "linalg.norm(A, 0, 0)", "linalg.vector_norm(A, ord=2.5)",
    "linalg.matrix_norm(A, ord=2)", "linalg.svd(A)", "linalg.eigh(A)", "linalg.cholesky(A)",
    "linalg.qr(A)", "linalg.matrix_power(A, -2)", "linalg.vecdot(A, A)",
    "linalg.multi_dot([A, A, A])", "linalg.trace(A, offset=1)", "scipy.linalg.expm(A)",
    "scipy.linalg.lu(A)", "scipy.linalg.lu_factor(A)", "scipy.linalg.qr(A)",
    "scipy.linalg.eigh(A)", "scipy.linalg.svd(A)", "scipy.linalg.polar(A)",
    "scipy.linalg.sqrtm(A)", "scipy.linalg.schur(A)", "scipy.linalg.cho_factor(A)",
    "scipy.linalg.expm_frechet(A, A)", "scipy.linalg.toeplitz(A, A)",
    "scipy.linalg.convolution_matrix(A, 3)",
)  # fmt: skip
BINARY_CALLS = (
    "linalg.solve(A, B)", "linalg.lstsq(A, B)", "linalg.vecdot(A, B)",
    "linalg.multi_dot([A, B, A])", "scipy.linalg.solve(A, B, assume_a='pos')",
    "scipy.linalg.solve_triangular(A, B, trans=1)", "scipy.linalg.cho_solve((A, True), B)",
    "scipy.linalg.lu_solve(scipy.linalg.lu_factor(A), B)", "cross(A, B)", "kron(A, B)",
    "matvec(A, B)", "scipy.linalg.solve_sylvester(A, B, A)",
)  # fmt: skip
NUMBERS = (  # next to arrays of several dtypes
    "searchsorted(A, 0.5)", "searchsorted(A, jnp.arange(3))", "searchsorted(A, A, method='sort')",
    "searchsorted(jnp.arange(9), A)", "digitize(A, A)", "interp(0.5, A, A)",
    "scipy.special.wofz(A)", "interp(A, A, A, left=0)", "scipy.special.polygamma(1, A)",
    "scipy.special.polygamma(A, A)",
    "scipy.special.zeta(2.0, A)", "scipy.special.multigammaln(A, 2)",
    "scipy.special.gammainc(1, A)", "scipy.special.betainc(1.0, 2, A)",
    "scipy.special.xlogy(2, A)", "clip(A, 0, 1.0)", "quantile(A, 0.5)", "histogram(A, 3)",
    "polyval(A, 2)", "nan_to_num(A)", "nn.initializers.truncated_normal()(KEY, (3, 3), A.dtype)",
    "nn.gelu(A)", "nn.relu6(A)", "nn.initializers.he_normal()(KEY, (3, 3), A.dtype)",
    "random.truncated_normal(KEY, -1, A)", "random.uniform(KEY, (3,), A.dtype, 0, 2)",
    "scipy.stats.norm.logpdf(A, 1, 2.0)",
)  # fmt: skip
VECTORS = {
    d: np.array([1, 3, 4]).astype(d) for d in ("float32", "float16", "int32", "uint8", "complex64")
}


def accepted_modes(m, text, scope):
    """Return the modes in which a library accepts an expression; None if it never does."""
    loaded = {n: getattr(m.numpy, n) for n in getattr(m.numpy, "__all__", ())}
    names = {
        **vars(m.numpy),
        **loaded,
        "scipy": m.scipy,
        "nn": m.nn,
        "random": m.random,
        "jnp": m.numpy,
    }
    names |= {"KEY": m.random.key(0), **{k: m.numpy.asarray(x) for k, x in scope.items()}}

    def call():
        return [x for x in m.tree.leaves(eval(text, names)) if hasattr(x, "dtype")]

    if modes.accepts(m, call, ()) is not True:
        return None
    return {mode for mode in modes.MODES if modes.accepts(m, call, (mode,)) is True}


def check_accepted(text, scope):
    mine = accepted_modes(jax, text, scope)
    if mine is not None and (theirs := accepted_modes(oracle, text, scope)) is not None:
        assert theirs <= mine, (text, {k: (x.shape, x.dtype) for k, x in scope.items()})


@pytest.mark.parametrize("a", STACKS)
def test_stacks_of_matrices(a):
    for text in UNARY_CALLS:
        check_accepted(text, {"A": STACKS[a]})
    for text in BINARY_CALLS:
        for b in (a, "matrix", "stack"):
            check_accepted(text, {"A": STACKS[a], "B": STACKS[b]})
        check_accepted(text, {"A": STACKS[a], "B": STACKS[a][..., 0]})


@pytest.mark.parametrize("dtype", VECTORS)
def test_numbers_next_to_arrays(dtype):
    for text in NUMBERS:
        check_accepted(text, {"A": VECTORS[dtype]})


# Calls that jax refuses although the user's operands are of one rank and dtype: it mixes those of
# numbers that it makes inside (a count, a period, a mask, a fill value, a dtype asked for).
MIXED_BY_JAX = (
    "csd(", "einsum(", "hyp1f1", "from_euler", "from_quat", "geomspace(", "nonzero(", "owens_t",
    "piecewise(", "power(", "ppf(", "rademacher", "select(", "softmax(", "sph_harm_y", "std",
    "unwrap(", "var(",
)  # fmt: skip
# Operands that are combined by definition: each element of a sparse array with one of a dense one.
BY_DEFINITION = ("D(M*N(4))",)
# Without observations jax takes weights of another dtype than the data, which it refuses otherwise.
EMPTY = ("cov(N(2, 0), fweights=np.ones(0, int))",)


@pytest.mark.parametrize("group", modes.groups())
def test_namespace(group):
    """Calls that JAX accepts in a mode are accepted, and those that it refuses are refused."""
    expected, wrong = modes.stored_refusals(group), []
    make, inputs = modes.calls_of(group)
    for line, call in make(jax, inputs):
        refused = expected.get(line, [])
        text = modes.text_of(group, line)
        if refused == ["always"] or (not refused and modes.accepts(jax, call, modes.MODES) is True):
            continue
        if modes.accepts(jax, call, ()) is not True:
            continue  # test_families and the sweep tell of those
        for mode in modes.MODES:
            accepted = modes.accepts(jax, call, (mode,))
            if mode in refused:
                allowed = any(part in text for part in MIXED_BY_JAX + BY_DEFINITION)
                if accepted is True and not allowed:
                    wrong.append(f"{mode} accepts {text}")
            elif accepted is not True and text not in EMPTY:
                wrong.append(f"{mode} refuses {text}: {accepted}")
    assert not wrong, "\n".join(wrong)
