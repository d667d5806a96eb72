"""The op `scan`: run a body a fixed number of times.

The operands are constants, the initial carry, and arrays of which each step receives one row; the
results are the final carry and the stacked rows of the other outputs. The parameter `jaxpr` is the
graph of the body. In reverse mode, a forward scan stores residuals (`residuals.py`), and the linear
part is a scan whose transpose runs in the opposite direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from accnp.ir.aval import Aval, batched_aval, row_aval
from accnp.ir.graph import Graph, derive_graph, evaluate, interpret
from accnp.ir.node import Node
from accnp.ir.op import Linear, o
from accnp.primitives.control import (
    call,
    check_carry,
    instantiate,
    leading,
    loop_op,
    place_flagged,
    reorder,
    select_flagged,
    split,
    zeros_for,
)
from accnp.primitives.dependence import fixed_point
from accnp.primitives.residuals import residuals, summed_scan

if TYPE_CHECKING:
    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Tools

__all__: list[str] = []


def like(params: Params, jaxpr: Graph, num_consts: int, num_carry: int) -> Params:
    """Return the parameters of a scan with the same number of steps over another body."""
    return {**params, "jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry}


def _infer(
    *xs: Aval,
    jaxpr: Graph,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> tuple[Aval, ...]:
    outs = jaxpr.out_avals
    check_carry("scan", xs[num_consts : num_consts + num_carry], outs[:num_carry])
    return (*outs[:num_carry], *[batched_aval(a, length) for a in outs[num_carry:]])


def _numpy(
    *args: np.ndarray,
    jaxpr: Graph,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> list[np.ndarray]:
    consts, carry, xs = split(args, num_consts, num_carry)
    ys = [np.empty((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = interpret(jaxpr, [*consts, *carry, *[x[i] for x in xs]])
        carry = outs[:num_carry]
        for y, value in zip(ys, outs[num_carry:], strict=True):
            y[i] = value
    return [*carry, *ys]


# --- forward mode ---


def _jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = split([t is not None for t in ts], nc, nk)
    n_ys = len(jaxpr.outputs) - nk

    def outs_of(carry: list[bool]) -> tuple[bool, ...]:
        which = (*flags[0], *carry, *flags[2])
        return tools.jvp_graph(jaxpr, which, (*carry, *(False,) * n_ys))[1]

    carry, outs = fixed_point(outs_of, flags[1])
    which = (*flags[0], *carry, *flags[2])
    graph = tools.jvp_graph(jaxpr, which, (*carry, *(False,) * n_ys))[0]
    x = split(xs, nc, nk)
    t = split(ts, nc, nk)
    t[0], t[2] = select_flagged(flags[0], t[0]), select_flagged(flags[2], t[2])
    t[1] = [instantiate(a, b) for a, b, f in zip(t[1], x[1], carry, strict=True) if f]
    sizes = [len(x[0]), len(t[0]), len(x[1]), len(t[1]), len(x[2]), len(t[2])]
    n_out = len(jaxpr.outputs)

    def body(nodes: list[Node]) -> list[Node]:
        c, ct, k, kt, e, et = split(nodes, *sizes[:-1])
        results = evaluate(graph, [*c, *k, *e, *ct, *kt, *et])
        primal, tangent = results[:n_out], results[n_out:]
        k_t = tangent[: len(t[1])]
        return [*primal[:nk], *k_t, *primal[nk:], *tangent[len(k_t) :]]

    ins = [*x[0], *t[0], *x[1], *t[1], *x[2], *t[2]]
    n_body = sizes[0] + sizes[1] + sizes[2] + sizes[3]
    avals = [n.aval for n in ins[:n_body]] + [row_aval(n.aval) for n in ins[n_body:]]
    # The carry has the avals of the body: an initial tangent may have a weak type even if the
    # body's has not.
    merged = derive_graph(graph, ("scan", nc, nk), body, avals)
    results = call("scan", ins, like(params, merged, sizes[0] + sizes[1], sizes[2] + sizes[3]))
    k_out, k_tan, ys = split(results, nk, sizes[3])
    tangents = [*place_flagged(carry, k_tan), *place_flagged(outs[nk:], ys[n_ys:])]
    return [*k_out, *ys[:n_ys]], tangents


# --- reverse mode ---


def _linearize(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = split([t is not None for t in ts], nc, nk)
    n_out = len(jaxpr.outputs)
    n_ys = n_out - nk

    def outs_of(carry: list[bool]) -> tuple[bool, ...]:
        mask = (*flags[0], *carry, *flags[2])
        return tools.linearize_graph(jaxpr, mask, (*carry, *(False,) * n_ys))[3]

    carry, outs = fixed_point(outs_of, flags[1])
    mask = (*flags[0], *carry, *flags[2])
    primal, linear, *_ = tools.linearize_graph(jaxpr, mask, (*carry, *(False,) * n_ys))
    residual_info = residuals(primal, n_out, nc, nk)
    hoisted = residual_info.hoist(xs[:nc])
    forward = like(params, residual_info.forward, nc + len(hoisted), nk)
    results = call("scan", [*hoisted, *xs], forward)
    consts, rows = residual_info.select_linear_operands(xs, hoisted, results)
    n_ct, n_kt = sum(flags[0]), sum(carry)

    def body(nodes: list[Node]) -> list[Node]:
        rc, ct, kt, rr, et = split(nodes, len(consts), n_ct, n_kt, len(rows))
        return evaluate(linear, [*residual_info.restore(rc, rr), *ct, *kt, *et])

    t = split(ts, nc, nk)
    kt = [instantiate(a, x) for a, x, f in zip(t[1], xs[nc : nc + nk], carry, strict=True) if f]
    fixed = [*consts, *select_flagged(flags[0], t[0])]
    extensive = [*rows, *select_flagged(flags[2], t[2])]
    avals = [n.aval for n in (*fixed, *kt)] + [row_aval(n.aval) for n in extensive]
    graph = derive_graph(linear, ("scan", nc, nk), body, avals)
    moving = call("scan", [*fixed, *kt, *extensive], like(params, graph, len(fixed), n_kt))
    return results[:n_out], [
        *place_flagged(carry, moving[:n_kt]),
        *place_flagged(outs[nk:], moving[n_kt:]),
    ]


def _transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    """Run the transposed body in the opposite direction. Cotangents of constants are summed in the
    carry, or by one product over all steps after the loop."""
    jaxpr, nc, nk = (params[k] for k in ("jaxpr", "num_consts", "num_carry"))
    linear = [isinstance(x, Linear) for x in xs]
    lc, lk, lx = split(linear, nc, nk)
    c, _, e = split(xs, nc, nk)
    fixed_c, fixed_x = [not f for f in lc], [not f for f in lx]
    index = split(range(len(xs)), nc, nk)
    order = [
        *select_flagged(fixed_c, index[0]),
        *select_flagged(fixed_x, index[2]),
        *select_flagged(lc, index[0]),
        *index[1],
        *select_flagged(lx, index[2]),
    ]
    n_rc, n_rx, n_lc = sum(fixed_c), sum(fixed_x), sum(lc)
    backward = tools.transpose_graph(reorder(jaxpr, order), n_rc + n_rx)
    y_live = [ct is not None for ct in cts[nk:]]
    y_avals = jaxpr.out_avals[nk:]

    def body(nodes: list[Node]) -> list[Node]:
        rc, k, ys, rx = split(nodes, n_rc, nk, sum(y_live))
        return evaluate(backward, [*rc, *rx, *k, *zeros_for(place_flagged(y_live, ys), y_avals)])

    consts = select_flagged(fixed_c, c)
    extensive = [*select_flagged(y_live, cts[nk:]), *select_flagged(fixed_x, e)]
    k_ct = zeros_for(cts[:nk], jaxpr.out_avals[:nk])
    avals = [n.aval for n in (*consts, *k_ct)] + [row_aval(n.aval) for n in extensive]
    step = derive_graph(backward, ("scan", n_rc, nk, *y_live), body, avals)
    reversed_params = {**params, "reverse": not params["reverse"]}
    sums, rest = summed_scan(step, consts, k_ct, extensive, n_lc, reversed_params)
    k_out, x_out = split(rest, nk)
    return [
        *place_flagged(lc, sums),
        *place_flagged(lk, select_flagged(lk, k_out)),
        *place_flagged(lx, x_out),
    ]


# --- batching ---


def _swap_axes(x: Node) -> Node:
    return o.transpose(x, permutation=(1, 0, *range(2, x.aval.ndim)))


def _batch(
    size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[bool]]:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = split([bool(b) for b in batched], nc, nk)
    n_ys = len(jaxpr.outputs) - nk
    c, k, e = split(xs, nc, nk)
    e = [_swap_axes(x) if b else x for x, b in zip(e, flags[2], strict=True)]
    types = [*[x.aval for x in (*c, *k)], *[row_aval(x.aval) for x in e]]

    def outs_of(carry: list[bool]) -> tuple[bool, ...]:
        which = (*flags[0], *carry, *flags[2])
        return tools.batch_graph(jaxpr, size, which, (*carry, *(False,) * n_ys), types)[1]

    carry, outs = fixed_point(outs_of, flags[1])
    which = (*flags[0], *carry, *flags[2])
    graph = tools.batch_graph(jaxpr, size, which, (*carry, *(False,) * n_ys), types)[0]
    k = [leading(size, x, b) if f else x for x, b, f in zip(k, flags[1], carry, strict=True)]
    results = call("scan", [*c, *k, *e], {**params, "jaxpr": graph})
    ys = [_swap_axes(y) if b else y for y, b in zip(results[nk:], outs[nk:], strict=True)]
    return [*results[:nk], *ys], [*carry, *outs[nk:]]


loop_op(
    "scan",
    "scan",
    _infer,
    _numpy,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    program_constants={"jaxpr": (0, "num_consts")},
)
