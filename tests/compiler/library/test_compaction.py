"""Elements distributed to lists, with each kind of vectors that this processor has."""

import numpy as np
import pytest

from accnp.compiler import kernel_cache
from accnp.compiler.llvm import objects
from accnp.compiler.llvm.scalars import cold
from accnp.config import cache_dir

N = 77
COLLECT = """
def kernel(lo, hi, values, places, src, limit, found):
    for u in range(lo, hi):
        found[u] = collect_at_least(values, places, src, 77, 5, limit[0])
"""
DISTRIBUTE = """
def kernel(lo, hi, to, src, limits, counts):
    for u in range(lo, hi):
        distribute(to, 100, src, 77, limits, counts)
"""


@pytest.fixture(params=[w for w in (16, 32, 64) if w <= objects.VECTOR_BYTES])
def width(request, monkeypatch):
    monkeypatch.setattr(cold, "vector_bytes", request.param)
    kernel_cache.clear_kernels()
    with cache_dir(""):
        yield request.param
    kernel_cache.clear_kernels()


@pytest.mark.parametrize("code", ["f4", "f8", "i8"])
def test_collected_values_are_not_below_the_limit(code, width):
    kernel = kernel_cache.get_kernel(
        COLLECT, "kernel", (f"{code}*", "i4*", f"{code}*", f"{code}*", "i8*")
    )
    src = (np.random.default_rng(0).standard_normal(N) * 9).astype(code)
    if code != "i8":
        src[3] = np.nan
    values, places = np.zeros(N + 16, code), np.zeros(N + 16, np.int32)
    limit, count = np.ones(1, code), np.zeros(1, np.int64)
    kernel.call(1, 1, *[a.ctypes.data for a in (values, places, src, limit, count)])
    expected = np.flatnonzero(~(src < 1))
    assert count[0] == len(expected)
    np.testing.assert_array_equal(places[: len(expected)], expected + 5)
    np.testing.assert_array_equal(values[: len(expected)], src[expected])


@pytest.mark.parametrize("code", ["i4", "i8"])
def test_distribute_keeps_the_order_of_lists(code, width):
    kernel = kernel_cache.get_kernel(
        DISTRIBUTE, "kernel", (f"{code}*", f"{code}*", f"{code}*", "i8*")
    )
    src = np.random.default_rng(1).integers(0, 800, N).astype(code)
    to, counts = np.zeros(8 * 100 + 16, code), np.zeros(8, np.int64)
    limits = np.arange(100, 800, 100).astype(code)
    kernel.call(1, 1, *[a.ctypes.data for a in (to, src, limits, counts)])
    for k in range(8):
        expected = src[src // 100 == k]
        np.testing.assert_array_equal(to[100 * k :][: counts[k]], expected)


PERMUTE = """
def kernel(lo, hi, to, src, size, places, result):
    room = stack_{code}()
    for u in range(lo, hi):
        permute(room, src, size[0], 7, places)
        for k in range(7):
            result[k] = room[k]
"""


@pytest.mark.parametrize("code", ["f4", "i4", "u4", "f8", "i8"])
def test_a_row_is_permuted(code, width):
    text = PERMUTE.replace("{code}", code)
    kernel = kernel_cache.get_kernel(
        text, "kernel", (f"{code}*", f"{code}*", "i8*", "i4*", f"{code}*")
    )
    src = (np.arange(8) * 3 + 1).astype(code)
    places = np.zeros(16, np.int32)
    places[:7] = [4, 0, 4, 2, 1, 3, 3]
    size, result = np.array([5]), np.zeros(7, code)
    kernel.call(1, 1, *[a.ctypes.data for a in (src, src, size, places, result)])
    np.testing.assert_array_equal(result, src[places[:7]])
