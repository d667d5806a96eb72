"""Branches: `cond`, `switch`. In: functions, an index, operands. Out: values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accnp.api.bodies import (
    Body,
    as_leaves,
    check_branches,
    close,
    concrete,
    forwarded,
    record_body,
    values,
    with_inputs,
)
from accnp.api.convert import as_node, cast, promote
from accnp.array import is_traced, wrap
from accnp.config import config
from accnp.engine import array_of
from accnp.ir.graph import evaluate
from accnp.ir.node import Node, literal
from accnp.ir.op import o
from accnp.ops.control import call

__all__ = ["cond", "switch"]

_NOT_GIVEN = object()
_INT32 = np.dtype(np.int32)


def _operands(name: str, operands: tuple, operand: Any) -> tuple:
    if operand is _NOT_GIVEN:
        return operands
    if operands:
        raise TypeError(
            f"lax.{name}: if 'operand' keyword is passed then no positional operands can be; "
            f"got operand={operand!r} and positional operands {operands}"
        )
    return (operand,)


# --- cond and switch ---


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """Apply `true_fun` or `false_fun` to the operands, as a scalar says; both are traced.

    Under `vmap` with a batch of scalars both are computed, and results selected.

    Args:
        pred: a scalar; numbers mean whether they differ from zero.
        true_fun: (*operands) -> a tree of arrays.
        false_fun: likewise, with results of the same structure and types.
        operands: trees of arrays.
        operand: the one operand, in the form of old.

    Raises:
        TypeError: the branches return different structures or types, with paths and both types;
            or `pred` is no scalar.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1)
        Array(2, dtype=int32, weak_type=True)
    """
    if not (callable(true_fun) and callable(false_fun)):
        if operand is _NOT_GIVEN and len(operands) == 2:
            # The form of old: cond(pred, true_operand, true_fun, false_operand, false_fun).
            return cond(
                pred,
                lambda x: false_fun(x[0]),
                lambda x: operands[1](x[1]),
                (true_fun, operands[0]),
            )
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _operands("cond", operands, operand)
    node = _predicate(pred)
    if config.disable_jit and not is_traced(node):
        return true_fun(*operands) if array_of(node).item() else false_fun(*operands)
    leaves, spec = as_leaves(operands, "cond", "operands")
    avals = [x.aval for x in leaves]
    yes = record_body(true_fun, "cond", avals, spec)
    no = record_body(false_fun, "cond", avals, spec)
    check_branches("cond", ("true_fun", "false_fun"), (true_fun, false_fun), yes, no)
    return _choose(node, [no, yes], yes.spec, leaves)


def _predicate(pred: Any) -> Node:
    if pred is None:
        raise TypeError("cond predicate is None")
    try:
        node = as_node(pred, "cond")
    except TypeError:
        raise TypeError(
            f"Pred must be a scalar, got {pred} of type {type(pred).__name__}"
        ) from None
    if node.aval.shape != ():
        raise TypeError(f"Pred must be a scalar, got {pred} of shape {node.aval.shape}.")
    if node.aval.dtype.kind not in "biuf":
        raise TypeError(f"Pred type must be either boolean or number, got {node.aval.dtype.name}.")
    if node.aval.dtype.kind != "b":
        node = o.ne(*promote("ne", wrap(node), 0))
    return node


def _choose(choice: Node, bodies: Sequence[Body], spec: Any, leaves: list[Node]) -> Any:
    graphs = [b.graph for b in bodies]
    if concrete(choice):
        # Recorded in place of the call: it fuses with what is around it, and needs no rules of its
        # own.
        taken = graphs[int(array_of(choice).item())]
        avals = graphs[0].out_avals  # all agree but in weak types, which follow the first branch
        results = zip(evaluate(taken, leaves), avals, strict=True)
        return values(spec, [cast(x, a.dtype, a.weak_type) for x, a in results])
    ins = [*close(graphs), *leaves]
    columns = list(zip(*[forwarded(g) for g in graphs], strict=True))
    same = [c[0] if len(set(c)) == 1 else None for c in columns]
    kept = [
        with_inputs(g, g.inputs, [x for x, f in zip(g.outputs, same, strict=True) if f is None])
        for g in graphs
    ]
    index = cast(choice, _INT32)
    rest = iter(call("cond", (index, *ins), {"branches": tuple(kept)}))
    return values(spec, [next(rest) if f is None else ins[f] for f in same])


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """Apply the branch that `index` names, clamped to the ones there are, to the operands.

    Args:
        index: a scalar of an integer type.
        branches: functions (*operands) -> a tree of arrays, of one structure and types.
        operands: trees of arrays.

    Raises:
        TypeError: the branches return different structures or types, with paths and both types;
            or `index` is no integer scalar.
        ValueError: there are no branches.

    Example:
        >>> import accnp as jnp
        >>> jnp.lax.switch(5, [lambda x: x, lambda x: x * 2], 3)
        Array(6, dtype=int32, weak_type=True)
    """
    branches = tuple(branches)
    if not all(callable(b) for b in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands = _operands("switch", operands, operand)
    node = as_node(index, "switch")
    if node.aval.shape != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {node.aval.shape}.")
    if node.aval.dtype.kind not in "iu":
        raise TypeError(f"Index type must be an integer, got {index} as {node.aval.dtype.name}")
    if not branches:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    node = cast(node, _INT32)
    node = o.clamp(literal(0, _INT32, False), node, literal(last, _INT32, False))
    if config.disable_jit and not is_traced(node):
        return branches[array_of(node).item()](*operands)
    leaves, spec = as_leaves(operands, "switch", "operands")
    avals = [x.aval for x in leaves]
    bodies = [record_body(b, "switch", avals, spec) for b in branches]
    for i, body in enumerate(bodies[1:], 1):
        labels = ("branch 0", f"branch{i}")
        check_branches("switch", labels, (branches[0], branches[i]), bodies[0], body)
    return _choose(node, bodies, bodies[0].spec, leaves)
