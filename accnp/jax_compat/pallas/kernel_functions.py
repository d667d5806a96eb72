"""Functions for use inside kernels: positions in the grid, conditions, loops and scratch memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node
from accnp.api.arrays.references import Ref, new_ref
from accnp.api.effects import debug
from accnp.array_type import Array, ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.lax.control_flow.branches import cond
from accnp.lax.control_flow.loops import fori_loop
from accnp.numpy.creation import full
from accnp.pytree import PyTree, map_arrays

__all__ = [
    "align_to", "allocate", "cdiv", "debug_check", "debug_print", "empty_like", "empty_ref_like",
    "grid_of", "loop", "multiple_of", "next_power_of_2", "num_programs", "program_id",
    "reciprocal", "run_scoped", "run_state", "strides_from_shape", "uninitialized", "when",
    "with_scoped",
]  # fmt: skip


class _Grids(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Sequence[Any], Sequence[Any]]] = []


_grids = _Grids()


@contextlib.contextmanager
def grid_of(ids: Sequence[Any], sizes: Sequence[Any]) -> Iterator[None]:
    """Trace a kernel at one step of a grid."""
    _grids.stack.append((ids, sizes))
    try:
        yield
    finally:
        _grids.stack.pop()


def _grid_position(which: int, axis: Any, function: str) -> Any:
    if not _grids.stack:
        raise ValueError(
            f"{function}: there is no grid here; got axis={axis!r}; call it in a kernel that "
            "pallas_call runs"
        )
    parts = _grids.stack[-1]
    if not isinstance(axis, int) or not 0 <= axis < len(parts[1]):
        raise ValueError(f"{function}: Axis {axis} is out of bounds for grid {tuple(parts[1])}")
    return parts[which][axis]


@api_boundary
def program_id(axis: int) -> Array:
    """Return the index of this step of the kernel along an axis of the grid.

    Parameters
    ----------
    axis : int
        Position of the axis in the grid.

    Returns
    -------
    Array
        int32 scalar.

    Raises
    ------
    {raises_grid}

    See Also
    --------
    experimental.pallas.num_programs : Number of steps.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = pl.program_id(0) * 10
    >>> pl.pallas_call(kernel, jnp.ShapeDtypeStruct((3,), jnp.int32), grid=(3,))()
    Array([ 0, 10, 20], dtype=int32)
    """
    return _grid_position(0, axis, "program_id")


@api_boundary
def num_programs(axis: int) -> Any:
    """Return the number of steps of the kernel along an axis of the grid.

    Parameters
    ----------
    axis : int
        Position of the axis in the grid.

    Returns
    -------
    int or Array
        Integer, or an int32 scalar if it is traced.

    Raises
    ------
    {raises_grid}

    See Also
    --------
    experimental.pallas.program_id : Index of this step.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = pl.num_programs(0)
    >>> pl.pallas_call(kernel, jnp.ShapeDtypeStruct((3,), jnp.int32), grid=(3,))()
    Array([3, 3, 3], dtype=int32)
    """
    return _grid_position(1, axis, "num_programs")


# --- conditions and loops ---


@api_boundary
def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Decorator that runs a function only if a condition is true.

    Parameters
    ----------
    condition : bool or Array
        Boolean scalar, which may be traced.

    Returns
    -------
    callable
        Decorator of a function without arguments and results, which writes to references.

    Raises
    ------
    TypeError
        If the condition is not a scalar, or the function returns something.

    See Also
    --------
    lax.cond : Choose between two functions.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     @pl.when(pl.program_id(0) == 0)
    ...     def first():
    ...         o_ref[...] = jnp.zeros(2)
    ...     o_ref[...] += 1
    >>> pl.pallas_call(kernel, jnp.ShapeDtypeStruct((2,), jnp.float32), grid=(3,))()
    Array([3., 3.], dtype=float32)
    """

    def decorated(f: Callable[[], None]) -> None:
        if isinstance(condition, bool | np.bool_):
            if condition:
                f()
        else:
            cond(condition, f, lambda: None)

    return decorated


