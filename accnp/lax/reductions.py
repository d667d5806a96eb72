"""Functions of `lax` that reduce axes, find extremes, and accumulate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, overload

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.shapes import as_axes, as_int
from accnp.api.arguments.values import needs_dtype
from accnp.array_type import Array, ArrayLike, ShardingLike
from accnp.config import config
from accnp.docstrings import fill
from accnp.dtypes.names import DTypeLike
from accnp.errors import AxisError, api_boundary
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.numpy.derivative_rules import logaddexp
from accnp.numpy.reductions import complex_extreme
from accnp.numpy.ufunc_factories import documented
from accnp.primitives.kinds import wrong_dtype
from accnp.primitives.prefix import prefixes
from accnp.sharding.device_placement import with_out_sharding

if TYPE_CHECKING:

    class Reduction(Protocol):
        """A function that reduces axes."""

        def __call__(self, operand: ArrayLike, axes: Sequence[int]) -> Array: ...

    class Summation(Protocol):
        """The sum, whose result may be sharded."""

        def __call__(
            self, operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
        ) -> Array: ...

    class Search(Protocol):
        """A function that finds extremes along an axis."""

        def __call__(self, operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array: ...

    class Accumulation(Protocol):
        """A function that accumulates along an axis."""

        def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


# Name -> summary, dtypes of the operand, See Also.
_REDUCTIONS = {
    "reduce_sum": ("Sum the elements", "numeric", "numpy.sum : Sum with promotion of dtypes."),
    "reduce_prod": ("Multiply the elements", "numeric", "numpy.prod : Product with promotion."),
    "reduce_max": ("Return the maximum", "numeric or bool", "numpy.max : The same with `where`."),
    "reduce_min": ("Return the minimum", "numeric or bool", "numpy.min : The same with `where`."),
    "reduce_and": ("Compute the bitwise and", "integer or bool", "numpy.all : Test all elements."),
    "reduce_or": ("Compute the bitwise or", "integer or bool", "numpy.any : Test for any element."),
}
_CUMULATIVE = {
    "cumsum": ("Compute the cumulative sum", "numeric", "numpy.cumsum : The same with `dtype`."),
    "cumprod": ("Compute cumulative products", "numeric", "numpy.cumprod : The same with `dtype`."),
    "cummax": ("Compute cumulative maxima", "numeric", "cummin, reduce_max"),
    "cummin": ("Compute cumulative minima", "numeric", "cummax, reduce_min"),
    "cumlogsumexp": ("Compute the log of cumulative sums of exp", "floating or complex", "cumsum"),
}


@overload
def _make_reduce(name: str, example: str, *, is_sum: Literal[True]) -> Summation: ...
@overload
def _make_reduce(
    name: str, example: str, *, extreme: str = "", is_bitwise: bool = False
) -> Reduction: ...
def _make_reduce(
    name: str, example: str, *, is_sum: bool = False, extreme: str = "", is_bitwise: bool = False
) -> Reduction:
    """Make the function that records a reduction; `extreme` is "max", "min" or ""."""

    def reduce(operand: ArrayLike, axes: Sequence[int]) -> Array:
        x = as_node(operand, f"lax.{name}")
        user_axes = tuple(axes)  # nonnegative
        if is_bitwise and x.aval.dtype.kind in "fc":
            raise wrong_dtype(f"lax.{name}", x.aval.dtype, "biu")
        axes = tuple(sorted(as_axes(user_axes, x.aval.ndim, f"lax.{name}")))
        if axes != tuple(sorted(user_axes)):
            raise ValueError(
                f"lax.{name}: axes cannot be negative; got {user_axes} for {x.aval.str_short()}; "
                "add the rank"
            )
        if extreme and x.aval.dtype.kind == "c":
            return wrap(complex_extreme(x, axes, extreme))
        if (
            is_sum
            and not config.allow_f16_reductions
            and x.aval.dtype.name in ("float16", "bfloat16")
            and any(x.aval.shape[d] != 1 for d in axes)
        ):
            raise ValueError(
                f"lax.{name}: a sum in 16 bits is not allowed when allow_f16_reductions is "
                f"False; got {x.aval.str_short()}; convert the operand to float32 first"
            )
        out = getattr(o, name)(x, axes=axes)
        return wrap(out if axes else x)  # a sum would start at 0 and lose the sign of -0

    def reduce_sharded(
        operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
    ) -> Array:
        return reduce(operand, axes)

    reduce_ = reduce_sharded if is_sum else reduce
    reduce_.__name__ = reduce_.__qualname__ = name
    reduce_ = api_boundary(with_out_sharding(reduce_) if is_sum else reduce_)
    summary, kinds, related = _REDUCTIONS[name]
    sharding = "    {out_sharding}\n" if is_sum else ""
    text = fill(
        f"{summary} over the given axes.\n\n"
        "    Parameters\n    ----------\n"
        f"    operand : array_like\n        Array or number to reduce, of {kinds} dtype.\n"
        "    axes : sequence of int\n        Axes to reduce, counted from 0.\n"
        f"{sharding}\n"
        "    Returns\n    -------\n"
        "    Array\n        Result of the dtype of `operand`, without the reduced axes.\n\n"
        "    Raises\n    ------\n"
        "    TypeError\n        If `operand` is not an array or a number, or has another dtype.\n"
        "    ValueError\n        If an axis is out of bounds, negative or given twice.\n\n"
        f"    See Also\n    --------\n    {related}\n    reduce : Reduction by any function."
    )
    reduce_.__doc__ = documented(text, f"lax.{name}", example)
    return reduce_


reduce_sum = _make_reduce("reduce_sum", "[1, 2, 3], (0,) -> Array(6, dtype=int32)", is_sum=True)
reduce_prod = _make_reduce("reduce_prod", "[2, 3, 4], (0,) -> Array(24, dtype=int32)")
reduce_max = _make_reduce("reduce_max", "[1, 3, 2], (0,) -> Array(3, dtype=int32)", extreme="max")
reduce_min = _make_reduce("reduce_min", "[2, 1, 3], (0,) -> Array(1, dtype=int32)", extreme="min")
reduce_and = _make_reduce(
    "reduce_and", "[True, False], (0,) -> Array(False, dtype=bool)", is_bitwise=True
)
reduce_or = _make_reduce(
    "reduce_or", "[True, False], (0,) -> Array(True, dtype=bool)", is_bitwise=True
)


def _make_arg(name: str, extreme: str, other: str, example: str) -> Search:
    """Make a search for an extreme; `other` is the name of the opposite search."""

    @api_boundary
    def arg(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
        x = as_node(operand, f"lax.{name}")
        if x.aval.dtype.kind == "c":
            raise TypeError(f"lax.{name}: complex numbers have no order; got {x.aval}; take abs")
        at = as_int(axis, f"lax.{name}", "axis", "axis")
        if not 0 <= at < x.aval.ndim:
            raise AxisError(
                f"lax.{name}: axis {at} is out of bounds for shape {x.aval.shape}; pass a "
                "nonnegative axis"
            )
        needs_dtype(f"lax.{name}", index_dtype)
        new = dtypes.requested_dtype(index_dtype, f"lax.{name}")
        if new.kind not in "iu":
            raise TypeError(
                f"lax.{name}: index_dtype must be an integer dtype; got {new.name}; "
                "pass an integer dtype"
            )
        return wrap(getattr(o, name)(x, axes=(at,), index_dtype=new))

    arg.__name__ = arg.__qualname__ = name
    text = (
        f"Return the index of the {extreme} along one axis.\n\n"
        "    Parameters\n    ----------\n"
        "    operand : array_like\n        Array of real numbers or bools.\n"
        "    axis : int\n        Axis to search along, counted from 0.\n"
        "    index_dtype : dtype_like\n        Integer dtype of the result.\n\n"
        "    Returns\n    -------\n"
        f"    Array\n        Index of the first {extreme}, without the axis.\n\n"
        "    Raises\n    ------\n"
        "    TypeError\n"
        "        If `operand` is complex or not an array, or `index_dtype` not an integer dtype.\n"
        "    ValueError\n        If `axis` is out of bounds or negative.\n\n"
        "    See Also\n    --------\n"
        f"    {other}\n    numpy.{name} : The same with optional arguments."
    )
    arg.__doc__ = documented(text, f"lax.{name}", example)
    return arg


argmax = _make_arg("argmax", "maximum", "argmin", "[1, 5, 5], 0, int -> Array(1, dtype=int32)")
argmin = _make_arg("argmin", "minimum", "argmax", "[4, 2, 3], 0, int -> Array(1, dtype=int32)")


def _make_cumulative(
    name: str, example: str, of_complex: Callable[[Node, int, bool], Node] | None = None
) -> Accumulation:
    """Make a cumulative function; `of_complex` records it for complex numbers."""

    @api_boundary
    def cumulative(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        x, at = as_node(operand, f"lax.{name}"), as_int(axis, f"lax.{name}", "axis")
        if of_complex is not None and x.aval.dtype.kind == "c":
            return wrap(of_complex(x, at, bool(reverse)))
        return wrap(getattr(o, name)(x, axis=at, reverse=bool(reverse)))

    cumulative.__name__ = cumulative.__qualname__ = name
    summary, kinds, related = _CUMULATIVE[name]
    text = (
        f"{summary} along one axis.\n\n"
        "    Parameters\n    ----------\n"
        f"    operand : array_like\n        Array to accumulate, of {kinds} dtype.\n"
        "    axis : int, optional\n        Axis to go along, counted from 0. The default is 0.\n"
        "    reverse : bool, optional\n"
        "        If True, go from the end of the axis to its start. The default is False.\n\n"
        "    Returns\n    -------\n"
        "    Array\n        Partial results, with the shape and dtype of `operand`.\n\n"
        "    Raises\n    ------\n"
        "    TypeError\n        If `operand` is not an array, or has another dtype.\n"
        "    ValueError\n        If `axis` is out of bounds or negative.\n\n"
        f"    See Also\n    --------\n    {related}\n"
        "    associative_scan : Partial results of any associative function."
    )
    cumulative.__doc__ = documented(text, f"lax.{name}", example)
    return cumulative


def _log_of_two(a: list[Node], b: list[Node]) -> list[Node]:
    return [logaddexp(a[0], b[0])]


def _complex_cumlogsumexp(x: Node, axis: int, reverse: bool) -> Node:
    return prefixes(_log_of_two, [x], axis, reverse)[0]


cumsum = _make_cumulative("cumsum", "[1, 2, 3] -> [1, 3, 6]")
cumprod = _make_cumulative("cumprod", "[1, 2, 3] -> [1, 2, 6]")
cummax = _make_cumulative("cummax", "[1, 3, 2] -> [1, 3, 3]")
cummin = _make_cumulative("cummin", "[3, 1, 2], reverse=True -> [1, 1, 2]")
cumlogsumexp = _make_cumulative(
    "cumlogsumexp", "[0.0, 0.0] -> [0.       , 0.6931472]", _complex_cumlogsumexp
)
