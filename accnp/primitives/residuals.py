"""Residuals of reverse-mode scans, and sums over steps in the backward pass.

`Residuals` analyses the primal part of a step. It decides which values the forward scan stacks for
the backward pass, which ones the backward pass recomputes, and which ones do not depend on the step
and are computed once before the loop. `summed_scan` takes sums of matrix products out of the
backward loop. `scan.py` uses both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from accnp.ir.graph import Graph, build, derive_graph, toposort
from accnp.ir.node import LITERAL, Node, has_effect, record
from accnp.ir.op import o
from accnp.ir.trace import state
from accnp.primitives.control import call, place_flagged, select_flagged, split, with_outputs
from accnp.primitives.conversion import CONVERT
from accnp.primitives.elementwise import ADD
from accnp.primitives.kinds import zeros_like_aval
from accnp.primitives.views import BROADCAST, RESHAPE, TRANSPOSE

if TYPE_CHECKING:
    from accnp.ir.op_types import Params


__all__ = ["residuals", "summed_scan"]

# A value that costs at most this much (simple instructions per element) is recomputed instead of
# stored.
CHEAP = 4
# Sums of products with at least this many elements are computed after the loop by one product.
LARGE = 1024


class Residuals:
    """The residuals of a scan: which values its linear part needs from its primal part.

    Values that are equal in all steps are computed once, before the loop. Rows of operands and of
    results are available anyway. Views and cheap functions of stored values are recomputed. Only
    the rest is stacked.
    """

    def __init__(self, primal: Graph, n_out: int, num_consts: int, num_carry: int) -> None:
        self.primal = primal
        self.n_out = n_out
        self.needed = primal.outputs[n_out:]
        inputs = primal.inputs
        first_row = num_consts + num_carry
        self.inputs = {id(x): i for i, x in enumerate(inputs)}
        self.varying = set(map(id, inputs[num_consts:]))
        for node in primal.nodes:
            effect = has_effect(node.op, node.params)
            if effect or any(id(x) in self.varying for x in node.inputs):
                self.varying.add(id(node))
        # Available rows: numbers of inputs, and of results, which follow the inputs.
        self.rows = {id(x): first_row + i for i, x in enumerate(inputs[first_row:])}
        for i, x in enumerate(primal.outputs[num_carry:n_out], len(inputs) + num_carry):
            if id(x) in self.varying:
                self.rows.setdefault(id(x), i)
        self.consts: dict[int, Node] = {}  # constants and invariants that the linear part uses
        self.used: dict[int, Node] = {}  # rows that the linear part uses
        self.stacked: dict[int, Node] = {}
        place = {id(x): i for i, x in enumerate(primal.nodes)}
        for x in sorted(self.needed, key=lambda x: place.get(id(x), -1)):
            if not self.is_available(x):
                base = _find_smallest_source(x)
                if not self.is_available(base):
                    self.stacked[id(base)] = base
                    self.rows[id(base)] = len(inputs) + n_out + len(self.stacked) - 1
        stop = {*self.rows, *[id(x) for x in inputs]}
        self.again = toposort(self.needed, stop, self.is_recomputed)
        for x in (*self.needed, *[x for node in self.again for x in node.inputs]):
            if id(x) in self.rows:
                self.used[id(x)] = x
            elif id(x) not in self.varying and x.op is not LITERAL and not self.is_recomputed(x):
                self.consts[id(x)] = x
        self.hoisted = [x for x in self.consts.values() if id(x) not in self.inputs]

    def is_available(self, x: Node, depth: int = 3) -> bool:
        """Return whether a value is available, or is cheap to compute from available values."""
        if id(x) in self.rows or id(x) not in self.varying:
            return True
        return depth > 0 and _is_cheap(x) and all(self.is_available(v, depth - 1) for v in x.inputs)

    def is_recomputed(self, x: Node) -> bool:
        """Return whether the linear part recomputes a value."""
        if id(x) in self.rows or id(x) in self.inputs or x.op.kind == "leaf":
            return False
        return id(x) in self.varying or not x.inputs or _is_derived_from_smaller(x)

    def hoist(self, consts: Sequence[Node]) -> list[Node]:
        """Compute the values that are equal in all steps, given the constants."""
        env = dict(zip(map(id, self.primal.inputs), consts, strict=False))
        _replay(toposort(self.hoisted, set(self.inputs)), env)
        return [env[id(x)] for x in self.hoisted]

    @cached_property
    def forward(self) -> Graph:
        """The forward step: (invariants, inputs) -> (outputs, stacked residuals)."""
        outputs = [*self.primal.outputs[: self.n_out], *self.stacked.values()]
        if not self.hoisted:
            return with_outputs(self.primal, outputs)
        leaves = [*self.hoisted, *self.primal.inputs]

        def run(nodes: list[Node]) -> list[Node]:
            env = dict(zip(map(id, leaves), nodes, strict=True))
            _replay(toposort([*self.primal.effects, *outputs], set(env)), env)
            return [env.get(id(x), x) for x in outputs]

        return build(run, [x.aval for x in leaves], self.primal.name)

    def select_linear_operands(
        self, xs: Sequence[Node], hoisted: Sequence[Node], results: Sequence[Node]
    ) -> tuple[list[Node], list[Node]]:
        """Return the constants and the rows that are operands of the linear step."""
        extra = dict(zip(map(id, self.hoisted), hoisted, strict=True))
        consts = [extra.get(i) or xs[self.inputs[i]] for i in self.consts]
        there = [*xs, *results]
        return consts, [there[self.rows[i]] for i in self.used]

    def restore(self, consts: Sequence[Node], rows: Sequence[Node]) -> list[Node]:
        """Return the residuals in one step of the linear part, given its constants and rows."""
        env = dict(zip([*self.consts, *self.used], [*consts, *rows], strict=True))
        _replay(self.again, env)
        return [env.get(id(x), x) for x in self.needed]


def residuals(primal: Graph, n_out: int, num_consts: int, num_carry: int) -> Residuals:
    """Return the analysis of a primal part, cached on the graph."""
    key = "residuals", num_consts, num_carry, state.named
    entry = primal.extra.get(key)
    if entry is None:
        entry = primal.extra[key] = Residuals(primal, n_out, num_consts, num_carry)
    return entry


def _replay(order: Sequence[Node], env: dict[int, Node]) -> None:
    for node in order:
        env[id(node)] = record(
            node.op, tuple([env.get(id(x), x) for x in node.inputs]), node.params
        )


def _is_cheap(x: Node) -> bool:
    return x.op.kind in ("map", "view") and x.op.cost <= CHEAP


def _is_derived_from_smaller(x: Node) -> bool:
    """Return whether a value is a view or a conversion of a value that is not larger."""
    if x.op.kind != "view" and x.op is not CONVERT:
        return False
    return x.inputs[0].aval.nbytes <= x.aval.nbytes


def _find_smallest_source(x: Node) -> Node:
    while _is_derived_from_smaller(x):
        x = x.inputs[0]
    return x


# --- the backward pass ---


def summed_scan(
    step: Graph,
    consts: Sequence[Node],
    carry: Sequence[Node],
    rows: Sequence[Node],
    n_sums: int,
    params: Params,
) -> tuple[list[Node], list[Node]]:
    """Scan a step (constants, carry, rows) -> (terms, carry, rows) and sum each of its `n_sums`
    terms over the steps; return the sums and the other results.

    A term that is a large product, such as a weight matrix's cotangent, is not summed in the loop:
    its factors are stacked, and one product contracts them over the steps after the loop.
    """
    c, k = len(consts), len(carry)
    terms, rest = list(step.outputs[:n_sums]), list(step.outputs[n_sums:])
    place = {id(x): i for i, x in enumerate(step.inputs)}
    products = [_split_products(x, place, c + k) for x in terms]
    in_loop = [p is None for p in products]
    factors = {id(x): x for p in products for dot, _ in p or () for x in dot.inputs}
    step_factors = {i: x for i, x in factors.items() if place.get(i, -1) < c + k}
    whole = with_outputs(step, [*select_flagged(in_loop, terms), *rest, *step_factors.values()])
    n = sum(in_loop)

    def body(nodes: list[Node]) -> list[Node]:
        constants, totals, moving = split(nodes, c, n)
        env = dict(zip(map(id, step.inputs), [*constants, *moving], strict=True))
        _replay(whole.nodes, env)
        outputs = [env.get(id(x), x) for x in whole.outputs]
        return [*[o.add(a, b) for a, b in zip(totals, outputs[:n], strict=True)], *outputs[n:]]

    totals = [zeros_like_aval(x.aval) for x in select_flagged(in_loop, terms)]
    avals = step.in_avals
    ins = [*avals[:c], *[x.aval for x in totals], *avals[c:]]
    graph = derive_graph(step, ("summed", c, k, n_sums), body, ins)
    new = {**params, "jaxpr": graph, "num_consts": c, "num_carry": n + k}
    results = call("scan", [*consts, *totals, *carry, *rows], new)
    sums, others, stacks = split(results, n, len(rest))
    stack = dict(zip(step_factors, stacks, strict=True))

    def steps_of(x: Node) -> Node:
        return stack[id(x)] if id(x) in stack else rows[place[id(x)] - c - k]

    term_sums = place_flagged(in_loop, sums)
    for i, p in enumerate(products):
        for dot, views in p or ():
            part = _contract_steps(dot, *[steps_of(x) for x in dot.inputs])
            for view in reversed(views):
                part = record(view.op, (part,), view.params)
            term_sums[i] = part if term_sums[i] is None else o.add(term_sums[i], part)
    zeros = [
        zeros_like_aval(x.aval) if f is None else f for f, x in zip(term_sums, terms, strict=True)
    ]
    return zeros, others


Products = list[tuple[Node, list[Node]]]


def _split_products(x: Node, place: dict[int, int], n_fixed: int) -> Products | None:
    """Split a term into large products, each with the views that lead from it to the term.

    Return None if it is not a sum of products, or if stacked factors would be larger than the sum.
    """
    if x.op is ADD:
        parts = [_split_products(v, place, n_fixed) for v in x.inputs]
        return None if None in parts else [p for part in parts for p in part or ()]
    views: list[Node] = []
    while x.op in (BROADCAST, RESHAPE, TRANSPOSE):
        views.append(x)
        x = x.inputs[0]
    if x.op is LITERAL and x.params["value"] == 0:
        return []
    if not x.op.contraction or x.aval.size < LARGE:
        return None
    if any(v.op is BROADCAST for v in views):
        return None
    sizes = [v.aval.size for v in x.inputs if place.get(id(v), -1) < n_fixed]
    return [(x, views)] if sum(sizes) <= x.aval.size else None


def _contract_steps(dot: Node, a: Node, b: Node) -> Node:
    """Record a product of stacked factors that also contracts the axis of steps."""
    contract, batch = dot.params["dimension_numbers"]
    dims = (
        tuple([(0, *[d + 1 for d in side]) for side in contract]),
        tuple([tuple([d + 1 for d in side]) for side in batch]),
    )
    return o.dot_general(a, b, **{**dot.params, "dimension_numbers": dims})
