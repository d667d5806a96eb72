"""Reductions over axes: sum, prod, max, min, all, any, argmax, argmin and ptp.

`axis` may be None, an int, several ints, or names of mapped axes. As in JAX, narrow integers and
bools are accumulated in the default integer dtype, and float16 and bfloat16 in float32; the result
of a floating reduction has the dtype of the input. The functions are generated from templates, and
each caches what it recorded for the aval of an array and an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np

from accnp import dtypes
from accnp._native import operate
from accnp.api.arguments.convert import (
    as_node,
    broadcast_nodes,
    cast,
    to_shape,
    wrap,
)
from accnp.api.arguments.shapes import AxesLike, as_axes, as_axis
from accnp.api.arguments.values import no_out, to_dtype
from accnp.api.jit.named_calls import shown
from accnp.array_type import Array, ArrayLike
from accnp.caches import BoundedCache
from accnp.config import config
from accnp.dtypes.names import NARROW, DTypeLike
from accnp.errors import alias, api_boundary
from accnp.ir.aval import Aval
from accnp.ir.node import Form, Node
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.lazy_imports import imported
from accnp.numpy import ufunc_rules as rules
from accnp.numpy.ufunc_docstrings import reduction_doc
from accnp.primitives.custom import JvpRule, call_with_rule
from accnp.primitives.elementwise import like
from accnp.primitives.kinds import BOOL, broadcast_to, dtype_kind, full
from accnp.primitives.reduce import extreme_jvp, remaining_dims

F32 = np.dtype(np.float32)
Axis = AxesLike | str | Sequence[SupportsIndex | str] | None  # str: a mapped axis
Texts = tuple[str, str, str]  # summary, result, related functions of a generated function

if TYPE_CHECKING:  # types of the generated functions

    class SumOrProduct(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
            promote_integers: bool = True,
        ) -> Array: ...

    class ExtremeReduction(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...

    class Logical(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
        ) -> Array: ...

    class ArgReduction(Protocol):
        def __call__(
            self,
            a: ArrayLike,
            axis: int | None = None,
            out: None = None,
            keepdims: bool | None = None,
        ) -> Array: ...


def axes_of(axis: Axis, rank: int, name: str) -> tuple[int, ...]:
    """Return the axes to reduce, sorted."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted(as_axes(axis, rank, name)))


def axes_shape(x: Node, axis: Axis, name: str) -> tuple[int, ...]:
    """Return the lengths of the given axes, in the order of the caller."""
    return tuple([x.aval.shape[d] for d in as_axes(axis, x.aval.ndim, name)])


def spread_along(w: Node, x: Node, axis: Axis, name: str) -> Node:
    """Broadcast weights with the axes of `axis`, in the caller's order, to the shape of x."""
    axes = as_axes(axis, x.aval.ndim, name)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        w = o.transpose(w, permutation=tuple(order))
    return broadcast_to(w, x.aval.shape, tuple(sorted(axes)))


def named_axes(axis: Axis, rank: int, name: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Split `axis` into the positions of axes to reduce and the names of mapped axes."""
    if axis is None or type(axis) is int:
        return axes_of(axis, rank, name), ()
    every: Any = axis if isinstance(axis, tuple | list) else (axis,)
    names = tuple([a for a in every if isinstance(a, str)])
    left: Any = [a for a in every if not isinstance(a, str)] if names else axis
    return axes_of(left, rank, name), names


def strong(a: Any, name: str) -> Node:
    """Return the node of an argument with a strong type, not of 64 bits if these are disabled."""
    x = as_node(a, name)
    kind = x.aval.dtype if config.x64 else NARROW.get(x.aval.dtype, x.aval.dtype)
    return cast(x, kind) if x.aval.weak_type or kind is not x.aval.dtype else x


def keep(y: Node, x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Restore the reduced axes with length 1 if `keepdims` is set."""
    if not keepdims or not axes:
        return y
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.aval.shape))
    return broadcast_to(y, shape, remaining_dims(x.aval.ndim, axes))


_WIDE = np.dtype(np.float64)


def real_parts(x: Node) -> list[Node]:
    """Return a real value, or the real and the imaginary part of a complex one."""
    return [o.real(x), o.imag(x)] if x.aval.dtype.kind == "c" else [x]


def _sum_of_squares(parts: list[Node], axes: tuple[int, ...]) -> Node:
    squares = [o.mul(v, v) for v in parts]
    return o.reduce_sum(o.add(*squares) if len(squares) == 2 else squares[0], axes=axes)


