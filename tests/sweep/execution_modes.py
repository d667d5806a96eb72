"""The modes in which a call can run in either library.

The functions take a module (`jax` or `accnp`) and a call, and return a structure and arrays, or
raise the library's error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from api.answers import call as called
from api.answers import flatten_result, precision
from sweep.calls import Call

MODES = ("value", "jit", "vmap", "grad", "jvp", "hvp", "ranks", "strict")
Function = Callable[..., Any]


def tangent(shape: tuple[int, ...], dtype: Any, number: int) -> np.ndarray:
    """Return the direction along which an operand is differentiated."""
    size = int(np.prod(shape, dtype=np.int64))
    moves = np.cos(np.arange(size) + number).reshape(shape)
    if np.dtype(dtype).kind == "c":
        moves = moves * (1 + 0.5j)
    return np.asarray(moves).astype(dtype)


class ModeRunner:
    def __init__(self, m: Any) -> None:
        self.m = m

    def arrays(self, call: Call) -> dict[str, Any]:
        """Return all operands by letter."""
        return call.operands_of({"jnp": self.m.numpy, "jax": self.m})

    def function(self, call: Call, operands: dict[str, Any], trees: list[Any]) -> Function:
        """Return a function from the traceable operands to the arrays of the result.

        The structure of the result is stored in `trees`.
        """

        def run(*xs: Any) -> list[Any]:
            values = operands | dict(zip(call.traced, xs, strict=True))
            tree, leaves = flatten_result(self.m, called(self.m, call.name, call, values))
            trees[:] = [tree]
            return [self.m.numpy.asarray(x) for x in leaves]

        return run

    def moving(self, xs: Sequence[Any]) -> list[int]:
        """Return the positions of the differentiable operands."""
        m = self.m
        return [i for i, x in enumerate(xs) if m.dtypes.issubdtype(x.dtype, np.inexact)]

    def jit(self, f: Function, xs: Sequence[Any]) -> Any:
        return self.m.jit(f)(*xs)

    def pairs(self, xs: Sequence[Any]) -> list[Any]:
        """Stack each operand with its reverse."""
        m = self.m
        return [
            m.numpy.stack(
                [x, x if m.dtypes.issubdtype(x.dtype, m.dtypes.prng_key) else m.numpy.flip(x)]
            )
            for x in xs
        ]

    def vmap(self, f: Function, xs: Sequence[Any]) -> Any:
        return self.m.vmap(f)(*self.pairs(xs))

    def weighted(self, tree: Any) -> Any:
        """Return the weighted sum of all numbers, with the weights of
        `references.weighted_quotient`.
        """
        jnp, dtypes = self.m.numpy, self.m.dtypes
        kind = "float64" if self.m.config.jax_enable_x64 else "float32"
        total = jnp.zeros((), kind)
        for x in flatten_result(self.m, tree)[1]:
            if dtypes.issubdtype(x.dtype, np.inexact):
                factors = np.cos(np.arange(x.size)).reshape(x.shape).astype(kind)
                total = total + (jnp.real(x).astype(kind) * factors).sum()
                if dtypes.issubdtype(x.dtype, np.complexfloating):
                    total = total + (jnp.imag(x).astype(kind) * (factors + 0.5).astype(kind)).sum()
        return total

    def grad(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return the gradient of the weighted sum with respect to the differentiable operands."""
        places = self.moving(xs)

        def total(moved: list[Any]) -> Any:
            arguments = list(xs)
            for i, x in zip(places, moved, strict=True):
                arguments[i] = x
            return self.weighted(f(*arguments))

        return self.m.grad(total)([xs[i] for i in places])

    def jvp(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return the derivatives of all numbers along the tangents."""
        places = self.moving(xs)

        def results(*moved: Any) -> list[Any]:
            arguments = list(xs)
            for i, x in zip(places, moved, strict=True):
                arguments[i] = x
            leaves = flatten_result(self.m, f(*arguments))[1]
            return [x for x in leaves if self.m.dtypes.issubdtype(x.dtype, np.inexact)]

        tangents = [
            self.m.numpy.asarray(tangent(xs[i].shape, xs[i].dtype, n)) for n, i in enumerate(places)
        ]
        return self.m.jvp(results, tuple(xs[i] for i in places), tuple(tangents))[1]

    def hvp(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return the second derivatives along the tangents, by the JVP of the gradient of the
        weighted sum.
        """
        m, places = self.m, self.moving(xs)

        def gradient(*moved: Any) -> Any:
            arguments = list(xs)
            for i, x in zip(places, moved, strict=True):
                arguments[i] = x
            return self.grad(f, arguments)

        moved = [xs[i] for i in places]
        tangents = [m.numpy.asarray(tangent(x.shape, x.dtype, n)) for n, x in enumerate(moved)]
        return m.jvp(gradient, tuple(moved), tuple(tangents))[1]

    def ranks(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return the values with implicit rank promotion disabled."""
        with self.m.numpy_rank_promotion("raise"):
            return f(*xs)

    def strict(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return the values with implicit dtype promotion disabled."""
        with self.m.numpy_dtype_promotion("strict"):
            return f(*xs)

    def precision(self, call: Call) -> Any:
        return precision(self.m, call.wide)

    def packed(self, leaves: Sequence[Any]) -> list[tuple[np.ndarray, bool]]:
        """Return arrays as NumPy arrays, which can be sent to another process, with their weak
        flags.
        """
        return [(np.asarray(x), bool(getattr(x, "weak_type", False))) for x in leaves]


def applicable_modes(call: Call, modes: Sequence[str]) -> list[str]:
    """Return the modes that apply to a call: derivatives only if numbers are finite."""
    applicable = ["value", "ranks", "strict"]
    if call.traced:
        applicable.append("jit")
        if "rbg" not in str(call.given):  # batches of such keys draw other numbers: jax says so
            applicable.append("vmap")
        if call.layout != "special":
            applicable += ["grad", "jvp", "hvp"]
    return [mode for mode in applicable if mode in modes]
