"""Functions under `numpy_rank_promotion="raise"` and `numpy_dtype_promotion="strict"`.

The modes are about operands that users pass: functions that are composed of others combine ranks
and dtypes inside, as those of jax do, and refuse the operands that those of jax refuse.
"""

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
def test_ranks_inside(name):
    plain = BROADCAST[name]()
    with jax.numpy_rank_promotion("raise"):
        same(BROADCAST[name](), plain)


@pytest.mark.parametrize("name", MIXED)
def test_dtypes_inside(name):
    plain = MIXED[name]()
    with jax.numpy_dtype_promotion("strict"):
        same(MIXED[name](), plain)


def test_linspace_of_a_narrower_dtype():
    with jax.numpy_dtype_promotion("strict"), jax.enable_x64(True):
        assert jnp.linspace(0, 3, 3, dtype=np.float32).dtype == np.float32


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
    """What the user passes is checked as before."""
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
    """What jax accepts in a mode is accepted, and what it refuses for its operands is refused."""
    expected, wrong = modes.known(group), []
    make, given = modes.calls_of(group)
    for line, call in make(jax, given):
        refused = expected.get(line, [])
        text = modes.text_of(group, line)
        if refused == ["always"] or (not refused and modes.accepts(jax, call, modes.MODES) is True):
            continue
        if modes.accepts(jax, call, ()) is not True:
            continue  # test_families and the sweep tell of those
        for mode in modes.MODES:
            found = modes.accepts(jax, call, (mode,))
            if mode in refused:
                allowed = any(part in text for part in MIXED_BY_JAX + BY_DEFINITION)
                if found is True and not allowed:
                    wrong.append(f"{mode} accepts {text}")
            elif found is not True and text not in EMPTY:
                wrong.append(f"{mode} refuses {text}: {found}")
    assert not wrong, "\n".join(wrong)
