"""Checks of derivatives against finite differences: `check_grads`, `check_jvp`, `check_vjp`.

A derivative in one random direction is compared with the difference quotient
(f(x + eps t) - f(x - eps t)) / (2 eps). An AssertionError reports a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from accnp.api.differentiation.derivatives import jvp, vjp
from accnp.dtypes import canonicalize_dtype, float0
from accnp.errors import api_boundary
from accnp.numpy.creation import asarray
from accnp.primitives.kinds import dtype_kind
from accnp.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS = 1e-4
Tolerance = float | dict[Any, float] | None
# Tolerances for this step, by the bits of a real number of the dtype.
_DEFAULT = {64: 1e-5, 32: 2e-3, 16: 1e-2, 8: 1e-1, 4: 1.0}
_ALONE = {np.dtype(np.complex64): 1e-3}


def _numbers_to_arrays(args: Sequence[Any]) -> tuple[Any, ...]:
    """Convert Python numbers among arguments to arrays, whose dtype derivatives have."""
    return tree_map(
        lambda x: asarray(x) if isinstance(x, int | float | complex) else x, tuple(args)
    )


def _dtype(x: Any) -> np.dtype:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _is_differentiable(x: Any) -> bool:
    """Return whether a leaf has a derivative: floating and complex ones do."""
    dtype = _dtype(x)
    return dtype != float0 and dtype_kind(dtype) in "fc"


def _tolerance(dtype: np.dtype, tolerance: Tolerance) -> float:
    if tolerance is not None and not isinstance(tolerance, dict):
        return tolerance
    for kind, value in (tolerance or {}).items():
        if np.dtype(kind) == dtype:
            return value
    if dtype in _ALONE:
        return _ALONE[dtype]
    if dtype.name == "bfloat16":
        return 1e-1
    bits = dtype.itemsize * (4 if dtype.kind == "c" else 8)
    return _DEFAULT[bits]


def _as_numpy(x: Any) -> Any:
    """Convert a leaf to NumPy, in double precision if it is floating or complex."""
    dtype = _dtype(x)
    if dtype == float0 or dtype_kind(dtype) not in "fc":
        return np.asarray(x)
    return np.asarray(x).astype(np.complex128 if dtype.kind == "c" else np.float64)


def _leaf_like(value: Any, x: Any) -> Any:
    """Convert a value to the type of a leaf: a Python number or a NumPy array."""
    if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic):
        return type(x)(value)
    return np.asarray(value).astype(_dtype(x))


def _random_like(rng: np.random.RandomState, x: Any) -> Any:
    if not _is_differentiable(x):
        return np.zeros(np.shape(x), float0)
    value = rng.standard_normal(np.shape(x))
    if _dtype(x).kind == "c":
        value = value + 1j * rng.standard_normal(np.shape(x))
    return _leaf_like(value, x)


def _add_step(x: Any, t: Any, step: float) -> Any:
    return _leaf_like(np.asarray(x) + step * np.asarray(t), x) if _is_differentiable(x) else x


def _difference(f: Callable[..., Any], args: Any, direction: Any, eps: float) -> list[Any]:
    """Return the difference quotient of each result leaf; None for leaves without a derivative."""
    ends = [
        tree_leaves(f(*tree_map(partial(_add_step, step=step), args, direction)))
        for step in (eps, -eps)
    ]
    return [
        (_as_numpy(high) - _as_numpy(low)) / (2 * eps) if _is_differentiable(high) else None
        for high, low in zip(*ends, strict=True)
    ]


def _same_types(xs: Sequence[Any], ys: Sequence[Any], what: str) -> None:
    for x, y in zip(xs, ys, strict=True):
        expected = _dtype(x) if _is_differentiable(x) else float0
        if what == "values":
            expected = _dtype(x)
        # NumPy and Python numbers have 64 bits; functions see them in the enabled dtypes.
        actual = _dtype(y)
        same = actual == expected or (
            float0 not in (actual, expected)
            and canonicalize_dtype(actual) == canonicalize_dtype(expected)
        )
        assert same, f"{what}: dtypes differ; got {_dtype(y)} for {_dtype(x)}"


def _close(
    actual: Any, expected: Any, like: Any, atol: Tolerance, rtol: Tolerance, text: str
) -> None:
    dtype = _dtype(like)
    if not _is_differentiable(like):
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected), err_msg=text)
        return
    np.testing.assert_allclose(
        _as_numpy(actual),
        expected,
        atol=_tolerance(dtype, atol),
        rtol=_tolerance(dtype, rtol),
        err_msg=text,
    )


def _compare_values(
    actual: Any, expected: Any, atol: Tolerance, rtol: Tolerance, text: str
) -> list[Any]:
    left, right = tree_leaves(actual), tree_leaves(expected)
    _same_types(right, left, "values")
    for a, b in zip(left, right, strict=True):
        _close(a, _as_numpy(b), b, atol, rtol, f"{text} primal".strip())
    return left


@api_boundary
def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a forward-mode derivative with finite differences.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    f_jvp : callable
        Function `(args, tangents) -> (value, tangent)`, usually `functools.partial(jvp, f)`.
    args : sequence
        Arguments at which to check.
    {check_tolerances}

    Raises
    ------
    AssertionError
        If values, dtypes or derivatives differ.

    See Also
    --------
    test_util.check_vjp : The same for reverse mode.
    test_util.check_grads : Check all modes and orders.

    Examples
    --------
    >>> import accnp as jnp
    >>> from functools import partial
    >>> jnp.test_util.check_jvp(jnp.sin, partial(jnp.jvp, jnp.sin), (0.5,), eps=1e-2)
    """
    args = _numbers_to_arrays(args)
    rng = np.random.RandomState(0)
    direction = tree_map(partial(_random_like, rng), args)
    value, tangent = f_jvp(args, direction)
    leaves = _compare_values(value, f(*args), atol, rtol, err_msg)
    pushed = tree_leaves(tangent)
    _same_types(leaves, pushed, "tangents")
    for x, t, expected in zip(leaves, pushed, _difference(f, args, direction, eps), strict=True):
        if expected is not None:
            _close(t, expected, x, atol, rtol, f"{err_msg} tangent".strip())


