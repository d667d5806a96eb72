"""`custom_jvp`: functions with a user-defined forward-mode derivative rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

from accnp.api.arguments.convert import as_node, wrap
from accnp.api.arguments.values import check_callable, rule_setter
from accnp.api.differentiation.custom_rules import (
    RuleCall,
    SymbolicZero,
    check_same_results,
    depends_on_traces,
    nondiff_positions,
    tangent_aval,
    tangent_value,
)
from accnp.api.tracing.argument_names import function_name, positional_arguments
from accnp.docstrings import filled
from accnp.dtypes import float0
from accnp.errors import ConcretizationTypeError, TracerArrayConversionError, api_boundary
from accnp.ir.node import Node, arg, mark
from accnp.ir.op import o
from accnp.ir.trace import HostValue, Trace, own_lines, state
from accnp.primitives.custom import JvpRule, boundary
from accnp.primitives.kinds import zeros_like_aval
from accnp.pytree import flatten_arrays, tree_flatten, tree_unflatten
from accnp.transforms.traversal import inexact, within

__all__ = ["custom_jvp"]

P = ParamSpec("P")
R = TypeVar("R")


@filled
class custom_jvp(Generic[P, R]):
    """Function with its own forward-mode derivative rule, set by `defjvp` or `defjvps`.

    The rule takes the tuples `(primals, tangents)` and returns the value and its tangent.
    Reverse-mode derivatives follow by transposing the rule, which must be linear in the tangents.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays.
    {nondiff_argnums}

    Raises
    ------
    TypeError
        If `fun` is not callable, or a rule returns other pytree structures, shapes or dtypes than
        the function.
    AttributeError
        If the function is called before its rule is set.

    See Also
    --------
    custom_vjp : Function with its own reverse-mode rule.
    custom_gradient : Return a value together with its reverse-mode rule.

    Notes
    -----
    Tangents have the shapes and dtypes of the values that they belong to. The rule gets the
    arguments that are not differentiated first, before the primals.

    Examples
    --------
    >>> import accnp as jnp
    >>> @jnp.custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 10.0 * tangents[0]
    >>> float(jnp.grad(f)(3.0))
    10.0
    """

    @api_boundary
    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        check_callable("custom_jvp", fun)
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    __getattr__ = rule_setter

    @api_boundary
    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the derivative rule of the function, as a decorator.

        Parameters
        ----------
        jvp : callable
            Rule `(primals, tangents) -> (value, tangent)`, linear in the tangents. Arguments that
            are not differentiated come first.
        symbolic_zeros : bool, optional
            Whether the tangents of arguments that are not perturbed are passed as `SymbolicZero`,
            which the rule may return, too. The default is False.

        Returns
        -------
        callable
            The rule itself.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    @api_boundary
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a derivative rule for each argument of the function.

        Parameters
        ----------
        *jvps : callable or None
            For each argument, a function `(tangent, value, *primals)` that returns its part of the
            tangent; None if the derivative is zero.

        Raises
        ------
        TypeError
            If the function has arguments that are not differentiated; use `defjvp`.
        """
        if self.nondiff_argnums:
            raise TypeError(
                "custom_jvp: defjvps sets a rule for each argument; got nondiff_argnums="
                f"{self.nondiff_argnums!r}; use defjvp"
            )

        function = cast(Callable[..., Any], self)  # untyped

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = function(*primals)
            leaves, tree = flatten_arrays(out)
            totals: list[Node | None] = [None] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=False):
                if rule is None:
                    continue
                for i, part in enumerate(tree_flatten(rule(t, out, *primals))[0]):
                    if getattr(part, "dtype", None) == float0:
                        continue
                    have = totals[i]
                    node = as_node(part, function_name(rule))
                    totals[i] = node if have is None else o.add(have, node)
            filled = [
                tangent_value(t, as_node(x).aval, False)
                for x, t in zip(leaves, totals, strict=True)
            ]
            return out, tree_unflatten(tree, filled)

        self.defjvp(jvp)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = function_name(self.fun)
        if self.jvp is None:
            raise AttributeError(
                f"custom_jvp: No JVP defined for custom_jvp function {name} using defjvp; got a "
                "call of it; set one with defjvp"
            )
        call = RuleCall(
            name, positional_arguments("custom_jvp", self.fun, args, kwargs), self.nondiff_argnums
        )
        if call.of_host_values:
            result = self.fun(*call.host_args())
            if not depends_on_traces(result):
                return result
        flags = call.perturbed()
        if flags and not self.symbolic_zeros and (known := _of_host_values(call)) is not None:
            return _by_host_values(name, call, self.jvp, *known)
        run = _runner(name, call, self.jvp, self.symbolic_zeros)

        ran: list[Any] = []

        def value(nodes: list[Node]) -> tuple[list[Node], Any]:
            """Compute the value by the rule."""
            pairs = [*zip(nodes, flags, strict=False)]
            try:
                with Trace("linear") as inner:
                    ts = [arg(x.aval, inner) if moved else None for x, moved in pairs]
                    outputs, tree, touts = run(nodes, ts)
                if not any(within(x, inner) for x in outputs):
                    ran.append((nodes, ts, outputs, touts))
                    return outputs, tree
            except (ConcretizationTypeError, TracerArrayConversionError):
                pass  # the rule needs concrete tangents: use zeros
            still = [zeros_like_aval(x.aval) if moved else None for x, moved in pairs]
            outputs, tree, _ = run(nodes, still)
            return outputs, tree

        outs, tree = call.run(self.fun, value if flags else None)
        avals = [x.aval for x in outs]
        rule = _rule(name, call, avals, tree, self.jvp, self.symbolic_zeros, flags, ran)
        nodes = boundary(rule, call.nodes, outs, call.effects, call.program)
        return tree_unflatten(tree, [wrap(x) for x in nodes])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _rule(
    name: str,
    call: RuleCall,
    avals: Sequence[Any],
    tree: Any,
    jvp: Callable[..., Any],
    symbolic: bool,
    flags: Sequence[bool],
    ran: list[Any],
) -> JvpRule:
    run = _runner(name, call, jvp, symbolic)

    def fn(primals: list[Node], tangents: list[Node | None]) -> Any:
        if ran and [t is not None for t in tangents[: call.count]] == flags:
            first, places, outs, touts = ran[0]
            moving = [t for t in tangents[: call.count] if t is not None]
            places = [x for x in places if x is not None]
            live = [x for x in touts if x is not None]
            values = call.again([*first, *places], [*outs, *live], [*primals, *moving])
            rest = iter(values[len(outs) :])
            return values[: len(outs)], [None if x is None else next(rest) for x in touts]
        outputs, p_tree, ts = run(primals, tangents)
        check_same_results(_rule_signature(name, jvp), name, outputs, p_tree, avals, tree)
        return outputs, ts

    return JvpRule(name, fn, {"jvp": function_name(jvp), "symbolic_zeros": symbolic})


