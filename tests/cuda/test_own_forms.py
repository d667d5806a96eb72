"""Functions of float32 that GPUs compute in a way of their own, with units that give a neighbour of
the nearest number: the accuracy of the processor's forms."""

import numpy as np
import pytest
from cuda.support import on_gpu
from kernels.test_mathlib import REFERENCE, points, worst_ulp

from accnp.kernels.math.gpu import GPU
from accnp.runtime.ptx import ptx_of

BEYOND = {"exp": 2.5}  # a unit within 2 ulp leaves no room for what rounds its argument


def mapped(name, x, **how):
    source = "def kernel(lo, hi, x, y):\n    for i in range(lo, hi):\n"
    made = ptx_of(f"{source}        y[i] = {name}(x[i])\n", ("f4*", "f4*"), tasks=True, **how)
    (_, found), _ = on_gpu(made, [x, np.zeros_like(x)], [x.size])
    return found


@pytest.mark.parametrize("name", GPU)
def test_within_two_ulp(name):
    x = points(np.float32, 400)
    limits = np.array([0.95, 1.0, 2 / 3, 4 / 3, 88.72, -87.34, -103.27], np.float32)
    beside = [np.nextafter(limits, np.float32(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([x, limits, -limits, *beside, *(-b for b in beside)])
    want = [REFERENCE[name](float(v)) for v in x]
    assert worst_ulp(mapped(name, x), want, (x,), np.float32) <= BEYOND.get(name, 2.0)


@pytest.mark.parametrize("name", GPU)
def test_fast_kernels_have_them_too(name):
    x = np.linspace(0.1, 3, 200, dtype=np.float32)
    want = [float(REFERENCE[name](float(v))) for v in x]
    np.testing.assert_allclose(mapped(name, x, fastmath=True), want, rtol=2e-6, atol=2e-6)


def test_doubles_have_one_form():
    source = "def kernel(x, y):\n    i = thread()\n"
    calls = "".join(f"    y[i + {k}] = {name}(x[i])\n" for k, name in enumerate(GPU))
    assert ".approx" not in ptx_of(source + calls, ("f8*", "f8*")).text