@api_boundary
def loop(
    lower: int | Array,
    upper: int | Array,
    *,
    init_carry: PyTree = None,
    step: int | Array = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that runs a function for each index of a range, as `fori_loop` does.

    The name of the function is bound to the last carry.

    Parameters
    ----------
    lower : int or Array
        First index.
    upper : int or Array
        End of the range, which is not included.
    init_carry : pytree of array_like, optional
        First carry, of any shapes and dtypes. Without it, the function takes only the index and
        returns nothing.
    step : int or Array, optional
        Distance between indices. The default is 1.
    unroll : int or bool, optional
        Number of iterations to unroll, as for `fori_loop`.

    Returns
    -------
    callable
        Decorator.

    Raises
    ------
    TypeError
        If the carry changes its type, as for `fori_loop`.

    See Also
    --------
    lax.fori_loop : Loop as a function call.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> @pl.loop(0, 6, step=2, init_carry=1)
    ... def product(i, carry):
    ...     return carry * (i + 1)
    >>> product
    Array(15, dtype=int32, weak_type=True)
    """

    def decorated(body: Callable[..., Any]) -> Any:
        def at(k: Any, carry: Any) -> Any:
            i = lower + k * step
            return body(i) if init_carry is None else body(i, carry)

        return fori_loop(0, cdiv(upper - lower, step), at, init_carry, unroll=unroll)

    return decorated


# --- memory ---


def uninitialized(shape: Sequence[int], dtype: Any) -> Array:
    """Return the values of unwritten memory, as in JAX's interpreter: NaN or the smallest int."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return full(shape, False, dtype)
    if dtype.kind in "iu":
        return full(shape, np.iinfo(dtype).min, dtype)
    return full(shape, np.nan, dtype)


def allocate(kind: Any) -> Ref:
    """Return a reference to new memory of a type."""
    if not (hasattr(kind, "shape") and hasattr(kind, "dtype")):
        raise TypeError(
            f"pallas: a type of memory has a shape and a dtype; got {kind!r}; use "
            "pltpu.VMEM(shape, dtype) or jax.ShapeDtypeStruct"
        )
    return new_ref(uninitialized(kind.shape, kind.dtype))


@api_boundary
def run_scoped(
    f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any
) -> Any:
    """Call a function with references to its own scratch memory, and return its result.

    Parameters
    ----------
    f : callable
        Function of the references.
    *types : pytree of ShapeDtypeStruct
        Type of each reference, with a shape and a dtype.
    collective_axes : object, optional
        Ignored; present for compatibility with JAX.
    **kw_types : pytree of ShapeDtypeStruct
        Types of references that are passed by name.

    Returns
    -------
    object
        Result of `f`. What is read before it was written is nan, or the least integer.

    Raises
    ------
    TypeError
        If an argument is not a type.

    See Also
    --------
    experimental.pallas.with_scoped : Decorator of the same kind.
    new_ref : Make a reference with a value.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def f(ref):
    ...     ref[...] = jnp.ones(2)
    ...     return ref[...] * 2
    >>> pl.run_scoped(f, jnp.ShapeDtypeStruct((2,), jnp.float32))
    Array([2., 2.], dtype=float32)
    """
    return f(*map_arrays(allocate, types), **map_arrays(allocate, kw_types))


@api_boundary
def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Any]:
    """Decorator that passes references to scratch memory to a function, after its arguments.

    Parameters
    ----------
    *types : pytree of ShapeDtypeStruct
        Type of each reference, with a shape and a dtype.
    collective_axes : object, optional
        Ignored; present for compatibility with JAX.
    **kw_types : pytree of ShapeDtypeStruct
        Types of references that are passed by name.

    Returns
    -------
    callable
        Decorator.

    Raises
    ------
    TypeError
        From a call, if an argument is not a type.

    See Also
    --------
    experimental.pallas.run_scoped : Call a function with references.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> @pl.with_scoped(jnp.ShapeDtypeStruct((2,), jnp.float32))
    ... def f(x, ref):
    ...     ref[...] = x
    ...     return ref[...] * 2
    >>> f(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """

    def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any) -> Any:
            return run_scoped(lambda *refs, **kw: f(*args, *refs, **kw), *types, **kw_types)

        return inner

    return decorated


