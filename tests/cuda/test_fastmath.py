"""GPU kernels with `fastmath`: approximate instructions and fused multiply-adds."""

import numpy as np
import pytest
from cuda.support import interpret

from accnp.compiler.llvm.scalars.approximate import FAST, FAST_BINARY
from accnp.compiler.ptx import ptx_of

X = np.linspace(0.05, 3, 400, dtype=np.float32)
EXACT = {
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "tanh_cdf": lambda x: 1 / (1 + np.exp(-np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def text(expression):
    return f"def kernel(lo, hi, x, y):\n    for i in range(lo, hi):\n        y[i] = {expression}\n"


@pytest.mark.parametrize("name", FAST)
def test_functions_use_approximate_instructions(name):
    kernel = ptx_of(text(f"{name}(x[i])"), ("f4*", "f4*"), tasks=True, fastmath=True)
    assert ".approx" in kernel.text
    plain = ptx_of(text(f"{name}(x[i])"), ("f4*", "f4*"), tasks=True)
    (_, actual), fast = interpret(kernel, [X, np.zeros_like(X)], [X.size])
    expected = EXACT.get(name, getattr(np, name, None))(X.astype(np.float64))
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)
    _, slow = interpret(plain, [X, np.zeros_like(X)], [X.size])
    assert fast.steps <= slow.steps


@pytest.mark.parametrize("name", FAST_BINARY)
def test_binary_functions_use_approximate_instructions(name):
    source = "def kernel(lo, hi, x, y, z):\n    for i in range(lo, hi):\n"
    source += f"        z[i] = {name}(x[i], y[i])\n"
    kernel = ptx_of(source, ("f4*",) * 3, tasks=True, fastmath=True)
    assert ".approx" in kernel.text
    assert ".f64" not in kernel.text
    assert ".approx" not in ptx_of(source, ("f4*",) * 3, tasks=True).text
    y = np.where(np.arange(X.size) % 50, -X[::-1], np.inf).astype(np.float32)
    x = np.where(np.arange(X.size) % 100, X, np.inf).astype(np.float32)
    (*_, actual), _ = interpret(kernel, [x, y, np.zeros_like(X)], [X.size])
    expected = getattr(np, name)(x.astype(np.float64), y)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


def test_division_is_approximate():
    kernel = ptx_of(text("x[i] / y[i]"), ("f4*", "f4*"), tasks=True, fastmath=True)
    assert ".approx" in kernel.text or "div.full" in kernel.text
    assert "div.rn" in ptx_of(text("x[i] / y[i]"), ("f4*", "f4*"), tasks=True).text


def test_doubles_stay_exact():
    source = text("exp(x[i])")
    fast = ptx_of(source, ("f8*", "f8*"), tasks=True, fastmath=True)
    assert ".approx" not in fast.text