def root_of_squares(x: Node, axes: tuple[int, ...]) -> Node:
    """Return the root of the sum of squares over axes, without overflow of the squares.

    Narrow values are squared in float64. 64-bit values are squared unscaled and scaled by two
    powers of two in one pass, and one of the three sums is selected.
    """
    parts = real_parts(x)
    real = parts[0].aval.dtype
    if state.named:  # jaxprs show the formula that JAX uses
        return o.sqrt(_sum_of_squares(parts, axes))
    if real.itemsize < 8:
        return cast(o.sqrt(_sum_of_squares([cast(v, _WIDE) for v in parts], axes)), real)

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        y = root_of_squares(xs[0], axes)
        whole = broadcast_to(y, x.aval.shape, remaining_dims(x.aval.ndim, axes))
        pairs = zip(real_parts(xs[0]), real_parts(t) if (t := ts[0]) is not None else ())
        moved = [o.mul(dt, o.div(v, whole)) for v, dt in pairs]
        return [y], [o.reduce_sum(o.add(*moved) if len(moved) == 2 else moved[0], axes=axes)]

    def run(xs: list[Node]) -> list[Node]:
        parts = real_parts(xs[0])
        plain = _sum_of_squares(parts, axes)
        up, down = (
            _sum_of_squares([o.mul(v, like(v, 2.0**k)) for v in parts], axes) for k in (600, -600)
        )
        large = o.eq(plain, full(plain.aval.shape, math.inf, real))
        small = o.lt(plain, full(plain.aval.shape, 2.0**-900, real))

        def chosen(much: Node, little: Node, middle: Node) -> Node:
            return o.select_n(large, o.select_n(small, middle, little), much)

        root = o.sqrt(chosen(down, up, plain))
        back = [full(plain.aval.shape, 2.0**k, real) for k in (600, -600, 0)]
        return [o.mul(root, chosen(*back))]

    return call_with_rule(JvpRule("root_of_squares", rule), [x], run)[0]


def masked(x: Node, where: Any, fill: Any, name: str) -> Node:
    """Replace elements outside the mask by the identity of a reduction."""
    mask = as_mask(where, name)
    mask = broadcast_nodes(name, [x, mask], any_ranks=True)[1]
    wide = to_shape(x, mask.aval.shape, name) if mask.aval.ndim else x
    return rules.select(mask, wide, like(x, fill))


def as_mask(where: Any, name: str) -> Node:
    """Return the `where=` argument as a bool node."""
    mask = as_node(where, name)
    if mask.aval.dtype != BOOL:
        raise ValueError(
            f"{name}: where must be None or a boolean array; got where.dtype="
            f"{mask.aval.dtype.name}; compare first"
        )
    return mask


def count_of(x: Node, axes: tuple[int, ...]) -> int:
    """Return the number of elements that are reduced to one result."""
    return math.prod(x.aval.shape[a] for a in axes)