@api_boundary
def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Make a function of arrays from one that writes to references.

    Parameters
    ----------
    f : callable
        Function of a pytree of references.

    Returns
    -------
    callable
        Function from the first contents of the references to the last ones.

    Raises
    ------
    TypeError
        From a call, if `f` is not callable.

    See Also
    --------
    new_ref : Make a reference.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> def f(ref):
    ...     ref[...] += 1
    >>> pl.run_state(f)(jnp.arange(2))
    Array([1, 2], dtype=int32)
    """

    def run(init: Any) -> Any:
        refs = map_arrays(new_ref, init)
        f(refs)
        return map_arrays(lambda ref: ref[...], refs)

    return run


@api_boundary
def empty_like(x: Any) -> Any:
    """Make uninitialized arrays of the shapes and dtypes of a pytree.

    Parameters
    ----------
    x : pytree of array_like
        Arrays or types to imitate.

    Returns
    -------
    pytree of Array
        Arrays whose content is nan, or the least integer.

    Raises
    ------
    AttributeError
        If a leaf has no shape and dtype.

    See Also
    --------
    numpy.empty_like : Version for one array.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> pl.empty_like([jnp.ones(2)])[0].shape
    (2,)
    """
    return map_arrays(lambda leaf: uninitialized(leaf.shape, leaf.dtype), x)


@api_boundary
def empty_ref_like(x: Any) -> Ref:
    """Make a reference to uninitialized memory of a type.

    Parameters
    ----------
    x : ShapeDtypeStruct or array
        Object with a shape and a dtype.

    Returns
    -------
    Ref
        Reference to an array of this shape and dtype.

    Raises
    ------
    TypeError
        If the argument has no shape and dtype.

    See Also
    --------
    empty_ref : The same function outside of kernels.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> pl.empty_ref_like(jnp.ones(2)).shape
    (2,)
    """
    return allocate(x)


# --- numbers ---


@api_boundary
def cdiv(a: int | Array, b: int | Array) -> Any:
    """Divide integers and round up.

    Parameters
    ----------
    a : int or array_like
        Dividend of any shape and integer dtype, which is kept.
    b : int or array_like
        Divisor, which broadcasts against the dividend.

    Returns
    -------
    int or Array
        Quotient, rounded toward infinity.

    Raises
    ------
    ZeroDivisionError
        If the divisor is the integer 0.

    See Also
    --------
    numpy.floor_divide : Divide and round down.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.cdiv(9, 2)
    5
    """
    if isinstance(a, int) and isinstance(b, int):
        return (a + b - 1) // b
    return (wrap(as_node(a, "cdiv")) + (wrap(as_node(b, "cdiv")) - 1)) // b


@api_boundary
def align_to(x: int, a: int) -> int:
    """Round an integer up to a multiple of another one.

    Parameters
    ----------
    x : int
        Integer to round.
    a : int
        Divisor of the result.

    Returns
    -------
    int
        Smallest multiple of `a` that is at least `x`.

    Raises
    ------
    ZeroDivisionError
        If `a` is 0.

    See Also
    --------
    experimental.pallas.cdiv : Divide and round up.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.align_to(9, 4)
    12
    """
    return cdiv(x, a) * a


@api_boundary
def next_power_of_2(x: int) -> int:
    """Round an integer up to a power of 2.

    Parameters
    ----------
    x : int
        Integer to round, at least 0.

    Returns
    -------
    int
        Smallest power of 2 that is at least `x`.

    Raises
    ------
    ValueError
        If `x` is negative.

    See Also
    --------
    experimental.pallas.align_to : Round up to a multiple.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError(
            f"next_power_of_2: needs a number that is not negative; got {x}; pass 0 or more"
        )
    return 1 if x == 0 else 1 << (x - 1).bit_length()


@api_boundary
def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major array, in elements.

    Parameters
    ----------
    shape : sequence of int
        Lengths of the axes.

    Returns
    -------
    tuple of int
        Distance between neighbors along each axis.

    Raises
    ------
    TypeError
        If the shape is not iterable.

    See Also
    --------
    numpy.ndarray : Class of arrays.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))])


@api_boundary
def multiple_of(x: Any, values: Any) -> Array:
    """Return an array unchanged: a hint that its elements are multiples of a number.

    Parameters
    ----------
    x : array_like
        Integers that the hint is about.
    values : int or sequence of int
        Divisors; not used.

    Returns
    -------
    Array
        `x` as an array.

    Raises
    ------
    {raises_x}

    See Also
    --------
    experimental.pallas.align_to : Round up to a multiple.

    Examples
    --------
    >>> import accnp as jnp
    >>> from accnp.experimental import pallas as pl
    >>> pl.multiple_of(jnp.int32(8), 8)
    Array(8, dtype=int32)
    """
    return wrap(as_node(x, "multiple_of"))


@api_boundary
def reciprocal(x: Any, *, approx: bool = False, full_range: bool = False) -> Array:
    """Compute 1 / x, exactly even if an approximation is allowed.

    Parameters
    ----------
    x : array_like
        Divisors of any shape.
    approx : bool, optional
        Ignored hint that an approximation would do.
    full_range : bool, optional
        Ignored hint.

    Returns
    -------
    Array
        Reciprocal of each element.

    Raises
    ------
    {raises_x}

    See Also
    --------
    numpy.reciprocal : The same function.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> float(pl.reciprocal(4.0))
    0.25
    """
    return 1 / wrap(as_node(x, "reciprocal"))


@api_boundary
def debug_print(fmt: str, *args: Any) -> None:
    """Print values while the kernel runs.

    Parameters
    ----------
    fmt : str
        Format string. If it has no fields, all values are printed after it.
    *args : array_like
        Contents of the fields.

    See Also
    --------
    debug.print : Print values outside of kernels, too.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.debug_print("x = {}", 3)
    x = 3
    """
    debug.print(fmt if "{" in fmt else fmt + " {}" * len(args), *args)


@api_boundary
def debug_check(condition: Any, message: str) -> None:
    """Accept a check without making it, as JAX does by default.

    Parameters
    ----------
    condition : array_like of bool
        What should be true.
    message : str
        Text of the error; not used.

    See Also
    --------
    experimental.checkify.check : Check that is made.

    Examples
    --------
    >>> from accnp.experimental import pallas as pl
    >>> pl.debug_check(False, "never shown")
    """
