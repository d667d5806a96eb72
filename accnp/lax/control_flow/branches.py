"""Branches: `cond` and `switch`.

Both trace all branches and record one `cond` op, or evaluate the chosen branch immediately if the
index is concrete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.arguments.convert import as_node, cast, promote
from accnp.api.arguments.non_numeric import moves_float0
from accnp.api.tracing.bodies import (
    as_leaves,
    check_branches,
    close,
    concrete,
    forwarded_inputs,
    record_body,
    ref_contents,
    refs_of,
    set_refs,
    values,
    with_inputs,
    with_refs,
    without_refs,
)
from accnp.api.tracing.trace_cache import cached_trace
from accnp.array_type import ArrayLike, is_traced, with_float0, wrap
from accnp.config import config
from accnp.docstrings import NOT_GIVEN
from accnp.engine import array_of
from accnp.errors import api_boundary
from accnp.ir.aval import Aval
from accnp.ir.graph import evaluate
from accnp.ir.node import Node, literal
from accnp.ir.op import o
from accnp.primitives.control import call, select_flagged
from accnp.pytree import PyTree

__all__ = ["cond", "switch"]

_INT32 = np.dtype(np.int32)


def _operands(name: str, operands: tuple, operand: Any) -> tuple:
    if operand is NOT_GIVEN:
        return operands
    if operands:
        raise TypeError(
            f"lax.{name}: if 'operand' keyword is passed then no positional operands can be; "
            f"got operand={operand!r} and positional operands {operands}; "
            "pass the operands by position"
        )
    return (operand,)


# --- cond and switch ---


@moves_float0
@api_boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: PyTree,
    operand: PyTree = NOT_GIVEN,
) -> Any:
    """Apply one of two functions, chosen by a scalar.

    Both functions are traced, and one of them is executed.

    Parameters
    ----------
    pred : scalar
        Condition; a number counts as True if it is not 0.
    true_fun : callable
        Function of the operands for True, which returns a tree of arrays of any shapes and dtypes.
    false_fun : callable
        Function of the operands for False, with results of the same structure, shapes and dtypes.
    *operands : pytree
        Arguments of the functions, trees of arrays.
    operand : pytree, optional
        A single argument, in a deprecated form of the call.

    Returns
    -------
    pytree
        Result of the function that is applied.

    Raises
    ------
    TypeError
        If the functions return different structures or types, or `pred` is not a scalar.

    See Also
    --------
    switch : Choose among several functions.
    select : Choose among elements of arrays.
    while_loop : Repeat a function.

    Notes
    -----
    Under `vmap` with a batch of conditions, both functions are computed and their results are
    selected.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1)
    Array(2, dtype=int32, weak_type=True)
    """
    if not (callable(true_fun) and callable(false_fun)):
        if operand is NOT_GIVEN and len(operands) == 2:
            # The deprecated form cond(pred, true_operand, true_fun, false_operand, false_fun).
            return cond(
                pred,
                lambda x: false_fun(x[0]),
                lambda x: operands[1](x[1]),
                (true_fun, operands[0]),
            )
        raise TypeError(
            f"lax.cond: true_fun and false_fun arguments should be callable; got {true_fun!r} and "
            f"{false_fun!r}; pass functions"
        )
    operands = _operands("cond", operands, operand)
    node = _predicate(pred)
    if config.disable_jit and not is_traced(node):
        return true_fun(*operands) if array_of(node).item() else false_fun(*operands)
    return _choose("cond", node, ("false_fun", "true_fun"), (false_fun, true_fun), operands)


def _predicate(pred: Any) -> Node:
    if pred is None:
        raise TypeError("cond predicate is None; got None (pred); pass a bool or a number")
    try:
        node = as_node(pred, "cond")
    except TypeError:
        raise TypeError(
            f"cond: Pred must be a scalar, got {pred} of type {type(pred).__name__}; pass a bool "
            "or a number"
        ) from None
    if node.aval.shape != ():
        raise TypeError(
            f"cond: Pred must be a scalar, got {pred} of shape {node.aval.shape}; reduce it with "
            "jnp.all or jnp.any, or select elements with jnp.where"
        )
    if node.aval.dtype.kind not in "biuf":
        raise TypeError(
            "cond: Pred type must be either boolean or number, got "
            f"{node.aval.dtype.name}; pass a comparison"
        )
    if node.aval.dtype.kind != "b":
        node = o.ne(*promote("ne", wrap(node), 0))
    return node


class _Branches:
    """The recorded programs of branches, which close over the same values."""

    def __init__(
        self, name: str, labels: Sequence[str], fns: Sequence[Any], avals: list[Aval], spec: Any
    ) -> None:
        order = range(len(fns)) if name == "switch" else (1, 0)  # true_fun comes first
        place = [next(j for j, g in enumerate(fns) if g is f) for f in fns]
        # A function that is used for several branches is traced once.
        body_of = {
            i: record_body(fns[i], name, avals, spec, refs=True) for i in order if place[i] == i
        }
        first, *others = order
        for i in others:
            if place[i] != i:
                continue
            pair = (labels[first], labels[i]), (fns[first], fns[i])
            check_branches(name, *pair, body_of[place[first]], body_of[i])
        bodies = [body_of[i] for i in sorted(body_of)]
        self.name, self.spec = name, with_float0(bodies[0].avals, bodies[0].spec)
        self.refs = refs_of(bodies)
        graphs = {i: with_refs(body_of[i], self.refs) for i in sorted(body_of)}
        self.outer = close(list(graphs.values()))
        self.graphs = [graphs[i] for i in place]
        # An output that is the same input in all branches does not depend on the choice.
        columns = zip(*[forwarded_inputs(g) for g in self.graphs], strict=True)
        self.same = [c[0] if len(set(c)) == 1 else None for c in columns]
        chosen = [f is None for f in self.same]
        self.graphs_without_forwarded = tuple(
            [with_inputs(g, g.inputs, select_flagged(chosen, g.outputs)) for g in self.graphs]
        )

    def call(self, choice: Node, leaves: list[Node]) -> Any:
        """Record the branch operation, or the chosen branch if the index is concrete."""
        ins = [*self.outer, *leaves, *ref_contents(self.refs, self.name)]
        if concrete(choice):
            # The branch is recorded without a call, so that it fuses with other ops and needs no
            # rules. When it is differentiated it remains one program, as under jit: the parts of a
            # cotangent are summed within it first.
            branch = self.graphs[int(array_of(choice).item())]
            whole = any(x.trace is not None and x.trace.kind == "grad" for x in ins)
            params = {"name": self.name, "jaxpr": branch}
            outputs = call("jit", ins, params) if whole else evaluate(branch, ins)
            avals = self.graphs[0].out_avals  # with the weak types of the first branch
            results = zip(outputs, avals, strict=True)
            return self.results([cast(x, a.dtype, a.weak_type) for x, a in results])
        rest = iter(
            call("cond", (cast(choice, _INT32), *ins), {"branches": self.graphs_without_forwarded})
        )
        return self.results([next(rest) if f is None else ins[f] for f in self.same])

    def results(self, nodes: list[Node]) -> Any:
        """Return the results of the branches, and store new contents of references."""
        n = len(nodes) - len(self.refs)
        set_refs(self.refs, nodes[n:], self.name)
        return values(self.spec, nodes[:n])


def _choose(
    name: str, choice: Node, labels: Sequence[str], fns: Sequence[Any], operands: tuple
) -> Any:
    fns, operands = without_refs(fns, operands, name)
    leaves, spec = as_leaves(operands, name, "operands")
    avals = [x.aval for x in leaves]
    recorded = cached_trace(
        fns, (name, spec, *avals), lambda: _Branches(name, labels, fns, avals, spec)
    )
    return recorded.call(choice, leaves)


@moves_float0
@api_boundary
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: PyTree,
    operand: PyTree = NOT_GIVEN,
) -> Any:
    """Apply one of several functions, chosen by an index.

    Parameters
    ----------
    index : scalar int
        Number of the function to apply, from 0. It is clamped to the available functions.
    branches : sequence of callables
        Functions of the operands, which return trees of arrays of one structure, shapes and dtypes.
    *operands : pytree
        Arguments of the functions, trees of arrays.
    operand : pytree, optional
        A single argument, in a deprecated form of the call.

    Returns
    -------
    pytree
        Result of the function that is applied.

    Raises
    ------
    TypeError
        If the functions return different structures or types, or `index` is not an integer scalar.
    ValueError
        If no branch is given.

    See Also
    --------
    cond : Choose between two functions.
    select_n : Choose among elements of arrays.

    Examples
    --------
    >>> import accnp as jnp
    >>> jnp.lax.switch(5, [lambda x: x, lambda x: x * 2], 3)
    Array(6, dtype=int32, weak_type=True)
    """
    branches = tuple(branches)
    if not all(callable(b) for b in branches):
        raise TypeError(
            f"lax.switch: branches argument should be a sequence of callables; got {branches!r}; "
            "pass a list of functions"
        )
    operands = _operands("switch", operands, operand)
    node = as_node(index, "switch")
    if node.aval.shape != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {node.aval.shape}.")
    if node.aval.dtype.kind not in "iu":
        raise TypeError(
            f"switch: Index type must be an integer, got {index} as {node.aval.dtype.name}; "
            "convert it with astype(int)"
        )
    if not branches:
        raise ValueError("switch: Empty branch sequence; got (); pass at least one function")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    node = cast(node, _INT32)
    node = o.clamp(literal(0, _INT32, False), node, literal(last, _INT32, False))
    if config.disable_jit and not is_traced(node):
        return branches[array_of(node).item()](*operands)
    labels = ["branch 0", *[f"branch{i}" for i in range(1, len(branches))]]
    return _choose("switch", node, labels, branches, operands)
