"""Evaluation of jaxprs: equation by equation, or as the graphs that ops contain.

`eval_jaxpr` binds the primitives of a jaxpr to values; `programs_of` converts jaxprs that are
parameters of ops to graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accnp.api.arguments.convert import as_node
from accnp.api.tracing.bodies import close
from accnp.array_type import ArrayLike, wrap
from accnp.errors import api_boundary
from accnp.ir.equations import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from accnp.ir.graph import Graph
from accnp.ir.node import Node
from accnp.ir.trace import state
from accnp.trace_fn import trace

__all__ = ["eval_jaxpr", "jaxpr_as_fun", "programs_of"]


@api_boundary
def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], *args: ArrayLike, propagate_source_info: bool = True
) -> list[Any]:
    """Evaluate a jaxpr: bind the primitive of each equation to the values of its operands.

    Parameters
    ----------
    jaxpr : Jaxpr
        Program to evaluate.
    consts : sequence of array_like
        Contents of the constant variables, in order.
    *args : array_like
        Operands of the program, in order.
    propagate_source_info : bool, optional
        Ignored; present for compatibility with JAX.

    Returns
    -------
    list of Array
        Values of the outputs.

    Raises
    ------
    TypeError
        If there are more or fewer values than constants or arguments.

    See Also
    --------
    make_jaxpr : Trace a function to a jaxpr.
    extend.core.jaxpr_as_fun : Turn a jaxpr into a function.

    Examples
    --------
    >>> import accnp as jax
    >>> closed = jax.make_jaxpr(lambda x: x * 2)(1.0)
    >>> jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    for what, names, values in (
        ("constants", jaxpr.constvars, consts),
        ("arguments", jaxpr.invars, args),
    ):
        if len(names) != len(values):
            raise TypeError(
                f"eval_jaxpr: wrong number of {what}; got {len(values)} for {len(names)}; "
                "pass one value for each"
            )
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Atom) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    last: dict[Var, int] = {}  # the last equation that reads each variable
    for i, eqn in enumerate(jaxpr.eqns):
        last.update((v, i) for v in eqn.invars if isinstance(v, Var))
    for v in jaxpr.outvars:
        if isinstance(v, Var):
            last.pop(v, None)
    for i, eqn in enumerate(jaxpr.eqns):
        params = eqn.primitive.get_bind_params(eqn.params)
        out = eqn.primitive.bind(*map(read, eqn.invars), **params)
        outs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
        for v in eqn.invars:
            if isinstance(v, Var) and last.get(v) == i:
                env.pop(v, None)
    return [read(v) for v in jaxpr.outvars]


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Turn a closed jaxpr into a function of flat arguments.

    Parameters
    ----------
    closed_jaxpr : ClosedJaxpr
        Program with the values of its constants.

    Returns
    -------
    callable
        Function that returns a list of results.

    Raises
    ------
    TypeError
        From the returned function, if there are more or fewer arguments than the program has.

    See Also
    --------
    core.eval_jaxpr : Evaluate a jaxpr once.

    Examples
    --------
    >>> import accnp as jax
    >>> jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(lambda x: x * 2)(1.0))(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def programs_of(closed: Sequence[ClosedJaxpr]) -> tuple[list[Graph], list[Node]]:
    """Return jaxprs as graphs, and the values of the constants that are their leading inputs.

    All graphs have the same constants. A jaxpr without constants is recorded once.
    """
    if not any(c.consts for c in closed):
        return [_recorded_graph(c.jaxpr) for c in closed], []
    graphs = [_record(c.jaxpr, c.consts) for c in closed]
    return graphs, close(graphs)


def _recorded_graph(jaxpr: Jaxpr) -> Graph:
    graph = jaxpr.graphs.get(state.named)
    if graph is None:
        graph = jaxpr.graphs[state.named] = _record(jaxpr, ())
    return graph


def _record(jaxpr: Jaxpr, consts: Sequence[Any]) -> Graph:
    def run(nodes: list[Node]) -> list[Node]:
        outs = eval_jaxpr(jaxpr, consts, *[wrap(n) for n in nodes])
        return [as_node(x, "eval_jaxpr") for x in outs]

    names = jaxpr.debug_info.arg_names or ()
    name = jaxpr.debug_info.func_src_info
    graph = trace(run, jaxpr.in_avals, of=eval_jaxpr, transform="eval_jaxpr", names=names)
    graph.name = name
    return graph
