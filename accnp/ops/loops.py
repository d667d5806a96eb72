"""The ops `while` and `scan`. In: graphs of their bodies as parameters. Out: op records.

`scan` runs its body a fixed number of times: inputs are constants, the carry, and arrays of which
each step sees one row; results are the last carry and the rows of the other outputs, stacked. Its
reverse mode stacks residuals in a forward scan and runs the linear part as a scan in the other
direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accnp.ir.aval import Aval, make_aval
from accnp.ir.graph import Graph, build, evaluate, interpret
from accnp.ir.node import Node
from accnp.ir.op import Linear, o
from accnp.ops.control import (
    call,
    instantiate,
    keep,
    leading,
    loop_op,
    reorder,
    select,
    spread,
    zeros_for,
)
from accnp.ops.kinds import zeros_like_aval

__all__: list[str] = []


def _split(xs: Sequence[Any], *sizes: int) -> list[list[Any]]:
    out, at = [], 0
    for n in sizes:
        out.append(list(xs[at : at + n]))
        at += n
    out.append(list(xs[at:]))
    return out


# --- scan ---


def _scan_params(
    jaxpr: Graph, length: int, reverse: bool, unroll: int, num_consts: int, num_carry: int
) -> dict[str, Any]:
    return {
        "jaxpr": jaxpr,
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "num_consts": num_consts,
        "num_carry": num_carry,
    }


def _like(params: dict, jaxpr: Graph, num_consts: int, num_carry: int) -> dict[str, Any]:
    return {**params, "jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry}


def _row(a: Aval) -> Aval:
    return make_aval(a.shape[1:], a.dtype, a.weak_type)


def _stacked(a: Aval, length: int) -> Aval:
    return make_aval((length, *a.shape), a.dtype, a.weak_type)


def _scan_infer(
    *xs: Aval,
    jaxpr: Graph,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> Any:
    outs = jaxpr.out_avals
    return (*outs[:num_carry], *[_stacked(a, length) for a in outs[num_carry:]])


def _scan_numpy(
    *args: Any,
    jaxpr: Graph,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> Any:
    consts, carry, xs = _split(args, num_consts, num_carry)
    ys = [np.empty((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = interpret(jaxpr, [*consts, *carry, *[x[i] for x in xs]])
        carry = outs[:num_carry]
        for y, value in zip(ys, outs[num_carry:], strict=True):
            y[i] = value
    return [*carry, *ys]


def _fixed_point(
    jaxpr_outs: Any, consts: list[bool], carry: list[bool], xs: list[bool]
) -> tuple[list[bool], tuple[bool, ...]]:
    """Grow the flags of the carry until the body gives back no more than it takes."""
    while True:
        outs = jaxpr_outs((*consts, *carry, *xs), (*carry,))
        grown = [a or b for a, b in zip(carry, outs, strict=False)]
        if grown == carry:
            return carry, outs
        carry = grown


def _scan_jvp(ts: Any, y: Any, xs: Any, params: dict, tools: Any) -> Any:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = _split([t is not None for t in ts], nc, nk)
    n_ys = len(jaxpr.outputs) - nk

    def outs_of(which: Any, carry: Any) -> Any:
        return tools.jvp_graph(jaxpr, which, (*carry, *(False,) * n_ys))[1]

    carry, outs = _fixed_point(outs_of, *flags)
    which = (*flags[0], *carry, *flags[2])
    graph = tools.jvp_graph(jaxpr, which, (*carry, *(False,) * n_ys))[0]
    x = _split(xs, nc, nk)
    t = _split(ts, nc, nk)
    t[0], t[2] = keep(flags[0], t[0]), keep(flags[2], t[2])
    t[1] = [instantiate(a, b) for a, b, f in zip(t[1], x[1], carry, strict=True) if f]
    sizes = [len(x[0]), len(t[0]), len(x[1]), len(t[1]), len(x[2]), len(t[2])]
    n_out = len(jaxpr.outputs)

    def body(nodes: list[Node]) -> list[Node]:
        c, ct, k, kt, e, et = _split(nodes, *sizes[:-1])
        results = evaluate(graph, [*c, *k, *e, *ct, *kt, *et])
        primal, tangent = results[:n_out], results[n_out:]
        k_t = tangent[: len(t[1])]
        return [*primal[:nk], *k_t, *primal[nk:], *tangent[len(k_t) :]]

    ins = [*x[0], *t[0], *x[1], *t[1], *x[2], *t[2]]
    n_body = sizes[0] + sizes[1] + sizes[2] + sizes[3]
    avals = [n.aval for n in ins[:n_body]] + [_row(n.aval) for n in ins[n_body:]]
    # The carry's avals are those of the body: an initial tangent may be weakly typed where the
    # body's is not.
    merged = build(body, avals, jaxpr.name)
    results = call("scan", ins, _like(params, merged, sizes[0] + sizes[1], sizes[2] + sizes[3]))
    k_out, k_tan, ys = _split(results, nk, sizes[3])
    tangents = [*spread(carry, k_tan), *spread(outs[nk:], ys[n_ys:])]
    return [*k_out, *ys[:n_ys]], tangents


def _scan_linearize(ts: Any, y: Any, xs: Any, params: dict, tools: Any) -> Any:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = _split([t is not None for t in ts], nc, nk)
    n_out = len(jaxpr.outputs)
    n_ys = n_out - nk

    def outs_of(mask: Any, carry: Any) -> Any:
        return tools.linearize_graph(jaxpr, mask, (*carry, *(False,) * n_ys))[3]

    carry, outs = _fixed_point(outs_of, *flags)
    mask = (*flags[0], *carry, *flags[2])
    primal, linear, n_res, *_ = tools.linearize_graph(jaxpr, mask, (*carry, *(False,) * n_ys))
    # A residual that is an input of the step need not be stacked: constants stay constants, rows
    # are there already.
    where = {id(x): i for i, x in enumerate(primal.inputs)}
    kinds: list[tuple[str, int]] = []
    stacked: list[int] = []
    for i in range(n_out, n_out + n_res):
        at = where.get(id(primal.outputs[i]))
        if at is not None and at < nc:
            kinds.append(("const", at))
        elif at is not None and at >= nc + nk:
            kinds.append(("row", at))
        else:
            kinds.append(("stack", len(stacked)))
            stacked.append(i)
    outputs = [*primal.outputs[:n_out], *[primal.outputs[i] for i in stacked]]
    forward = with_outputs(primal, outputs)
    results = call("scan", xs, {**params, "jaxpr": forward})
    residuals = results[n_out:]
    fixed = [i for i, (k, _) in enumerate(kinds) if k == "const"]
    rows = [i for i, (k, _) in enumerate(kinds) if k != "const"]
    res_consts = [xs[kinds[i][1]] for i in fixed]
    res_rows = [residuals[kinds[i][1]] if kinds[i][0] == "stack" else xs[kinds[i][1]] for i in rows]
    n_ct, n_kt = sum(flags[0]), sum(carry)

    def body(nodes: list[Node]) -> list[Node]:
        rc, ct, kt, rr, et = _split(nodes, len(fixed), n_ct, n_kt, len(rows))
        res: list[Any] = [None] * n_res
        for i, node in zip([*fixed, *rows], [*rc, *rr], strict=True):
            res[i] = node
        return evaluate(linear, [*res, *ct, *kt, *et])

    t = _split(ts, nc, nk)
    kt = [instantiate(a, x) for a, x, f in zip(t[1], xs[nc : nc + nk], carry, strict=True) if f]
    consts = [*res_consts, *keep(flags[0], t[0])]
    extensive = [*res_rows, *keep(flags[2], t[2])]
    avals = [n.aval for n in (*consts, *kt)] + [_row(n.aval) for n in extensive]
    graph = build(body, avals, jaxpr.name)
    moving = call("scan", [*consts, *kt, *extensive], _like(params, graph, len(consts), n_kt))
    return results[:n_out], [*spread(carry, moving[:n_kt]), *spread(outs[nk:], moving[n_kt:])]


def with_outputs(graph: Graph, outputs: Sequence[Node]) -> Graph:
    """Return the same program with other outputs."""
    return Graph(
        graph.inputs,
        outputs,
        graph.name,
        graph.in_names,
        graph.level,
        graph.recorded,
        graph.trace,
    )


def _scan_transpose(cts: Any, xs: Any, params: dict, tools: Any) -> Any:
    """Run the transposed body the other way; cotangents of constants are summed in the carry."""
    jaxpr, nc, nk, length = (params[k] for k in ("jaxpr", "num_consts", "num_carry", "length"))
    linear = [isinstance(x, Linear) for x in xs]
    lc, lk, lx = _split(linear, nc, nk)
    if not all(f or _is_zero(x) for f, x in zip(lk, xs[nc:], strict=False)):
        raise NotImplementedError(
            "scan: cannot transpose a scan whose carry is partly not linear; "
            "got one; keep counters out of the carry (scan over jnp.arange)"
        )
    c, _, e = _split(xs, nc, nk)
    fixed_c, fixed_x = [not f for f in lc], [not f for f in lx]
    index = _split(range(len(xs)), nc, nk)
    order = [
        *keep(fixed_c, index[0]),
        *keep(fixed_x, index[2]),
        *keep(lc, index[0]),
        *index[1],
        *keep(lx, index[2]),
    ]
    n_rc, n_rx, n_lc = sum(fixed_c), sum(fixed_x), sum(lc)
    backward = tools.transpose_graph(reorder(jaxpr, order), n_rc + n_rx)
    outs = jaxpr.out_avals
    k_ct = zeros_for(cts[:nk], outs[:nk])
    y_ct = zeros_for(cts[nk:], [_stacked(a, length) for a in outs[nk:]])
    sums = [zeros_like_aval(x.aval) for x in keep(lc, c)]
    n_ys = len(y_ct)

    def body(nodes: list[Node]) -> list[Node]:
        rc, total, k, ys, rx = _split(nodes, n_rc, n_lc, nk, n_ys)
        results = evaluate(backward, [*rc, *rx, *k, *ys])
        c_ct, rest = results[:n_lc], results[n_lc:]
        return [*[o.add(a, b) for a, b in zip(total, c_ct, strict=True)], *rest]

    consts, extensive = keep(fixed_c, c), [*y_ct, *keep(fixed_x, e)]
    ins = [*consts, *sums, *k_ct, *extensive]
    n_body = len(consts) + len(sums) + len(k_ct)
    avals = [n.aval for n in ins[:n_body]] + [_row(n.aval) for n in extensive]
    graph = build(body, avals, jaxpr.name)
    made = call(
        "scan",
        ins,
        {**_like(params, graph, len(consts), n_lc + nk), "reverse": not params["reverse"]},
    )
    c_out, k_out, x_out = _split(made, n_lc, nk)
    return [*spread(lc, c_out), *spread(lk, keep(lk, k_out)), *spread(lx, x_out)]


def _is_zero(x: Node) -> bool:
    """Whether a node is a tangent that was missing: zeros, made by `zeros_like_aval`."""
    while x.op.name in ("broadcast_in_dim", "convert_element_type", "mark") and x.inputs:
        x = x.inputs[0]
    return x.op.name == "literal" and x.params["value"] == 0


def _swap(x: Node) -> Node:
    return o.transpose(x, permutation=(1, 0, *range(2, x.aval.ndim)))


def _scan_batch(size: int, xs: Any, batched: Any, params: dict, tools: Any) -> Any:
    jaxpr, nc, nk = params["jaxpr"], params["num_consts"], params["num_carry"]
    flags = _split([bool(b) for b in batched], nc, nk)
    n_ys = len(jaxpr.outputs) - nk

    def outs_of(which: Any, carry: Any) -> Any:
        return tools.batch_graph(jaxpr, size, which, (*carry, *(False,) * n_ys))[1]

    carry, outs = _fixed_point(outs_of, *flags)
    which = (*flags[0], *carry, *flags[2])
    graph = tools.batch_graph(jaxpr, size, which, (*carry, *(False,) * n_ys))[0]
    c, k, e = _split(xs, nc, nk)
    k = [leading(size, x, b) if f else x for x, b, f in zip(k, flags[1], carry, strict=True)]
    e = [_swap(x) if b else x for x, b in zip(e, flags[2], strict=True)]
    results = call("scan", [*c, *k, *e], {**params, "jaxpr": graph})
    ys = [_swap(y) if b else y for y, b in zip(results[nk:], outs[nk:], strict=True)]
    return [*results[:nk], *ys], [*carry, *outs[nk:]]


scan = loop_op(
    "scan",
    _scan_infer,
    _scan_numpy,
    jvp=_scan_jvp,
    linearize=_scan_linearize,
    transpose=_scan_transpose,
    batch=_scan_batch,
)


# --- while ---


def _while_params(cond: Graph, body: Graph, cond_n: int, body_n: int) -> dict[str, Any]:
    return {
        "cond_jaxpr": cond,
        "body_jaxpr": body,
        "cond_nconsts": cond_n,
        "body_nconsts": body_n,
    }


def _while_infer(
    *xs: Aval, cond_jaxpr: Graph, body_jaxpr: Graph, cond_nconsts: int, body_nconsts: int
) -> Any:
    return body_jaxpr.out_avals


def _while_numpy(
    *xs: Any, cond_jaxpr: Graph, body_jaxpr: Graph, cond_nconsts: int, body_nconsts: int
) -> Any:
    a, b, carry = _split(xs, cond_nconsts, body_nconsts)
    while interpret(cond_jaxpr, [*a, *carry])[0]:
        carry = interpret(body_jaxpr, [*b, *carry])
    return carry


def _while_jvp(ts: Any, y: Any, xs: Any, params: dict, tools: Any) -> Any:
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    na, nb = params["cond_nconsts"], params["body_nconsts"]
    a, b, k = _split(xs, na, nb)
    _, tb, tk = _split(ts, na, nb)
    fb = [t is not None for t in tb]

    def outs_of(which: Any, carry: Any) -> Any:
        return tools.jvp_graph(body, which, tuple(carry))[1]

    carry, _ = _fixed_point(outs_of, fb, [t is not None for t in tk], [])
    graph = tools.jvp_graph(body, (*fb, *carry), tuple(carry))[0]
    tb = keep(fb, tb)
    tk = [instantiate(t, x) for t, x, f in zip(tk, k, carry, strict=True) if f]

    def step(nodes: list[Node]) -> list[Node]:
        consts, tangents, values, moving = _split(nodes, nb, len(tb), len(k))
        return evaluate(graph, [*consts, *values, *tangents, *moving])

    def test(nodes: list[Node]) -> list[Node]:
        return evaluate(cond, nodes[: na + len(k)])

    state = [n.aval for n in (*k, *tk)]
    new_body = build(step, [*[n.aval for n in (*b, *tb)], *state], body.name)
    new_cond = build(test, [*[n.aval for n in a], *state], cond.name)
    results = call(
        "while", [*a, *b, *tb, *k, *tk], _while_params(new_cond, new_body, na, nb + len(tb))
    )
    return results[: len(k)], spread(carry, results[len(k) :])


def _while_linearize(ts: Any, y: Any, xs: Any, params: dict, tools: Any) -> Any:
    """Values from the loop itself, tangents from a second one that has both; that one cannot be
    transposed."""
    return call("while", xs, params), _while_jvp(ts, y, xs, params, tools)[1]


def _while_transpose(cts: Any, xs: Any, params: dict, tools: Any) -> Any:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
    )


def _while_batch(size: int, xs: Any, batched: Any, params: dict, tools: Any) -> Any:
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    na, nb = params["cond_nconsts"], params["body_nconsts"]
    a, b, k = _split(xs, na, nb)
    fa, fb, fk = _split([bool(f) for f in batched], na, nb)

    def outs_of(which: Any, carry: Any) -> Any:
        return tools.batch_graph(body, size, which, tuple(carry))[1]

    carry, _ = _fixed_point(outs_of, fb, fk, [])
    new_cond, (many,) = tools.batch_graph(cond, size, (*fa, *carry), (False,))
    if many:
        # Rows end at different times: all of the carry is batched, and finished rows keep their
        # values.
        carry = [True] * len(k)
        rows = tools.batch_graph(cond, size, (*fa, *carry), (True,))[0]
    new_body = tools.batch_graph(body, size, (*fb, *carry), tuple(carry))[0]
    k = [leading(size, x, f) if c else x for x, f, c in zip(k, fk, carry, strict=True)]
    if not many:
        results = call("while", [*a, *b, *k], _while_params(new_cond, new_body, na, nb))
        return results, carry

    def test(nodes: list[Node]) -> list[Node]:
        return [o.reduce_or(evaluate(rows, nodes)[0], axes=(0,))]

    def step(nodes: list[Node]) -> list[Node]:
        ca, cb, values = _split(nodes, na, nb)
        going = evaluate(rows, [*ca, *values])[0]
        new = evaluate(new_body, [*cb, *values])
        return [select(going, pair) for pair in zip(values, new, strict=True)]

    state = [n.aval for n in k]
    any_cond = build(test, [*[n.aval for n in a], *state], cond.name)
    masked = build(step, [*[n.aval for n in (*a, *b)], *state], body.name)
    return call("while", [*a, *a, *b, *k], _while_params(any_cond, masked, na, na + nb)), carry


while_ = loop_op(
    "while",
    _while_infer,
    _while_numpy,
    jvp=_while_jvp,
    linearize=_while_linearize,
    transpose=_while_transpose,
    batch=_while_batch,
)
