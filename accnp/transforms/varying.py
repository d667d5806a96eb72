"""Along which axes of a mesh values differ, while the function of one part is traced.

In: the leaves of that trace and the axes along which they differ. Out: `axes_of(node)`. Derivatives
need it: the cotangent of a value that is the same in all parts is the sum of what the parts give,
as the derivative of the whole program has it. A value differs along the axes of its operands, less
those over which it was reduced; leaves of inner traces (bodies of loops) are taken to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from accnp.ir.node import Node
from accnp.ir.op import CALLS, OPS, Op, o
from accnp.ir.trace import state

__all__ = ["Varying", "settled", "varying"]

Names = frozenset[Any]
_NONE: Names = frozenset()
_FREE = {"literal", "iota"}
_REDUCED = {"psum_invariant", "pmax", "pmin", "pbroadcast", "all_gather_invariant"}


class Varying:
    """What is known of the nodes of one trace."""

    __slots__ = ("_known", "every", "level", "over_processes")

    def __init__(self, names: Sequence[Any], over_processes: bool = False) -> None:
        self.every = frozenset(names)
        self._known: dict[int, tuple[Node, Names]] = {}
        # Then the program is not batched, and shows where a value counts as one that differs: the
        # transpose of `pvary` sums what the processes have.
        self.over_processes = over_processes
        self.level = 0  # of the trace of one part; arguments of those around it do not differ

    def note(self, node: Node, names: Names) -> None:
        """Say along which axes a leaf differs."""
        self._known[id(node)] = node, names

    def axes_of(self, node: Node) -> Names:
        """The axes along which a node differs."""
        known = self._known
        stack = [node]
        while stack:
            n = stack[-1]
            if id(n) in known:
                stack.pop()
                continue
            if n.op.name == "arg":
                around = n.trace is not None and n.trace.level < self.level
                self.note(n, _NONE if around else self.every)
                continue
            todo = [x for x in n.inputs if id(x) not in known]
            if todo:
                stack.extend(todo)
                continue
            found = _NONE.union(*[known[id(x)][1] for x in n.inputs])
            if self.over_processes and n.op.kind in CALLS and n.inputs:
                found = self.every
            own = (n.params or {}).get("axis_name")
            if own is not None:
                names = self.every.intersection(own)
                whole = n.params.get("axis_index_groups") is None
                found = found - names if n.op.name in _REDUCED and whole else found | names
            self.note(n, found)
        return known[id(node)][1]

    def surely(self, node: Node) -> Names:
        """The axes along which a node is known to differ: loops may give what does not differ."""
        known: dict[int, Names] = {}
        stack = [node]
        while stack:
            n = stack[-1]
            todo = [x for x in n.inputs if id(x) not in known]
            if id(n) in known or n.op.kind in CALLS or not todo:
                stack.pop()
                if id(n) in known:
                    continue
                if n.op.kind in CALLS:
                    known[id(n)] = _NONE
                elif not n.inputs:
                    known[id(n)] = self.axes_of(n)
                else:
                    below = _NONE.union(*[known[id(x)] for x in n.inputs])
                    known[id(n)] = self.axes_of(n) & (below | self._own(n))
                continue
            stack.extend(todo)
        return known[id(node)]

    def _own(self, node: Node) -> Names:
        return self.every.intersection((node.params or {}).get("axis_name") or ())

    def meet(self, op: Op, inputs: tuple[Node, ...], params: dict[str, Any]) -> tuple[Node, ...]:
        """Let the operands of an operation differ along the same axes.

        Bodies of loops take and return what differs along all axes.
        """
        if op.kind in ("mark", "item", "leaf") or op.name in ("pvary", "psum_invariant"):
            return inputs
        if op.kind in CALLS:
            names = self.every
        else:
            names = self.every.intersection(params.get("axis_name") or ())
            if len(inputs) == 1 and not names:
                return inputs
            names = names.union(*[self.axes_of(x) for x in inputs])
        if not names:
            return inputs
        return tuple([x if x.op.name in _FREE else self.spread(x, names) for x in inputs])

    def total(self, ct: Node, x: Node) -> Node:
        """Sum a cotangent over the axes along which it differs and its value does not."""
        extra = self.axes_of(ct) - self.axes_of(x)
        if not extra:
            return ct
        names = in_order(extra) if self.over_processes else tuple(extra)
        return o.psum_invariant(ct, axis_name=names, axis_index_groups=None)

    def spread(self, x: Node, names: Iterable[Any]) -> Node:
        """Let a value count as one that differs along these axes."""
        more = self.every.intersection(names) - self.axes_of(x)
        if not more:
            return x
        if not self.over_processes:
            return o.pvary(x, axis_name=tuple(more), axis_index_groups=None)
        params = {"axis_name": in_order(more), "axis_index_groups": None}
        if x.trace is None:  # nothing is differentiated with respect to it
            return x
        if x.trace.level >= state.abstract.level:  # type: ignore[union-attr]
            return o.pvary(x, **params)
        # What a loop's body closes over becomes an operand of the loop, which must differ: it does
        # so outside of the body.
        node = Node(OPS["pvary"], (x,), params, x.aval, None, x.trace, x.depth + 1, state.site)
        if state.named:
            x.trace.recorded.append(node)
        return node


def in_order(axes: Iterable[Any]) -> tuple[Any, ...]:
    """Axes of a mesh over processes in its order, the same in all processes."""
    return tuple(sorted(axes, key=lambda axis: axis.place))


@contextmanager
def varying(found: Varying | None) -> Iterator[None]:
    """Use what is known, for the length of a trace."""
    before = state.varying
    state.varying = found
    try:
        yield
    finally:
        state.varying = before


def settled(leaves: Sequence[Node], of: Sequence[Node]) -> None:
    """Let placeholders differ along the axes of what they stand for."""
    if state.varying is not None:
        for leaf, x in zip(leaves, of, strict=True):
            state.varying.note(leaf, state.varying.axes_of(x))
