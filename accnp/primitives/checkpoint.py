"""The ops of `jax.checkpoint`: `remat2`, `name` and `optimization_barrier`.

`remat2` calls a program whose derivative recomputes it. A policy decides for each operation whether
its results may be saved for the backward pass; `name` names values for policies. The backward pass
recomputes everything else in a call `remat2[differentiated=True]`. In the compiler's program, a
barrier precedes the operands of that call (`compiler/fusion/program.py`), so that the recomputed
operations are not merged with the original ones and start only when the cotangents are available.

Policies get the primitives of `jax_compat`, which registers their lookup (`install_primitives`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accnp.config import config
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, evaluate, graphs_in, inline_calls, interpret, toposort
from accnp.ir.node import Node, items, site_text
from accnp.ir.op import Linear, Op, o, register
from accnp.ir.trace import current
from accnp.primitives.control import (
    call,
    does_io,
    place_flagged,
    reorder,
    select_flagged,
    with_outputs,
)
from accnp.primitives.kinds import unary

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy as np

    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Flags, Tools

__all__ = [
    "RESIDUAL", "Answer", "Offloadable", "Recompute", "Saveable", "install_primitives",
    "split_for_backward",
]  # fmt: skip


# --- answers of policies -------------------------------------------------------------------------


class _Recompute:
    """Answer of a policy: recompute the value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Recompute"


class _Saveable:
    """Answer of a policy: save the value."""

    def __repr__(self) -> str:
        return "Saveable"


Recompute, Saveable = _Recompute(), _Saveable()


@dataclass(frozen=True)
class Offloadable:
    """Answer of a checkpoint policy: keep the result in another memory.

    Applies to arrays of any shape and dtype. accnp has one memory for each device, so the value is
    kept there.

    Parameters
    ----------
    src : str
        Name of the memory where the value is, such as "device".
    dst : str
        Name of the memory to move it to, such as "pinned_host".

    Examples
    --------
    >>> from accnp.ad_checkpoint import Offloadable
    >>> Offloadable(src="device", dst="pinned_host").dst
    'pinned_host'
    """

    src: str
    dst: str


Answer = bool | _Recompute | _Saveable | Offloadable

RESIDUAL = "residual of custom_remat"  # the name of a value that each policy saves

_primitive_of: list[Callable[[Op], object]] = []


def install_primitives(primitive_of: Callable[[Op], object]) -> None:
    """Set the function from an op to the primitive that policies get for it."""
    _primitive_of[:] = [primitive_of]


# --- the op --------------------------------------------------------------------------------------


def _infer(*_: Aval, jaxpr: Graph, **__: object) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _numpy(*xs: np.ndarray, jaxpr: Graph, **_: object) -> list[np.ndarray]:
    return interpret(jaxpr, xs)


def _add_flags(prevent_cse: bool | Flags, n: int) -> bool | Flags:
    """Add flags for `n` more operands, which pass through the barrier as well."""
    return (*prevent_cse, *(True,) * n) if isinstance(prevent_cse, tuple) else prevent_cse


def _drop_done_effects(graph: Graph) -> Graph:
    """Return the program for a rule: outside of traces, the effects of the call have run already,
    so they are dropped."""
    if not graph.effects or current() is not None:
        return graph
    silent = with_outputs(graph, graph.outputs)
    silent.drop_effects()
    return silent


def _jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    nonzero = tuple(t is not None for t in ts)
    graph, outs = tools.jvp_graph(params["jaxpr"], nonzero)
    graph = _drop_done_effects(graph)
    moving = select_flagged(nonzero, ts)
    flags = _add_flags(params["prevent_cse"], len(moving))
    results = call("remat2", [*xs, *moving], {**params, "jaxpr": graph, "prevent_cse": flags})
    n = len(outs)
    return results[:n], place_flagged(outs, results[n:])


# --- reverse mode --------------------------------------------------------------------------------


class Split:
    """The derivative of a program, split by a policy.

    Attributes:
        forward: inputs -> outputs and the computed values that are saved.
        inputs: numbers of the inputs that are saved.
        saved_nodes: the nodes of `forward` that are saved.
        tangent: saved inputs, saved nodes, nonzero tangents -> nonzero tangents of the outputs.
        outs: which outputs have a tangent.
    """

    __slots__ = ("forward", "inputs", "outs", "saved_nodes", "tangent")

    forward: Graph
    inputs: list[int]
    saved_nodes: list[Node]
    tangent: Graph
    outs: Flags


