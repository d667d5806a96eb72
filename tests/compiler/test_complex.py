"""Kernels of complex numbers that fusion makes: loop IR, with the same bits by each back end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accnp as jnp
from accnp.compiler import kernel_cache
from accnp.compiler.ir_tools.parser import parse_kernel
from accnp.compiler.ir_tools.verifier import verify
from accnp.compiler.loops.ir import Kernel
from accnp.compiler.loops.printer import print_kernel
from accnp.config import config
from accnp.engine import steps

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda m, a, b: a + b * 2 - a / b,
    "product": lambda m, a, b: -a * m.conj(b),
    "parts": lambda m, a, b: m.where(a.real > b.imag, a, b.real),
    "functions": lambda m, a, b: m.exp(a) + m.sqrt(b) * m.tanh(a),
    "powers": lambda m, a, b: a**b + a**3,
    "absolute": lambda m, a, b: m.abs(a) + m.angle(b),
    "tests": lambda m, a, b: (a == b) | m.isnan(a),
    "transposed": lambda m, a, b: a.T + b.T * 1j,
    "slices": lambda m, a, b: a[1:] - b[:-1],
    "all": lambda m, a, b: (a * b).sum(),
    "rows": lambda m, a, b: a.sum(1) + (a * b).sum(1),
    "products of rows": lambda m, a, b: (a / m.abs(a)).prod(1),
    "columns": lambda m, a, b: (a * b).sum(0),
    "products of columns": lambda m, a, b: (a / m.abs(a)).prod(0),
    "centred": lambda m, a, b: a - a.mean(1, keepdims=True),
    "deviations": lambda m, a, b: b.std(0),
    "short rows": lambda m, a, b: (a[:, :3] * b[:, :3]).sum(1),
    "short columns": lambda m, a, b: a[:, :3].sum(0),
}
SHAPES = ((5, 3), (40, 33), (3, 1100), (1100, 4))


def result_and_kernels(
    function: Callable[[Any, Any], Any], a: Any, b: Any
) -> tuple[np.ndarray, list[Kernel]]:
    """What a compiled function returns, and its kernels."""
    kernels: list[Any] = []
    step = steps.KernelStep.__init__

    def record(self: steps.KernelStep, text: Any, *args: Any) -> None:
        kernels.append(text.kernel)
        step(self, text, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps.KernelStep, "__init__", record)
        return np.asarray(jnp.jit(lambda a, b: function(a, b))(a, b)), kernels


def operands(shape: tuple[int, int], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(2, *shape)) @ np.eye(shape[1]) for _ in "ab")
    return (a[0] + 1j * a[1]).astype(dtype), (b[0] + 1j * b[1]).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: str) -> None:
    function = FUNCTIONS[name]
    with jnp.enable_x64():
        for shape in SHAPES:
            a, b = operands(shape, dtype)
            actual, kernels = result_and_kernels(lambda x, y: function(jnp, x, y), a, b)
            assert kernels
            for kernel in kernels:
                assert kernel is not None, "a kernel is Python text"
                verify(kernel)
                assert parse_kernel(print_kernel(kernel)) == kernel
            expected = function(np, a, b)
            error = (
                np.abs(actual - expected).max()
                if actual.dtype != bool
                else (actual != expected).sum()
            )
            assert error <= 3e-5 * (1 + np.abs(expected).max()) * (
                1 if dtype == "complex64" else 1e-8
            )


@pytest.mark.parametrize("name", ["functions", "rows", "columns", "products of rows", "short rows"])
def test_numba_gives_the_same_bits(name: str) -> None:
    a, b = operands((40, 33), "complex64")
    actual, _ = result_and_kernels(lambda x, y: FUNCTIONS[name](jnp, x, y), a, b)
    compiler, folder = config.compiler, config.cache_dir
    try:
        config.update("compiler", "numba")
        config.update("cache_dir", "")
        kernel_cache.clear_kernels()
        other, _ = result_and_kernels(lambda x, y: FUNCTIONS[name](jnp, x, y), a, b)
    finally:
        config.update("compiler", compiler)
        config.update("cache_dir", folder)
        kernel_cache.clear_kernels()
    assert other.tobytes() == actual.tobytes()
