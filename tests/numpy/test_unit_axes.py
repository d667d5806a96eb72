"""Axes of length one do not change results: functions along an axis, with such axes inserted
anywhere.
"""

import numpy as np
import pytest

import accnp.numpy as jnp
from accnp import lax, nn

ALONG = {
    "argmax": lambda x, d: jnp.argmax(x, d, keepdims=True),
    "argsort": jnp.argsort,
    "associative_scan": lambda x, d: lax.associative_scan(jnp.maximum, x, axis=d),
    "cumlogsumexp": lambda x, d: lax.cumlogsumexp(x, d),
    "cummax": lambda x, d: lax.cummax(x, d),
    "cummin": lambda x, d: lax.cummin(x, d, reverse=True),
    "cumprod": jnp.cumprod,
    "cumsum": jnp.cumsum,
    "diff": lambda x, d: jnp.diff(x, axis=d, prepend=0),
    "fft": lambda x, d: jnp.fft.fft(x, axis=d),
    "flip": jnp.flip,
    "gradient": lambda x, d: jnp.gradient(x, axis=d),
    "logsumexp": lambda x, d: nn.logsumexp(x, d, keepdims=True),
    "max": lambda x, d: jnp.max(x, d, keepdims=True),
    "median": lambda x, d: jnp.median(x, d, keepdims=True),
    "nanmedian": lambda x, d: jnp.nanmedian(x, d, keepdims=True),
    "partition": lambda x, d: jnp.max(jnp.partition(x, 2, d), d, keepdims=True),
    "quantile": lambda x, d: jnp.quantile(x, 0.3, d, keepdims=True),
    "reduce_window": lambda x, d: lax.reduce_window(
        x, -jnp.inf, lax.max, [3 if k == d else 1 for k in range(x.ndim)], (1,) * x.ndim, "SAME"
    ),
    "rfft": lambda x, d: jnp.fft.rfft(x, axis=d),
    "roll": lambda x, d: jnp.roll(x, 3, d),
    "softmax": nn.softmax,
    "sort": jnp.sort,
    "sort by two": lambda x, d: lax.sort([jnp.floor(x), x], dimension=d, num_keys=2)[1],
    "sort of three": lambda x, d: lax.sort([x, x * 2, x + 1], dimension=d)[2],
    "take": lambda x, d: jnp.take(x, jnp.array([0, 1, 0, -1]), axis=d),
    "take_along_axis": lambda x, d: jnp.take_along_axis(x, jnp.argsort(x, d), d),
    "top_k": lambda x, d: lax.top_k(x, 2, axis=d)[0],
    "unwrap": lambda x, d: jnp.unwrap(x, axis=d),
    "var": lambda x, d: jnp.var(x, d, keepdims=True),
}
SHAPES = [(40, 70), (3, 700), (4, 9, 50)]  # small and beyond what kernels of short lines take


@pytest.mark.parametrize("name", ALONG)
def test_functions_along_axes_of_length_one(name):
    f, rng = ALONG[name], np.random.default_rng(0)
    for shape in SHAPES:
        x = rng.standard_normal(shape).astype("f4") * 9
        for d in range(x.ndim):
            expected = np.asarray(f(jnp.asarray(x), d))
            for at in range(x.ndim + 1):
                actual = np.asarray(f(jnp.asarray(np.expand_dims(x, at)), d + (at <= d)))
                np.testing.assert_allclose(
                    np.squeeze(actual, at),
                    expected,
                    rtol=1e-5,
                    atol=1e-4,
                    err_msg=f"{shape} {d} {at}",
                )


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 33000, 1), (500, 30, 1), (2, 5, 700, 1, 1)])
def test_sort_beside_trailing_axes(dtype, shape):
    """Adjacent strided rows were sorted as if each were contiguous, which wrote out of bounds."""
    x = (
        np.random.default_rng(1)
        .integers(0, 90, shape)
        .astype(dtype if dtype != "bfloat16" else "f4")
    )
    actual = jnp.sort(jnp.asarray(x).astype(dtype), 0)
    np.testing.assert_array_equal(np.asarray(actual).astype(x.dtype), np.sort(x, 0))
