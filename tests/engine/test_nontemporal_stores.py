"""Large results written with non-temporal stores are bit-identical to others in every layout."""

import ctypes

import numpy as np
import pytest

import accnp
import accnp.numpy as jnp
from accnp import engine
from accnp._native import STAGED_STORES, STREAMING_STORES, launch_released
from accnp.compiler.kernel_cache import clear_kernels, get_kernel
from accnp.config import scope, threads
from accnp.engine import traffic
from accnp.runtime import nontemporal

BY_LLVM = True

RNG = np.random.default_rng(5)


def normal(*shape):
    return jnp.asarray(RNG.standard_normal(shape).astype(np.float32))


CASES = {
    "flat": (lambda x, y: (x + y) * x - y, lambda: (normal(1_000_003), normal(1_000_003))),
    "two results": (lambda x: (jnp.sin(x), x > 0), lambda: (normal(700_001),)),
    "other width": (lambda x: x.astype(jnp.int8) * 2, lambda: (normal(900_001),)),
    "rows": (lambda a, b: a[:, None] * b + a[:, None], lambda: (normal(901), normal(1013))),
    "short rows": (lambda a, b: jnp.exp(a[:, None] - b), lambda: (normal(300_007), normal(7))),
    "folds over rows": (accnp.nn.softmax, lambda: (normal(2003, 517),)),
    "folds, then results": (accnp.nn.log_softmax, lambda: (normal(2003, 517),)),
    "folds, then results of short rows": (
        lambda x: x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True)),
        lambda: (normal(9001, 50),),
    ),
    "distances": (
        lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1),
        lambda: (normal(1201, 3), normal(907, 3)),
    ),
    "long rows": (lambda a, b: a[:, None] + b, lambda: (normal(9), normal(123_457))),
    "transposed": (lambda x: x.T + 1, lambda: (normal(1003, 999),)),
    # These are as many tiles as rows, and were written as rows: beyond the scratch of one.
    "as many tiles as rows": (lambda x: x.T + 1, lambda: (normal(4000, 48),)),
    "as many of complex numbers": (lambda x: x.T * (1 + 2j), lambda: (normal(4000, 48),)),
    "as many of two results": (lambda x: (x.T + 1, x.T > 0), lambda: (normal(4000, 48),)),
    "rolls": (lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -3, 1), lambda: (normal(999, 1001),)),
    "two results of rows": (
        lambda x: (x[1:] * x[:-1], x[1:] > x[:-1], jnp.roll(x, 1, 1)),
        lambda: (normal(999, 1001),),
    ),
    "a blur in bands": (
        lambda x: sum((x[:, 1:] + 2 * x[:, :-1])[i : i + 900] for i in range(3)) / 9,
        lambda: (normal(902, 1001),),
    ),
    "pieces": (lambda x: jnp.concatenate([x, x * 2]), lambda: (normal(600_001),)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_nontemporal_stores_change_no_bit(name, count, monkeypatch):
    f, make = CASES[name]
    arguments = make()
    expected = accnp.tree_util.tree_leaves(accnp.jit(f)(*arguments))
    monkeypatch.setattr(traffic, "LARGE", 1 << 12)
    engine._plans.clear()
    with threads(count):
        for _ in range(2):
            actual = accnp.tree_util.tree_leaves(accnp.jit(lambda *a: f(*a))(*arguments))
            for a, b in zip(actual, expected, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def _past(f, *arguments):
    """Return the outputs written with non-temporal stores, for each step of a function's plans."""
    engine._plans.clear()
    accnp.block_until_ready(f(*arguments))
    return [step.nontemporal for plan in engine._plans.values() for step in plan.steps]


def test_only_large_results_use_nontemporal_stores():
    big = 1 << 22
    assert _past(lambda x, y: x * y + 1.5, normal(big), normal(big)) == [
        (((0, 4),), ((1, 4), (2, 4)))
    ]
    assert _past(lambda x: x * 1.5, normal(big // 8)) == [((), ())]


ONE_WAY = ["flat", "rows", "folds over rows", "folds, then results", "transposed"]
ONE_WAY += ["as many tiles as rows", "rolls", "a blur in bands"]


@pytest.mark.parametrize("name", ONE_WAY)
def test_launches_request_nontemporal_stores(name, monkeypatch):
    """The table of launches requests the stores that the plan requests."""
    f, make = CASES[name]
    monkeypatch.setattr(traffic, "LARGE", 1 << 12)
    engine._plans.clear()
    clear_kernels()
    with scope("background_compilation", False):  # code of the first tier has no such stores
        accnp.block_until_ready(f(*make()))
    (plan,) = engine._plans.values()
    (table,) = plan.quick.__defaults__  # type: ignore
    assert table.words[3] == STREAMING_STORES


def test_loops_over_elements_and_rows_have_stores_of_their_own():
    flat = "def kernel(lo, hi, o, x):\n for i in range(lo, hi):\n  o[i] = x[i] * x[i]\n"
    nested = (
        "def kernel(lo, hi, o, x):\n for i in range(lo, hi):\n  p = 99 * i\n"
        "  for j in range(99):\n   o[p + j] = x[j]\n"
    )
    twice = nested + "  for j in range(99):\n   o[p + j] = o[p + j] + x[j]\n"
    # A result that no other loop reads or writes, after a reduction.
    folded = nested.replace(
        "  for j in range(99):\n", "  s = block_sum(x, 99)\n  for j in range(99):\n"
    ).replace("= x[j]", "= x[j] + s")
    first = folded.replace("  s =", "  for j in range(99):\n   x[j] = x[j] + x[j]\n  s =")
    texts = flat, nested, folded, first, twice
    kernels = [get_kernel(source, "kernel", ("f4*", "f4*")) for source in texts]
    assert [nontemporal.can_stream(k.address) for k in kernels] == [True] * 4 + [False]
    assert "nontemporal" in kernels[0].llvm()


@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("offset", [0, 4, 12, 32, 60])
@pytest.mark.parametrize("width", [1, 3, 16, 17, 100, 1037])
@pytest.mark.parametrize("code", ["f4", "f8", "b1"])
def test_rows_at_any_address(length, offset, width, code):
    more = " + exp(x[i + j]) * tanh(x[i + j])" if length == "long" else ""
    value = f"{code}(x[i + j] + x[i + j]{more})" if code != "b1" else "x[i + j] > f4(3)"
    source = (
        "def kernel(lo, hi, o, x, n):\n for i in range(lo, hi):\n  p = i * n\n"
        f"  for j in range(n):\n   o[p + j] = {value}\n"
    )
    kernel = get_kernel(source, "kernel", (f"{code}*", "f4*", "i8"))
    rows, x = 37, np.linspace(-3, 9, width + 40, dtype=np.float32)
    expected = np.zeros((rows, width), {"b1": bool}.get(code, code))
    kernel.call(rows, rows, expected.ctypes.data, x.ctypes.data, width)
    raw = np.zeros(expected.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    place = raw.ctypes.data + start
    launch_released(STREAMING_STORES, rows, 5, kernel.address, place, x.ctypes.data, width)
    assert raw[start : start + expected.nbytes].tobytes() == expected.tobytes()
    assert not raw[:start].any()
    assert not raw[start + expected.nbytes :].any()


@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("offset", [0, 4, 32])
@pytest.mark.parametrize("n", [1, 128, 1037, 5000])
def test_own_stores_at_any_address(length, offset, n):
    """The body has a loop for whole vectors and a loop with masks only, for two widths
    of results."""
    more = " + exp(x[i]) * tanh(x[i])" if length == "long" else ""
    source = (
        "def kernel(lo, hi, o, p, x):\n for i in range(lo, hi):\n"
        f"  t = x[i] + x[i]{more}\n  o[i] = t\n  p[i] = t > f4(5)\n"
    )
    kernel = get_kernel(source, "kernel", ("f4*", "b1*", "f4*"))
    x = np.linspace(-3, 9, n, dtype=np.float32)
    expected = np.zeros(n, np.float32), np.zeros(n, bool)
    kernel.call(n, n, *[a.ctypes.data for a in (*expected, x)])
    raw = [np.zeros(size * n + 256, np.uint8) for size in (4, 1)]
    starts = [-r.ctypes.data % 64 + offset for r in raw]
    places = [r.ctypes.data + start for r, start in zip(raw, starts, strict=True)]
    launch_released(STREAMING_STORES, n, 640, kernel.address, *places, x.ctypes.data)
    for r, start, w in zip(raw, starts, expected, strict=True):
        np.testing.assert_array_equal(r[start : start + w.nbytes].view(w.dtype), w)
        assert not r[:start].any()
        assert not r[start + w.nbytes :].any()


@pytest.mark.parametrize("offset", [0, 4, 60])
@pytest.mark.parametrize("n", [1, 15, 1000, 5000])
def test_results_at_any_address(offset, n):
    source = "def kernel(lo, hi, o, x):\n for i in range(lo, hi):\n  o[i] = x[i] + x[i]\n"
    kernel = get_kernel(source, "kernel", ("f4*", "f4*"))
    x = np.arange(n, dtype=np.float32)
    raw = np.zeros(4 * n + 256, np.uint8)
    start = raw.ctypes.data % 64 and 64 - raw.ctypes.data % 64
    place = raw.ctypes.data + start + offset
    pieces = ((0, 4),), ((1, 4),)
    own = [place, x.ctypes.data]
    launch_released(
        STAGED_STORES, n, 640, kernel.address, *nontemporal.header(2, 128, *pieces), *own
    )
    out = np.ctypeslib.as_array((ctypes.c_float * n).from_address(place))
    np.testing.assert_array_equal(out, 2 * x)
    assert not raw[: start + offset].any()
    assert not raw[start + offset + 4 * n :].any()


def test_assembled_results_use_temporal_stores():
    x = normal(40, 50)
    f = accnp.jit(lambda x: accnp.lax.fori_loop(0, 5, lambda i, v: jnp.roll(v, 1, 0) + v * i, x))
    expected = np.asarray(x)
    for i in range(5):
        expected = np.roll(expected, 1, 0) + expected * np.float32(i)
    np.testing.assert_array_equal(np.asarray(f(x)), expected)


def test_scattered_updates_use_temporal_stores(monkeypatch):
    monkeypatch.setattr(traffic, "LARGE", 1 << 14)
    i = np.arange(3000, dtype=np.int32)

    def goes_past(n):
        leaves = normal(5000), normal(n), jnp.asarray(i[:n])
        past = _past(lambda y, x, i: (y + 1).at[i].add(x), *leaves)
        return any(results for results, _ in past)

    assert goes_past(30)
    assert not goes_past(3000)
