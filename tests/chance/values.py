"""Arrays for random programs, and the comparison of two results.

A seed, a shape and a dtype give the same array on any machine. The comparison describes how two
arrays differ.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
NARROW = ["f4", "f2", "bf16", "i1", "u1", "i2", "u2", "i4", "u4", "?", "c8"]
WIDE = ["f8", "i8", "u8", "c16"]  # with x64 only
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, -3e-39, 1e-310, 6e-8, 3e38, 7e4, 88.8, -104.0,
           709.9, 1e18, -1e10, 1.0, -1.0, 0.5, 2.0]  # fmt: skip
CLOSE = {"float32": 3e-4, "float64": 1e-9, "float16": 2e-2, "bfloat16": 1e-1,
         "complex64": 3e-4, "complex128": 1e-9}  # fmt: skip


def dtype_of(name: str) -> np.dtype:
    return BF16 if name == "bf16" else np.dtype(name)


def kind_of(dtype: np.dtype) -> str:
    return "f" if dtype == BF16 else dtype.kind


def leaf(seed: int, shape: tuple[int, ...], name: str, special: bool = False) -> np.ndarray:
    """Return an array. A special one has infinities, NaNs, zeros of both signs, subnormal and huge
    numbers, and integers of all magnitudes.
    """
    rng, dtype = np.random.default_rng(seed), dtype_of(name)
    kind = kind_of(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        if special:
            return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
        return np.asarray(rng.integers(max(info.min, -9), 10, shape).astype(dtype))
    x = np.asarray(rng.standard_normal(shape) * 2)
    if kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    with np.errstate(all="ignore"):
        if special:
            x = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), x)
        return np.asarray(x.astype(dtype))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether arrays are bitwise equal; any two NaNs are equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return all(same_bits(np.array(f(a)), np.array(f(b))) for f in (np.real, np.imag))
    if kind_of(a.dtype) != "f":
        return bool((a == b).all())
    with np.errstate(all="ignore"):
        nan = np.isnan(a.astype("f8")) & np.isnan(b.astype("f8"))
    x, y = [np.ascontiguousarray(v).reshape(-1).view(f"u{v.dtype.itemsize}") for v in (a, b)]
    return bool(((x == y).reshape(a.shape) | nan).all())


def is_close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether arrays are equal up to rounding, relative to the largest number."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.name not in CLOSE:
        return bool((a == b).all())
    wide = "c16" if a.dtype.kind == "c" else "f8"
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        finite = np.isfinite(y)
        most = float(np.abs(y[finite]).max()) if finite.any() else 0.0
        bad = np.abs(x - y) > CLOSE[a.dtype.name] * (1 + most)
        bad |= np.isfinite(x) != finite
        return not (bad & finite).any() and float((np.isfinite(x) != finite).sum()) * 1e3 <= a.size


def difference(actual: np.ndarray, expected: np.ndarray) -> str:
    """Describe how two arrays differ."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"got {actual.dtype}{actual.shape} for {expected.dtype}{expected.shape}"
    wide = "c16" if actual.dtype.kind == "c" else "f8"
    with np.errstate(all="ignore"):
        x, y = actual.astype(wide), expected.astype(wide)
        bad = ~((x == y) | (np.isnan(x) & np.isnan(y)))
        if not bad.any():
            return "zeros of other signs"
        places = [tuple(map(int, at)) for at in np.argwhere(bad)[[0, -1]]]
        off = np.nanmax(np.where(bad, np.abs(x - y) / np.maximum(np.abs(y), 1e-300), 0))
    return (
        f"{int(bad.sum())} of {bad.size} differ, relatively by {off:.3g}; first at {places[0]}: "
        f"{actual[places[0]]!r} for {expected[places[0]]!r}, last at {places[1]}"
    )
