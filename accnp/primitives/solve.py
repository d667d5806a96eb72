"""Solvers that are differentiated implicitly: the ops `custom_linear_solve` and `custom_root`.

The compiler inlines the parameter `jaxpr`, the solver as a program of all operands. Derivatives do
not differentiate the solver; they solve a linear system once more. The user's other functions are
closed programs in the parameter `rule`, a `LinearSolve` or a `Root`. The public functions are in
`accnp/lax/control_flow/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from accnp.ir.graph import Graph, build, evaluate, interpret
from accnp.ir.node import Node, items
from accnp.ir.op import Linear, Op, o, register
from accnp.primitives.control import call, instantiate, leading, split, zeros_for

if TYPE_CHECKING:
    import numpy as np

    from accnp.ir.aval import Aval
    from accnp.ir.op_types import Operand, Params
    from accnp.primitives.rule_types import Tools

__all__ = ["Closed", "LinearSolve", "Root"]

Nodes = list[Node]


class Closed:
    """A program and the number of its leading inputs that are constants (operands of the call)."""

    __slots__ = ("count", "graph")

    def __init__(self, graph: Graph, count: int) -> None:
        self.graph = graph
        self.count = count

    def batched(self, size: int, flags: Sequence[bool], tools: Tools) -> Closed:
        """Return the program for a batch of arguments; `flags` says which constants are batched."""
        rest = len(self.graph.inputs) - self.count
        whole = (*[bool(f) for f in flags], *(True,) * rest)
        return Closed(tools.batch_graph(self.graph, size, whole, True)[0], self.count)


class _Rule:
    """Closed programs, whose constants follow one another among the operands of a call."""

    __slots__ = ("programs",)
    order: tuple[str, ...] = ()  # the names of the programs

    def __init__(self, programs: dict[str, Closed | None]) -> None:
        self.programs = programs

    def __getitem__(self, name: str) -> Closed:
        program = self.programs[name]
        assert program is not None
        return program

    def __repr__(self) -> str:
        return type(self).__name__

    def split(self, xs: Sequence[Any]) -> tuple[dict[str, list[Any]], list[Any]]:
        """Split operands, or flags of them, into each program's constants and the rest."""
        counts = [p.count if (p := self.programs[n]) is not None else 0 for n in self.order]
        *parts, rest = split(xs, *counts)
        return dict(zip(self.order, parts, strict=True)), rest

    def program(self, avals: Sequence[Any]) -> Graph:
        """Return the program that is equivalent to the call: the solver with all operands."""
        solve = self["solve"]

        def run(nodes: Nodes) -> Nodes:
            consts, rest = self.split(nodes)
            return evaluate(solve.graph, [*consts["solve"], *rest])

        return build(run, avals, solve.graph.name)

    def record(self, name: str, inputs: Sequence[Node]) -> Nodes:
        """Record the call with these operands."""
        graph = self.program([x.aval for x in inputs])
        return call(name, inputs, {"jaxpr": graph, "rule": self})

    def batched(self, size: int, flags: Sequence[bool], tools: Tools) -> _Rule:
        """Return the rule for a batch."""
        consts, _ = self.split(flags)
        return type(self)(
            {
                name: None if p is None else p.batched(size, consts[name], tools)
                for name, p in self.programs.items()
            }
        )


class LinearSolve(_Rule):
    """The programs `matvec`, `solve`, and their transposes `vecmat` and `transpose`, or None.

    Each takes its constants, then a vector.
    """

    __slots__ = ()
    order = ("matvec", "vecmat", "solve", "transpose")

    def transposed(self) -> LinearSolve:
        """Return the rule of the transposed system."""
        p = self.programs
        if p["transpose"] is None:
            raise TypeError(
                "lax.custom_linear_solve: reverse-mode differentiation solves the transposed "
                "system; got no transpose_solve; pass one, or symmetric=True"
            )
        names = ("vecmat", "matvec", "transpose", "solve")
        return LinearSolve({new: p[old] for new, old in zip(self.order, names, strict=True)})


class Root(_Rule):
    """The programs `f`: (constants, x) -> residual; `tangent`: (constants, x, y) -> dx with
    f'(x) dx = y, whose constants are followed by those of `f`; `solve`: (constants, guess) -> x."""

    __slots__ = ()
    order = ("f", "tangent", "solve")


def _infer(*_: object, jaxpr: Graph, **__: object) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _numpy(*xs: np.ndarray, jaxpr: Graph, **_: object) -> list[np.ndarray]:
    return interpret(jaxpr, xs)


