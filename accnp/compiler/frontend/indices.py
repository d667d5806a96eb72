"""Affine indices of expressions: sums of variables times integers, and a constant."""

from __future__ import annotations

from collections.abc import Collection

from accnp.compiler.loops.builder import affine, plus
from accnp.compiler.loops.ir import Call, Const, Expr, Index, Var, dtype
from accnp.compiler.loops.types import I8

__all__ = ["as_index", "combined_index", "is_index"]


def is_index(x: Expr, known: Collection[Var]) -> bool:
    """Return whether an expression is an affine index of variables that are such."""
    if isinstance(x, Const):
        return x.dtype == I8
    return isinstance(x, Index) or (isinstance(x, Var) and x in known)


def combined_index(name: str, x: Expr, y: Expr) -> Expr | None:
    """Return the sum, the difference or the product of two affine indices; None if the result is
    not an affine index, or for other operators."""
    if not all(isinstance(v, Const | Var | Index) and dtype(v) == I8 for v in (x, y)):
        return None
    if name == "add":
        return plus(x, y)
    if name == "sub":
        minus = _multiply_index(y, Const(-1, I8))
        return None if minus is None else plus(x, minus)
    if name == "mul":
        return _multiply_index(x, y) or _multiply_index(y, x)
    return None


def _multiply_index(x: Expr, y: Expr) -> Expr | None:
    """Return an index times a constant or a variable, which may be the factor of a term only."""
    if isinstance(x, Const):
        if isinstance(y, Const):
            return Const(x.value * y.value, I8)
        return _multiply_index(y, x) if isinstance(y, Index | Var) else None
    if not isinstance(x, Index | Var):
        return None
    x = Index(((x, 1),)) if isinstance(x, Var) else x
    terms, constant = x.terms, x.constant
    if isinstance(y, Const):
        factor = int(y.value)
        scaled = [(v, k * factor) for v, k in terms if not isinstance(k, Var)]
        return affine(*scaled, constant=constant * factor) if len(scaled) == len(terms) else None
    if not isinstance(y, Var) or any(k != 1 for _, k in terms):
        return None
    return affine(*[(v, y) for v, _ in terms], *([(y, constant)] if constant else []))


def as_index(x: Expr) -> Expr:
    """Return an expression of integers as an affine index if it is one; indices in memory do not
    overflow."""
    if isinstance(x, Call) and x.dtype == I8 and x.function in ("add", "sub", "mul"):
        parts = [as_index(a) for a in x.args]
        return combined_index(x.function, *parts) or Call(x.function, tuple(parts), I8)
    return x
