"""Reductions with user functions: `reduce` and `reduce_window`.

Sums, products, extremes and similar reductions are recognized in the traced function and recorded
as ops of their own. Any other function is applied in a loop, in the order of the elements, so it
need not be associative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, scalar_node
from accnp.api.arguments.shapes import as_axes
from accnp.api.tracing.bodies import as_leaves, check_result, close, record_body, values
from accnp.api.tracing.trace_cache import cached_trace
from accnp.array_type import Array, ArrayLike, ShardingLike, wrap
from accnp.errors import api_boundary
from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import build, evaluate, inline_calls
from accnp.ir.node import LITERAL, Node
from accnp.ir.op import o
from accnp.lax.window_shapes import Windows
from accnp.primitives.control import call
from accnp.primitives.elementwise import XOR
from accnp.primitives.kinds import broadcast_to, dtype_kind, full, wrong_dtype
from accnp.primitives.monoids import MONOIDS, Monoid, reduce_windows
from accnp.pytree import PyTree, PyTreeDef, leaf_names, treedef_tuple
from accnp.sharding.device_placement import with_out_sharding
from accnp.transforms.tools import TOOLS

__all__ = ["reduce", "reduce_window", "reduce_xor"]

_INT32 = np.dtype(np.int32)
DIRECT = 64  # the largest windows that one op reduces directly


# --- operands, initial values, and the function ---


class _Pairs:
    """A traced function of two values, and the known monoids that its results are."""

    refs = ()

    def __init__(
        self, name: str, computation: Callable[[Any, Any], Any], spec: PyTreeDef, avals: list[Aval]
    ) -> None:
        body = record_body(computation, name, [*avals, *avals], treedef_tuple([spec, spec]))
        check_result(name, computation, spec, avals, body)
        self.outer = close([body.graph])
        graph = inline_calls(body.graph)

        def strong(nodes: list[Node]) -> list[Node]:
            return [cast(x, x.aval.dtype) for x in evaluate(graph, nodes)]

        self.graph = build(strong, graph.in_avals, graph.name)
        self.graphs = (self.graph,)
        n = len(avals)
        accs, xs = self.graph.inputs[-2 * n : -n], self.graph.inputs[-n:]
        self.monoids = [
            MONOIDS.get(y.op) if {id(v) for v in y.inputs} == {id(a), id(x)} else None
            for y, a, x in zip(self.graph.outputs, accs, xs, strict=True)
        ]


class _Reduction:
    """Operands of one shape, their initial values, and the function that reduces them."""

    def __init__(self, name: str, operands: Any, init_values: Any, computation: Any) -> None:
        if not callable(computation):
            raise TypeError(
                f"lax.{name}: computation must be callable; got {computation!r}; "
                "pass a function of two scalars"
            )
        self.name = name
        self.xs, self.spec = as_leaves(operands, f"lax.{name}", "operands")
        inits, init_spec = as_leaves(init_values, f"lax.{name}", "init_values")
        if init_spec != self.spec:
            raise ValueError(
                f"lax.{name}: operands and init_values must have the same tree structure; got "
                f"{operands!r:.60} and {init_values!r:.60}; pass one initial value for each"
            )
        if not self.xs:
            raise ValueError(f"lax.{name}: expected an operand; got none; pass an array")
        names = leaf_names(operands, "operands")
        self.shape = self.xs[0].aval.shape
        for x, path in zip(self.xs, names, strict=True):
            if x.aval.shape != self.shape:
                raise ValueError(
                    f"lax.{name}: all operands need one shape; got {self.shape} for {names[0]} and "
                    f"{x.aval.shape} for {path}; broadcast them first"
                )
        for x, path in zip(inits, leaf_names(init_values, "init_values"), strict=True):
            if x.aval.shape != ():
                kind = TypeError if name == "reduce_window" else ValueError  # as in JAX
                raise kind(
                    f"lax.{name}: initial values must be scalars; got shape {x.aval.shape} for "
                    f"{path}; pass numbers"
                )
        self.inits = inits
        self.names = names
        self.record(computation)

    def record(self, computation: Callable[[Any, Any], Any]) -> None:
        """Trace the function on scalars, and recognize known functions."""
        avals = [make_aval((), x.aval.dtype) for x in self.xs]
        key = ("reduction", self.spec, *avals)
        body = cached_trace(
            (computation,), key, lambda: _Pairs(f"lax.{self.name}", computation, self.spec, avals)
        )
        self.graph, self.outer, self.monoids = body.graph, body.outer, body.monoids

    def start(self, i: int) -> Node:
        """Return an initial value in the dtype of its operand.

        Raises:
            TypeError: it has another dtype and is not the identity of a known function.
        """
        first, dtype, monoid = self.inits[i], self.xs[i].aval.dtype, self.monoids[i]
        if first.aval.dtype == dtype:
            return cast(first, dtype)
        # As in JAX, a single operand with a known function may have the identity in another dtype.
        own = monoid is not None and (self.name == "reduce" or monoid.windows)
        if monoid is None or not own or len(self.xs) > 1 or not _is_identity(first, monoid):
            raise TypeError(
                f"lax.{self.name}: initial values must have the dtype of the operand; got "
                f"{first.aval.dtype.name} for {self.names[i]} of {dtype.name}; convert it"
            )
        return scalar_node(monoid.identity(dtype), dtype, False)

    def known(self, whole: Callable[[Monoid, Node], Node]) -> Any:
        """Reduce by the ops of known functions; `whole` reduces one operand."""
        results = []
        for i, (monoid, x) in enumerate(zip(self.monoids, self.xs, strict=True)):
            assert monoid is not None
            first, y = self.start(i), whole(monoid, x)
            if not _is_identity(first, monoid):
                y = monoid.combine(y, broadcast_to(first, y.aval.shape))
            results.append(y)
        return self.result(results)

    def loop(
        self,
        shape: tuple[int, ...],
        consts: Sequence[Node],
        rows: Sequence[Node],
        read: Callable[[list[Node], list[Node]], tuple[list[Node], Node | None]],
    ) -> list[Node]:
        """Reduce rows by the traced function in a loop.

        `read` maps (constants, row) to one value for each operand, of this shape, and a mask of the
        elements that count.
        """
        size = prod(shape)
        n, n_outer, n_consts = len(self.xs), len(self.outer), len(consts)
        each = self.graph
        if shape:
            flags = (*(False,) * n_outer, *(True,) * (2 * n))
            each, _ = TOOLS.batch_graph(each, size, flags, True)
        flat = (size,) if shape else ()

        def step(nodes: list[Node]) -> list[Node]:
            outer, nodes = nodes[:n_outer], nodes[n_outer:]
            row_values, mask = read(nodes[:n_consts], nodes[n_consts + n :])
            accs = nodes[n_consts : n_consts + n]
            new = evaluate(each, [*outer, *accs, *[_reshape(x, flat) for x in row_values]])
            if mask is None:
                return new
            mask = _reshape(mask, flat)
            return [o.select_n(mask, a, b) for a, b in zip(accs, new, strict=True)]

        starts = [broadcast_to(self.start(i), flat) for i in range(n)]
        ins = [*self.outer, *consts, *starts, *rows]
        n_fixed = len(ins) - len(rows)
        avals = [x.aval for x in ins[:n_fixed]]
        avals += [make_aval(x.aval.shape[1:], x.aval.dtype) for x in rows]
        params = {
            "jaxpr": build(step, avals, self.graph.name),
            "length": rows[0].aval.shape[0],
            "reverse": False,
            "unroll": 1,
            "num_consts": n_outer + n_consts,
            "num_carry": n,
        }
        return [_reshape(x, shape) for x in call("scan", ins, params)]

    def result(self, nodes: Sequence[Node]) -> Any:
        """Build the results in the structure of the operands."""
        return values(self.spec, nodes)


def _reshape(x: Node, shape: tuple[int, ...]) -> Node:
    return x if x.aval.shape == shape else o.reshape(x, new_sizes=shape, dimensions=None)


def _is_identity(x: Node, monoid: Monoid) -> bool:
    return x.op is LITERAL and x.params["value"] == monoid.identity(x.aval.dtype)


# --- reduce ---


@api_boundary
@with_out_sharding
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: ShardingLike = None,
) -> Any:
    """Reduce axes with a function of two scalars.

    Parameters
    ----------
    operands : array_like or pytree of them
        Arrays of one shape.
    init_values : scalar or pytree of them
        Initial value for each operand.
    computation : callable
        Function (value so far, element) -> value of the dtypes of the operands. For several
        operands, values are trees of scalars.
    dimensions : sequence of int
        Axes to reduce.
    {out_sharding}

    Returns
    -------
    Array or pytree of Array
        Results without the reduced axes, of the dtypes of the operands.

    Raises
    ------
    TypeError
        If `computation` returns another structure or other types than it is given.
    ValueError
        If shapes, structures or axes do not fit.

    See Also
    --------
    reduce_window : Reduce windows of an array.
    reduce_sum, reduce_max, reduce_min : Reductions with known functions.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> jnp.lax.reduce(x, 0.0, lambda a, b: jnp.hypot(a, b), (1,))
    Array([2.236068, 7.071068], dtype=float32)
    """
    reduction = _Reduction("reduce", operands, init_values, computation)
    axes = _axes(dimensions, len(reduction.shape))
    if not axes:
        return reduction.result(reduction.xs)
    remaining = tuple(d for d in range(len(reduction.shape)) if d not in axes)
    shape = tuple(reduction.shape[d] for d in remaining)
    if all(reduction.monoids):
        return reduction.known(lambda monoid, x: _reduce_axes_by_op(monoid, x, axes))
    count = prod(reduction.shape[d] for d in axes)
    rows = [
        _reshape(o.transpose(x, permutation=(*axes, *remaining)), (count, *shape))
        for x in reduction.xs
    ]
    return reduction.result(reduction.loop(shape, [], rows, lambda _, row: (row, None)))


def _axes(dimensions: Any, rank: int, name: str = "lax.reduce") -> tuple[int, ...]:
    if not isinstance(dimensions, Sequence | np.ndarray) or not np.ndim(dimensions):
        raise TypeError(
            f"{name}: axes must be a sequence of integers; got {dimensions!r}; pass a tuple"
        )
    user_axes = tuple(dimensions)
    axes = tuple(sorted(as_axes(user_axes, rank, name)))
    if any(int(d) < 0 for d in user_axes):
        raise ValueError(
            f"{name}: axes cannot be negative; got {user_axes} for rank {rank}; add the rank"
        )
    return axes


def _is_complex_extreme(monoid: Monoid, x: Node) -> bool:
    """Return whether this is an extreme of complex numbers, for which there is no reduction op."""
    return x.aval.dtype.kind == "c" and monoid.reduce in ("reduce_max", "reduce_min")


def _reduce_axes_by_op(monoid: Monoid, x: Node, axes: tuple[int, ...]) -> Node:
    if monoid.reduce and not _is_complex_extreme(monoid, x):
        return getattr(o, monoid.reduce)(x, axes=axes)
    for axis in reversed(axes):
        n = x.aval.shape[axis]
        if n == 0:
            shape = (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :])
            x = full(shape, monoid.identity(x.aval.dtype), x.aval.dtype)
        else:
            x = o.squeeze(reduce_windows(monoid.combine, x, axis, n), dimensions=(axis,))
    return x


@api_boundary
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the bitwise exclusive or over the given axes.

    Parameters
    ----------
    operand : array_like
        Array of integer or bool dtype, of any shape.
    axes : sequence of int
        Axes to reduce, counted from 0.

    Returns
    -------
    Array
        Result of the dtype of `operand`, without the reduced axes.

    Raises
    ------
    TypeError
        If `operand` has another dtype, or `axes` is not a sequence.
    ValueError
        If an axis is out of bounds or given twice.

    See Also
    --------
    reduce_and, reduce_or : The other bitwise reductions.
    reduce : Reduction by any function.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.reduce_xor(jnp.array([1, 2, 7]), (0,))
    Array(4, dtype=int32)
    """
    x = as_node(operand, "lax.reduce_xor")
    if dtype_kind(x.aval.dtype) not in "biu":
        raise wrong_dtype("lax.reduce_xor", x.aval.dtype, "biu")
    x = cast(x, x.aval.dtype)  # as a strong type
    return wrap(_reduce_axes_by_op(MONOIDS[XOR], x, _axes(axes, x.aval.ndim, "lax.reduce_xor")))


