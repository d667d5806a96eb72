"""Along which axes of a mesh values differ, while the function of one part is traced.

In: the leaves of that trace and the axes along which they differ. Out: `axes_of(node)`. Derivatives
need it: the cotangent of a value that is the same in all parts is the sum of what the parts give,
as the derivative of the whole program has it. A value differs along the axes of its operands, less
those over which it was reduced; leaves of inner traces (bodies of loops) are taken to differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.ir.trace import state

__all__ = ["Varying", "settled", "varying"]

Names = frozenset[Any]
_NONE: Names = frozenset()
_REDUCED = {"psum_invariant", "pmax", "pmin", "pbroadcast"}


class Varying:
    """What is known of the nodes of one trace."""

    __slots__ = ("_known", "every")

    def __init__(self, names: Sequence[Any]) -> None:
        self.every = frozenset(names)
        self._known: dict[int, tuple[Node, Names]] = {}

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
                self.note(n, self.every)
                continue
            todo = [x for x in n.inputs if id(x) not in known]
            if todo:
                stack.extend(todo)
                continue
            found = _NONE.union(*[known[id(x)][1] for x in n.inputs])
            own = (n.params or {}).get("axis_name")
            if own is not None:
                names = self.every.intersection(own)
                whole = n.params.get("axis_index_groups") is None
                found = found - names if n.op.name in _REDUCED and whole else found | names
            self.note(n, found)
        return known[id(node)][1]

    def total(self, ct: Node, x: Node) -> Node:
        """Sum a cotangent over the axes along which it differs and its value does not."""
        extra = self.axes_of(ct) - self.axes_of(x)
        if not extra:
            return ct
        return o.psum_invariant(ct, axis_name=tuple(extra), axis_index_groups=None)

    def spread(self, x: Node, names: Sequence[Any]) -> Node:
        """Let a value count as one that differs along these axes."""
        more = tuple(self.every.intersection(names) - self.axes_of(x))
        return o.pvary(x, axis_name=more, axis_index_groups=None) if more else x


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
