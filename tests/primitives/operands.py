"""Define `Case`, the description of a test case of an op, and functions that draw its operands.
Operands are float64, so that finite differences are accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import accnp.api  # noqa: F401 - fills the table
from accnp.ir.op import o

__all__ = ["Case", "bools", "cplx", "ints", "nats", "real"]

rng = np.random.default_rng(7)


@dataclass
class Case:
    """Operands and parameters of one op.

    Attributes:
        inputs: NumPy arrays.
        params: static parameters, in the op's order.
        diff: whether derivatives are compared with differences.
        second: whether second derivatives are.
        tol: relative tolerance of these comparisons.
        fixed: operands with respect to which no derivative is known.
        pre, post: applied to the operand nodes first, to the result last.
    """

    op: str
    inputs: tuple[np.ndarray, ...]
    params: dict[str, Any] = field(default_factory=dict)
    pre: Callable[..., Any] | None = None
    post: Callable[..., Any] | None = None
    diff: bool = True
    second: bool = True
    tol: float = 2e-6
    fixed: tuple[int, ...] = ()

    def record(self, *nodes: Any) -> Any:
        """Record the op on nodes; several results come as a list."""
        if self.pre is not None:
            nodes = self.pre(*nodes)
        y = getattr(o, self.op + "_" if self.op in ("and", "or", "not") else self.op)(
            *nodes, **self.params
        )
        return self.post(y) if self.post is not None else y

    def __str__(self) -> str:
        shapes = ",".join(f"{x.dtype.name}{list(x.shape)}" for x in self.inputs)
        return f"{self.op}-{shapes}"


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return random float64 numbers that are all different and not close to integers."""
    x = rng.uniform(low, high, shape)
    near = np.abs(x - np.round(x)) < 0.05
    return np.where(near, x + 0.1, x)


def cplx(*shape: int) -> np.ndarray:
    return real(*shape) + 1j * real(*shape)


def ints(*shape: int, low: int = -9, high: int = 9) -> np.ndarray:
    return rng.integers(low, high, shape).astype(np.int32)


def nats(*shape: int) -> np.ndarray:
    return rng.integers(0, 9, shape).astype(np.uint32)


def bools(*shape: int) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(bool)
