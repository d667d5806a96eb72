"""Axes of meshes whose devices belong to several processes, as collectives name them.

While `shard_map` traces the function of one shard over such a mesh, the name of a mesh axis stands
for a `MeshAxis`. A collective over it is not batched: it stays in the program and communicates when
it runs.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

from accnp.ir.op import CALLS, Op

__all__ = ["MeshAxis", "communicates", "is_over_mesh"]

# Collectives that need no message: the position is known, and `pvary` only changes a type.
_SILENT = frozenset(("axis_index", "pvary"))


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

    def _key(self) -> tuple[Any, ...]:
        return self.name, self.names, self.sizes, self.ranks

    @property
    def place(self) -> int:
        """The position of the axis among those of the mesh."""
        return self.names.index(self.name)

    @property
    def group(self) -> tuple[int, ...]:
        """The processes along the axis that differ from this one in nothing else, in order."""
        for first in range(len(self.ranks)):
            if first // self.stride % self.size == 0:
                found = tuple([self.ranks[first + i * self.stride] for i in range(self.size)])
                if self.rank in found:
                    return found
        raise AssertionError(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshAxis) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self.name)


def is_over_mesh(params: dict[str, Any]) -> bool:
    """Whether an operation is a collective over axes of a mesh over processes."""
    names = params.get("axis_name")
    return type(names) is tuple and bool(names) and type(names[0]) is MeshAxis


def communicates(op: Op, params: dict[str, Any]) -> bool:
    """Whether an operation, or one in the programs that it holds, sends messages."""
    if op.kind in CALLS:
        return any([_has_messages(g) for g in _programs(params)])
    return op.kind == "opaque" and op.name not in _SILENT and is_over_mesh(params)


def _programs(params: dict[str, Any]) -> list[Any]:
    """The programs among parameters that call Python, as those with messages do."""
    found = []
    for value in params.values():
        for program in value if isinstance(value, tuple) else (value,):
            if getattr(program, "calls_python", False):
                found.append(program)
    return found


def _has_messages(program: Any) -> bool:
    found = program.extra.get("communicates")
    if found is None:
        found = any([communicates(n.op, n.params) for n in program.nodes])
        program.extra["communicates"] = found
    return found
