"""Along which mesh axes values differ, while `shard_map` traces the function of one shard.

Derivatives need this: the cotangent of a value that is the same in all shards is the sum over the
shards, as in the derivative of the whole program. A `Varying` is created with the axes of the mesh;
`note` sets the axes of the leaves, and `axes_of(node)` derives those of other nodes: a value
differs along the axes of its operands, except those over which it was reduced. Leaves of inner
traces (bodies of loops) are assumed to differ along all axes.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from accnp.ir.aval import spans_processes
from accnp.ir.node import ARG, LITERAL, Node
from accnp.ir.op import CALLS, OPS, Op, o
from accnp.ir.trace import Trace, state

if TYPE_CHECKING:
    from accnp.ir.mesh_axis import MeshAxis
    from accnp.ir.op_types import Params


__all__ = ["Varying", "copy_axes", "varying"]

Names = frozenset[Hashable]
_NONE: Names = frozenset()


def _is_equal(x: Node) -> bool:
    """Return whether a value is equal in all parts, whatever its use requires."""
    return x.op is LITERAL or x.op.kind == "iota"


def _is_body(trace: Trace) -> bool:
    """Return whether a trace is that of the body of a loop, a branch or another call."""
    return trace.kind == "jit" and getattr(trace.info, "transform", "") not in ("vmap", "pmap")


class Varying:
    """The axes along which the nodes of one trace differ."""

    __slots__ = ("_known", "every", "level", "over_processes")

    def __init__(self, names: Sequence[Hashable], over_processes: bool = False) -> None:
        self.every = frozenset(names)
        self._known: dict[int, tuple[Node, Names]] = {}
        # For a multi-process mesh the program is not batched, and `pvary` marks where a value is
        # treated as differing; the transpose of `pvary` sums over the processes.
        self.over_processes = over_processes
        self.level = 0  # of the shard's trace; arguments of enclosing traces do not differ

    def note(self, node: Node, names: Names) -> None:
        """Set the axes along which a leaf differs."""
        self._known[id(node)] = node, names

    def axes_of(self, node: Node) -> Names:
        """Return the axes along which a node differs."""
        known = self._known
        stack = [node]
        while stack:
            n = stack[-1]
            if id(n) in known:
                stack.pop()
                continue
            if n.op is ARG:
                around = n.trace is not None and n.trace.level < self.level
                self.note(n, _NONE if around else self.every)
                continue
            todo = [x for x in n.inputs if id(x) not in known]
            if todo:
                stack.extend(todo)
                continue
            axes = _NONE.union(*[known[id(x)][1] for x in n.inputs])
            if self.over_processes and n.op.kind in CALLS and n.inputs:
                axes = self.every
            own = (n.params or {}).get("axis_name")
            if own is not None:
                names = self.every.intersection(own)
                whole = n.params.get("axis_index_groups") is None
                facts = n.op.collective
                equal = facts is not None and facts.equal and whole
                axes = axes - names if equal else axes | names
            self.note(n, axes)
        return known[id(node)][1]

    def align_axes(self, op: Op, inputs: tuple[Node, ...], params: Params) -> tuple[Node, ...]:
        """Insert `pvary` so that the operands of an operation differ along the same axes.

        Bodies of loops take and return values that differ along all axes. The operands of functions
        with a derivative rule are aligned too, since the rule sees their tangents only.
        """
        inputs = self._spread_around_bodies(inputs)
        if op.kind in ("item", "leaf") or (op.kind == "mark" and len(inputs) == 1):
            return inputs
        if op.collective is not None and not op.collective.aligns:
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
        return tuple([x if _is_equal(x) else self.spread(x, names) for x in inputs])

    def _spread_around_bodies(self, inputs: tuple[Node, ...]) -> tuple[Node, ...]:
        """Spread operands that come from outside of the body of a loop or a branch, outside of it.

        They become operands of the loop, which differ along all axes. A `pvary` in the body would
        sum their cotangents twice, and once for each step or in some processes only.
        """
        bodies = [t.level for t in state.stack if t.level > self.level and _is_body(t)]
        if not bodies:
            return inputs
        return tuple(
            [
                self.spread(x, self.every)
                if x.trace is not None and x.trace.level < bodies[-1] and not _is_equal(x)
                else x
                for x in inputs
            ]
        )

    def sum_over_extra_axes(self, ct: Node, x: Node) -> Node:
        """Sum a cotangent over the axes along which it differs but its primal value does not."""
        extra = self.axes_of(ct) - self.axes_of(x)
        if not extra:
            return ct
        names = (
            sort_axes(cast("Iterable[MeshAxis]", extra)) if self.over_processes else tuple(extra)
        )
        return o.psum_invariant(ct, axis_name=names, axis_index_groups=None)

    def spread(self, x: Node, names: Iterable[Hashable]) -> Node:
        """Treat a value as one that differs along these axes, too."""
        if spans_processes(x.aval):  # the function takes the whole of it, and spreads that
            return x
        more = self.every.intersection(names) - self.axes_of(x)
        if not more:
            return x
        if not self.over_processes:
            return o.pvary(x, axis_name=tuple(more), axis_index_groups=None)
        params = {
            "axis_name": sort_axes(cast("Iterable[MeshAxis]", more)),
            "axis_index_groups": None,
        }
        if x.trace is None:  # nothing is differentiated with respect to it
            return x
        if x.trace.level >= state.abstract.level:  # type: ignore[union-attr]
            return o.pvary(x, **params)
        # A value that a loop's body closes over becomes an operand of the loop. Operands of loops
        # must differ along all axes, so the `pvary` goes outside of the body.
        node = Node(OPS["pvary"], (x,), params, x.aval, None, x.trace, x.depth + 1, state.site)
        if state.named:
            x.trace.recorded.append(node)
        return node


def sort_axes(axes: Iterable[MeshAxis]) -> tuple[MeshAxis, ...]:
    """Sort the axes of a multi-process mesh in mesh order, which is the same in all processes."""
    return tuple(sorted(axes, key=lambda axis: axis.place))


@contextmanager
def varying(analysis: Varying | None) -> Generator[None]:
    """Use this information during a trace."""
    before = state.varying
    state.varying = analysis
    try:
        yield
    finally:
        state.varying = before


def copy_axes(leaves: Sequence[Node], of: Sequence[Node]) -> None:
    """Let placeholders differ along the same axes as the nodes they replace."""
    if state.varying is not None:
        for leaf, x in zip(leaves, of, strict=True):
            state.varying.note(leaf, state.varying.axes_of(x))
