"""Types in the signatures of rules, for type checkers only: no module imports this one at run time.

`Tools` describes the transformations in progress, which the rules of call ops receive; the class
is in `transforms/tools.py`, which this layer must not import.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.op import Linear, Zero

__all__ = ["Flags", "Jvp", "JvpRule", "Operand", "Scalar", "Tools"]

Flags = tuple[bool, ...]
Operand = Node | Linear  # of a transpose rule
JvpRule = Callable[..., Any] | Zero  # for one operand
Jvp = JvpRule | Sequence[JvpRule] | None  # see `Op.jvp`
Scalar = str | Mapping[str, str] | Callable[..., str] | None  # see `Op.scalar`


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
        given: Sequence[Aval | None] = (),
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
