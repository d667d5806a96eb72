"""Expressions of arithmetic in the source of kernels."""

from __future__ import annotations

__all__ = ["multiply_add"]


def multiply_add(code: str, total: str, x: str, y: str, fused: bool = False) -> str:
    """Return the expression of total + x * y in a dtype, rounded once if it is `fused`. For bools
    it is a logical or of ands."""
    if code == "b1":
        return f"{total} | ({x} & {y})"
    return f"fma({x}, {y}, {total})" if fused else f"{code}({total} + {code}({x} * {y}))"
