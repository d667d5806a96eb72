"""`segment_sum` and related functions, histograms, differences and interpolation, compared with
JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api.oracle import jax_result

import accnp

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 3)).astype(np.float32)
V = RNG.standard_normal(200).astype(np.float32)
W = RNG.random(200).astype(np.float32)
I = RNG.integers(-1, 7, 40).astype(np.int32)  # noqa: E741
S = np.sort(I)
XP = np.sort(RNG.standard_normal(9)).astype(np.float32)
FP = RNG.standard_normal(9).astype(np.float32)
K = RNG.integers(-5, 9, 12).astype(np.int32)

CASES = {
    "segment_sum": (lambda m, x, i: m.ops.segment_sum(x, i, 6), X, I),
    "segment_sum sorted": (lambda m, x, i: m.ops.segment_sum(x, i, 6, True), X, S),
    "segment_sum clip": (lambda m, x, i: m.ops.segment_sum(x, i, 6, mode="clip"), X, I),
    "segment_sum buckets": (lambda m, x, i: m.ops.segment_sum(x, i, 6, bucket_size=7), X, I),
    "segment_sum ints": (lambda m, x, i: m.ops.segment_sum(x, i, 9), K, np.arange(12) % 4),
    "segment_prod": (lambda m, x, i: m.ops.segment_prod(x, i, 8), X, I),
    "segment_max": (lambda m, x, i: m.ops.segment_max(x, i, 9), X, I),
    "segment_min": (lambda m, x, i: m.ops.segment_min(x, i, 9), X, I),
    "segment_max ints": (lambda m, x, i: m.ops.segment_max(x, i, 6), K, np.arange(12) % 4),
    "segment_min bools": (lambda m, x, i: m.ops.segment_min(x > 0, i, 6), K, np.arange(12) % 4),
    "histogram": (lambda m, x: m.numpy.histogram(x), V),
    "histogram range": (lambda m, x: m.numpy.histogram(x, 7, (-1.0, 1.5)), V),
    "histogram edges": (lambda m, x, e: m.numpy.histogram(x, e), V, XP),
    "histogram weights": (lambda m, x, w: m.numpy.histogram(x, 5, weights=w, density=True), V, W),
    "histogram ints": (lambda m, x: m.numpy.histogram(x, 4), K),
    "histogram of one value": (lambda m, x: m.numpy.histogram(x * 0 + 2, 3), V),
    "histogram with nan": (lambda m, x: m.numpy.histogram(m.numpy.log(x), 5, (-2, 1)), V),
    "bin edges": (lambda m, x: m.numpy.histogram_bin_edges(x, 4, (0, 2)), K),
    "histogram2d": (lambda m, x, y: m.numpy.histogram2d(x, y, 5), V, W),
    "histogram2d edges": (lambda m, x, y, e: m.numpy.histogram2d(x, y, [e, 3]), V, W, XP),
    "histogram2d density": (lambda m, x, y: m.numpy.histogram2d(x, y, 4, density=True), V, W),
    "histogramdd": (lambda m, x: m.numpy.histogramdd(x, 3, [None, (-1, 1), (0, 1)]), X),
    "diff": (lambda m, x: m.numpy.diff(x), V),
    "diff 2": (lambda m, x: m.numpy.diff(x, 2, 0, prepend=1.0), X),
    "diff append": (lambda m, x: m.numpy.diff(x, axis=1, append=x[:, :2]), X),
    "diff bools": (lambda m, x: m.numpy.diff(x > 0, axis=0), X),
    "diff 0": (lambda m, x: m.numpy.diff(x, 0), X),
    "ediff1d": (lambda m, x: m.numpy.ediff1d(x, to_end=m.numpy.array([1, 2]), to_begin=3), X),
    "gradient": (lambda m, x: m.numpy.gradient(x), X),
    "gradient axis": (lambda m, x: m.numpy.gradient(x, 0.5, axis=0), X),
    "gradient two": (lambda m, x: m.numpy.gradient(x, 0.5, 2.0, axis=(0, -1)), X),
    "gradient points": (lambda m, x, p: m.numpy.gradient(x, p), FP, XP),
    "gradient points axis": (
        lambda m, x: m.numpy.gradient(x, m.numpy.arange(40.0) ** 1.5, axis=0), X
    ),
    "gradient ints": (lambda m, x: m.numpy.gradient(x), K),
    "interp": (lambda m, x, p, f: m.numpy.interp(x, p, f), V, XP, FP),
    "interp ends": (lambda m, x, p, f: m.numpy.interp(x, p, f, -9, 9.5), V, XP, FP),
    "interp extrapolate": (
        lambda m, x, p, f: m.numpy.interp(x, p, f, left="extrapolate", right="extrapolate"),
        V, XP, FP,
    ),
    "interp period": (lambda m, x, p, f: m.numpy.interp(x * 5, p, f, period=2.5), V, XP, FP),
    "interp ints": (lambda m, x, p, f: m.numpy.interp(x, p, f), K, np.arange(9), np.arange(9) ** 2),
    "roll": (lambda m, x: m.numpy.roll(x, (1, -2), (0, 1)), X),
    "rot90": (lambda m, x: m.numpy.rot90(x, 3), X),
    "digitize": (lambda m, x, e: m.numpy.digitize(x, e[::-1], right=True), V, XP),
    "bincount": (lambda m, x: m.numpy.bincount(abs(x), length=6), K),
    "bincount weights": (lambda m, x, w: m.numpy.bincount(abs(x), w, length=6), K, W[:12]),
}  # fmt: skip


def leaves(m, tree):
    return m.tree_util.tree_leaves(tree)


def same(ours, theirs, **tolerance):
    a, b = leaves(accnp, ours), leaves(jax, theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    f, *xs = CASES[name]
    ours = f(accnp, *map(accnp.numpy.asarray, xs))
    theirs = jax_result(lambda: f(jax, *map(jnp.asarray, xs)), f, xs)
    same(ours, theirs, rtol=2e-6, atol=2e-6)
    jitted = accnp.jit(lambda *xs: f(accnp, *xs))(*xs)
    for a, b in zip(leaves(accnp, ours), leaves(accnp, jitted), strict=True):
        np.testing.assert_array_equal(a, b)


SLOPES = [n for n in CASES if n.split()[0] in (
    "segment_sum", "segment_max", "diff", "ediff1d", "gradient", "interp", "roll",
) and CASES[n][1].dtype == np.float32 and "bools" not in n]  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_and_batches(name):
    f, *xs = CASES[name]

    def total(m):
        return lambda x, *rest: sum([(y * y).sum() for y in leaves(m, f(m, x, *rest))])

    ours = accnp.grad(total(accnp))(*map(accnp.numpy.asarray, xs))
    theirs = jax_result(lambda: jax.grad(total(jax))(*map(jnp.asarray, xs)), f, xs)
    same(ours, theirs, rtol=1e-4, atol=1e-4)
    axes = (0, *[None] * (len(xs) - 1))
    two = np.stack([xs[0], xs[0] * 2])
    ours = accnp.vmap(lambda *xs: f(accnp, *xs), axes)(two, *xs[1:])
    theirs = jax_result(lambda: jax.vmap(lambda *xs: f(jax, *xs), axes)(two, *xs[1:]), f, xs)
    same(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_histogram_agrees_with_a_search_at_the_edges():
    edges = np.asarray(accnp.numpy.linspace(-1.7, 2.3, 38))
    x = np.concatenate([edges, np.nextafter(edges, 9), np.nextafter(edges, -9)])
    same(accnp.numpy.histogram(x, 37, (-1.7, 2.3))[0], jnp.histogram(x, edges)[0])


WRONG = {
    "negative count": (lambda m: m.ops.segment_sum(m.numpy.ones(3), m.numpy.arange(3), -1)),
    "traced count": (
        lambda m: m.jit(lambda x, i: m.ops.segment_sum(x, i))(m.numpy.ones(3), m.numpy.arange(3))
    ),
    "diff of a scalar": (lambda m: m.numpy.diff(m.numpy.float32(1))),
    "negative order": (lambda m: m.numpy.diff(m.numpy.ones(3), -1)),
    "a list": (lambda m: m.numpy.diff([1, 2])),
    "short gradient": (lambda m: m.numpy.gradient(m.numpy.ones(1))),
    "edge_order": (lambda m: m.numpy.gradient(m.numpy.ones(3), edge_order=2)),
    "spacings": (lambda m: m.numpy.gradient(m.numpy.ones((3, 3)), 1.0, 2.0, 3.0)),
    "interp lengths": (lambda m: m.numpy.interp(1.0, m.numpy.ones(3), m.numpy.ones(2))),
    "interp word": (lambda m: m.numpy.interp(1.0, m.numpy.ones(3), m.numpy.ones(3), left="x")),
    "histogram bins": (lambda m: m.numpy.histogram_bin_edges(m.numpy.ones(3), "auto")),
    "histogram weights": (lambda m: m.numpy.histogram(m.numpy.ones(3), 3, None, m.numpy.ones(2))),
    "histogramdd bins": (lambda m: m.numpy.histogramdd(m.numpy.ones((3, 2)), [1, 2, 3])),
    "histogramdd range": (lambda m: m.numpy.histogramdd(m.numpy.ones((3, 2)), 3, [(0, 1)])),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        WRONG[name](jax)
    with pytest.raises(Exception) as ours:  # noqa: PT011
        WRONG[name](accnp)
    builtin = next(k for k in theirs.type.__mro__ if k.__module__ == "builtins")
    assert issubclass(ours.type, builtin)