def split_for_backward(
    graph: Graph, nonzero: Flags, policy: Callable[..., object] | None, tools: Tools
) -> Split:
    """Split the derivative of a program by a policy (None: no computed value is saved)."""
    key: tuple[Hashable, ...] = ("remat", nonzero, policy)
    if key in graph.extra:
        return graph.extra[key]
    whole = inline_calls(graph)  # inlined, so that the policy sees the operations of jitted calls
    primal, linear, n_res, outs = tools.linearize_graph(whole, nonzero)
    n = len(primal.outputs) - n_res
    needed = primal.outputs[n:]
    # Effects such as printing happen again in the recomputation, as in JAX.
    inputs, saved_nodes, recomputed = _find_saved(primal, [*needed, *primal.effects], policy)
    self = Split()
    self.inputs, self.saved_nodes, self.outs = inputs, saved_nodes, outs
    # Loops on which saved values depend were changed to return residuals, so `forward` must be the
    # primal part; otherwise it is the original program.
    changed = any(graphs_in(x.params) for x in toposort(saved_nodes))
    self.forward = with_outputs(primal, [*primal.outputs[:n], *saved_nodes]) if changed else whole
    if saved_nodes and not changed:
        extra = with_outputs(primal, saved_nodes)
        extra.drop_effects()

        def both(nodes: list[Node]) -> list[Node]:
            return [*evaluate(whole, nodes), *evaluate(extra, nodes)]

        self.forward = build(both, whole.in_avals, graph.name)
    sources = [*[primal.inputs[i] for i in inputs], *saved_nodes]

    def run(nodes: list[Node]) -> list[Node]:
        values, ts = nodes[: len(sources)], nodes[len(sources) :]
        env = dict(zip(map(id, sources), values, strict=True))
        tools.replay(recomputed, env)
        return evaluate(linear, [*[env[id(x)] for x in needed], *ts])

    avals = [*[x.aval for x in sources], *select_flagged(nonzero, whole.in_avals)]
    self.tangent = build(run, avals, graph.name)
    graph.extra[key] = self
    return self


def _find_saved(
    primal: Graph, needed: Sequence[Node], policy: Callable[..., object] | None
) -> tuple[list[int], list[Node], list[Node]]:
    """Search from the needed values upward for values that may be saved.

    Returns the numbers of the inputs reached, the computed nodes to save, and the nodes to
    recompute, in order.
    """
    number = {id(x): i for i, x in enumerate(primal.inputs)}
    inputs: dict[int, None] = {}
    saved_nodes: dict[int, Node] = {}
    seen: set[int] = set()
    recomputed: set[int] = set()
    stack = list(reversed(needed))
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if id(x) in number:
            inputs[number[id(x)]] = None
        elif x.op.kind == "leaf":
            continue
        elif _is_saveable(x, policy):
            saved_nodes[id(x)] = x
        else:
            recomputed.add(id(x))
            stack.extend(reversed(x.inputs))
    return (
        list(inputs),
        list(saved_nodes.values()),
        [x for x in primal.nodes if id(x) in recomputed],
    )


def _is_saveable(x: Node, policy: Callable[..., object] | None) -> bool:
    """Ask a policy about the operation that computes a value."""
    producer = x.inputs[0] if x.op.kind == "item" else x
    if producer.op.kind == "mark" or isinstance(x.aval, tuple):
        return False  # marks are skipped; each of several results is asked for separately
    if producer.op is NAME and producer.params["name"] == RESIDUAL:
        return True
    if policy is None:
        return False
    primitive = _primitive_of[0](producer.op)
    params = {k: v for k, v in producer.params.items() if not k.startswith("_")}
    answer = policy(primitive, *[v.aval for v in producer.inputs], **params)
    if not isinstance(answer, Answer):
        raise TypeError(
            "checkpoint: a policy must return True (may be saved) or False (is recomputed), or "
            f"Saveable, Recompute or Offloadable; got {answer!r} for {producer.op.name} (policy); "
            "return a bool"
        )
    return bool(answer)


_WARNING, _DEBUG = 30, 10  # levels of `logging`


def _log_residuals(split: Split, xs: Sequence[Node]) -> None:
    """Log the saved values with jax's phrases: at level WARNING if the option
    `log_checkpoint_residuals` is set, otherwise at level DEBUG."""
    level = _WARNING if config.log_checkpoint_residuals else _DEBUG
    if level == _DEBUG and "logging" not in sys.modules:
        return  # programs that handle log records have imported it
    import logging  # takes 7 ms, so it is imported only if needed

    logger = logging.getLogger("accnp.checkpoint")
    if not logger.isEnabledFor(level):
        return
    inputs = [f"  {xs[i].aval.str_short()}\n" for i in split.inputs]
    saved: list[str] = []
    for x in split.saved_nodes:
        producer = x.inputs[0] if x.op.kind == "item" else x
        what = f"named '{x.params['name']}'" if x.op is NAME else f"output of {producer.op.name}"
        saved.append(f"  {x.aval.str_short()} from {what} from {site_text(producer)}\n")
    text = "remat-decorated function "
    text += "saving inputs with shapes:\n" * bool(inputs) + "".join(inputs)
    text += "and " * bool(inputs and saved)
    text += "saving these intermediates:\n" * bool(saved) + "".join(saved)
    logger.log(level, "%s", text)