def _rule_signature(name: str, jvp: Callable[..., Any]) -> str:
    return f"custom_jvp: Custom JVP rule {function_name(jvp)} for function {name}"


def _of_host_values(call: RuleCall) -> tuple[Trace, dict[int, HostValue]] | None:
    """Return the trace of a `jvp` whose arguments are all Python numbers, and their values."""
    trace = state.stack[-1]
    host = trace.host
    if host is None or call.refs or len(call.nodes) != call.count:
        return None
    return (trace, host) if all(id(x) in host for x in call.nodes) else None


def _by_host_values(
    name: str,
    call: RuleCall,
    jvp: Callable[..., Any],
    trace: Trace,
    host: dict[int, HostValue],
) -> Any:
    """Call the rule with Python numbers, as JAX does, so that it can return Python numbers."""
    known = [host[id(x)] for x in call.nodes]
    values = call.dynamic([k.value for k in known])
    moved = call.dynamic([k.tangent for k in known])
    p_out, outputs, tree, t_out, ts = _check_results(
        name, _rule_signature(name, jvp), jvp(*call.fixed(call.nodes), values, moved)
    )
    marks = [mark(x, trace) for x in outputs]
    for new, value, tangent, node in zip(marks, p_out, t_out, ts, strict=True):
        host[id(new)] = HostValue(new, value, tangent, node)
    return tree_unflatten(tree, [wrap(x) for x in marks])


def _check_results(
    name: str, shown: str, result: Any
) -> tuple[list[Any], list[Node], Any, list[Any], list[Node | None]]:
    """Return the results of a rule: values, their nodes and structure, tangents and their nodes."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(
            f"{shown} must produce a pair (list or tuple of length two) representing primal "
            f"and tangent outputs; got {result!r:.200}; return both"
        )
    p_out, p_tree = flatten_arrays(result[0])
    t_out, t_tree = tree_flatten(result[1])
    if p_tree.shown() != t_tree:
        raise TypeError(
            f"{shown} must produce primal and tangent outputs with equal container (pytree) "
            f"structures, but got {p_tree} and {t_tree}; make the tangent like the output"
        )
    outputs = [as_node(x, name) for x in p_out]
    types = p_tree.shown_leaves([x.aval for x in outputs])
    return (
        p_out,
        outputs,
        p_tree,
        t_out,
        [_tangent(t, a, name) for t, a in zip(t_out, types, strict=True)],
    )


def _runner(
    name: str, call: RuleCall, jvp: Callable[..., Any], symbolic: bool
) -> Callable[[list[Node], Sequence[Node | None]], tuple[list[Node], Any, list[Node | None]]]:
    """Return the user's rule as a function of nodes that returns results, their structure and
    their tangents."""
    shown = _rule_signature(name, jvp)

    def run(primals: list[Node], tangents: Sequence[Node | None]) -> Any:
        n = call.count
        leaves = [wrap(x) for x in primals[:n]]
        ts = [
            tangent_value(t, x.aval, symbolic)
            for t, x in zip(tangents[:n], primals[:n], strict=True)
        ]
        with own_lines(), call.once_more():
            moved = call.dynamic(ts, _zero_tangent)
            result = jvp(*call.fixed(primals), call.dynamic(leaves), moved)
        _, outputs, p_tree, _, moving = _check_results(name, shown, result)
        return outputs, p_tree, moving

    return run


def _zero_tangent(ref: Any) -> Any:
    """Return the tangent of a reference: a reference to zeros."""
    return ref.here(wrap(zeros_like_aval(ref.content._node.aval)))


def _tangent(t: Any, x: Any, name: str) -> Node | None:
    """Convert a tangent that a rule returned for a result of type `x`; None for a zero."""
    expected = tangent_aval(x)
    if isinstance(t, SymbolicZero) or getattr(t, "dtype", None) == float0:
        actual, node = t, None
    else:
        node = as_node(t, name)
        actual = node.aval
    if tuple(actual.shape) != expected.shape or actual.dtype != expected.dtype:
        raise TypeError(
            "custom_jvp: Custom JVP rule must produce primal and tangent outputs with "
            f"corresponding shapes and dtypes; expected {expected} (tangent type of {x}), got "
            f"{actual.aval if isinstance(actual, SymbolicZero) else actual}; convert it"
        )
    return node if inexact(x.dtype) else None
