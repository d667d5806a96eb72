"""Maps and scans over a leading axis: `map` and `associative_scan`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.tracing.argument_names import argument_names
from accnp.api.tracing.bodies import Loop, as_leaves, close, record_body, same_type, type_text
from accnp.array_type import wrap
from accnp.errors import IncompatibleShapesError, KeyArrayError, api_boundary
from accnp.ir.aval import row_aval
from accnp.ir.graph import evaluate
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lax.control_flow.loops import run_scan
from accnp.primitives.prefix import prefixes, slice_axis
from accnp.pytree import PyTree, flatten_arrays, leaf_names
from accnp.transforms.tools import TOOLS

__all__ = ["associative_scan", "map"]


@api_boundary
def map(f: Callable[[Any], Any], xs: PyTree, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, one after another.

    Parameters
    ----------
    f : callable
        Function of a row that returns a tree of arrays.
    xs : pytree
        Array or tree of arrays with leading axes of one length.
    batch_size : int, optional
        Number of rows to process together, as by `vmap`. The default processes one row at a time.

    Returns
    -------
    pytree
        Results, stacked along a leading axis, with the dtypes that `f` returns.

    Raises
    ------
    TypeError
        If `f` is not callable.
    ValueError
        If `xs` contains no array, leading axes differ, or `batch_size` is negative.

    See Also
    --------
    vmap : Process all rows at once.
    scan : The same with a carry.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.map(lambda x: x * x, jnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"lax.map: f argument should be a callable; got {f!r}; pass a function")
    loop = Loop("map", f, (), argument_names(f, (xs,), {}), kind=batch_size is None)

    def run(step: Callable[[Any], Any], rows: Any) -> Any:
        return run_scan(loop, lambda _, x: ((), step(x)), (), rows, None, False, 1)[1]

    if batch_size is None:
        return run(f, xs)
    rows, spec = as_leaves(xs, "map", "xs")
    batch_size = operator.index(batch_size)
    if batch_size < 0:
        raise IncompatibleShapesError(
            f"map: batch_size must not be negative; got {batch_size}; pass 0 or more, or None"
        )
    shapes = [a.shape for a in spec.shown_leaves([x.aval for x in rows])]
    if not rows or any(not s or s[0] != shapes[0][0] for s in shapes):
        raise ValueError(
            f"map: all of xs must have leading axes of equal length; got shapes {shapes}; "
            "make them equally long"
        )
    n = rows[0].aval.shape[0]
    whole = n // batch_size * batch_size if batch_size else 0
    parts: list[list[Node]] = []
    out_spec: Any = None
    if whole:
        count = whole // batch_size
        heads = [
            o.reshape(_slice_rows(x, 0, whole), new_sizes=(count, batch_size, *x.aval.shape[1:]))
            for x in rows
        ]
        tree = spec.unflatten([wrap(x) for x in heads])
        ys, out_spec = flatten_arrays(run(lambda x: _all_rows(f, x), tree))
        nodes = [as_node(y) for y in ys]
        parts.append([o.reshape(y, new_sizes=(whole, *y.aval.shape[2:])) for y in nodes])
    if whole < n or not n:
        tail = spec.unflatten([wrap(_slice_rows(x, whole, n)) for x in rows])
        ys, out_spec = flatten_arrays(_all_rows(f, tail))
        parts.append([as_node(y) for y in ys])
    joined = [p[0] if len(p) == 1 else o.concatenate(*p, dimension=0) for p in zip(*parts)]
    return out_spec.unflatten([wrap(x) for x in joined])


def _slice_rows(x: Node, start: int, stop: int) -> Node:
    return slice_axis(x, 0, start, stop)


def _all_rows(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply `f` to all rows at once, by batching its program."""
    rows, _ = as_leaves(xs, "map", "xs")
    size = rows[0].aval.shape[0]
    avals = [row_aval(x.aval) for x in rows]
    body = record_body(f, "map", avals, flatten_arrays((xs,))[1])
    outer = close([body.graph])
    flags = (*(False,) * len(outer), *(True,) * len(rows))
    graph, _ = TOOLS.batch_graph(body.graph, size, flags, (True,) * len(body.avals))
    return body.spec.unflatten([wrap(x) for x in evaluate(graph, [*outer, *rows])])


@api_boundary
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: PyTree, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine all prefixes of arrays with an associative function, in parallel.

    Parameters
    ----------
    fn : callable
        Function (a, b) -> combination, for arrays of many elements at once. Its result has the
        structure and types of its arguments. If it is not commutative, `a` comes first.
    elems : pytree
        Array or tree of arrays of any dtypes, with one length along the axis.
    reverse : bool, optional
        If True, combine suffixes, from the end. The default is False.
    axis : int, optional
        Axis to go along. The default is 0.

    Returns
    -------
    pytree
        Combination of each prefix, with the structure, shapes and dtypes of `elems`.

    Raises
    ------
    TypeError
        If `fn` returns another structure or other types.
    ValueError
        If lengths along the axis differ, or `axis` is out of bounds.

    See Also
    --------
    cumsum, cumprod, cummax : Prefixes of known functions.
    scan : Sequential loop with a carry.

    Notes
    -----
    The number of calls of `fn` grows with the logarithm of the length.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.associative_scan(jnp.add, jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    if not callable(fn):
        raise TypeError(
            f"lax.associative_scan: fn argument should be callable; got {fn!r}; pass a function"
        )
    nodes, spec = as_leaves(elems, "associative_scan", "elems")
    if spec != spec.shown():
        raise KeyArrayError(
            "lax.associative_scan: random keys cannot be scanned over this way; "
            f"got {[str(a) for a in spec.shown_leaves([x.aval for x in nodes])]}; use lax.scan"
        )
    if not nodes:
        raise IndexError(f"lax.associative_scan: elems has no arrays; got {elems!r}; pass some")
    rank = nodes[0].aval.ndim
    if not -rank <= axis < rank:
        raise ValueError(
            f"associative_scan: axis {axis} is out of bounds for array of dimension {rank}; pass "
            "one that all have"
        )
    axis %= rank
    lengths = [x.aval.shape[axis] if x.aval.ndim > axis else None for x in nodes]
    if len(set(lengths)) > 1:
        shapes = [x.aval.shape for x in nodes]
        raise ValueError(
            "associative_scan: Array inputs to associative_scan must have the same first "
            f"dimension, that of the scanned axis; got {shapes}; slice the longer ones"
        )

    if not reverse and nodes[0].aval.shape[axis] < 2:
        return spec.unflatten(flatten_arrays(elems)[0])

    def combine(a: list[Node], b: list[Node]) -> list[Node]:
        left = spec.unflatten([wrap(x) for x in a])
        right = spec.unflatten([wrap(x) for x in b])
        out, out_spec = flatten_arrays(fn(left, right))
        if out_spec != spec:
            raise IncompatibleShapesError(
                "associative_scan: fn must return the structure of its arguments; "
                f"got {out_spec} for {spec}; return the structure of the arguments"
            )
        results = [as_node(x, "associative_scan") for x in out]
        wrong = [
            f"{path} is {type_text(x.aval)} where {type_text(y.aval)} is needed"
            for path, x, y in zip(leaf_names(left, "the result"), results, b, strict=True)
            if not same_type(x.aval, y.aval)
        ]
        if wrong:
            raise TypeError(
                f"associative_scan: fn must return the types of its arguments; {'; '.join(wrong)}"
            )
        return results

    return spec.unflatten([wrap(x) for x in prefixes(combine, nodes, axis, reverse)])
