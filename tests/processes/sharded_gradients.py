"""Gradients of functions of sharded arrays, for one process and for four.

A gradient has the sharding of its operand, as in JAX 0.10.2 (with `jax.grad` of the sum, on a mesh
of type Explicit, under `set_mesh`): the operands of `sharded_operations.py` have the specs below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPECS = {
    "x": "P('a', 'b')", "y": "P('a', None)", "z": "P(None, 'a')", "w": "P(None, None)",
    "v": "P('a',)",
}  # fmt: skip
# The names of two operands, and a function of a namespace and the operands.
GRADIENTS: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "elementwise": ("xw", lambda m, x, w: m.numpy.sin(x) * x),
    "y@w": ("yw", lambda m, x, y: x @ y),
    "z@w": ("zw", lambda m, x, y: x @ y),
    "w@y": ("wy", lambda m, x, y: x @ y),
    "x@w": ("xw", lambda m, x, y: x @ y),
    "w@z": ("wz", lambda m, x, y: x @ y),
    "w@v": ("wv", lambda m, x, v: x @ v),
    "two layers": ("yw", lambda m, x, w: m.numpy.tanh(x @ w) @ w),
    "two layers of columns": ("zw", lambda m, x, w: m.numpy.tanh(x @ w) @ w),
    "einsum": ("yw", lambda m, x, w: m.numpy.einsum("ij,jk->ik", x, w)),
    "broadcast": ("wv", lambda m, x, v: v[:, None] * x),
    "sum": ("xw", lambda m, x, w: x.sum(0) ** 2),
    "max": ("yw", lambda m, x, w: x.max(1) ** 2),
    "mean": ("xw", lambda m, x, w: x.mean() ** 2),
    "softmax": ("yw", lambda m, x, w: m.nn.softmax(x) ** 2),
    "slice": ("yw", lambda m, x, w: x[:, 1:3] ** 2),
    "index": ("yw", lambda m, x, w: x[:, 1] ** 2),
    "concatenate": ("yy", lambda m, x, w: m.numpy.concatenate([x, w], 1) ** 2),
    "stack": ("yy", lambda m, x, w: m.numpy.stack([x, w]) ** 2),
    "take": ("yw", lambda m, x, w: x[:, m.numpy.array([0, 1])] ** 2),
    "reshape": ("yw", lambda m, x, w: x.reshape(16) ** 2),
    "split": ("yv", lambda m, x, v: v.reshape(2, 2) ** 2),
    "where": ("xw", lambda m, x, w: m.numpy.where(x > 1, x, 0.0) ** 2),
    "transpose": ("xw", lambda m, x, w: x.T**2),
    "cumsum": ("yw", lambda m, x, w: x.cumsum(1) ** 2),
    "pad": ("yw", lambda m, x, w: m.numpy.pad(x, ((0, 0), (1, 1))) ** 2),
    "sort": ("yw", lambda m, x, w: m.numpy.sort(x, 1)[:, :2] ** 2),
    "top_k": ("yw", lambda m, x, w: m.lax.top_k(x, 2)[0] ** 2),
    "top_k of whole rows": ("wv", lambda m, x, w: m.lax.top_k(x, 2)[0] ** 2),
    "take_along_axis": (
        "yw",
        lambda m, x, w: m.numpy.take_along_axis(x, m.numpy.argsort(x, 1), 1)[:, :2] ** 2,
    ),
    "both": ("xw", lambda m, x, w: (x * 0 + w).sum(0) ** 2),
    "one is not used": ("yx", lambda m, x, w: x.sum()),
}
