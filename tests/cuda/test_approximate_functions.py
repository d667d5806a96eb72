"""float32 functions that use the GPU's approximate instructions, which return an adjacent number.
The functions are as accurate as on the CPU, or slightly less where later rounding does not hide an
instruction's error.
"""

import re

import numpy as np
import pytest
from compiler.llvm.test_mathlib import REFERENCE, points, worst_ulp
from cuda.support import interpret
from mpmath import mp, mpf

from accnp.compiler.llvm.scalars.gpu import GPU
from accnp.compiler.ptx import ptx_of

NAMES = [*GPU, "exp", "logistic", "silu", "mish", "tanh_cdf", "sinh", "cosh", "sin", "cos"]
# Those of exp take 1.5 ulp of the unit to a little more than 2; the rest are functions of nn.
BOUNDS = {"exp": 2.3, "exp2": 2.3, **dict.fromkeys(["silu", "mish", "tanh_cdf"], 4.0)}


def run_elementwise(expression, *xs, **how):
    names = "xy"[: len(xs)]
    source = f"def kernel(lo, hi, {', '.join(names)}, o):\n    for i in range(lo, hi):\n"
    calls = ", ".join(f"{name}[i]" for name in names)
    source += f"        o[i] = {expression}({calls})\n"
    kernel = ptx_of(source, ("f4*",) * (len(xs) + 1), tasks=True, **how)
    (*_, result), _ = interpret(kernel, [*xs, np.zeros_like(xs[0])], [xs[0].size])
    return result, kernel.text


@pytest.mark.parametrize("name", NAMES)
def test_within_two_ulp(name):
    x = points(np.float32, 400)
    limits = np.array([0.95, 1.0, 0.70710678, 1.41421356, 88.72, -87.34, -103.27], np.float32)
    beside = [np.nextafter(limits, np.float32(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([x, limits, -limits, *beside, *(-b for b in beside)])
    x = x[x != 0] if name == "rsqrt" else x
    expected = [REFERENCE[name](float(v)) for v in x]
    actual, text = run_elementwise(name, x)
    assert not re.search(r"\.global \.align 4", text)  # tables
    assert worst_ulp(actual, expected, (x,), np.float32) <= BOUNDS.get(name, 2.0)


def test_exp_of_a_difference():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-90, 30, 400), [-np.inf, -np.inf, 0, -1e30, 3]])
    top = np.concatenate([x[:400] + rng.uniform(0, 110, 400), [1, 1e30, 1e30, -1e30, 3]])
    x, top = x.astype(np.float32), top.astype(np.float32)
    top = np.maximum(x, top)
    expected = [mp.exp(mpf(float(a)) - mpf(float(b))) for a, b in zip(x, top, strict=True)]
    actual, _ = run_elementwise("exp_difference", x, top)
    assert worst_ulp(actual, expected, (x, top), np.float32) <= 3.0


@pytest.mark.parametrize("name", GPU)
def test_fastmath_kernels_use_approximate_functions(name):
    x = np.linspace(0.1, 3, 200, dtype=np.float32)
    expected = [float(REFERENCE[name](float(v))) for v in x]
    actual, _ = run_elementwise(name, x, fastmath=True)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


def test_inverse_roots_at_the_edges():
    x = np.array([0.0, -0.0, np.inf, -np.inf, -1.0, np.nan, 1e-45], np.float32)
    roots, _ = run_elementwise("rsqrt", x)
    np.testing.assert_array_equal(roots[:6], [np.inf, -np.inf, 0, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(roots[6], 2.6713738e22, rtol=3e-7)


def test_doubles_use_no_approximate_instructions():
    source = "def kernel(x, y):\n    i = thread()\n"
    calls = "".join(f"    y[i + {k}] = {name}(x[i])\n" for k, name in enumerate(NAMES))
    assert ".approx" not in ptx_of(source + calls, ("f8*", "f8*")).text
