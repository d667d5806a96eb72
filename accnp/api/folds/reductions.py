"""Reductions over axes.

In: arrays, `axis` (None, an int, several), `keepdims`, `where`. Out: lazy Arrays.

Accumulation follows jax: narrow integers and bools add up in the default integer, float16 and
bfloat16 in float32; the result of a floating reduction has the input's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import (
    as_node,
    broadcast_nodes,
    cast,
    scalar_node,
    to_shape,
    wrap,
)
from accnp.api.arguments.shapes import as_axes, as_axis
from accnp.api.arguments.values import no_out
from accnp.api.compiled.named import shown
from accnp.api.elements import ufunc_rules as rules
from accnp.api.elements.doc_texts import fold_doc
from accnp.array import Array
from accnp.config import config
from accnp.errors import api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import BOOL, broadcast_to, dtype_kind
from accnp.primitives.reduce import kept_dims

F32 = np.dtype(np.float32)
Axis = Any  # None, an int, or several


def axes_of(axis: Axis, rank: int, name: str) -> tuple[int, ...]:
    """Return the axes to reduce, sorted."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted(as_axes(axis, rank, name)))


def strong(a: Any, name: str) -> Node:
    """Return the node of an argument; results of reductions are never weakly typed."""
    x = as_node(a, name)
    return cast(x, x.aval.dtype) if x.aval.weak_type else x


def keep(y: Node, x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Put axes of length 1 back where they were reduced."""
    if not keepdims or not axes:
        return y
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    return broadcast_to(y, shape, kept_dims(x.aval.ndim, axes))


def masked(x: Node, where: Any, fill: Any, name: str) -> Node:
    """Replace elements outside the mask by a value that does not count."""
    mask = as_mask(where, name)
    mask = broadcast_nodes(name, [x, mask])[1]
    wide = to_shape(x, mask.aval.shape, name) if mask.aval.ndim else x
    return rules.select(mask, wide, like(x, fill))


def as_mask(where: Any, name: str) -> Node:
    """Return the `where=` argument as a bool node."""
    mask = as_node(where, name)
    if mask.aval.dtype != BOOL:
        raise ValueError(
            f"{name}: where must be a bool array; got dtype {mask.aval.dtype.name}; compare first"
        )
    return mask


def count_of(x: Node, axes: tuple[int, ...]) -> int:
    """Return how many elements go into one result."""
    return math.prod(x.aval.shape[a] for a in axes)


def wide_type(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values of `dtype` add up."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return dtypes.default_int()
    if kind in "iu":
        unsigned = np.dtype(np.uint64 if config.x64 else np.uint32)
        wide = dtypes.default_int() if kind == "i" else unsigned
        return wide if wide.itemsize > dtype.itemsize else dtype
    return dtype


def start_of(initial: Any, dtype: np.dtype, name: str) -> Node:
    """Return `initial=`, the value that a fold begins with."""
    if (start := as_node(initial, name)).aval.ndim:
        raise ValueError(
            f"{name}: initial must be one number; got shape {start.aval.shape}; add it afterwards"
        )
    return cast(start, dtype)


def _accumulate(x: Node, op: Any, axes: tuple[int, ...]) -> Node:
    a = x.aval
    if dtype_kind(a.dtype) == "f" and a.dtype.itemsize < 4:
        return cast(op(cast(x, F32), axes=axes), a.dtype, a.weak_type)
    return op(x, axes=axes)


def _make_fold(
    name: str, op: str, combine: str, unit: Any, what: str, example: str
) -> Callable[..., Array]:
    """Make `sum` or `prod`; of bools that stay bools these are "or" and "and"."""
    logic = ("reduce_and", "and_") if unit else ("reduce_or", "or_")

    @api_boundary
    def fold(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        no_out(out, name)
        x = strong(a, name)
        if dtype is not None:
            x = cast(x, dtypes.requested_dtype(dtype, name))
        elif promote_integers or dtype_kind(x.aval.dtype) == "b":
            x = cast(x, wide_type(x.aval.dtype), x.aval.weak_type)
        axes = axes_of(axis, x.aval.ndim, name)
        if where is not None:
            x = masked(x, where, unit, name)
        fold_op, pair = logic if x.aval.dtype == BOOL else (op, combine)
        y = _accumulate(x, getattr(o, fold_op), axes)
        if initial is not None:
            y = getattr(o, pair)(start_of(initial, y.aval.dtype, name), y)
        return wrap(keep(y, x, axes, keepdims))

    return _named(fold, name, what, "total", example)


def _named(function: Any, name: str, what: str, kind: str, example: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = fold_doc(f"{what} over the given axes.", kind, name, example)
    return function


sum = _make_fold(
    "sum", "reduce_sum", "add", 0, "The sum of elements", "[1, 2, 3] -> Array(6, dtype=int32)"
)
prod = _make_fold(
    "prod", "reduce_prod", "mul", 1, "The product", "[2, 3, 4] -> Array(24, dtype=int32)"
)


def extreme_value(dtype: np.dtype, name: str) -> Any:
    """Return the value that never is the maximum (or minimum) of others."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return name == "min"
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min if name == "max" else info.max)
    return -math.inf if name == "max" else math.inf


