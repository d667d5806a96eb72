"""Remainders of 32-bit integers: by a double's division, exact for every pair."""

import numpy as np
import pytest

import accnp.lax as lax
import accnp.numpy as jnp


@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
def test_remainders_are_exact(dtype):
    rng = np.random.default_rng(7)
    info = np.iinfo(dtype)
    edges = np.array(
        [
            info.min,
            info.min + 1,
            0,
            1,
            2,
            3,
            7,
            65535,
            65536,
            65537,
            1 << 30,
            info.max - 1,
            info.max,
        ]
    ).astype(dtype)
    wide = rng.integers(info.min, info.max, 100_000, dtype=dtype, endpoint=True)
    shorter = wide[::-1] >> rng.integers(0, 31, len(wide)).astype(dtype)
    divisors = rng.integers(1, 65535, 50_000).astype(dtype)
    multiples = divisors * rng.integers(1, 32767, len(divisors)).astype(dtype)
    x = [wide, np.repeat(edges, len(edges)), multiples - dtype(1), multiples, multiples + dtype(1)]
    y = [shorter, np.tile(edges, len(edges)), *[divisors] * 3]
    x, y = (np.concatenate(parts).astype(np.int64) for parts in (x, y))
    actual = np.asarray(lax.rem(jnp.asarray(x.astype(dtype)), jnp.asarray(y.astype(dtype))))
    expected = np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))
    np.testing.assert_array_equal(actual.astype(np.int64), expected)
