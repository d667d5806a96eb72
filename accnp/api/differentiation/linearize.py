"""The value and the derivative of a function at a point, recorded over marks of its arguments.

`linearize_call` returns a `Linearized`; the public functions of `derivatives.py` and `jacobians.py`
apply its linear map. This module also checks dtypes and argnums.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp import dtypes
from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.values import check_callable
from accnp.array_type import escape
from accnp.ir.aval import Aval
from accnp.ir.node import Node, mark
from accnp.ir.op import o
from accnp.ir.trace import Trace
from accnp.primitives.control import take_wholes
from accnp.primitives.kinds import dtype_kind
from accnp.pytree import flatten_arrays, tree_unflatten
from accnp.transforms.transpose import zero_cotangent
from accnp.transforms.traversal import inexact
from accnp.transforms.vjp import LinearMap, linearize_outputs

__all__ = [
    "Linearized", "as_argnums", "check_inputs", "check_output", "checked_argnums", "float0_zeros",
    "gradients", "leaf_nodes", "linearize_call", "marked_arguments", "split_aux", "with_weak_type",
]  # fmt: skip


def leaf_nodes(function: str, leaves: Sequence[Any]) -> list[Node]:
    """Convert the leaves of arguments, which must not be float0."""
    return list(take_wholes([as_node(x, function) for x in leaves]))


def marked_arguments(marks: Sequence[Node], leaves: Sequence[Any]) -> list[Any]:
    """Return the arguments that a differentiated function gets: marks of its arguments as arrays.

    NumPy integers and bools, which have no derivative, are passed as NumPy values, so that they
    follow NumPy's promotion. They get the dtype that they have as arrays.
    """
    return [
        np.asarray(x, m.aval.dtype)[()]
        if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biu"
        else wrap(m)
        for m, x in zip(marks, leaves, strict=True)
    ]


def float0_zeros(aval: Any) -> np.ndarray:
    """Return the tangent of an integer or boolean value, which stores no data."""
    return np.zeros(aval.shape, dtypes.float0)


def checked_argnums(function: str, argnums: Any) -> tuple[int, ...]:
    """Return argnums as a tuple of integers; TypeError for anything else."""
    try:
        if isinstance(argnums, int | np.integer):
            return (int(argnums),)
        return tuple(map(operator.index, argnums))
    except TypeError:
        raise TypeError(
            f"{function}: argnums must be an integer or several integers; got {argnums!r}; "
            "pass positions of arguments"
        ) from None


def as_argnums(function: str, argnums: Any, count: int) -> tuple[int, ...]:
    """Return argnums as a tuple of non-negative positions.

    Raises:
        TypeError: `argnums` holds values other than ints, or there are too few arguments.
        ValueError: there are too few arguments, for a Jacobian or a negative position.
    """
    single = checked_argnums(function, argnums)
    for n in single:
        if not -count <= n < count:
            strict = n < 0 or function.startswith(("jac", "hess"))
            advice = f"pass {-count} to {count - 1}" if count else "pass it by position"
            raise (ValueError if strict else TypeError)(
                f"{function}: differentiating with respect to argnums={argnums} requires at least "
                f"{max(n + 1, -n)} positional arguments to be passed by the caller, but got only "
                f"{count} positional arguments; {advice}"
            )
    return tuple(n % count for n in single)


# A function of outputs, marks and their trace.
Columns = Callable[[list[Node], list[Node], Trace], list[list[Node | None]] | None]


class Linearized:
    """The value and derivative of a function at a point, recorded over marks.

    Attributes:
        map: the derivative.
        columns: its columns, by input and output, if `linearize_call` was asked for them.
        marks: the nodes that represent the leaves of the arguments among the residuals.
    """

    __slots__ = (
        "aux", "columns", "in_avals", "in_tree", "map", "marks", "out", "out_avals", "out_tree",
    )  # fmt: skip

    marks: list[Node]

    map: LinearMap
    columns: list[list[Node | None]] | None
    out: list[Node]
    aux: Any


def linearize_call(
    function: str,
    fun: Callable[..., Any],
    dynamic: Sequence[Any],
    call: Callable[[Sequence[Any]], Any],
    has_aux: bool,
    check: Callable[[list[Any]], None] | None = None,
    columns: Columns | None = None,
) -> Linearized:
    """Record `call(dynamic)` over marks and differentiate it.

    `columns` differentiates functions with a batching rule, which have no linear map.
    """
    check_callable(function, fun)
    leaves, tree = flatten_arrays(tuple(dynamic))
    nodes = leaf_nodes(function, leaves)
    if check is not None:
        check(tree.shown_leaves([n.aval for n in nodes]))
    self = Linearized()
    with Trace("grad") as t:
        marks = [mark(n, t) for n in nodes]
        arguments = marked_arguments(marks, leaves)
        result = call(tree_unflatten(tree, arguments))
        result, aux = split_aux(function, result, has_aux)
        out, self.out_tree = flatten_arrays(result)
        outputs = leaf_nodes(function, out)
        aux_leaves, aux_tree = flatten_arrays(aux)
        arrays = [i for i, x in enumerate(aux_leaves) if hasattr(x, "_node")]
        aux_nodes = [aux_leaves[i]._node for i in arrays]
        self.columns = None if columns is None else columns(outputs, marks, t)
        if self.columns is None:
            self.map = linearize_outputs([*outputs, *aux_nodes], marks, t)
        else:
            self.map = LinearMap([], [], [*outputs, *aux_nodes], [])
    count = len(outputs)
    # Use nodes with values; otherwise the walk's primals, which share work with the derivative.
    primals = [
        node if node.value is not None else p
        for node, p in zip([*outputs, *aux_nodes], self.map.primals, strict=True)
    ]
    self.map.outputs = self.map.outputs[:count]
    self.out = primals[:count]
    for i, p in zip(arrays, primals[count:], strict=True):
        aux_leaves[i] = wrap(p)
    self.aux = tree_unflatten(aux_tree, aux_leaves)
    escape(arguments, t)
    self.marks = marks
    self.in_tree = tree
    self.in_avals = [n.aval for n in nodes]
    self.out_avals = [n.aval for n in outputs]
    return self


def split_aux(function: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split the result (value, aux) of a function with an auxiliary output."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(
            f"{function}: expected function with aux output to return a two-element tuple, but got "
            f"type {type(result)} with value {result!r:.200}; return (value, aux), or leave "
            "has_aux out"
        )
    return result[0], result[1]


def gradients(cts: Sequence[Node | None], avals: Sequence[Any], typed: bool = False) -> list[Any]:
    """Return cotangents as arrays: zeros for those that are None, float0 for integers.

    If `typed`, the weak flags are those of `avals`, since the program was recorded before its
    inputs were known.
    """
    out: list[Any] = []
    for ct, a in zip(cts, avals, strict=True):
        if not inexact(a.dtype):
            out.append(float0_zeros(a))
        else:
            ct = zero_cotangent(a) if ct is None else ct
            out.append(wrap(with_weak_type(ct, a.weak_type) if typed else ct))
    return out


def with_weak_type(x: Node, weak: bool) -> Node:
    """Return a node with the given weak flag."""
    if x.aval.weak_type == weak:
        return x
    return o.convert_element_type(x, new_dtype=x.aval.dtype, weak_type=weak)


def check_inputs(function: str, holomorphic: bool, allow_int: bool) -> Callable[[list[Any]], None]:
    """Return a function that checks the dtypes of the arguments to differentiate."""

    def check(avals: list[Any]) -> None:
        for a in avals:
            name, kind = a.dtype.name, dtype_kind(a.dtype)
            if a.dtype == dtypes.float0:
                raise TypeError(
                    f"{function} requires numerical-valued inputs (input dtype that is a sub-dtype "
                    f"of np.bool_ or np.number), but got float0{list(a.shape)}; pass numbers"
                )
            if holomorphic:
                if kind != "c":
                    raise TypeError(
                        f"{function} with holomorphic=True requires inputs with complex dtype, but "
                        f"got {name}; convert them, or leave holomorphic out"
                    )
            elif kind not in "fc" and not allow_int:
                raise TypeError(
                    f"{function} requires real- or complex-valued inputs (input dtype that is a "
                    f"sub-dtype of np.inexact), but got {name}; convert them, use vjp, or pass "
                    "allow_int=True"
                )

    return check


def check_output(function: str, aval: Aval, holomorphic: bool) -> None:
    """Raise for an output dtype that cannot be differentiated this way."""
    kind, name = dtype_kind(aval.dtype), aval.dtype.name
    if holomorphic:
        if kind != "c":
            raise TypeError(
                f"{function} with holomorphic=True requires outputs with complex dtype, but got "
                f"{name}; convert it, or leave holomorphic out"
            )
    elif kind == "c":
        raise TypeError(
            f"{function} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {name}; pass holomorphic=True for holomorphic functions, or "
            "use vjp"
        )
    elif kind != "f":
        raise TypeError(
            f"{function} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {name}; convert them, or use vjp"
        )
