"""Convolutions compared with JAX.

Shapes, layouts, strides, paddings, dilations and groups are generated. The tests also cover
derivatives, batches, transposed convolutions and patches, and errors for invalid arguments.
"""

import jax
import jax.numpy as jjnp
import numpy as np
import pytest
from jax import lax as jlax

import accnp
import accnp.numpy as jnp
from accnp import lax
from accnp.config import threads


def draw_numbers(rng, shape, dtype="f4"):
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-5, 5, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def permute_sizes(spec, sizes):
    out = [0] * len(spec)
    for d, n in zip(spec, sizes, strict=True):
        out[d] = n
    return tuple(out)


def draw_convolution(rng):
    """Draw shapes, parameters and dimension numbers of a convolution that JAX accepts."""
    while True:
        d = int(rng.integers(0, 4))
        groups, batches = [(1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (1, 2)][rng.integers(6)]
        n, c = int(rng.integers(1, 4)) * batches, int(rng.integers(1, 5)) * groups
        features = int(rng.choice([1, 2, 4, 8, 17, 33])) * groups * batches
        size, taps = (tuple(int(v) for v in rng.integers(1, top, d)) for top in (9, 5))
        base, dilation, strides = (
            tuple(int(v) for v in rng.choice(choice, d))
            for choice in ([1, 1, 2, 3], [1, 2], [1, 2])
        )
        pads = tuple((int(a), int(b)) for a, b in rng.integers(-1, 4, (d, 2)))
        room = zip(size, base, pads, taps, dilation, strict=True)
        if any((i - 1) * b + lo + hi < (k - 1) * r for i, b, (lo, hi), k, r in room):
            continue
        specs = [tuple(int(v) for v in rng.permutation(d + 2)) for _ in range(3)]
        if rng.random() < 0.4:
            specs = [tuple(range(d + 2))] * 3
        params = {
            "window_strides": strides, "padding": pads, "lhs_dilation": base,
            "rhs_dilation": dilation, "feature_group_count": groups, "batch_group_count": batches,
        }  # fmt: skip
        lhs, rhs = (
            permute_sizes(specs[0], (n, c, *size)),
            permute_sizes(specs[1], (features, c // groups, *taps)),
        )
        return lhs, rhs, specs, params


def pair(specs, params):
    """Return the same convolution in accnp and in JAX."""

    def ours(x, w):
        dims = lax.ConvDimensionNumbers(*specs)
        return lax.conv_general_dilated(x, w, dimension_numbers=dims, **params)

    def theirs(x, w):
        dims = jlax.ConvDimensionNumbers(*specs)
        return jlax.conv_general_dilated(x, w, dimension_numbers=dims, **params)

    return ours, theirs


def assert_close(actual, expected, tol=2e-4):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("seed", range(4))
def test_values_and_gradients(seed):
    rng = np.random.default_rng(seed)
    for k in range(5):
        lhs, rhs, specs, params = draw_convolution(rng)
        dtype = ["f4", "f4", "c8", "i4", "f2"][k % 5]
        x, w = draw_numbers(rng, lhs, dtype), draw_numbers(rng, rhs, dtype)
        ours, theirs = pair(specs, params)
        expected = theirs(x, w)
        assert_close(ours(x, w), expected, 2e-2 if dtype == "f2" else 2e-4)
        assert_close(accnp.jit(ours)(x, w), expected, 2e-2 if dtype == "f2" else 2e-4)
        if dtype == "f4":
            g = draw_numbers(rng, expected.shape)
            actual = accnp.vjp(ours, x, w)[1](g)
            for a, b in zip(actual, jax.vjp(theirs, x, w)[1](g), strict=True):
                assert_close(a, b, 1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_batches(seed):
    rng = np.random.default_rng(10 + seed)
    for _ in range(3):
        lhs, rhs, specs, params = draw_convolution(rng)
        x, w = draw_numbers(rng, (3, *lhs)), draw_numbers(rng, (3, *rhs))
        ours, theirs = pair(specs, params)
        for axes in ((0, 0), (0, None), (None, 0)):
            args = [v if a == 0 else v[0] for v, a in zip((x, w), axes, strict=True)]
            assert_close(accnp.vmap(ours, axes)(*args), jax.vmap(theirs, axes)(*args))


def test_larger_ones_by_rows_and_by_planes():
    rng = np.random.default_rng(0)
    for dims in (("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("NCHW", "HWIO", "NHWC")):
        sizes = {"N": 3, "C": 20, "H": 19, "W": 33, "O": 40, "I": 20}
        x = draw_numbers(rng, [sizes[c] for c in dims[0]])
        w = draw_numbers(rng, [sizes[c] if c in "OI" else 3 for c in dims[1]])
        for stride, padding in (((1, 1), "SAME"), ((2, 1), "VALID"), ((2, 3), "SAME_LOWER")):

            def ours(x, w, how=(stride, padding), dims=dims):
                return lax.conv_general_dilated(x, w, *how, dimension_numbers=dims)

            def theirs(x, w, how=(stride, padding), dims=dims):
                return jlax.conv_general_dilated(x, w, *how, dimension_numbers=dims)

            expected = theirs(x, w)
            assert_close(ours(x, w), expected)
            g = draw_numbers(rng, expected.shape)
            for a, b in zip(accnp.vjp(ours, x, w)[1](g), jax.vjp(theirs, x, w)[1](g), strict=True):
                assert_close(a, b, 5e-3)


@pytest.mark.parametrize(
    ("lhs", "rhs", "strides", "dims", "more"),
    [
        ((2, 9, 8, 16), (3, 3, 16, 1), (1, 1), ("NHWC", "HWIO", "NHWC"), {}),
        ((2, 16, 9, 8), (4, 8, 3, 3), (1, 1), None, {"feature_group_count": 2}),
        ((2, 16, 5, 4), (3, 16, 4, 2), (1, 1), None, {"lhs_dilation": (2, 3)}),
        ((3, 9, 8, 2), (5, 4, 2, 24), (2, 2), ("NHWC", "HWIO", "NCHW"), {}),
        ((2, 300, 40), (1, 300, 7), (1,), None, {"rhs_dilation": (2,)}),
    ],
)
def test_few_features_of_many(lhs, rhs, strides, dims, more):
    """One product computes all taps and the results are summed afterwards, forward or in a
    gradient."""
    rng = np.random.default_rng(5)
    x, w = draw_numbers(rng, lhs), draw_numbers(rng, rhs)
    pads = tuple((1, 2) for _ in strides)
    ours, theirs = (
        lambda x, w, m=m: m.conv_general_dilated(
            x, w, strides, pads, dimension_numbers=dims, **more
        )
        for m in (lax, jlax)
    )
    expected = theirs(x, w)
    assert_close(ours(x, w), expected, 1e-3)
    g = draw_numbers(rng, expected.shape)
    actual = accnp.vjp(ours, x, w)[1](g)
    for a, b in zip(actual, jax.vjp(theirs, x, w)[1](g), strict=True):
        assert_close(a, b, 1e-3)
    both = accnp.jit(lambda x, w, g: accnp.vjp(ours, x, w)[1](g))(x, w, g)
    for a, b in zip(actual, both, strict=True):
        np.testing.assert_array_equal(a, b)


def test_results_do_not_depend_on_threads_or_loops():
    rng = np.random.default_rng(1)
    x, w = draw_numbers(rng, (8, 30, 30, 8)), draw_numbers(rng, (3, 3, 8, 24))

    def f(x, w):
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    expected = np.asarray(f(x, w))
    with threads(1):
        assert np.array_equal(np.asarray(f(x, w)), expected)

    def step(total, row):
        return total + f(row, w).sum(), f(row, w)

    rows = jnp.asarray(x)[:, None]
    _, actual = accnp.jit(lambda rows: lax.scan(step, jnp.float32(0), rows))(rows)
    assert np.array_equal(np.asarray(actual)[:, 0], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_float32(dtype):
    rng = np.random.default_rng(2)
    for shape, taps in (((2, 9, 8, 3), (2, 3, 3, 5)), ((1, 6, 6, 64), (3, 3, 64, 2))):
        x, w = (jnp.asarray(draw_numbers(rng, s)).astype(dtype) for s in (shape, taps))
        for strides, layout in (((1, 1), "NHWC"), ((2, 1), "NCHW")):
            operand = x if layout == "NHWC" else x.transpose(0, 3, 1, 2)
            specs = (layout, "HWIO", layout)

            def f(x, w, strides=strides, specs=specs):
                return lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=specs)

            actual = f(operand, w)
            expected = f(operand.astype("f4"), w.astype("f4")).astype(dtype)
            np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))
            with threads(1):
                np.testing.assert_array_equal(
                    np.asarray(accnp.jit(f)(operand, w)), np.asarray(actual)
                )


def test_a_small_one_in_a_scan_is_one_native_loop():
    x, w = jnp.ones((16, 1, 6, 6, 2)), jnp.ones((4, 2, 3, 3))

    def f(x):
        def step(c, row):
            y = lax.conv_general_dilated(
                row, w, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC")
            )
            return c + y, y.sum()

        return lax.scan(step, jnp.zeros((1, 6, 6, 4)), x)

    text = str(accnp.inspect(accnp.jit(f))(x))
    assert "on the host" not in text


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_one_dimensional_convolutions(mode):
    rng = np.random.default_rng(2)
    for n, m in ((7, 3), (3, 7), (8, 2), (2, 8), (5, 5), (5000, 9), (1, 1)):
        a, v = draw_numbers(rng, n), draw_numbers(rng, m)
        assert_close(jnp.convolve(a, v, mode), np.convolve(a, v, mode), 1e-4)
        assert_close(jnp.correlate(a, v, mode), np.correlate(a, v, mode), 1e-4)
    a, v = draw_numbers(rng, 7, "c8"), draw_numbers(rng, 3, "c8")
    assert_close(jnp.correlate(a, v, mode), np.correlate(a, v, mode), 1e-4)
    a, v = np.arange(5), np.arange(3)
    assert_close(jnp.convolve(a, v, mode), jjnp.convolve(a, v, mode), 1e-5)


def test_transposed_convolutions():
    rng = np.random.default_rng(3)
    x = draw_numbers(rng, (2, 7, 6, 3))
    for k, s in ((3, 2), (2, 3), (4, 1), (5, 2), (1, 2)):
        for transposed in (False, True):
            w = draw_numbers(rng, (k, k, 5, 3) if transposed else (k, k, 3, 5))
            for padding in ("SAME", "VALID", ((1, 2), (0, 1))):
                args = ((s, s), padding, (1, 2) if s < 3 else None, None, transposed)
                assert_close(lax.conv_transpose(x, w, *args), jlax.conv_transpose(x, w, *args))
                if not isinstance(padding, str):
                    more = {"use_consistent_padding": True}
                    actual = lax.conv_transpose(x, w, *args, **more)
                    assert_close(actual, jlax.conv_transpose(x, w, *args, **more))


def test_patches_and_kernels_of_their_own():
    rng = np.random.default_rng(4)
    for dims in (None, ("NHWC", "HWIO", "NHWC"), ("NHWC", "OIHW", "NCHW")):
        x = draw_numbers(rng, (2, 5, 7, 3) if dims else (2, 3, 5, 7))
        args = (2, 3), (1, 2), ((1, 0), (2, 1)), None, (2, 1)
        actual = lax.conv_general_dilated_patches(x, *args, dimension_numbers=dims)
        expected = jlax.conv_general_dilated_patches(x, *args, dimension_numbers=dims)
        assert_close(actual, expected)
        sizes = dict(zip(dims[2] if dims else "NCHW", expected.shape, strict=True))
        sizes |= {"O": 4, "I": 18}
        w = draw_numbers(rng, [sizes[c] for c in (dims[1] if dims else "OIHW")])
        args = (1, 2), ((1, 0), (2, 1)), (2, 3), None, (2, 1)
        actual = lax.conv_general_dilated_local(x, w, *args, dimension_numbers=dims)
        assert_close(actual, jlax.conv_general_dilated_local(x, w, *args, dimension_numbers=dims))


def test_shapes():
    x, w = (1, 2, 8, 9), (3, 2, 3, 3)
    assert lax.conv_shape_tuple(x, w, (1, 2), "SAME") == jlax.conv_shape_tuple(
        x, w, (1, 2), ((1, 1), (1, 1))
    )
    dims = ("NCHW", "OIHW", "NHWC")
    for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
        shape = getattr(lax, name)(x, w, (1, 2), "SAME", dims)
        assert shape == getattr(jlax, name)(x, w, (1, 2), "SAME", dims)
    assert lax.conv_general_permutations(dims) == jlax.conv_general_permutations(dims)
    assert lax.conv(np.ones(x, "f4"), np.ones(w, "f4"), (1, 1), "SAME").shape == (1, 3, 8, 9)
    padded = lax.conv_with_general_padding(
        np.ones(x, "f4"), np.ones(w, "f4"), (1, 1), [(1, 1), (0, 2)], (2, 1), (1, 2)
    )
    assert padded.shape == (1, 3, 15, 7)


@pytest.mark.parametrize("features", [1, 2, 4, 9])
@pytest.mark.parametrize("base", [1, 2])
def test_padding_times_infinity_is_zero(features, base):
    kernel = jnp.full((features, 2, 3), jnp.inf)
    for x in (jnp.zeros((2, 2, 0)), np.zeros((2, 2, 0), "f2")):
        y = lax.conv_general_dilated(x, kernel.astype(x.dtype), (1,), [(3, 2)], (base,))
        assert y.shape == (2, features, 3)
        assert not np.asarray(y).any()
    # Two places that no window fits: what they get is of an empty result.
    y, back = accnp.vjp(lambda x: lax.conv(x, kernel, (base,), "VALID"), jnp.ones((1, 2, 2)))
    assert y.size == 0
    assert not np.asarray(back(y)[0]).any()


def test_preferred_types():
    x, w = np.ones((1, 2, 5), "i1"), np.full((4, 2, 3), 100, "i1")
    y = lax.conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=jnp.int32)
    assert y.dtype == np.int32
    assert int(y[0, 0, 0]) == 600


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "spatial axes", lambda x, w: lax.conv(x, w, (1,), "SAME")),
        (RuntimeError, "padding must be", lambda x, w: lax.conv(x, w, (1, 1), "FOO")),
        (TypeError, "one pair for each", lambda x, w: lax.conv(x, w, (1, 1), ((1, 1),))),
        (
            ValueError,
            "feature",
            lambda x, w: lax.conv(x, np.ones((3, 3, 3, 3), "f4"), (1, 1), "SAME"),
        ),
        (TypeError, "the same rank", lambda x, w: lax.conv(x, w[0], (1, 1), "SAME")),
        (TypeError, "the same dtypes", lambda x, w: lax.conv(x, w.astype("i4"), (1, 1), "SAME")),
        (TypeError, "positive", lambda x, w: lax.conv(x, w, (0, 1), "SAME")),
        (ValueError, "expected vectors", lambda x, w: jnp.convolve(w, x)),
        (ValueError, "must not be empty", lambda x, w: jnp.convolve(np.ones(0), np.ones(2))),
        (ValueError, "mode", lambda x, w: jnp.convolve(np.ones(3), np.ones(2), "most")),
        (
            TypeError,
            "spatial axes",
            lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHX", "NCHW")
            ),
        ),
        (
            ValueError,
            "named padding",
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", lhs_dilation=(2, 2)),
        ),
    ],
)
def test_invalid_arguments_raise(error, match, call):
    with pytest.raises(error, match=match):
        call(np.ones((1, 2, 8, 8), "f4"), np.ones((3, 2, 3, 3), "f4"))
