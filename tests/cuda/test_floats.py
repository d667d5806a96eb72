"""Errors of functions of float32 on GPUs: all arguments on hardware, some by the interpreter, and
many with units that are off by what is known of them at the worst."""

import os

import numpy as np
import pytest
import scipy.special
from cuda import floats
from cuda.native import natives
from cuda.support import on_gpu

from accnp.compiler.ptx import ptx_of

REAL = os.environ.get("ACCNP_TEST_GPU") == "1"
# Units as far off as is known, less the half that rounding adds: on an H200 powers of two are up to
# 2.06 too small below 0 and off by 1.4 above, reciprocals are within 1 by NVIDIA, inverse roots 2.
LOW, HIGH = (-1.56, -0.9), (0.5, 0.9)
OFF = [
    {},
    *[{"ex2": a, "rcp": (b, b), "lg2": (c, c), "rsqrt": (3 * b, 3 * b)}
      for a, b, c in ((LOW, 0.5, 1), (HIGH, -0.5, -1), (LOW, -0.5, -1), (HIGH, 0.5, 1))],
]  # fmt: skip
# With all of that at one place.
AT_WORST = {"exp": 2.1}
# Functions that processors and GPUs have in forms of their own, but for activations.
AGREEING = [name for name in floats.OF_UNITS if name not in floats.BOUNDS]
ENDS = [
    0, 1, -1, 0.5, 2, 88.72284, -87.33655, -103.972, -103.27893, 89.41, -88.029, 128, -126, -150,
    -45, 9.02, 20, -20, -115, 40, -16.6, 0.95, 0.70710678, 1.41421356, np.inf, 3.4028235e38, 1e-45,
    1.17549435e-38, np.nan,
]  # fmt: skip


def arguments(count):
    """Float32 of all magnitudes, and those around ends."""
    step = (1 << 32) // count
    bits = np.arange(count, dtype=np.uint64) * step
    bits += np.random.default_rng(3).integers(0, step, count).astype(np.uint64)
    ends = np.asarray(ENDS, np.float32).view(np.uint32).astype(np.int64)
    around = (ends[:, None] + np.arange(-60, 60)).ravel()
    both = np.concatenate([around, around ^ 0x80000000])
    return np.concatenate([bits, both.astype(np.uint64)]).astype(np.uint32).view(np.float32)


def right(name, x):
    with np.errstate(all="ignore"):
        return floats.wanted(name, x.astype(np.float64), np, scipy.special)


@pytest.fixture(scope="module")
def found():
    """On a GPU: what all arguments of a function give."""
    if REAL:
        return floats.on_device().whole
    x = arguments(1 << 11)

    def some(name):
        made = ptx_of(floats.mapped(name), ("f4*", "f4*"), tasks=True)
        (_, y), _ = on_gpu(made, [x, np.zeros_like(x)], [x.size])
        e = floats.errors(y, right(name, x))
        k = int(e.argmax())
        return floats.Worst(name, float(e[k]), float(x[k]), float(y[k]), int((e > 2).sum()), 0)

    return some


@pytest.mark.parametrize("name", floats.NAMES if REAL else ["exp", "erfc"])
def test_all_floats(found, name):
    worst = found(name)
    assert worst.error <= (floats.limit(name) if REAL else AT_WORST.get(name, floats.limit(name)))


@pytest.fixture(scope="module")
def native():
    return natives(floats.OF_UNITS)


@pytest.mark.parametrize("name", floats.OF_UNITS)
def test_results_for_any_unit_rounding(native, name):
    x = arguments(1 << 17)
    want = right(name, x)
    for off in OFF:
        e = floats.errors(native[name](x, **off), want)
        k = int(e.argmax())
        assert e[k] <= AT_WORST.get(name, floats.limit(name)), (off, x[k], want[k])


@pytest.fixture(scope="module")
def processor():
    return natives(AGREEING, of_units=False)


@pytest.mark.parametrize("name", AGREEING)
def test_processors_agree_to_two_units(native, processor, name):
    x = arguments(1 << 19)
    with np.errstate(all="ignore"):
        want = processor[name](x)
        for off in OFF:
            y = native[name](x, **off)
            unit = np.spacing(np.maximum(np.abs(y), np.abs(want)))
            same = (y == want) | np.isnan(y) & np.isnan(want)
            apart = np.where(same, 0, np.abs(y.astype("f8") - want) / unit)
            k = int(apart.argmax())
            assert apart[k] <= 2, (off, x[k], y[k], want[k])


@pytest.mark.parametrize("name", floats.UNITS)
def test_units_by_themselves(name):
    want, ((low, high), *_) = floats.UNITS[name]
    x = np.linspace(low, min(high, 1e30), 500, dtype=np.float32)
    made = floats.of_unit(name, (9, 0))
    assert f"{name}.f32" in made.text
    (_, y), _ = on_gpu(made, [x, np.zeros_like(x)], [x.size])
    assert floats.errors(y, want(np, x.astype(np.float64))).max() <= 1.6


def test_errors_of_special_values():
    y = np.array([1, 1.0000001, np.inf, np.nan, 0.0, 1e-45, 3e-45, np.inf, 1, -np.inf], np.float32)
    w = np.array([1, 1, np.inf, np.nan, -0.0, 0.0, 1e-50, 1e38, np.nan, np.inf])
    e = floats.errors(y, w)
    np.testing.assert_allclose(e[[0, 1, 2, 3, 5, 6]], [0, 1, 0, 0, 1, 2], atol=1e-4)
    assert (e[[4, 7, 8, 9]] > 1e29).all()
