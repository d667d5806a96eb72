"""`jacfwd`, `jacrev` and `hessian`: a linear map at a point, applied to a basis by batching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import cast, wrap
from accnp.api.arguments.values import check_callable
from accnp.api.differentiation.linearize import (
    Linearized,
    as_argnums,
    check_inputs,
    check_output,
    checked_argnums,
    linearize_call,
    with_weak_type,
)
from accnp.errors import KeyArrayError, alias, api_boundary
from accnp.ir.aval import Aval
from accnp.ir.graph import build
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import Trace
from accnp.primitives.custom import has_symbolic_zeros
from accnp.primitives.custom_batching import has_batching_rule
from accnp.primitives.kinds import dtype_kind, full, zeros_like_aval
from accnp.pytree import tree_unflatten
from accnp.trace_fn import describe, wraps
from accnp.transforms import jvp
from accnp.transforms.batch import batch_nodes, batched_outputs, with_batch_axis
from accnp.transforms.tools import TOOLS
from accnp.transforms.traversal import inexact, nodes_within, take_recorded

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]

P = ParamSpec("P")

_INT = np.dtype(np.int32)


def _basis(aval: Aval) -> Node:
    """Return all unit vectors of a shape, along a leading axis."""
    n = aval.size
    if n == 0:
        return full((0, *aval.shape), 0, aval.dtype)
    rows = o.iota(dtype=_INT, shape=(n, n), dimension=0)
    cols = o.iota(dtype=_INT, shape=(n, n), dimension=1)
    eye = o.convert_element_type(o.eq(rows, cols), new_dtype=aval.dtype, weak_type=False)
    return o.reshape(eye, new_sizes=(n, *aval.shape), dimensions=None)


def _joint_basis(avals: Sequence[Aval]) -> list[Node]:
    """Return all unit vectors of several values together, along a leading axis of each."""
    total = sum([a.size for a in avals])
    bases, offset = [], 0
    for a in avals:
        padding = ((offset, total - offset - a.size, 0), *[(0, 0, 0)] * a.ndim)
        bases.append(o.pad(_basis(a), full((), 0, a.dtype), padding_config=padding))
        offset += a.size
    return bases


def _batched_jvp(lin: Linearized, k: int) -> list[Node | None]:
    """Return the tangents of each output for all unit vectors of input k, with a leading axis."""
    aval = lin.in_avals[k]
    env: dict[int, Any] = {id(p): (zeros_like_aval(p.aval), False) for p in lin.map.inputs}
    env[id(lin.map.inputs[k])] = (_basis(aval), True)
    batch_nodes(lin.map.order, env, aval.size, TOOLS)
    rows: list[Node | None] = []
    for x in lin.map.outputs:
        if x is None or id(x) not in env:
            rows.append(None)
        else:
            y, batched = env[id(x)]
            rows.append(with_batch_axis(y, batched, aval.size))
    return rows


def _jvp_by_batching_rules(
    outputs: list[Node], tracers: list[Node], trace: Trace
) -> list[list[Node | None]] | None:
    """Return the result of `_batched_jvp` for each input, for functions with batching rules.

    As in JAX, these see one derivative mapped over all unit vectors. Returns None without such
    rules.
    """
    if not has_batching_rule(nodes_within(outputs, tracers, trace)):
        return None
    order = take_recorded(outputs, tracers, trace)
    sizes = [m.aval.size for m in tracers]
    total = sum(sizes)
    nonzero: list[bool] = []

    def push(tangents: list[Node]) -> list[Node]:
        env: dict[int, Any] = {id(m): (m, t) for m, t in zip(tracers, tangents, strict=True)}
        jvp.forward(order, env, TOOLS, trace)
        tangents_out = [env.get(id(x), (x, None))[1] for x in outputs]
        nonzero.extend(t is not None for t in tangents_out)
        return [t for t in tangents_out if t is not None]

    graph = build(push, [m.aval for m in tracers], "jacfwd")
    bases = _joint_basis([m.aval for m in tracers])
    pairs = iter(batched_outputs(graph, bases, [True] * len(tracers), total, TOOLS))
    whole = [with_batch_axis(*next(pairs), total) if is_nonzero else None for is_nonzero in nonzero]
    table: list[list[Node | None]] = []
    offset = 0
    for n in sizes:
        table.append([None if x is None else _rows_between(x, offset, offset + n) for x in whole])
        offset += n
    return table


def _rows_between(x: Node, first: int, end: int) -> Node:
    shape = x.aval.shape
    return o.slice(
        x,
        start_indices=(first,) + (0,) * (len(shape) - 1),
        limit_indices=(end, *shape[1:]),
        strides=None,
    )


def _reverse_rows(lin: Linearized, i: int) -> list[Node | None]:
    """Return the cotangents of each input for all unit vectors of output i, with a leading axis."""
    aval = lin.out_avals[i]
    return _batched_vjp(lin, [i], [_basis(aval)], aval.size)


def _reverse_table(lin: Linearized) -> list[list[Node | None]]:
    """Return the result of `_reverse_rows` for each output.

    Rules with symbolic zeros are called once for all outputs, as in JAX, so no cotangent is zero.
    """
    if not has_symbolic_zeros(lin.map.order):
        return [_reverse_rows(lin, i) for i in range(len(lin.out_avals))]
    smooth = [i for i, a in enumerate(lin.out_avals) if inexact(a.dtype)]
    avals = [lin.out_avals[i] for i in smooth]
    total = sum([a.size for a in avals])
    rows = _batched_vjp(lin, smooth, _joint_basis(avals), total)
    table: list[list[Node | None]] = [[None] * len(rows) for _ in lin.out_avals]
    offset = 0
    for i, a in zip(smooth, avals, strict=True):
        table[i] = [None if x is None else _rows_between(x, offset, offset + a.size) for x in rows]
        offset += a.size
    return table


def _batched_vjp(
    lin: Linearized, places: Sequence[int], bases: Sequence[Node], size: int
) -> list[Node | None]:
    """Return the cotangents of each input for batched cotangents of some outputs."""
    nonzero: list[bool] = []

    def pull(leaves: list[Node]) -> list[Node]:
        cts: list[Node | None] = [None] * len(lin.out_avals)
        for i, x in zip(places, leaves, strict=True):
            cts[i] = x
        cotangents = lin.map.pull(cts)
        nonzero.extend(x is not None for x in cotangents)
        return [x for x in cotangents if x is not None]

    graph = build(pull, [lin.out_avals[i] for i in places], "jacrev")
    pairs = iter(batched_outputs(graph, bases, [True] * len(bases), size, TOOLS))
    return [with_batch_axis(*next(pairs), size) if is_nonzero else None for is_nonzero in nonzero]


def _block(rows: Node | None, out: Aval, argument: Aval, by_columns: bool) -> Any:
    """Return d out / d argument, of shape (*out.shape, *argument.shape)."""
    shape = (*out.shape, *argument.shape)
    typed_as = out if by_columns else argument  # the block has its type
    if not inexact(argument.dtype) or not inexact(out.dtype):
        return wrap(full(shape, 0, (argument if not inexact(argument.dtype) else out).dtype))
    if rows is None:
        return wrap(full(shape, 0, typed_as.dtype, typed_as.weak_type))
    block: Node = cast(rows, typed_as.dtype)  # a rule of custom_vjp may return another dtype
    rank = block.aval.ndim
    if by_columns and rank > 1:
        block = o.transpose(block, permutation=(*range(1, rank), 0))
    if block.aval.shape != shape:
        block = o.reshape(block, new_sizes=shape, dimensions=None)
    return wrap(with_weak_type(block, typed_as.weak_type))


def _check_forward(holomorphic: bool) -> Callable[[list[Any]], None]:
    def check(avals: list[Any]) -> None:
        for a in avals:
            kind, name = dtype_kind(a.dtype), a.dtype.name
            if holomorphic and kind != "c":
                raise TypeError(
                    "jacfwd with holomorphic=True requires inputs with complex dtype, but got "
                    f"{name}; convert them, or leave holomorphic out"
                )
            if not holomorphic and kind != "f":
                raise TypeError(
                    "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of "
                    f"np.floating), but got {name}; convert them, or pass holomorphic=True for "
                    "complex ones"
                )

    return check


def _jacobian(
    function: str,
    fun: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    check_callable(function, fun)
    checked_argnums(function, argnums)
    by_columns = function == "jacfwd"
    check = (
        _check_forward(holomorphic)
        if by_columns
        else check_inputs(function, holomorphic, allow_int)
    )

    @wraps(fun)
    @api_boundary
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        positions = as_argnums(function, argnums, len(args))

        def call(dynamic: Sequence[Any]) -> Any:
            whole = list(args)
            for n, x in zip(positions, dynamic, strict=True):
                whole[n] = x
            return fun(*whole, **kwargs)

        dynamic_args = [args[n] for n in positions]
        columns = _jvp_by_batching_rules if by_columns else None
        lin = linearize_call(function, fun, dynamic_args, call, has_aux, check, columns)
        for a in lin.out_tree.shown_leaves(lin.out_avals):
            if holomorphic or not by_columns:
                check_output(function, a, holomorphic)
            elif isinstance(a.dtype, dtypes.ExtendedDType):
                raise KeyArrayError(
                    f"{function}: random keys have no derivative; got a result of type {a}; "
                    "return them beside the value, with has_aux=True"
                )
        n_in, n_out = len(lin.in_avals), len(lin.out_avals)
        if by_columns:
            by_input = lin.columns or [_batched_jvp(lin, k) for k in range(n_in)]
            table = [[by_input[k][i] for k in range(n_in)] for i in range(n_out)]
        else:
            table = _reverse_table(lin)
        blocks = []
        for row, out in zip(table, lin.out_avals, strict=True):
            parts = [_block(r, out, a, by_columns) for r, a in zip(row, lin.in_avals, strict=True)]
            tree = tree_unflatten(lin.in_tree, parts)
            blocks.append(tree[0] if isinstance(argnums, int | np.integer) else tree)
        result = tree_unflatten(lin.out_tree, blocks)
        return (result, lin.aux) if has_aux else result

    describe(jacobian_fun, fun, f"Jacobian of {{}} with respect to the arguments {argnums}.")
    return jacobian_fun


@api_boundary
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `fun` column by column, in forward mode.

    Parameters
    ----------
    fun : callable
        Function to differentiate, of pytrees of arrays, with results of any shape.
    {argnums}
    {has_aux}
    {holomorphic}

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns the Jacobian, or `(jacobian, aux)` with
        `has_aux`. Each block has the shape of the result followed by the shape of the argument. The
        blocks are in a pytree of the structure of the result, each leaf of which has the structure
        of the argument.

    Raises
    ------
    TypeError
        If `fun` is not callable, or an argument is not floating (with `holomorphic`, not complex).
    ValueError
        If `argnums` is out of range.

    See Also
    --------
    jacrev : The same in reverse mode, faster if there are fewer results than arguments.
    jvp : Product of the Jacobian with a vector.
    hessian : Second derivatives.

    Notes
    -----
    One forward-mode derivative is evaluated for each element of the arguments, all of them together
    by `vmap`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False)


@api_boundary
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `fun` row by row, in reverse mode.

    Parameters
    ----------
    fun : callable
        Function to differentiate, of pytrees of arrays, with results of any shape.
    {argnums}
    {has_aux}
    {holomorphic}
    {allow_int}

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns the Jacobian, or `(jacobian, aux)` with
        `has_aux`. Each block has the shape of the result followed by the shape of the argument. The
        blocks are in a pytree of the structure of the result, each leaf of which has the structure
        of the argument.

    Raises
    ------
    TypeError
        If `fun` is not callable, or an argument is neither floating nor, with `allow_int`, an
        integer.
    ValueError
        If `argnums` is out of range.

    See Also
    --------
    jacfwd : The same in forward mode, faster if there are fewer arguments than results.
    vjp : Product of a vector with the Jacobian.
    grad : Gradient of a function that returns a scalar.

    Notes
    -----
    One reverse-mode derivative is evaluated for each element of the result, all of them together by
    `vmap`.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.jacrev(lambda x: x.sum())(jnp.array([1.0, 2.0]))
    Array([1., 1.], dtype=float32)
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int)


jacobian = alias(jacrev, "jacobian", "accnp")


@api_boundary
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the matrix of second derivatives of `fun`.

    Parameters
    ----------
    fun : callable
        Function to differentiate twice, of pytrees of arrays.
    {argnums}
    {has_aux}
    {holomorphic}

    Returns
    -------
    callable
        Function of the arguments of `fun` that returns the Hessian, or `(hessian, aux)` with
        `has_aux`. Each block has the shape of the result followed by the shapes of two arguments.

    Raises
    ------
    TypeError
        If `fun` is not callable, or the dtype of an argument is not floating.
    ValueError
        If `argnums` is out of range.

    See Also
    --------
    jacfwd : First derivatives in forward mode.
    jacrev : First derivatives in reverse mode.
    grad : Gradient of a function that returns a scalar.

    Notes
    -----
    Forward mode is applied to reverse mode.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    check_callable("hessian", fun)
    checked_argnums("hessian", argnums)
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    out = jacfwd(inner, argnums, has_aux, holomorphic)
    describe(out, fun, f"Hessian of {{}} with respect to the arguments {argnums}.")
    return out