def _linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    if does_io(params["jaxpr"]):
        raise NotImplementedError(
            "Effects not supported in partial-eval of `checkpoint`/`remat`: an io_callback would "
            "run again for the derivative; call it outside of the function"
        )
    nonzero = tuple(t is not None for t in ts)
    split = split_for_backward(params["jaxpr"], nonzero, params["policy"], tools)
    _log_residuals(split, xs)
    n = len(split.outs)
    if current() is not None:
        results = evaluate(split.forward, xs)
    elif split.saved_nodes:
        # Record a call: single operations would be kept, with their values, until the trace ends.
        results = call("remat2", xs, {**params, "jaxpr": _drop_done_effects(split.forward)})
    else:
        results = list(items(y))
    moving = select_flagged(nonzero, ts)
    flags: bool | Flags = params["prevent_cse"]
    if isinstance(flags, tuple):
        flags = _add_flags(
            tuple(flags[i] for i in split.inputs), len(split.saved_nodes) + len(moving)
        )
    operands = [*[xs[i] for i in split.inputs], *results[n:], *moving]
    new = {"jaxpr": split.tangent, "prevent_cse": flags, "differentiated": True}
    return results[:n], place_flagged(split.outs, call("remat2", operands, {**params, **new}))


def _transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    linear = tuple(isinstance(x, Linear) for x in xs)
    live = tuple(ct is not None for ct in cts)
    fixed = [not f for f in linear]
    graph = params["jaxpr"]
    key: tuple[Hashable, ...] = ("remat transpose", linear, live)
    backward_graph = graph.extra.get(key)
    if backward_graph is None:
        order = [*select_flagged(fixed, range(len(xs))), *select_flagged(linear, range(len(xs)))]
        reordered = reorder(graph, order)
        reordered = with_outputs(reordered, select_flagged(live, reordered.outputs))
        backward_graph = graph.extra[key] = tools.transpose_graph(reordered, sum(fixed))
    flags: bool | Flags = params["prevent_cse"]
    if isinstance(flags, tuple):
        flags = _add_flags(tuple(select_flagged(fixed, flags)), sum(live))
    operands = [*select_flagged(fixed, xs), *select_flagged(live, cts)]
    results = call("remat2", operands, {**params, "jaxpr": backward_graph, "prevent_cse": flags})
    return place_flagged(linear, results)


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    graph, outs = tools.batch_graph(
        params["jaxpr"], size, tuple(bool(b) for b in batched), operand_avals=[x.aval for x in xs]
    )
    return call("remat2", xs, {**params, "jaxpr": graph}), list(outs)


register(
    Op(
        "remat2",
        "call",
        _infer,
        numpy=_numpy,
        jvp=_jvp,
        linearize=_linearize,
        transpose=_transpose,
        batch=_batch,
        recomputes=True,
        closes_over=True,
        program_constants={"jaxpr": (0, "")},
    )
)


# --- names, barriers -----------------------------------------------------------------------------


def _name_numpy(x: np.ndarray, *, name: str) -> np.ndarray:
    return x


def _name_jvp(t: Node, y: Node, x: Node, *, name: str) -> Node:
    return t


NAME = unary("name", "biufc", _name_numpy, "{0}", _name_jvp, float0=True, makes_nan=False)


def _apply_barrier(xs: Sequence[Node | None]) -> list[Node | None]:
    """Apply one barrier to all values that are not None."""
    there = [x is not None for x in xs]
    return place_flagged(there, items(o.optimization_barrier(*select_flagged(there, xs))))


def _barrier_infer(*avals: Aval) -> tuple[Aval, ...]:
    return avals


def _barrier_numpy(*xs: np.ndarray) -> tuple[np.ndarray, ...]:
    return xs


def _barrier_transpose(cts: Sequence[Node | None], *_: Operand) -> list[Node | None]:
    return _apply_barrier(cts)


# The results are the operands, for consumers that run after all of them; nothing is copied.
register(
    Op(
        "optimization_barrier",
        "barrier",
        _barrier_infer,
        numpy=_barrier_numpy,
        jvp=lambda ts, y, xs, params: _apply_barrier(ts),
        transpose=_barrier_transpose,
        batch=lambda size, xs, batched, params: (o.optimization_barrier(*xs), list(batched)),
        several=True,
    )
)