def wide_type(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values of `dtype` are summed."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return dtypes.default_int()
    if kind in "iu":
        unsigned = np.dtype(np.uint64 if config.x64 else np.uint32)
        wide = dtypes.default_int() if kind == "i" else unsigned
        return wide if wide.itemsize > dtype.itemsize else dtype
    return dtype


def start_of(initial: Any, dtype: np.dtype, name: str) -> Node:
    """Return the node of `initial=`, the value with which a reduction starts."""
    if (start := as_node(initial, name)).aval.ndim:
        raise ValueError(
            f"{name}: initial value must be a scalar. Got array of shape {start.aval.shape}; "
            "pass a number, and add the array to the result"
        )
    return cast(start, dtype)


def collective(name: str) -> Callable[..., Any]:
    """Return a collective function; the module is rarely needed, so it is imported on demand."""
    return getattr(imported("accnp.lax.parallel.reductions"), name)


def across(y: Node, names: tuple[str, ...], name: str) -> Node:
    """Reduce the result of a reduction over named axes, too."""
    return collective(name)(wrap(y), names)._node if names else y


def _accumulate(x: Node, op: Any, axes: tuple[int, ...]) -> Node:
    a = x.aval
    if dtype_kind(a.dtype) == "f" and a.dtype.itemsize < 4:
        return cast(op(cast(x, F32), axes=axes), a.dtype, a.weak_type)
    return op(x, axes=axes)


class _Recorded:
    """Cache of what a reduction function recorded for the aval of an array and an axis.

    Only reductions that are a single op on the array itself are cached.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # Keys contain enable_x64: sums of 32-bit integers have 64 bits with it.
        self._known: BoundedCache[tuple[Aval, int | None, bool], tuple[Form, dict[str, Any]]]
        self._known = BoundedCache("type_cache_size", True)

    def again(self, a: Any, axis: Axis) -> Array | None:
        """Record a cached reduction again; return None if it is not cached."""
        if type(a) is not Array or not (axis is None or type(axis) is int):
            return None
        node = a._node
        form, params = self._known.get((node.aval, axis, config.x64), _UNKNOWN)
        if form is None:
            return None
        return operate(form, (node,), params)

    def remember(self, a: Any, axis: Axis, result: Node) -> None:
        """Cache what a reduction recorded."""
        if type(a) is not Array or not (axis is None or type(axis) is int) or result.form is None:
            return
        if result.op.kind == "reduce" and result.inputs == (a._node,):
            self._known.store((a._node.aval, axis, config.x64), (result.form, result.params))


_UNKNOWN: tuple[None, dict[str, Any]] = (None, {})


def _make_sum_or_product(
    name: str, op: str, combine: str, unit: Any, texts: Texts, example: str
) -> SumOrProduct:
    """Make `sum` or `prod`; with dtype bool these are "or" and "and"."""
    logic = ("reduce_and", "and_") if unit else ("reduce_or", "or_")

    recorded = _Recorded()

    @api_boundary
    def reduce(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        plain = dtype is None and out is None and initial is None and where is None
        plain = plain and promote_integers and not keepdims
        if plain and (again := recorded.again(a, axis)) is not None:
            return again
        no_out(out, name)
        x = strong(a, name)
        if dtype is not None:
            x = to_dtype(x, dtypes.requested_dtype(dtype, name))
        elif promote_integers:
            x = cast(x, wide_type(x.aval.dtype), x.aval.weak_type)
        elif dtype_kind(x.aval.dtype) == "b":
            x = cast(x, np.dtype(np.int32))
        axes, names = named_axes(axis, x.aval.ndim, name)
        if names and unit:
            raise NotImplementedError(
                f"{name}: products over named axes are not supported; got axis={axis!r}; "
                "use jnp.exp of the sum of logarithms, or lax.all_gather"
            )
        if where is not None:
            x = masked(x, where, unit, name)
        reduce_op, pair = logic if x.aval.dtype == BOOL else (op, combine)
        y = _accumulate(x, getattr(o, reduce_op), axes)
        if plain:
            recorded.remember(a, axis, y)
        y = across(y, names, "psum")
        if initial is not None:
            y = getattr(o, pair)(start_of(initial, y.aval.dtype, name), y)
        return wrap(keep(y, x, axes, keepdims))

    return _set_name_and_docstring(reduce, name, texts, "total", example)


def _set_name_and_docstring(function: Any, name: str, texts: Texts, kind: str, example: str) -> Any:
    summary, result, related = texts
    function.__name__ = function.__qualname__ = name
    function.__doc__ = reduction_doc(summary, kind, name, result, related, example)
    return function


sum = _make_sum_or_product(
    "sum", "reduce_sum", "add", 0,
    ("Add up the elements along the given axes.", "Sums", "add cumsum mean nansum prod trapezoid"),
    "[1, 2, 3] -> Array(6, dtype=int32)",
)  # fmt: skip
prod = _make_sum_or_product(
    "prod", "reduce_prod", "mul", 1,
    ("Multiply the elements along the given axes.", "Products", "multiply cumprod nanprod sum"),
    "[2, 3, 4] -> Array(24, dtype=int32)",
)  # fmt: skip


def extreme_value(dtype: np.dtype, name: str) -> Any:
    """Return the identity of max or min for a dtype."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return name == "min"
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min if name == "max" else info.max)
    return -math.inf if name == "max" else math.inf