def _make_extreme(name: str, what: str, example: str) -> Callable[..., Array]:
    """Make `max` or `min`."""
    pair = rules.maximum if name == "max" else rules.minimum

    @api_boundary
    def extreme(
        a: Any,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        no_out(out, name)
        x = strong(a, name)
        axes = axes_of(axis, x.aval.ndim, name)
        if where is not None:
            if initial is None:
                raise ValueError(
                    f"{name}: where= may leave no elements, and {name} has no "
                    "identity; got no initial; pass initial="
                )
            x = masked(x, where, extreme_value(x.aval.dtype, name), name)
        if initial is None and not count_of(x, axes):
            raise ValueError(
                f"{name}: zero-size array to reduction operation {name} which has no identity; "
                f"got shape {x.aval.shape} and axis={axis}; pass initial="
            )
        if dtype_kind(x.aval.dtype) == "c":
            y = complex_extreme(x, axes, name)
        else:
            y = getattr(o, f"reduce_{name}")(x, axes=axes)
        if initial is not None:
            y = pair(start_of(initial, y.aval.dtype, name), y)
        return wrap(keep(y, x, axes, keepdims))

    return _named(extreme, name, what, "extreme", example)


def complex_extreme(x: Node, axes: tuple[int, ...], name: str) -> Node:
    """By real part, then by imaginary part among the equals; a nan part makes the result nan. Of no
    elements it is an infinite real number."""
    op = getattr(o, f"reduce_{name}")
    re, im = o.real(x), o.imag(x)
    top = op(re, axes=axes)
    if not count_of(x, axes):
        return o.complex(top, to_shape(like(top, 0), top.aval.shape))
    wide = to_shape(keep(top, x, axes, True), x.aval.shape)
    rest = op(
        rules.select(o.eq(re, wide), im, like(im, extreme_value(im.aval.dtype, name))), axes=axes
    )
    odd = o.reduce_or(o.ne(x, x), axes=axes)
    nan = like(top, math.nan)
    return o.complex(rules.select(odd, nan, top), rules.select(odd, nan, rest))


max = _make_extreme("max", "The largest element", "[1, 3, 2] -> Array(3, dtype=int32)")
min = _make_extreme("min", "The smallest element", "[2, 1, 3] -> Array(1, dtype=int32)")
amax, amin = max, min


def _make_logical(name: str, op: str, unit: bool, what: str, example: str) -> Callable[..., Array]:
    """Make `all` or `any`."""

    @api_boundary
    def logical(
        a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> Array:
        no_out(out, name)
        x = as_node(a, name)  # a complex number is true by either part; jax looks at the real one
        x = o.ne(x, rules.strong(x, 0)) if dtype_kind(x.aval.dtype) == "c" else cast(x, BOOL)
        axes = axes_of(axis, x.aval.ndim, name)
        if where is not None:
            x = masked(x, where, unit, name)
        return wrap(keep(getattr(o, op)(x, axes=axes), x, axes, keepdims))

    return _named(logical, name, what, "truth", example)


all = _make_logical(
    "all", "reduce_and", True, "Whether all are true", "[True, False] -> Array(False, dtype=bool)"
)
any = _make_logical(
    "any", "reduce_or", False, "Whether any is true", "[True, False] -> Array(True, dtype=bool)"
)


def _make_arg(name: str, example: str) -> Callable[..., Array]:
    """Make `argmax` or `argmin`."""

    @api_boundary
    def arg(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Array:
        no_out(out, name)
        return wrap(arg_node(as_node(a, name), axis, bool(keepdims), name))

    what = f"The index of the {name[3:]}imum, the first one of equals,"
    return _named(arg, name, what, "place", example)


def arg_node(x: Node, axis: Any, keepdims: bool, name: str) -> Node:
    """Record argmax or argmin over one axis, or over the flattened array."""
    shape = x.aval.shape
    if dtype_kind(x.aval.dtype) == "c":
        raise TypeError(f"{name}: complex numbers have no order; got a complex array; take jnp.abs")
    if axis is None:
        flat, at = o.reshape(x, new_sizes=(x.aval.size,), dimensions=None), 0
    else:
        flat, at = x, as_axis(axis, x.aval.ndim, name)
    if not flat.aval.shape[at]:
        raise ValueError(
            f"{name}: attempt to get {name} of an empty sequence; got {shape} and axis={axis}; "
            "pass an array with elements"
        )
    y = getattr(o, name)(flat, axes=(at,), index_dtype=dtypes.default_int())
    if not keepdims:
        return y
    whole = tuple(range(x.aval.ndim)) if axis is None else (at,)
    return keep(y, x, whole, True)


argmax = _make_arg("argmax", "[1, 5, 5] -> Array(1, dtype=int32)")
argmin = _make_arg("argmin", "[4, 2, 3] -> Array(1, dtype=int32)")

# --- mean, variance ------------------------------------------------------------------------------


def _mean_node(x: Node, axes: tuple[int, ...], keepdims: bool, where: Any, name: str) -> Node:
    """The mean in the dtype of x; narrow floats are brought to float32 by the caller."""
    if where is None:
        n = like(x, count_of(x, axes))
    else:
        mask = to_shape(as_mask(where, name), x.aval.shape, name)
        n = keep(o.reduce_sum(cast(mask, x.aval.dtype), axes=axes), x, axes, keepdims)
        x = rules.select(mask, x, like(x, 0))
    return o.div(keep(o.reduce_sum(x, axes=axes), x, axes, keepdims), n)


def _computed(x: Node, dtype: Any, name: str) -> tuple[Node, np.dtype, bool]:
    """Return x in the dtype in which a mean is computed, and the result's dtype and weak flag."""
    weak = x.aval.weak_type
    if dtype is None:
        result = dtypes.to_inexact(x.aval.dtype)
    else:
        result, weak = dtypes.requested_dtype(dtype, name), False
        if result == BOOL:
            raise TypeError(f"{name}: means are no bools; got dtype=bool; pass a floating dtype")
    inner = result
    if dtype_kind(result) == "f" and result.itemsize < 4:
        inner = F32
    elif dtype_kind(result) in "biu":
        inner = dtypes.to_inexact(result)
    return cast(x, inner, weak), result, weak


@api_boundary
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """The arithmetic mean over the given axes.

    The result has the shape without these axes (of length 1 with keepdims=True). Integers and bools
    become the default float; float16 and bfloat16 stay, and add up in float32. Unlike NumPy: the
    mean of integers is float32 (float64 with jax_enable_x64); without elements it is a silent nan.

    Raises:
        TypeError: a is no array or number, or dtype=bool.
        ValueError: an axis is out of bounds or given twice; where= is not bool or does not fit.
        NotImplementedError: out= is given.

    >>> import accnp as jnp
    >>> jnp.mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    no_out(out, "mean")
    x, result, weak = _computed(strong(a, "mean"), dtype, "mean")
    axes = axes_of(axis, x.aval.ndim, "mean")
    return wrap(cast(_mean_node(x, axes, keepdims, where, "mean"), result, weak))


def _var_node(
    a: Any, axis: Axis, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any, name: str
) -> Node:
    given = strong(a, name)
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, name)
        if dtype_kind(dtype) in "biu" and name == "std":
            raise ValueError(
                f"{name}: dtype argument must be inexact; got {dtype.name}; pass a floating dtype"
            )
        if dtype_kind(given.aval.dtype) == "c" and dtype_kind(dtype) != "c":
            raise ValueError(
                f"{name}: complex numbers need a complex dtype; got dtype={dtype.name}; cast after"
            )
    whole = dtype is not None and dtype_kind(dtype) in "iu"
    if whole:  # counted in integers, and weak floats in the end, since there may be nan
        x, result, weak = cast(given, dtype), dtypes.default_float(), True
    else:
        x, result, weak = _computed(given, dtype, name)
    axes = axes_of(axis, x.aval.ndim, name)
    if mean is None:
        centre = _mean_node(x, axes, True, where, name)
    else:
        centre = cast(as_node(mean, name), x.aval.dtype)
    d = o.sub(x, to_shape(centre, x.aval.shape, name))
    if where is not None:  # before the square, whose derivative at a nan left out would be nan
        mask = to_shape(as_mask(where, name), x.aval.shape, name)
        d = rules.select(mask, d, like(d, 0))
    squares = o.real(o.mul(d, o.conj(d))) if dtype_kind(x.aval.dtype) == "c" else o.square(d)
    result = dtypes.real_part(result) if dtype is None else result
    if where is None and not isinstance(ddof, Array):
        n = count_of(x, axes) - (int(ddof) if whole else ddof)
        y = o.div(o.reduce_sum(squares, axes=axes), like(squares, n if whole else float(n)))
        if n <= 0:
            y = rules.filled(cast(y, result) if whole else y, math.nan)
    else:
        kind = squares.aval.dtype
        n = scalar_node(count_of(x, axes), kind, False)
        n = n if where is None else o.reduce_sum(cast(mask, kind), axes=axes)
        n = o.sub(n, cast(as_node(ddof, name), kind))
        y = o.div(o.reduce_sum(squares, axes=axes), n)
        y = cast(y, result) if whole else y
        y = rules.select(o.gt(n, like(n, 0)), y, like(y, math.nan))
    return cast(keep(y, x, axes, keepdims), result, weak)


def _degrees(ddof: Any, correction: Any, name: str) -> Any:
    if correction is not None and (isinstance(ddof, Array) or ddof != 0):
        raise ValueError(
            f"{name}: ddof and correction exclude each other; got {ddof} and {correction}; pass one"
        )
    return ddof if correction is None else correction


@api_boundary
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The variance over the given axes, with `ddof` degrees of freedom taken off.

    With an integer dtype it is computed in integers, as jax does, and rounded towards 0.
    Shape and dtype of the result are those of `mean`; it is real for complex numbers.

    Raises:
        TypeError: a is no array or number, or dtype=bool.
        ValueError: an axis is out of bounds; where= is not bool; ddof and correction are both
            given; dtype is real for complex numbers.
        NotImplementedError: out= is given, unlike NumPy.

    >>> import accnp as jnp
    >>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
    Array(1.6666666, dtype=float32)
    """
    no_out(out, "var")
    ddof = _degrees(ddof, correction, "var")
    return wrap(_var_node(a, axis, dtype, ddof, keepdims, where, mean, "var"))


@api_boundary
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The standard deviation over the given axes, with `ddof` degrees of freedom taken off.

    Shape and dtype of the result are those of `var`, as are the errors.

    Raises:
        ValueError: dtype is an integer or bool, besides.

    >>> import accnp as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    no_out(out, "std")
    ddof = _degrees(ddof, correction, "std")
    return wrap(o.sqrt(_var_node(a, axis, dtype, ddof, keepdims, where, mean, "std")))


@api_boundary
@shown("_ptp")
def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest one over the given axes.

    Shape and dtype of the result are those of `max`.

    Raises:
        TypeError: a is bool, or no array or number.
        ValueError: there is no element, or an axis is out of bounds.
        NotImplementedError: out= is given, unlike NumPy.

    >>> import accnp as jnp
    >>> jnp.ptp(jnp.array([3, 1, 8]))
    Array(7, dtype=int32)
    """
    no_out(out, "ptp")
    top, low = max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims)
    return wrap(o.sub(top._node, low._node))
