"""Types in the signatures of rules, for type checkers only: no module imports this one at run time.

`Tools` describes the transformations in progress, which the rules of call ops receive; the class
is in `transforms/tools.py`, which this layer must not import.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypedDict, TypeVar

import numpy as np

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.op import Collective, Lowering
from accnp.ir.op_types import Batch, Infer, Show, Transpose, Windows

__all__ = [
    "Flags", "Groups", "MapFields", "Number", "OpFields", "OpaqueFields", "Tools", "V",
]  # fmt: skip

Number = complex | np.generic
Flags = tuple[bool, ...]
Groups = Sequence[Sequence[int]] | None  # `axis_index_groups` of collectives


class _Typed(Protocol):
    @property
    def aval(self) -> Aval: ...


V = TypeVar("V", bound=_Typed)  # a value of a compiled program (`compiler/fusion/program.py`)


class OpFields(TypedDict, total=False):
    """Fields of `Op` that the functions in `kinds.py` pass on, except those that they name."""

    additive: bool
    collective: Collective | None
    constants: bool
    contraction: bool
    dots_saveable: bool
    float0: bool | None
    halves: str
    identity: bool
    indexing: str
    jax_name: str
    jvp_shapes: str
    keeps_order: bool
    lowering: Lowering
    nonzero: Callable[[np.dtype], str] | None
    rewrite: Callable[..., Any] | None
    rounds: Callable[..., Any] | None
    several: bool
    sharding: str
    show: Show
    updated_operand: int | None
    user_name: str
    windows: Windows


class MapFields(OpFields, total=False):
    """The same for map ops with one or two operands."""

    batch: Batch | None
    cost: int
    infer: Infer | None
    makes_nan: bool | None
    transpose: Transpose


class OpaqueFields(OpFields, total=False):
    """The same for "opaque" ops."""

    combine: str | None
    dtypes: str
    makes_nan: bool


class Tools(Protocol):
    """The transformations in progress, see `transforms.tools.Tools`."""

    @property
    def axis(self) -> Hashable: ...

    @property
    def of_shards(self) -> bool: ...

    @property
    def reverse(self) -> bool: ...

    def in_reverse(self) -> Tools: ...

    def jvp_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Flags]: ...

    def linearize_graph(
        self, graph: Graph, nonzero: Flags, instantiate_outs: Flags | None = None
    ) -> tuple[Graph, Graph, int, Flags]: ...

    def transpose_graph(
        self, graph: Graph, n_res: int, ct_avals: Sequence[Aval] | None = None
    ) -> Graph: ...

    def batch_graph(
        self,
        graph: Graph,
        size: int,
        batched: Flags,
        force: Flags | bool = False,
        operand_avals: Sequence[Aval | None] = (),
    ) -> tuple[Graph, Flags]: ...

    def batch_function(
        self,
        fn: Callable[[list[Node]], Sequence[Node]],
        xs: Sequence[Node],
        flags: Sequence[bool],
        size: int,
    ) -> list[Node]: ...

    def replay(self, order: Sequence[Node], env: dict[int, Node]) -> None: ...

    def rebuild(
        self, graph: Graph, env: dict[int, Node], leaves: Sequence[Node]
    ) -> tuple[list[Node], list[Node], list[Node]]: ...
