"""Window sums and extrema compared with JAX: values, derivatives in both modes, batches
and dtypes.
"""

import jax
import numpy as np
import pytest
from jax import lax as jlax

import accnp
import accnp.numpy as jnp
from accnp import lax

INITS = {"max": -np.inf, "min": np.inf, "add": 0.0}


def draw_windows(rng):
    """Draw a shape and windows that fit it: sizes, strides, padding, dilations."""
    while True:
        d = int(rng.integers(1, 5))
        shape = tuple(int(v) for v in rng.integers(1, 9, d))
        window, strides, base, dilation = (
            tuple(int(v) for v in rng.choice(choice, d))
            for choice in ([1, 1, 2, 3], [1, 2], [1, 1, 1, 2], [1, 1, 2])
        )
        pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 2, (d, 2)))
        room = zip(shape, base, pads, window, dilation, strict=True)
        if all((i - 1) * b + lo + hi >= (k - 1) * r for i, b, (lo, hi), k, r in room):
            return shape, (window, strides, pads, base, dilation)


def reduce_window_of(module, name, where):
    return lambda x: module.reduce_window(x, INITS[name], getattr(module, name), *where)


@pytest.mark.parametrize("seed", range(3))
def test_values_and_derivatives(seed):
    rng = np.random.default_rng(seed)
    for k in range(6):
        shape, where = draw_windows(rng)
        name = ("max", "min", "add")[k % 3]
        x = rng.integers(-3, 4, shape) if k % 2 else rng.normal(size=shape)
        x, t = x.astype("f4"), rng.normal(size=shape).astype("f4")
        ours, theirs = reduce_window_of(lax, name, where), reduce_window_of(jlax, name, where)
        expected, wanted_t = jax.jvp(theirs, (x,), (t,))
        actual, got_t = accnp.jvp(ours, (x,), (t,))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got_t, wanted_t, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(accnp.jit(ours)(x), ours(x))
        plain = all(v == 1 for v in (*where[3], *where[4]))
        if name == "add" or plain:  # jax has no other gradients of extremes
            g = rng.normal(size=expected.shape).astype("f4")
            (a,), (b,) = accnp.vjp(ours, x)[1](g), jax.vjp(theirs, x)[1](g)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        elif actual.size:  # the transpose of the forward derivative
            g = jnp.asarray(rng.normal(size=expected.shape).astype("f4"))
            (a,) = accnp.vjp(ours, x)[1](g)
            np.testing.assert_allclose((a * t).sum(), (g * got_t).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", INITS)
def test_layouts_of_networks(name):
    rng = np.random.default_rng(1)
    for i, (shape, axes) in enumerate(
        (((2, 3, 40, 37), (2, 3)), ((2, 33, 28, 20), (1, 2)), ((2, 2000), (1,)))
    ):
        ways = ((2, 2, "VALID"), (3, 1, "SAME"), (3, 2, "SAME"), (2, 3, "SAME"))
        for k, s, padding in ways if name == "max" else (ways[i], ways[i - 2]):
            window, strides = (
                tuple(v if d in axes else 1 for d in range(len(shape))) for v in (k, s)
            )
            x = rng.normal(size=shape).astype("f4")
            ours, theirs = (
                reduce_window_of(m, name, (window, strides, padding)) for m in (lax, jlax)
            )
            expected = theirs(x)
            np.testing.assert_allclose(ours(x), expected, rtol=1e-5, atol=1e-5)
            turned = accnp.jit(lambda x, f=ours: f(jnp.swapaxes(jnp.swapaxes(x, 0, 1), 0, 1)))
            np.testing.assert_allclose(turned(x), expected, rtol=1e-5, atol=1e-5)
            g = rng.normal(size=expected.shape).astype("f4")
            (a,), (b,) = accnp.vjp(ours, x)[1](g), jax.vjp(theirs, x)[1](g)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_batches_and_second_derivatives():
    x = np.random.default_rng(2).normal(size=(3, 6, 8)).astype("f4")
    for name in INITS:
        ours, theirs = (reduce_window_of(m, name, ((2, 2), (2, 1))) for m in (lax, jlax))
        np.testing.assert_allclose(accnp.vmap(ours)(x), jax.vmap(theirs)(x), rtol=1e-5)

        def loss(m, f):
            return lambda x: m.jvp(lambda x: (f(x) ** 2).sum(), (x,), (x,))[1]

        actual = accnp.vmap(accnp.grad(loss(accnp, ours)))(x)
        np.testing.assert_allclose(actual, jax.vmap(jax.grad(loss(jax, theirs)))(x), rtol=1e-4)


def test_nan_is_an_extreme():
    x = np.array([1, np.nan, 3, 2, np.nan, 1], "f4")
    for name in ("max", "min"):
        ours, theirs = (reduce_window_of(m, name, ((2,), (1,))) for m in (lax, jlax))
        np.testing.assert_array_equal(ours(x), theirs(x))


@pytest.mark.parametrize("dtype", ["i4", "u1", "f2", "f4"])
def test_dtypes(dtype):
    x = np.random.default_rng(3).integers(0, 9, (7, 9)).astype(dtype)
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    for name, init in (("max", info.min), ("min", info.max), ("add", 0)):
        actual = lax.reduce_window(x, np.asarray(init, dtype), getattr(lax, name), (2, 3), (1, 2))
        views = np.lib.stride_tricks.sliding_window_view(x, (2, 3))[:, ::2]
        reduction = {"max": np.max, "min": np.min, "add": np.sum}[name]
        np.testing.assert_array_equal(
            np.asarray(actual), reduction(views, axis=(2, 3)).astype(actual.dtype)
        )


def test_pooling_in_a_scan_is_one_native_loop():
    def f(x):
        def step(c, row):
            y = lax.reduce_window(row, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
            return c + y, y.sum()

        return lax.scan(step, jnp.zeros((3, 4)), x)

    x = np.random.default_rng(4).normal(size=(5, 6, 8)).astype("f4")
    assert "on the host" not in str(accnp.inspect(accnp.jit(f))(x))
    expected = x.reshape(5, 3, 2, 4, 2).max((2, 4)).sum(0)
    np.testing.assert_allclose(accnp.jit(f)(x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("base", "dilation"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_named_paddings_of_dilated_arrays(padding, base, dilation):
    x = np.arange(1.0, 8.0, dtype=np.float32)
    for n, window, stride in [(4, 2, 2), (4, 3, 2), (7, 2, 3), (5, 3, 1), (1, 2, 2)]:
        where = ((window,), (stride,), padding)
        more = {"base_dilation": (base,), "window_dilation": (dilation,)}
        actual = lax.reduce_window(jnp.asarray(x[:n]), 0.0, lax.add, *where, **more)
        expected = jlax.reduce_window(jax.numpy.asarray(x[:n]), 0.0, jlax.add, *where, **more)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))