@api_boundary
def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Compare a reverse-mode derivative with finite differences, by <ct, J t> = <J* ct, t>.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    f_vjp : callable
        Function of the arguments that returns `(value, pull)`, usually `functools.partial(vjp, f)`.
    args : sequence
        Arguments at which to check.
    {check_tolerances}

    Raises
    ------
    AssertionError
        If values, dtypes or derivatives differ.

    See Also
    --------
    test_util.check_jvp : The same for forward mode.
    test_util.check_grads : Check all modes and orders.

    Examples
    --------
    >>> import accnp as jnp
    >>> from functools import partial
    >>> jnp.test_util.check_vjp(jnp.sin, partial(jnp.vjp, jnp.sin), (0.5,), eps=1e-2)
    """
    args = _numbers_to_arrays(args)
    rng = np.random.RandomState(0)
    value, pull = f_vjp(*args)
    leaves = _compare_values(value, f(*args), atol, rtol, err_msg)
    direction = tree_map(partial(_random_like, rng), args)
    ct = tree_map(partial(_random_like, rng), value)
    # Without conjugation the product would be <conj ct, .>, by JAX's convention for vjp.
    pulled = tree_leaves(pull(tree_map(_conjugate, ct)))
    inputs, ts = tree_leaves(args), tree_leaves(direction)
    _same_types(inputs, pulled, "cotangents")
    actual = _inner(ts, [_conjugate(x) for x in pulled])
    expected = _inner(_difference(f, args, direction, eps), tree_leaves(ct))
    smooth = [x for x in (*inputs, *leaves) if _is_differentiable(x)]
    if smooth:
        like = max(smooth, key=lambda x: _tolerance(_dtype(x), None))
        _close(actual, expected, like, atol, rtol, f"{err_msg} cotangent projection".strip())


def _conjugate(x: Any) -> Any:
    return _leaf_like(np.conj(np.asarray(x)), x) if _is_differentiable(x) else x


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        if x is not None and _is_differentiable(x) and _is_differentiable(y):
            total += float(np.sum(_as_numpy(x) * np.conj(_as_numpy(y))).real)
    return total


@api_boundary
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of a function with finite differences, in every mix of modes.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays of any shape. Integer leaves are held constant.
    args : sequence
        Arguments at which to check the derivatives.
    order : int
        Highest order of the derivatives to check: with 2, the first derivatives are differentiated
        and checked, too.
    modes : str or sequence of str, optional
        "fwd" for forward mode, "rev" for reverse mode, or both, the default.
    atol, rtol : float or dict, optional
        Absolute and relative tolerance, for all dtypes or a dictionary by dtype. The default is
        2e-3 for float32 and 1e-5 for float64.
    eps : float, optional
        Step of the finite differences. The default is 1e-4.

    Raises
    ------
    AssertionError
        If a derivative differs from the finite difference. The message says which one.

    See Also
    --------
    jvp : Forward-mode derivative.
    vjp : Reverse-mode derivative.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.test_util.check_grads(lambda x: jnp.sin(x) * x, (0.5,), order=2, eps=1e-2)
    """
    args = _numbers_to_arrays(args)
    eps = eps or EPS
    if "fwd" in modes:
        _check_forward(f, args, order, modes, atol, rtol, eps, "")
    if "rev" in modes:
        _check_reverse(f, args, order, modes, atol, rtol, eps, "")


