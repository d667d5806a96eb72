"""Functions with user-defined derivative rules (`custom_jvp`, `custom_vjp`).

Such a function runs on detached operands (`detach` removes derivatives). Each of its results then
passes through a boundary node `custom_jvp_call(result, *operands)` or `custom_vjp_call(...)`. It is
the identity of its first operand, but transformations apply the user's rule instead. The parameter
`rule` is a `JvpRule` or `VjpRule`, which works on nodes. While a jaxpr is made, the function is
recorded as a single call op instead, because jaxprs show it so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, TypeVarTuple

from accnp.errors import UnexpectedTracerError
from accnp.ir.aval import Aval
from accnp.ir.graph import Graph, build, graphs_in, interpret
from accnp.ir.node import Node, items
from accnp.ir.op import CALLS, ZERO, Op, o, register
from accnp.ir.trace import EffectsOf, state
from accnp.primitives.call import transpose_call
from accnp.primitives.control import (
    call,
    instantiate,
    place_flagged,
    select_flagged,
    take_wholes,
)
from accnp.primitives.kinds import broadcast_to

if TYPE_CHECKING:
    import numpy as np

    from accnp.ir.op_types import Operand, Params, Tangents
    from accnp.primitives.rule_types import Tools

__all__ = ["JvpRule", "VjpRule", "boundary", "call_with_rule", "has_symbolic_zeros"]

Nodes = list[Node]
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class _Rule:
    """Base class of rules; one run of a rule serves all results of a call."""

    __slots__ = ("last", "name", "owner", "shown")

    def __init__(self, name: str, shown: dict[str, Any] | None = None) -> None:
        self.name = name
        self.shown = shown or {}  # parameters that jaxprs show in addition to the name
        self.owner: EffectsOf | None = None  # identifies the function's effects
        self.last: tuple[Any, Any] = (None, None)

    def once(self, key: Sequence[Node | None], run: Callable[[], _T]) -> _T:
        """Call `run`, or return the result of the previous call if it had the same nodes as key."""
        have = self.last[0]
        if (
            have is not None
            and len(have) == len(key)
            and all(a is b for a, b in zip(have, key, strict=True))
        ):
            return self.last[1]
        result = self.run(run)
        self.last = (list(key), result)
        return result

    def run(self, fn: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
        """Run the user's rule or a part of it.

        Raises:
            UnexpectedTracerError: it closes over a value of a function whose trace has ended.
        """
        state.ruled = True
        try:
            return fn(*args)
        except UnexpectedTracerError as error:
            if error.origin is None:
                raise
            raise UnexpectedTracerError(
                f"{self.name}: its derivative rule uses a traced value that is no argument, and "
                "the rule runs only when a derivative is computed; got a value that was "
                f"made{error.origin}, which has ended; pass the value to {self.name} as an "
                "argument, and return its derivative from the rule"
            ) from None

    def __repr__(self) -> str:
        return self.name


Maybe = list[Node | None]


class JvpRule(_Rule):
    """A forward-mode rule: fn(primals, tangents) -> (results, tangents); None is a zero tangent."""

    __slots__ = ("fn",)

    def __init__(
        self,
        name: str,
        fn: Callable[[Nodes, Maybe], tuple[Nodes, Maybe]],
        shown: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name, shown)
        self.fn = fn


class VjpRule(_Rule):
    """A reverse-mode rule, whose forward part gets flags for operands with tangents.

    fwd(primals, perturbed) -> (results, residuals, extra); bwd(extra, residuals, cotangents) ->
    cotangents of the operands. `extra` is any other data that the forward part passes to the
    backward part; None is a zero cotangent.
    """

    __slots__ = ("bwd", "fwd")

    def __init__(
        self,
        name: str,
        fwd: Callable[[Nodes, Sequence[bool]], tuple[Nodes, Nodes, Any]],
        bwd: Callable[[Any, Nodes, Maybe], Maybe],
        shown: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name, shown)
        self.fwd = fwd
        self.bwd = bwd


def boundary(
    rule: _Rule,
    xs: Sequence[Node],
    outs: Sequence[Node],
    effects: EffectsOf | None = None,
    program: tuple[Graph, Sequence[Node]] | None = None,
) -> Nodes:
    """Apply the boundary to the results `outs` and the effects of a function that ran on the
    detached `xs`.

    While a jaxpr is made, `program` is the recorded function and the constants that precede `xs`
    among its inputs; it is recorded as one call.
    """
    if program is not None:
        graph, consts = program
        op = "custom_jvp_program" if isinstance(rule, JvpRule) else "custom_vjp_program"
        params = {"call_jaxpr": graph, "num_consts": len(consts), "rule": rule}
        return call(op, [*consts, *xs], params)
    rule.owner = effects
    return [_record_boundary(rule, y, xs, i) for i, y in enumerate(outs)]


def _record_boundary(rule: _Rule, y: Node, xs: Sequence[Node], index: int) -> Node:
    call = o.custom_jvp_call if isinstance(rule, JvpRule) else o.custom_vjp_call
    return call(y, *xs, rule=rule, index=index)


def call_with_rule(rule: _Rule, xs: Sequence[Node], run: Callable[[Nodes], Nodes]) -> Nodes:
    """Run a function of nodes that has a derivative rule, for functions of this package."""
    xs = take_wholes(xs)
    if not state.named:
        return boundary(rule, xs, run([o.detach(x) for x in xs]))
    program = build(run, [x.aval for x in xs], rule.name)
    return boundary(rule, xs, program.outputs, program=(program, ()))


def _infer(y: Aval, *_: Aval, **__: object) -> Aval:
    return y


def _identity_numpy(y: np.ndarray, *_: object, **__: object) -> np.ndarray:
    return y


def _check_not_closed_over(rule: _Rule, t: Node | None) -> None:
    if t is not None:
        raise UnexpectedTracerError(
            f"{rule.name}: the function closes over a value with respect to which it is "
            "differentiated, and its custom derivative rule does not cover that value; pass the "
            "value as an argument, and return a derivative for it from the rule"
        )


# --- custom_jvp ----------------------------------------------------------------------------------


def _jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    rule, k = params["rule"], params["index"]
    _check_not_closed_over(rule, ts[0])
    if all(t is None for t in ts[1:]):
        return [y], [None]
    key = [*xs[1:], *ts[1:]]
    outs, touts = rule.once(key, lambda: rule.fn(list(xs[1:]), list(ts[1:])))
    return [outs[k]], [touts[k]]


def _batched_jvp(rule: JvpRule, size: int, flags: Sequence[bool], tools: Tools) -> JvpRule:
    """Return the rule for a batch: it is traced for one example and recorded for all."""

    def fn(primals: Nodes, tangents: Maybe) -> tuple[Nodes, Maybe]:
        n = len(primals)
        live = [t is not None for t in tangents]
        out_live: list[bool] = []

        def one(leaves: Nodes) -> Nodes:
            outs, touts = rule.fn(leaves[:n], place_flagged(live, leaves[n:]))
            out_live.extend(t is not None for t in touts)
            return [*outs, *select_flagged(out_live, touts)]

        xs = [*primals, *select_flagged(live, tangents)]
        results = tools.batch_function(one, xs, [*flags, *select_flagged(live, flags)], size)
        m = len(out_live)
        return results[:m], place_flagged(out_live, results[m:])

    return JvpRule(rule.name, fn, rule.shown)


def _batch(make: Callable[..., Any]) -> Callable[..., Any]:
    def batch(
        size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
    ) -> tuple[Sequence[Node], Sequence[bool]]:
        rule, y = params["rule"], xs[0]
        if not flags[0]:
            y = broadcast_to(y, (size, *y.aval.shape))
        # All results of one call share one batched rule, so that it runs once.
        key = [None, *xs[1:]]
        wide = rule.once(key, lambda: make(rule, size, list(flags[1:]), tools))
        wide.owner = rule.owner
        return [_record_boundary(wide, y, xs[1:], params["index"])], [True]

    return batch


register(Op("detach", "mark", _infer, numpy=_identity_numpy, jvp=ZERO))
register(
    Op(
        "custom_jvp_call",
        "mark",
        _infer,
        numpy=_identity_numpy,
        jvp=_jvp,
        batch=_batch(_batched_jvp),
        closes_over=True,
    )
)

# --- custom_vjp ----------------------------------------------------------------------------------

_FORWARD = "can't apply forward-mode differentiation (jvp) to a custom_vjp function."


def _no_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    if all(t is None for t in ts):
        return [y], [None]
    raise TypeError(_FORWARD)


def _vjp_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    if tools.reverse:  # inside a loop, where tangents may be unused
        return _linearize(ts, y, xs, params, tools)
    return _no_jvp(ts, y, xs, params, tools)


def _linearize(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    rule, k = params["rule"], params["index"]
    _check_not_closed_over(rule, ts[0])
    if all(t is None for t in ts[1:]):
        return [y], [None]
    outs, touts = rule.once([*xs[1:], *ts[1:]], lambda: _run_forward(rule, xs[1:], ts[1:]))
    return [outs[k]], [touts[k]]


def _run_forward(
    rule: VjpRule, xs: Sequence[Node], ts: Sequence[Node | None]
) -> tuple[Nodes, Nodes]:
    """Run the forward part of a rule; return its results and their tangents."""
    live = tuple(t is not None for t in ts)
    outs, residuals, extra = rule.run(rule.fwd, list(xs), live)
    tangent = o.custom_vjp_tangent(
        *residuals,
        *select_flagged(live, ts),
        rule=rule,
        extra=extra,
        live=live,
        n_res=len(residuals),
        avals=tuple(x.aval for x in outs),
    )
    return outs, list(items(tangent))


def _batched_vjp(rule: VjpRule, size: int, flags: Sequence[bool], tools: Tools) -> VjpRule:
    def fwd(primals: Nodes, perturbed: Sequence[bool]) -> tuple[Nodes, Nodes, Any]:
        seen: list[Any] = []

        def one(leaves: Nodes) -> Nodes:
            outs, residuals, extra = rule.fwd(leaves, perturbed)
            seen.extend([len(outs), extra])
            return [*outs, *residuals]

        results = tools.batch_function(one, primals, flags, size)
        n, extra = seen
        return results[:n], results[n:], extra

    def bwd(extra: object, residuals: Nodes, cts: Maybe) -> Maybe:
        n = len(residuals)
        live = [ct is not None for ct in cts]
        nonzero: list[bool] = []

        def one(leaves: Nodes) -> Nodes:
            cotangents = rule.bwd(extra, leaves[:n], place_flagged(live, leaves[n:]))
            nonzero.extend(x is not None for x in cotangents)
            return select_flagged(nonzero, cotangents)

        xs = [*residuals, *select_flagged(live, cts)]
        batch = tools.batch_function(one, xs, [True] * len(xs), size)
        cotangents = place_flagged(nonzero, batch)
        return [
            ct if ct is None or batched else o.reduce_sum(ct, axes=(0,))
            for ct, batched in zip(cotangents, flags, strict=True)
        ]

    return VjpRule(rule.name, fwd, bwd, rule.shown)


def has_symbolic_zeros(nodes: Sequence[Node]) -> bool:
    """Return whether the nodes, or programs among their parameters, contain a tangent whose rule
    uses `symbolic_zeros`, that is, distinguishes cotangents that are zero."""
    for node in nodes:
        if node.op is TANGENT:
            if node.params["rule"].shown.get("symbolic_zeros"):
                return True
        elif node.op.kind in CALLS and any(map(_holds_symbolic_zeros, graphs_in(node.params))):
            return True
    return False


def _holds_symbolic_zeros(graph: Graph) -> bool:
    has_zeros = graph.extra.get("symbolic zeros")
    if has_zeros is None:
        has_zeros = graph.extra["symbolic zeros"] = has_symbolic_zeros(graph.nodes)
    return has_zeros


def _tangent_infer(*_: Aval, avals: tuple[Aval, ...], **__: object) -> tuple[Aval, ...]:
    return avals


def _tangent_transpose(
    cts: Tangents, xs: Sequence[Any], params: Params, tools: Tools
) -> Sequence[Node | None]:
    n = params["n_res"]
    rule = params["rule"]
    cotangents = rule.run(rule.bwd, params["extra"], list(xs[:n]), list(cts))
    return [None] * n + select_flagged(params["live"], cotangents)


def _tangent_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    """The tangent is linear in tangents; its derivative with respect to residuals is unknown."""
    n = params["n_res"]
    if any(t is not None for t in ts[:n]):
        raise TypeError(_FORWARD)
    moved = [instantiate(t, x) for x, t in zip(xs[n:], ts[n:], strict=True)]
    return items(y), list(items(o.custom_vjp_tangent(*xs[:n], *moved, **params)))


def _raise_forward_mode(*_: object, **__: object) -> NoReturn:
    raise TypeError(_FORWARD)


register(
    Op(
        "custom_vjp_call",
        "mark",
        _infer,
        numpy=_identity_numpy,
        jvp=_vjp_jvp,
        linearize=_linearize,
        batch=_batch(_batched_vjp),
        closes_over=True,
    )
)
# This op appears in linear programs and is only transposed. It counts as an effect, so that forward
# mode raises when it is requested and not only when a value is needed.
TANGENT = register(
    Op(
        "custom_vjp_tangent",
        "call",
        _tangent_infer,
        numpy=_raise_forward_mode,
        jvp=_tangent_jvp,
        transpose=_tangent_transpose,
        batch=_raise_forward_mode,
        effect=True,
    )
)

# --- custom rules as calls, for jaxprs ------------------------------------------------------------


def _program_infer(*_: Aval, call_jaxpr: Graph, **__: object) -> tuple[Aval, ...]:
    return call_jaxpr.out_avals


def _program_numpy(*xs: np.ndarray, call_jaxpr: Graph, **_: object) -> list[np.ndarray]:
    return interpret(call_jaxpr, xs)


def _program_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    rule, n = params["rule"], params["num_consts"]
    for t in ts[:n]:
        _check_not_closed_over(rule, t)
    return rule.run(rule.fn, list(xs[n:]), list(ts[n:]))


def _program_transpose(
    cts: Sequence[Node | None], xs: Sequence[Operand], params: Params, tools: Tools
) -> Sequence[Node | None]:
    """Transpose the function itself; the rule is not used, since nothing is differentiated."""
    of = {"name": params["rule"].name, "jaxpr": params["call_jaxpr"]}
    return transpose_call(cts, xs, of, tools)


def _program_no_jvp(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    if tools.reverse:
        return _program_linearize(ts, y, xs, params, tools)
    raise TypeError(_FORWARD)


def _program_linearize(
    ts: Tangents, y: Node, xs: Sequence[Node], params: Params, tools: Tools
) -> tuple[Sequence[Node], Sequence[Node | None]]:
    rule, n = params["rule"], params["num_consts"]
    for t in ts[:n]:
        _check_not_closed_over(rule, t)
    return _run_forward(rule, xs[n:], ts[n:])


def _program_batch(make: Callable[..., Any]) -> Callable[..., Any]:
    def batch(
        size: int, xs: Sequence[Node], flags: Sequence[bool], params: Params, tools: Tools
    ) -> tuple[Sequence[Node], Sequence[bool]]:
        n = params["num_consts"]
        types = [x.aval for x in xs]
        graph, outs = tools.batch_graph(params["call_jaxpr"], size, tuple(flags), True, types)
        wide = make(params["rule"], size, list(flags[n:]), tools)
        program = (graph, xs[:n])
        return boundary(wide, xs[n:], graph.outputs, program=program), list(outs)

    return batch


def _shown_params(params: Params) -> Params:
    rule = params["rule"]
    return {"name": rule.name, "call_jaxpr": params["call_jaxpr"], **rule.shown}


JVP_PROGRAM = register(
    Op(
        "custom_jvp_program",
        "call",
        _program_infer,
        numpy=_program_numpy,
        jvp=_program_jvp,
        transpose=_program_transpose,
        batch=_program_batch(_batched_jvp),
        show=_shown_params,
        jax_name="custom_jvp_call",
        program_constants={"call_jaxpr": (0, "num_consts")},
    )
)
VJP_PROGRAM = register(
    Op(
        "custom_vjp_program",
        "call",
        _program_infer,
        numpy=_program_numpy,
        jvp=_program_no_jvp,
        linearize=_program_linearize,
        batch=_program_batch(_batched_vjp),
        show=_shown_params,
        jax_name="custom_vjp_call",
        program_constants={"call_jaxpr": (0, "num_consts")},
    )
)
