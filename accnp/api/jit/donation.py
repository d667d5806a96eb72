"""Which donated arguments a program can reuse.

As in JAX, these are the inputs that the program uses and for which it has a result of fitting size.
Other donated arguments stay valid; a warning names those that the program uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.api.jit.static_arguments import Call
from accnp.array_type import Array
from accnp.errors import JaxRuntimeError, warn
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.trace import Deleted
from accnp.primitives.call import JIT
from accnp.primitives.kinds import zeros_like_aval

if TYPE_CHECKING:
    from accnp.api.jit.jit import Entry

__all__ = ["check_donated_inputs", "donated_inputs", "without_deleted"]


def check_donated_inputs(entry: Entry, call: Call) -> Sequence[int]:
    """Return the inputs whose buffers a call reuses; they are cached in `entry`.

    Raises:
        JaxRuntimeError: a donated array is passed twice.
    """
    options, graph, n = call.function._options, entry.graph, len(entry.consts)
    donated = donated_inputs(entry, call)
    places: dict[int, int] = {}
    every = range(n, n + len(call.leaves))
    for k in every if options.keep_unused else [k for k in _used_inputs(graph) if k in every]:
        array = call.leaves[k - n]
        first = places.setdefault(id(array), k) if type(array) is Array else k
        if first != k and not {first, k}.isdisjoint(donated):
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: {graph.name}: an array is donated, and is another argument of "
                f"the same call; got leaves {first - n} and {k - n}; pass a copy"
            )
    return donated


def donated_inputs(entry: Entry, call: Call) -> Sequence[int]:
    """Return the inputs whose buffers calls of a program reuse."""
    if entry.donated is None:
        options = call.function._options
        positions = [len(entry.consts) + i for i in call.donated(options)]
        entry.donated = _match_donated_inputs(entry.graph, positions, options.keep_unused)
    return entry.donated


def _match_donated_inputs(graph: Graph, positions: Sequence[int], keep_unused: bool) -> list[int]:
    """Match donated inputs with results: first by shape and dtype, then by number of elements."""
    used = set(_used_inputs(graph))
    left = [i for i in positions if keep_unused or i in used]
    results, out = [], []
    for result in graph.out_avals:
        fit = next((i for i in left if _have_same_type(graph.in_avals[i], result)), None)
        if fit is None:
            results.append(result.size)
        else:
            left.remove(fit)
            out.append(fit)
    for i in [*left]:
        if graph.in_avals[i].size in results:
            results.remove(graph.in_avals[i].size)
            left.remove(i)
            out.append(i)
    if left:
        types = [f"{a.dtype.name}{list(a.shape)}" for a in (graph.in_avals[i] for i in left)]
        warn(
            f"Some donated buffers were not usable: {', '.join(types)}.\n"
            f"{graph.name} has no results of their size; the buffers stay valid",
        )
    return sorted(out)


def without_deleted(entry: Entry, call: Call, nodes: list[Node]) -> list[Node]:
    """Replace deleted arrays that a program does not use by zeros.

    Raises:
        RuntimeError: the program uses one, or its options keep unused arguments.
    """
    n, used = len(entry.consts), set(_used_inputs(entry.graph))
    live_nodes = [*nodes]
    for i, node in call.deleted:
        if n + i in used or call.function._options.keep_unused:
            assert isinstance(node.trace, Deleted)
            raise node.trace.error()
        live_nodes[i] = zeros_like_aval(node.aval)
    return live_nodes


def _used_inputs(graph: Graph) -> list[int]:
    """Return the positions of the inputs that results or effects depend on."""
    positions = graph.extra.get("used")
    if positions is None:
        seen = {id(x) for x in graph.outputs}
        for node in graph.nodes:
            inputs = node.inputs
            if node.op is JIT:  # it may not use all of its operands
                inputs = tuple([inputs[i] for i in _used_inputs(node.params["jaxpr"])])
            seen |= {id(x) for x in inputs}
        positions = graph.extra["used"] = [i for i, x in enumerate(graph.inputs) if id(x) in seen]
    return positions


def _have_same_type(operand: Aval, result: Aval) -> bool:
    return operand.shape == result.shape and operand.dtype == result.dtype
