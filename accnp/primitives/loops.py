"""The op `while`: run a body as long as a condition is true.

The parameters are the graphs of the condition and the body, each with leading constants. There is
only forward-mode differentiation, because the number of steps is unknown at trace time. Batching a
loop with a batched condition runs it until all rows have ended; rows that have ended keep their
values (`masked.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, derive_graph, evaluate, interpret
from accnp.ir.node import Node
from accnp.ir.op import o
from accnp.lazy_imports import imported
from accnp.primitives.control import (
    call,
    check_carry,
    does_io,
    instantiate,
    leading,
    loop_op,
    place_flagged,
    select_flagged,
    split,
)
from accnp.primitives.dependence import fixed_point

if TYPE_CHECKING:
    import numpy as np

    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Tools

__all__ = ["EACH", "no_reverse_mode_error"]


def _while_params(cond: Graph, body: Graph, cond_n: int, body_n: int) -> Params:
    return {
        "cond_jaxpr": cond,
        "body_jaxpr": body,
        "cond_nconsts": cond_n,
        "body_nconsts": body_n,
    }


def _while_infer(
    *xs: Aval, cond_jaxpr: Graph, body_jaxpr: Graph, cond_nconsts: int, body_nconsts: int
) -> tuple[Aval, ...]:
    check_carry("while_loop", xs[cond_nconsts + body_nconsts :], body_jaxpr.out_avals)
    return body_jaxpr.out_avals


def _while_numpy(
    *xs: np.ndarray, cond_jaxpr: Graph, body_jaxpr: Graph, cond_nconsts: int, body_nconsts: int
) -> list[np.ndarray]:
    a, b, carry = split(xs, cond_nconsts, body_nconsts)
    while interpret(cond_jaxpr, [*a, *carry])[0]:
        carry = interpret(body_jaxpr, [*b, *carry])
    return carry


def _while_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    na, nb = params["cond_nconsts"], params["body_nconsts"]
    a, b, k = split(xs, na, nb)
    _, tb, tk = split(ts, na, nb)
    fb = [t is not None for t in tb]

    def outs_of(carry: list[bool]) -> tuple[bool, ...]:
        return tools.jvp_graph(body, (*fb, *carry), tuple(carry))[1]

    carry, _ = fixed_point(outs_of, [t is not None for t in tk])
    graph = tools.jvp_graph(body, (*fb, *carry), tuple(carry))[0]
    tb = select_flagged(fb, tb)
    tk = [instantiate(t, x) for t, x, f in zip(tk, k, carry, strict=True) if f]

    def step(nodes: list[Node]) -> list[Node]:
        consts, tangents, values, moving = split(nodes, nb, len(tb), len(k))
        return evaluate(graph, [*consts, *values, *tangents, *moving])

    def test(nodes: list[Node]) -> list[Node]:
        return evaluate(cond, nodes[: na + len(k)])

    state = [n.aval for n in (*k, *tk)]
    new_body = derive_graph(graph, ("while", nb), step, [*[n.aval for n in (*b, *tb)], *state])
    new_cond = derive_graph(cond, ("while", na, len(k)), test, [*[n.aval for n in a], *state])
    results = call(
        "while", [*a, *b, *tb, *k, *tk], _while_params(new_cond, new_body, na, nb + len(tb))
    )
    return results[: len(k)], place_flagged(carry, results[len(k) :])


def _while_linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    """Take values from the loop itself and tangents from a second loop, which computes both. The
    second one cannot be transposed, but reverse mode may not need its tangents."""
    return call("while", xs, params), _while_jvp(ts, y, xs, params, tools.in_reverse())[1]


def _while_transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    raise no_reverse_mode_error()


def no_reverse_mode_error() -> ValueError:
    """Return the error for reverse mode through a loop with an unknown number of steps."""
    return ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "traced bounds, because the number of steps is not known when tracing; use lax.scan, or "
        "lax.fori_loop with bounds known when tracing, or forward mode (jvp, jacfwd)"
    )


# Key in `Graph.extra` of a batched condition (true while any row continues). The value is the graph
# of the condition per row, which shows that rows that have ended keep their values in the body.
EACH = "condition of each row"


def _while_batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    na, nb = params["cond_nconsts"], params["body_nconsts"]
    a, b, k = split(xs, na, nb)
    fa, fb, fk = split([bool(f) for f in batched], na, nb)

    types = [x.aval for x in (*b, *k)]

    def outs_of(carry: list[bool]) -> tuple[bool, ...]:
        return tools.batch_graph(body, size, (*fb, *carry), tuple(carry), types)[1]

    carry, _ = fixed_point(outs_of, fk)
    tested = [x.aval for x in (*a, *k)]
    new_cond, (is_batched,) = tools.batch_graph(cond, size, (*fa, *carry), (False,), tested)
    row_cond: Graph | None = None
    if is_batched:
        if does_io(body) or does_io(cond):
            raise NotImplementedError(
                "Unordered IO effects not supported in while_loop with batched predicate"
            )
        # Rows end at different times: the whole carry is batched, and finished rows keep their
        # values.
        carry = [True] * len(k)
        # In a batch of a batched loop, the body already keeps the values of finished rows.
        row_cond = cond.extra.get(EACH)
    k = [leading(size, x, f) if c else x for x, f, c in zip(k, fk, carry, strict=True)]
    types = [x.aval for x in (*b, *k)]
    if not is_batched:
        new_body = tools.batch_graph(body, size, (*fb, *carry), tuple(carry), types)[0]
        results = call("while", [*a, *b, *k], _while_params(new_cond, new_body, na, nb))
        return results, carry

    tested = [x.aval for x in (*a, *k)]
    rows = tools.batch_graph(row_cond or cond, size, (*fa, *carry), (True,), tested)[0]

    def test(nodes: list[Node]) -> list[Node]:
        going = evaluate(rows, nodes)[0]
        return [o.reduce_or(going, axes=tuple(range(going.aval.ndim)))]

    def step(nodes: list[Node]) -> list[Node]:
        ca, cb, values = split(nodes, na, nb)
        masked = imported("accnp.primitives.masked").masked
        return masked(body, evaluate(cond, [*ca, *values])[0], cb, values)

    any_cond = derive_graph(rows, ("any", na), test, rows.in_avals)
    any_cond.extra["batched"] = True  # finished rows continue, so checks would report their errors
    any_cond.extra[EACH] = rows
    if row_cond is not None:
        new_body = tools.batch_graph(body, size, (*fb, *carry), tuple(carry), types)[0]
        results = call("while", [*a, *b, *k], _while_params(any_cond, new_body, na, nb))
        return results, carry
    one = derive_graph(body, ("while", na, nb, cond), step, [*cond.in_avals[:na], *body.in_avals])
    types = [*[x.aval for x in a], *types]
    new_body = tools.batch_graph(one, size, (*fa, *fb, *carry), tuple(carry), types)[0]
    return call("while", [*a, *a, *b, *k], _while_params(any_cond, new_body, na, na + nb)), carry


while_ = loop_op(
    "while",
    "while",
    _while_infer,
    _while_numpy,
    jvp=_while_jvp,
    linearize=_while_linearize,
    transpose=_while_transpose,
    batch=_while_batch,
    program_constants={"body_jaxpr": (-1, "body_nconsts"), "cond_jaxpr": (0, "cond_nconsts")},
)
