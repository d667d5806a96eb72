"""Mesh axes whose devices belong to several processes, as the parameters of collectives name them.

While `shard_map` traces the function of one shard over such a mesh, `transforms/axes.py` resolves
the name of a mesh axis to a `MeshAxis`. A collective over it is not batched away: it stays in the
program and communicates when it runs (`primitives/collective.py`). The two predicates tell the
recorder and the planner which operations do so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import TYPE_CHECKING

from accnp.ir.op import CALLS, Op, as_tuple

if TYPE_CHECKING:
    from accnp.ir.graph import Graph
    from accnp.ir.op_types import Params

__all__ = ["MeshAxis", "communicates", "is_over_mesh"]


class MeshAxis:
    """One axis of a mesh over processes.

    Args:
        name: the axis as users write it.
        names: all axes of the mesh.
        sizes: their lengths.
        ranks: the process of each device, in the order of the mesh.
        rank: this process.
    """

    __slots__ = ("_hash", "here", "name", "names", "rank", "ranks", "size", "sizes", "stride")

    def __init__(
        self,
        name: Hashable,
        names: tuple[Hashable, ...],
        sizes: tuple[int, ...],
        ranks: tuple[int, ...],
        rank: int,
    ) -> None:
        self.name, self.names, self.sizes, self.ranks = name, names, sizes, ranks
        self.rank = rank
        self.size = sizes[self.place]
        self.stride = prod(sizes[self.place + 1 :])
        self.here = ranks.index(rank) // self.stride % self.size  # the position of this process
        self._hash = hash(self._key())

    def _key(self) -> tuple[Hashable, ...]:
        return self.name, self.names, self.sizes, self.ranks

    @property
    def place(self) -> int:
        """The position of the axis among those of the mesh."""
        return self.names.index(self.name)

    @property
    def group(self) -> tuple[int, ...]:
        """The processes that differ from this one only in their position on the axis, in order."""
        for first in range(len(self.ranks)):
            if first // self.stride % self.size == 0:
                ranks = tuple([self.ranks[first + i * self.stride] for i in range(self.size)])
                if self.rank in ranks:
                    return ranks
        raise AssertionError(self)

    def members(self, groups: Sequence[Sequence[int]] | None) -> tuple[int, ...]:
        """The positions along the axis that take part in a collective with this process: all, or
        those of its group."""
        if groups is None:
            return tuple(range(self.size))
        (own,) = [g for g in groups if self.here in g]
        return tuple(own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshAxis) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self.name)


def is_over_mesh(params: Params) -> bool:
    """Return whether an operation is a collective over the axes of a multi-process mesh."""
    names = params.get("axis_name")
    return type(names) is tuple and bool(names) and type(names[0]) is MeshAxis  # pyright: ignore[reportUnknownArgumentType]


def communicates(op: Op, params: Params) -> bool:
    """Return whether an operation, or one in the programs it contains, sends messages."""
    if op.kind in CALLS:
        return any([_has_messages(g) for g in _communicating_programs(params)])
    of = op.collective
    return op.kind == "opaque" and (of is None or of.sends) and is_over_mesh(params)


def _communicating_programs(params: Params) -> list[Graph]:
    """Return the programs among the parameters that have callbacks or messages."""
    programs: list[Graph] = []
    for value in params.values():
        for program in as_tuple(value):
            if getattr(program, "calls_python", False):
                programs.append(program)
    return programs


def _has_messages(program: Graph) -> bool:
    has_messages: bool | None = program.extra.get("communicates")
    if has_messages is None:
        has_messages = any([communicates(n.op, n.params) for n in program.nodes])
        program.extra["communicates"] = has_messages
    return has_messages
