"""Transposition: propagate cotangents backward through the linear part of a program.

`backward` takes the nodes in order, the leaves in which they are linear, the outputs and their
cotangents. It first separates results that do not depend on the leaves (`separate.py`), then
applies the ops' transpose rules in reverse order. It returns one cotangent per leaf, None for zero.
`vjp.py` and the transposition of call ops (`tools.py`) use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accnp.ir.aval import Aval
from accnp.ir.node import Node
from accnp.ir.op import CALLS, Linear, o
from accnp.ir.trace import sets_site, state
from accnp.transforms.separate import separate

__all__ = ["backward"]


@sets_site
def backward(
    order: Sequence[Node],
    leaves: Sequence[Node],
    outputs: Sequence[Node | None],
    cts: Sequence[Node | None],
    tools: Any,
) -> list[Node | None]:
    """Propagate the cotangents of the outputs to the leaves."""
    chain, leaves, outputs = separate(order, leaves, outputs, tools)
    linear = {id(x): x for x in leaves}
    linear.update((id(n), n) for n in chain)
    acc: dict[int, Any] = {}

    def add(x: Node, ct: Node | None) -> None:
        if ct is None or id(x) not in linear:
            return
        if ct.aval.shape != x.aval.shape:
            ct = _sum_to_shape(ct, x.aval.shape)
        if state.varying is not None:
            ct = state.varying.sum_over_extra_axes(ct, x)
        have = acc.get(id(x))
        acc[id(x)] = ct if have is None else o.add_any(have, ct)

    for x, ct in zip(outputs, cts, strict=True):
        if x is not None:
            add(x, ct)
    for node in reversed(chain):
        state.site = node.site
        ct = acc.pop(id(node), None)
        if ct is None:
            continue
        op = node.op
        if op.kind == "item":
            parent = node.inputs[0]
            whole = acc.setdefault(id(parent), [None] * len(parent.aval))
            k = node.params["index"]
            whole[k] = ct if whole[k] is None else o.add_any(whole[k], ct)
            continue
        if op.transpose is None and op.kind == "mark":
            # This includes the boundaries of custom rules inside linear user functions: what passes
            # them is linear already.
            add(node.inputs[0], ct)
            continue
        if op.transpose is None:
            raise NotImplementedError(
                f"{op.name}: reverse-mode differentiation is not known for it; got it where a "
                "value depends on the argument; use forward mode (jvp, jacfwd) or custom_vjp"
            )
        args = [Linear(x.aval) if id(x) in linear else x for x in node.inputs]
        if op.kind in CALLS:
            several = isinstance(node.aval, tuple)
            found = op.transpose(ct if several else [ct], args, node.params, tools)
        else:
            found = op.transpose(ct, *args, **node.params)
        for x, part in zip(node.inputs, found, strict=False):
            if part is not None and isinstance(node.aval, Aval) and op.kind not in CALLS:
                part = _match_weak_type(part, x.aval.weak_type, node.aval.weak_type)
            add(x, part)
    return [acc.get(id(x)) for x in leaves]


def _match_weak_type(ct: Node, weak: bool, weak_result: bool) -> Node:
    """Give a cotangent the weak-type flag that it would have if promotion were an operation in the
    graph: a weak operand is promoted to strong for a strong result, and so is a weak number next to
    a strong operand."""
    if ct.aval.weak_type == weak or (weak and weak_result):
        return ct
    return o.convert_element_type(ct, new_dtype=ct.aval.dtype, weak_type=weak)


def _sum_to_shape(ct: Node, shape: tuple[int, ...]) -> Node:
    """Sum a cotangent over the axes along which its operand was broadcast."""
    if not shape:
        return o.reduce_sum(ct, axes=tuple(range(ct.aval.ndim)))
    axes = tuple(d for d, (m, n) in enumerate(zip(ct.aval.shape, shape, strict=True)) if m != n)
    return o.reshape(o.reduce_sum(ct, axes=axes), new_sizes=shape, dimensions=None)