# --- windows ---


@api_boundary
def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window of an array with a function of two scalars, for example for pooling.

    Parameters
    ----------
    operand : array_like or pytree of them
        Arrays of one shape.
    init_value : scalar or pytree of them
        Initial value of each window, for each operand.
    computation : callable
        Function (value so far, element) -> value of the dtypes of the operands.
    window_dimensions : sequence of int
        Size of the window along each axis.
    window_strides : sequence of int, optional
        Distance between windows along each axis. The default is 1.
    padding : str or sequence of (int, int), optional
        "VALID", "SAME", "SAME_LOWER", or how many places to add before and after each axis. Places
        outside of the array are left out of the reduction. The default is "VALID".
    base_dilation : sequence of int, optional
        Distance between the elements of the array along each axis. The default is 1.
    window_dilation : sequence of int, optional
        Distance between the elements of a window along each axis. The default is 1.

    Returns
    -------
    Array or pytree of Array
        One value for each window, of the dtypes of the operands.

    Raises
    ------
    TypeError
        If `computation` returns other types than it is given, or sizes, strides or dilations are
        not positive or not one for each axis.
    ValueError
        If shapes, structures or the padding do not fit.

    See Also
    --------
    reduce : Reduce whole axes.
    conv_general_dilated : Weighted sums of windows.

    Notes
    -----
    Sums and extremes of small windows are a single operation. Other known functions, and larger
    windows of n elements, need about log n operations on whole arrays. If the extreme of a window
    occurs several times, the first one receives the derivative.

    Examples
    --------
    >>> import accnp as jnp
    >>> x = jnp.arange(6.0).reshape(2, 3)
    >>> jnp.lax.reduce_window(x, -jnp.inf, jnp.lax.max, (2, 2), (1, 1), "VALID")
    Array([[4., 5.]], dtype=float32)
    """
    reduction = _Reduction("reduce_window", operand, init_value, computation)
    where = window_dimensions, window_strides, padding, base_dilation, window_dilation
    windows = Windows(reduction.shape, *where)
    if 0 in windows.out:
        return reduction.result([full(windows.out, 0, x.aval.dtype) for x in reduction.xs])
    if all(reduction.monoids):
        return reduction.known(lambda monoid, x: _reduce_windows_by_op(monoid, x, windows))
    return reduction.result(_reduce_windows_by_loop(reduction, windows))


def _reduce_windows_by_op(monoid: Monoid, x: Node, windows: Windows) -> Node:
    """Reduce windows by one op, or large windows axis by axis."""
    direct = (
        monoid.windows and prod(windows.window) <= DIRECT and not _is_complex_extreme(monoid, x)
    )
    if direct and dtype_kind(x.aval.dtype) != "b":
        return getattr(o, monoid.windows)(x, **windows.params)
    x = windows.fill(x, monoid.identity(x.aval.dtype))
    for axis in reversed(range(x.aval.ndim)):
        size, stride = windows.window[axis], windows.strides[axis]
        dilation, count = windows.dilation[axis], windows.out[axis]
        x = reduce_windows(monoid.combine, x, axis, size, stride, dilation, count=count)
    return x


def _reduce_windows_by_loop(reduction: _Reduction, windows: Windows) -> list[Node]:
    """Reduce windows element by element, for all windows at once."""
    rank, shape, sizes = len(reduction.shape), windows.out, windows.window
    consts = [windows.fill(x, 0) for x in reduction.xs]
    if windows.padded:
        consts.append(windows.fill(full(reduction.shape, True, np.dtype(bool)), False))
    spans = [(n - 1) * s + 1 for n, s in zip(shape, windows.strides, strict=True)]
    # Row i is the position of the i-th element of the first window.
    places = np.stack([i.ravel() for i in np.indices(sizes)], 1) * np.asarray(windows.dilation)

    def read(consts: list[Node], row: list[Node]) -> tuple[list[Node], Node | None]:
        starts = [_item(row[0], d) for d in range(rank)]
        row_values = [
            o.slice(
                o.dynamic_slice(x, *starts, slice_sizes=tuple(spans)),
                start_indices=(0,) * rank,
                limit_indices=tuple(spans),
                strides=windows.strides,
            )
            for x in consts
        ]
        return (row_values[:-1], row_values[-1]) if windows.padded else (row_values, None)

    rows = [as_node(places.astype(_INT32).reshape(prod(sizes), rank))]
    return reduction.loop(shape, consts, rows, read)


def _item(x: Node, i: int) -> Node:
    one = o.slice(x, start_indices=(i,), limit_indices=(i + 1,), strides=None)
    return o.squeeze(one, dimensions=(0,))
