"""`jet`: propagation of truncated Taylor series.

The derivatives of t -> f(x(t)) are computed one after the other: if g maps x and its first k
derivatives to the k-th derivative of f, then the jvp of g in the direction of the next derivatives
is the derivative of order k + 1. So every operation with a derivative supports series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, cast, wrap
from accnp.api.arguments.shapes import as_shape
from accnp.api.differentiation.derivatives import jvp
from accnp.array_type import Array
from accnp.errors import api_boundary
from accnp.numpy.creation import zeros
from accnp.numpy.manipulation import broadcast_to
from accnp.pytree import tree_flatten, tree_structure, tree_unflatten
from accnp.transforms.traversal import inexact

__all__ = ["jet"]


@api_boundary
def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """Propagate truncated Taylor series: derivatives of `fun(x(t))` at t = 0, given those of x.

    Parameters
    ----------
    fun : callable
        Function of floating or complex arrays that returns a pytree of arrays.
    primals : sequence of array_like
        Arguments x(0), of any shape.
    series : sequence of sequence of array_like
        For each argument, the derivatives of x at 0 from the first on, each of the shape and dtype
        of the argument. All have the same number of terms.
    factorial_scaled : bool, optional
        If True, the default, terms are derivatives. Otherwise they are the coefficients of the
        series (derivative k divided by k factorial), in inputs and outputs.

    Returns
    -------
    value : pytree of Array
        `fun(*primals)`.
    terms : pytree of list
        List of terms in the place of each result.

    Raises
    ------
    ValueError
        If arguments have different numbers of terms, an argument or a term is not an array, or a
        term does not broadcast to its argument.
    TypeError
        If an argument is neither floating nor complex.

    See Also
    --------
    jvp : First derivatives.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental.jet import jet
    >>> y, (first, second) = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> float(y), float(first), float(second)
    (0.0, 1.0, 0.0)
    """
    if len(set(map(len, series))) != 1:
        raise ValueError(
            "jet: terms have inconsistent lengths for different arguments; got "
            f"{list(map(len, series))} terms; pad with zeros"
        )
    if len(primals) != len(series):
        raise ValueError(
            f"jet: each argument needs its terms; got {len(primals)} arguments and terms for "
            f"{len(series)}; pass one list for each"
        )
    order = len(series[0])
    start = [_argument(i, x) for i, x in enumerate(primals)]
    scale = [1 if factorial_scaled else factorial(k + 1) for k in range(order)]
    rows = [
        [_convert_term(i, k, t, x) * f for k, (t, f) in enumerate(zip(terms, scale, strict=True))]
        for i, (x, terms) in enumerate(zip(start, series, strict=True))
    ]
    levels = [start, *map(list, zip(*rows, strict=True))]
    trees: list[Any] = []

    def values(*xs: Any) -> tuple[list[Any], list[Any]]:
        leaves, tree = tree_flatten(fun(*xs))
        arrays = [wrap(as_node(x, "jet")) for x in leaves]
        trees[:] = [tree, [x.aval for x in arrays]]
        moving = [x for x in arrays if inexact(x.dtype)]
        return moving, [[x for x in arrays if not inexact(x.dtype)]]

    def derivative(k: int) -> Callable[..., tuple[list[Any], list[Any]]]:
        """Map x and its first k derivatives to the k-th derivative of fun, and lower ones."""
        if k == 0:
            return values
        before, n = derivative(k - 1), len(start)

        def pushed(*xs: Any) -> tuple[list[Any], list[Any]]:
            ys, ts, rest = jvp(before, xs[: k * n], xs[n:], has_aux=True)
            return ts, [*rest, ys]

        return pushed

    last, rest = derivative(order)(*[x for level in levels for x in level])
    fixed, *coefficients = [*rest, last]
    tree, avals = trees
    ys, moving = iter(fixed), zip(*coefficients, strict=True)
    value, out = [], []
    for a in avals:
        y, *terms = next(moving) if inexact(a.dtype) else [next(ys)]
        value.append(y)
        if inexact(a.dtype):
            out.append([t if f == 1 else t / f for t, f in zip(terms, scale, strict=True)])
        else:
            out.append([zeros(a.shape, _term_dtype(a.dtype, factorial_scaled)) for _ in scale])
    return tree_unflatten(tree, value), tree_unflatten(tree, out)


def _term_dtype(dtype: np.dtype, factorial_scaled: bool) -> np.dtype:
    """Return the dtype of the terms of values that cannot be differentiated."""
    return dtypes.default_float() if factorial_scaled else dtype


def _argument(i: int, x: Any) -> Array:
    if not tree_structure(x).is_leaf():
        raise ValueError(f"primal value at position {i} is not an array; got {x!r}; pass one array")
    node = as_node(x, "jet")
    if not inexact(node.aval.dtype):
        raise TypeError(
            f"jet: primal value at position {i} is neither floating nor complex; got "
            f"{node.aval.dtype.name}; convert it with astype"
        )
    return wrap(node)


def _convert_term(i: int, k: int, t: Any, x: Array) -> Array:
    if not tree_structure(t).is_leaf():
        raise ValueError(f"term {k} for argument {i} is not an array; got {t!r}; pass one array")
    node = as_node(t, "jet")
    return broadcast_to(wrap(cast(node, x.dtype)), as_shape(x.shape, "jet"))