def _make_extreme(name: str, texts: Texts, example: str) -> ExtremeReduction:
    """Make `max` or `min`."""
    pair = rules.maximum if name == "max" else rules.minimum

    recorded = _Recorded()

    @api_boundary
    def extreme(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        plain = out is None and initial is None and where is None and not keepdims
        if plain and (again := recorded.again(a, axis)) is not None:
            return again
        no_out(out, name)
        x = strong(a, name)
        axes, names = named_axes(axis, x.aval.ndim, name)
        if where is not None:
            if initial is None:
                raise ValueError(
                    f"reduction operation {name} does not have an identity, so to use a where "
                    "mask one has to specify 'initial'; got None; pass initial="
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
            if plain:
                recorded.remember(a, axis, y)
        y = across(y, names, f"p{name}")
        if initial is not None:
            y = pair(start_of(initial, y.aval.dtype, name), y)
        return wrap(keep(y, x, axes, keepdims))

    return _set_name_and_docstring(extreme, name, texts, "extreme", example)


def complex_extreme(x: Node, axes: tuple[int, ...], name: str) -> Node:
    """Reduce complex numbers by real part, then by imaginary part; nan in either part propagates.

    The identity is an infinite real number. The derivative is that of the elements equal to the
    result; separate reductions of the parts would differentiate other elements.
    """

    def rule(xs: list[Node], ts: list[Node | None]) -> tuple[list[Node], list[Node | None]]:
        (x,), (t,) = xs, ts
        y = _complex_extreme(x, axes, name)
        return [y], [t and extreme_jvp(t, y, x, axes=axes)]

    jvp_rule = JvpRule(f"reduce_{name}", rule)
    return call_with_rule(jvp_rule, [x], lambda xs: [_complex_extreme(xs[0], axes, name)])[0]


def _complex_extreme(x: Node, axes: tuple[int, ...], name: str) -> Node:
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


max = _make_extreme(
    "max",
    (
        "Find the largest element along the given axes, or nan if there is a nan.",
        "Maxima",
        "min argmax maximum nanmax",
    ),
    "[1, 3, 2] -> Array(3, dtype=int32)",
)
min = _make_extreme(
    "min",
    (
        "Find the smallest element along the given axes, or nan if there is a nan.",
        "Minima",
        "max argmin minimum nanmin",
    ),
    "[2, 1, 3] -> Array(1, dtype=int32)",
)
amax, amin = alias(max, "amax", "accnp.numpy"), alias(min, "amin", "accnp.numpy")


def _make_logical(name: str, op: str, unit: bool, texts: Texts, example: str) -> Logical:
    """Make `all` or `any`."""

    @api_boundary
    def logical(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        no_out(out, name)
        x = as_node(a, name)  # JAX tests only the real part of complex numbers
        x = o.ne(x, rules.strong(x, 0)) if dtype_kind(x.aval.dtype) == "c" else cast(x, BOOL)
        axes = axes_of(axis, x.aval.ndim, name)
        if where is not None:
            x = masked(x, where, unit, name)
        return wrap(keep(getattr(o, op)(x, axes=axes), x, axes, keepdims))

    return _set_name_and_docstring(logical, name, texts, "truth", example)


all = _make_logical(
    "all", "reduce_and", True,
    ("Test whether all elements along the given axes are true.", "Answers",
     "any logical_and array_equal"),
    "[True, False] -> Array(False, dtype=bool)",
)  # fmt: skip
any = _make_logical(
    "any", "reduce_or", False,
    ("Test whether any element along the given axes is true.", "Answers", "all logical_or"),
    "[True, False] -> Array(True, dtype=bool)",
)  # fmt: skip


def _make_arg(name: str, example: str) -> ArgReduction:
    """Make `argmax` or `argmin`."""

    @api_boundary
    def arg(
        a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        no_out(out, name)
        return wrap(arg_node(as_node(a, name), axis, bool(keepdims), name))

    extreme = name[3:]
    summary = f"Find the index of the {extreme}imum along an axis."
    texts = (summary, f"Indices of the {extreme}ima", f"{extreme} argsort unravel_index nan{name}")
    return _set_name_and_docstring(arg, name, texts, "place", example)


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


@api_boundary
@shown("_ptp")
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Compute the range (maximum minus minimum) of the elements along the given axes.

    Parameters
    ----------
    {a}
    {axes_reduced}
    {out}
    {keepdims}

    Returns
    -------
    Array
        Ranges, with the shape of `a` without the reduced axes, and the dtype of `a`.

    Raises
    ------
    TypeError
        If `a` is bool, or neither an array nor a number.
    ValueError
        If the array is empty, or an axis is out of bounds.
    {raises_out}

    See Also
    --------
    max, min : Maximum and minimum.
    std : Standard deviation.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.ptp(jnp.array([3, 1, 8]))
    Array(7, dtype=int32)
    """
    no_out(out, "ptp")
    top, low = max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims)
    return wrap(o.sub(top._node, low._node))
