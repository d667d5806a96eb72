"""Compare arrays with JAX's results, or with reference values where JAX is less accurate.

The functions take accnp's result, JAX's result, and the call (a `recipes.Case`, or an object with
the same attributes), for which `references.py` has reference values. They raise
`ResultsDiffer` if the results disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from api.recipes import CallLike
from api.references import determined_part, gradient_quotients, reference_results
from api.support import value_of

import accnp

TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-11, "complex128": 1e-11}


class ResultsDiffer(Exception):
    """Results differ. The arguments are the class of the difference, as in `exceptions.txt`, and a
    description.
    """


def unpack_array(packed: list[Any]) -> np.ndarray:
    kind, _, shape, numbers = packed
    dtype = np.dtype(kind)
    if dtype.kind == "c":
        pairs = np.asarray(numbers, np.float64).reshape(-1, 2)
        return pairs.view(np.complex128).reshape(shape).astype(dtype)
    if dtype.kind not in "biu":
        numbers = np.asarray(numbers, np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype).reshape(shape)


def differs(
    value: np.ndarray, other: np.ndarray, signs: bool = False, rough: float | None = None
) -> np.ndarray:
    """Return where two arrays differ by more than rounding errors; `signs` also compares signs of
    zeros.
    """
    if value.dtype.kind in "biu":
        return value != other
    kind = value.dtype.name
    if value.dtype.kind == "c":
        value, other = (np.stack([x.real, x.imag], -1) for x in (value, other))
    a, b = value.astype(np.float64), other.astype(np.float64)
    rough = rough or TOLERANCES.get(kind, 2e-5)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        least = rough * (1 if kind in ("float16", "bfloat16") else 0.1)
        least *= min(scale, 1.0) if signs else max(scale, 0.1)
        differs = ~np.isclose(a, b, rtol=rough, atol=least, equal_nan=True)
        if signs:
            differs |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return differs.any(-1) if kind.startswith("complex") else differs


def check_type(actual: Any, expected: list[Any]) -> None:
    """Compare dtype, shape and weak flag of an array with a packed array."""
    kind, weak, shape = expected[:3]
    if (actual.dtype.name, list(actual.shape)) != (kind, shape):
        raise ResultsDiffer("type", f"{actual.dtype.name}{list(actual.shape)}, jax {kind}{shape}")
    if isinstance(actual, accnp.Array) and kind != "bool" and actual.weak_type != weak:
        raise ResultsDiffer("weak", f"{actual.weak_type}, jax {weak}")


def check_values(name: str, case: CallLike, actual: list[Any], theirs: list[np.ndarray]) -> None:
    """Raise `ResultsDiffer` unless each number matches JAX's or a reference by NumPy, SciPy or a
    formula.

    If the result is partly unspecified, only the specified part is compared.
    """
    signs = case.layout == "special"
    values = [value_of(x) for x in actual]
    shapes = [x.shape for x in values]
    same = [y.shape for y in theirs] == shapes
    if same and not any(differs(x, y, signs).any() for x, y in zip(values, theirs, strict=True)):
        return
    others = reference_results(name, case, tuple(x.dtype for x in values))
    ours = determined_part(name, case, values)
    wrong: list[np.ndarray] = []
    for answer in (theirs, others):
        if not answer or [y.shape for y in answer] != shapes:
            continue
        parts = determined_part(name, case, answer)
        masks = [differs(x, y, signs) for x, y in zip(ours, parts, strict=True)]
        wrong = [a & b for a, b in zip(wrong, masks, strict=True)] if wrong else masks
    if not wrong:
        raise ResultsDiffer("type" if theirs else "accepts", f"{values}, jax {theirs}")
    for i, mask in enumerate(wrong):
        if mask.any():
            places = np.nonzero(mask.ravel())[0][:6]
            text = f"{ours[i].flat[places]} at {places}"
            for who, answer in (("jax", theirs), ("others", others)):
                if [y.shape for y in answer] == shapes:
                    text += f", {who} {determined_part(name, case, answer)[i].flat[places]}"
            raise ResultsDiffer("value" if theirs else "accepts", text)


def check_gradient(
    name: str, case: CallLike, letter: str, gradient: np.ndarray, theirs: np.ndarray
) -> None:
    """Raise `ResultsDiffer` unless each derivative matches JAX's or a difference quotient."""
    rough = 2e-2 if "float16" in str(case) else None
    expected = theirs.copy()
    for place in np.nonzero(differs(gradient, theirs, rough=rough).ravel())[0].tolist():
        for quotient in gradient_quotients(name, case, letter, place):
            expected.flat[place] = quotient
            if not differs(gradient, expected, rough=rough).flat[place]:
                break
        else:
            text = f"{gradient.flat[place]}, jax {theirs.flat[place]}, quotients"
            quotients = gradient_quotients(name, case, letter, place)
            raise ResultsDiffer("grad", f"{text} {quotients} at {letter}, {place}")
