"""Compiles and runs kernel source with the intrinsics as globals."""

from __future__ import annotations

from typing import Any

import numpy as np

from accnp.compiler import kernel_cache

NAMES = {
    "bool": "b1",
    **{f"{k}{b}": f"{k[0]}{b // 8}" for k in ("int", "uint", "float") for b in (8, 16, 32, 64)},
    "complex64": "c8",
    "complex128": "c16",
}


def token(dtype: Any) -> str:
    return NAMES[np.dtype(dtype).name]


def compiled(source: str, signature: tuple[str, ...]) -> Any:
    return kernel_cache.get_kernel(source, "kernel", signature)


def run(source: str, n: int, *arrays: np.ndarray) -> Any:
    """Runs ``kernel(lo, hi, *arrays)`` over range(n)."""
    kernel = compiled(source, tuple(token(a.dtype) + "*" for a in arrays))
    kernel.run(kernel_cache.pack([a.ctypes.data for a in arrays]), n, max(n, 1))
    return kernel


def mapped(expression: str, out: Any, *arrays: Any) -> np.ndarray:
    """The expression in x0, x1, ... for each element of the arrays."""
    arrays = tuple(np.ascontiguousarray(a) for a in arrays)
    result = np.empty(arrays[0].shape, out)
    names = [f"a{k}" for k in range(len(arrays))]
    lines = [f"def kernel(lo, hi, {', '.join(names)}, o0):", "    for i in range(lo, hi):"]
    lines += [f"        x{k} = a{k}[i]" for k in range(len(arrays))]
    lines += [f"        o0[i] = {token(out)}({expression})", ""]
    run("\n".join(lines), result.size, *arrays, result)
    return result