def _differentiate_constants(
    f: Closed, consts: Nodes, tangents: Sequence[Node | None], x: Nodes, tools: Tools
) -> list[Node | None]:
    """Return the derivative of a program by its constants, at x."""
    nonzero = (*[t is not None for t in tangents], *[False] * len(x))
    if not any(nonzero):
        return [None] * len(f.graph.outputs)
    graph, outs = tools.jvp_graph(f.graph, nonzero)
    nonzero_tangents = [t for t in tangents if t is not None]
    moving = iter(evaluate(graph, [*consts, *x, *nonzero_tangents])[len(outs) :])
    return [next(moving) if there else None for there in outs]


def _subtract(a: Node | None, b: Node | None) -> Node | None:
    if b is None:
        return a
    return o.neg(b) if a is None else o.sub(a, b)


# --- custom_linear_solve ---


def _linear_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    """Differentiate A x = b: solve A dx = db - dA x."""
    rule = params["rule"]
    consts, b = rule.split(xs)
    tangents, db = rule.split(ts)
    out = list(items(y))
    x, aux = out[: len(b)], out[len(b) :]
    dax = _differentiate_constants(rule["matvec"], consts["matvec"], tangents["matvec"], x, tools)
    rhs = [_subtract(t, m) for t, m in zip(db, dax, strict=True)]
    if all(t is None for t in rhs):
        return out, [None] * len(out)
    fixed = xs[: len(xs) - len(b)]
    dx = call_again(rule, fixed, [instantiate(t, v) for t, v in zip(rhs, b, strict=True)])
    return out, [*dx[: len(b)], *[None] * len(aux)]


def call_again(rule: LinearSolve, fixed: Sequence[Node], b: Sequence[Node]) -> Nodes:
    """Solve with another right-hand side."""
    return rule.record("custom_linear_solve", [*fixed, *b])


def _linear_transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    rule = params["rule"]
    consts, b = rule.split(xs)
    if any(isinstance(x, Linear) for part in consts.values() for x in part):
        raise NotImplementedError(
            "lax.custom_linear_solve: only the right-hand side b can be transposed; got a linear "
            "operand among the constants of the matrix; use forward mode"
        )
    turned = rule.transposed()
    avals = [x.aval for x in b]
    fixed = [*consts["vecmat"], *consts["matvec"], *consts["transpose"], *consts["solve"]]
    cotangents = call_again(turned, fixed, zeros_for(cts[: len(b)], avals))
    return [*[None] * (len(xs) - len(b)), *cotangents[: len(b)]]


def _batch(name: str) -> Callable[..., Any]:
    def batch(
        size: int, xs: Sequence[Node], batched: Sequence[bool], params: Params, tools: Tools
    ) -> tuple[Sequence[Node], Sequence[bool]]:
        rule = params["rule"]
        wide = rule.batched(size, batched, tools)
        _, rest = rule.split(xs)
        n = len(xs) - len(rest)
        rest = [leading(size, x, f) for x, f in zip(rest, batched[n:], strict=True)]
        results = wide.record(name, [*xs[:n], *rest])
        return results, [True] * len(results)

    return batch


register(
    Op(
        "custom_linear_solve",
        "call",
        _infer,
        numpy=_numpy,
        jvp=_linear_jvp,
        transpose=_linear_transpose,
        batch=_batch("custom_linear_solve"),
    )
)

# --- custom_root ---


def _root_jvp(
    ts: Sequence[Node | None], y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    """Differentiate f(p, x) = 0: f'(x) dx = -df(p)."""
    rule = params["rule"]
    consts, guess = rule.split(xs)
    tangents, _ = rule.split(ts)
    out = list(items(y))
    x, aux = out[: len(guess)], out[len(guess) :]
    df = _differentiate_constants(rule["f"], consts["f"], tangents["f"], x, tools)
    if all(t is None for t in df):
        return out, [None] * len(out)
    rhs = [instantiate(t, v) for t, v in zip(df, x, strict=True)]
    dx = evaluate(rule["tangent"].graph, [*consts["tangent"], *x, *rhs])
    return out, [*[o.neg(t) for t in dx], *[None] * len(aux)]


register(
    Op(
        "custom_root",
        "call",
        _infer,
        numpy=_numpy,
        jvp=_root_jvp,
        batch=_batch("custom_root"),
    )
)
