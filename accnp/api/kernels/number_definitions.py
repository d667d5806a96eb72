"""Functions of accnp on numbers that differ from NumPy's or Numba's function of the same name.

`ScalarText` writes these definitions into kernels. They work for integers and floats, and use
ufuncs instead of operators, so that the result has the type of the arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["fmod", "reciprocal", "round_half_away", "round_half_even", "sign"]


def fmod(x: Any, y: Any) -> Any:
    # Numba's np.fmod takes the bits of negative integers as those of unsigned ones.
    r = np.fmod(np.absolute(x), np.absolute(y))
    if x < 0:
        return np.negative(r)
    if x == 0:
        return np.subtract(x, r)  # keeps the sign of zero, and NaN
    return r


def reciprocal(x: Any) -> Any:
    return np.reciprocal(x * np.float32(1))  # a float also for integers


def sign(x: Any) -> Any:
    # Numba's np.sign gives -1 for large unsigned integers.
    s = np.sign(x)
    return np.multiply(s, s) if x > 0 else s


def round_half_even(x: Any) -> Any:
    whole = np.trunc(x)
    rest = np.subtract(x, whole)  # exact
    half = whole * 0.5
    if abs(rest) > 0.5:
        return np.add(whole, np.sign(rest))
    if abs(rest) == 0.5 and np.trunc(half) != half:
        return np.add(whole, np.sign(rest))
    return whole


def round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    rest = np.subtract(x, whole)  # exact
    if abs(rest) >= 0.5:
        return np.add(whole, np.sign(rest))
    return whole