def _derivative_name(text: str, name: str) -> str:
    return f"{name} of {text}" if text else name


def _check_forward(
    f: Any, args: Any, order: int, modes: Any, atol: Any, rtol: Any, eps: float, text: str
) -> None:
    text = _derivative_name(text, "JVP")
    check_jvp(f, partial(jvp, f), args, atol, rtol, eps, text)
    if order > 1:
        # As a function of the point and the direction, for which the same values are used.
        _check_both(
            _push_forward(f), (args, _own_tangents(args)), order, modes, atol, rtol, eps, text
        )


def _check_reverse(
    f: Any, args: Any, order: int, modes: Any, atol: Any, rtol: Any, eps: float, text: str
) -> None:
    text = _derivative_name(text, "VJP")
    check_vjp(f, partial(vjp, f), args, atol, rtol, eps, text)
    if order > 1:
        _check_both(_pull_back(f), args, order, modes, atol, rtol, eps, text)


def _check_both(
    f: Any, args: Any, order: int, modes: Any, atol: Any, rtol: Any, eps: float, text: str
) -> None:
    if "fwd" in modes:
        _check_forward(f, args, order - 1, modes, atol, rtol, eps, text)
    if "rev" in modes:
        _check_reverse(f, args, order - 1, modes, atol, rtol, eps, text)


def _own_tangents(args: Any) -> list[Any]:
    """Return the leaves of the arguments that have derivatives, as a direction."""
    return [x for x in tree_leaves(args) if _is_differentiable(x)]


def _differentiable_leaves(tree: Any) -> list[Any]:
    return [x for x in tree_leaves(tree) if _is_differentiable(x)]


def _push_forward(f: Callable[..., Any]) -> Callable[..., Any]:
    def value_and_tangent(args: Any, moving: list[Any]) -> Any:
        leaves, tree = tree_flatten(args)
        rest = iter(moving)
        ts = [
            next(rest) if _is_differentiable(x) else np.zeros(np.shape(x), float0) for x in leaves
        ]
        value, tangent = jvp(f, args, tree_unflatten(tree, ts))
        return value, _differentiable_leaves(tangent)

    return value_and_tangent


def _pull_back(f: Callable[..., Any]) -> Callable[..., Any]:
    def cotangents_of_value(*args: Any) -> Any:
        value, pull = vjp(f, *args)
        own = tree_map(
            lambda x: x if _is_differentiable(x) else np.zeros(np.shape(x), float0), value
        )
        return _differentiable_leaves(pull(own))

    return cotangents_of_value
